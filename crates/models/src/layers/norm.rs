//! Root mean square normalization.

use mlx_rs::{Array, fast};

use crate::{Result, weights::Scope};

/// `x / rms(x) · weight` over the last axis.
#[derive(Debug)]
pub(crate) struct RmsNorm {
    weight: Array,
    eps: f32,
}

impl RmsNorm {
    pub(crate) fn load(scope: &mut Scope<'_>, features: i32, eps: f32) -> Result<Self> {
        Ok(Self {
            weight: scope.tensor("weight", &[features])?,
            eps,
        })
    }

    /// Gemma stores its norms as the difference from one.
    pub(crate) fn load_one_based(scope: &mut Scope<'_>, features: i32, eps: f32) -> Result<Self> {
        let stored = scope.tensor("weight", &[features])?;
        let weight = stored.add(Array::from_f32(1.0).as_dtype(stored.dtype())?)?;
        weight.eval()?;
        Ok(Self { weight, eps })
    }

    pub(crate) fn forward(&self, x: &Array) -> Result<Array> {
        Ok(fast::rms_norm(x, Some(&self.weight), self.eps)?)
    }
}
