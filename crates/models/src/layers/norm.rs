//! Normalization of rows: by root mean square, and by mean and variance.

use mlx_rs::{Array, fast, ops};

use crate::{Result, weights::Scope};

/// Rows up to which products of a row with itself stand in for MLX's norm, where that is a chain
/// of small operations.
const FEW_ROWS: usize = 64;

/// A norm that an architecture may end with; kinds that only it has may stand in its own file.
pub(crate) trait Norm: std::fmt::Debug {
    /// `[rows, features]` to the same shape.
    fn forward(&self, x: &Array) -> Result<Array>;
}

impl Norm for RmsNorm {
    fn forward(&self, x: &Array) -> Result<Array> {
        self.forward(x)
    }
}

impl Norm for LayerNorm {
    fn forward(&self, x: &Array) -> Result<Array> {
        self.forward(x)
    }
}

/// `x / rms(x) · weight` over the last axis.
#[derive(Debug)]
pub(crate) struct RmsNorm {
    weight: Array,
    eps: f32,
    few_rows: Option<FewRows>,
}

/// `x · rsqrt(x·x + n·eps) · √n·weight`, the same with constants gathered.
#[derive(Debug)]
struct FewRows {
    eps: Array,
    weight: Array,
}

impl FewRows {
    fn new(weight: &Array, eps: f32) -> Result<Self> {
        let features = weight.dim(0) as f32;
        let weight = weight.multiply(Array::from_f32(features.sqrt()))?;
        weight.eval()?;
        Ok(Self {
            eps: Array::from_f32(features * eps),
            weight,
        })
    }
}

impl RmsNorm {
    pub(crate) fn load(scope: &mut Scope<'_>, features: i32, eps: f32) -> Result<Self> {
        let weight = scope.tensor("weight", &[features])?;
        Self::new(weight, eps, scope.compute().saves_operations)
    }

    /// Gemma stores its norms as the difference from one.
    pub(crate) fn load_one_based(scope: &mut Scope<'_>, features: i32, eps: f32) -> Result<Self> {
        let stored = scope.tensor("weight", &[features])?;
        let weight = stored.add(Array::from_f32(1.0).as_dtype(stored.dtype())?)?;
        weight.eval()?;
        Self::new(weight, eps, scope.compute().saves_operations)
    }

    fn new(weight: Array, eps: f32, saves_operations: bool) -> Result<Self> {
        let few_rows = saves_operations
            .then(|| FewRows::new(&weight, eps))
            .transpose()?;
        Ok(Self {
            weight,
            eps,
            few_rows,
        })
    }

    pub(crate) fn forward(&self, x: &Array) -> Result<Array> {
        let features = self.weight.dim(0);
        let rows = x.size() / features as usize;
        let Some(few) = self.few_rows.as_ref().filter(|_| rows <= FEW_ROWS) else {
            return Ok(fast::rms_norm(x, Some(&self.weight), self.eps)?);
        };
        let rows = rows as i32;
        let square = ops::matmul(
            x.reshape(&[rows, 1, features])?,
            x.reshape(&[rows, features, 1])?,
        )?;
        let mut shape = x.shape().to_vec();
        if let Some(last) = shape.last_mut() {
            *last = 1;
        }
        let scale = square.add(&few.eps)?.rsqrt()?.reshape(&shape)?;
        Ok(x.multiply(scale)?.multiply(&few.weight)?)
    }
}

/// `(x - mean) / deviation · weight + bias` over the last axis.
#[derive(Debug)]
pub(crate) struct LayerNorm {
    weight: Array,
    bias: Option<Array>,
    eps: f32,
    /// `1/n` for each feature, `[features, 1]`: where MLX's norm is a chain of small operations,
    /// means are products with it.
    averaging: Option<Array>,
}

impl LayerNorm {
    /// Takes `weight`, and `bias` where `has_bias`; old checkpoints call them `gamma` and `beta`.
    pub(crate) fn load(
        scope: &mut Scope<'_>,
        features: i32,
        eps: f32,
        has_bias: bool,
    ) -> Result<Self> {
        let (weight, bias) = if scope.contains("gamma") {
            ("gamma", "beta")
        } else {
            ("weight", "bias")
        };
        Ok(Self {
            weight: scope.tensor(weight, &[features])?,
            bias: has_bias
                .then(|| scope.tensor(bias, &[features]))
                .transpose()?,
            eps,
            averaging: scope.compute().saves_operations.then(|| {
                let share = (features as f32).recip();
                Array::from_iter((0..features).map(|_| share), &[features, 1])
            }),
        })
    }

    /// Rows, `[rows, features]`, to the same shape.
    pub(crate) fn forward(&self, x: &Array) -> Result<Array> {
        let bias = self.bias.as_ref();
        let Some(averaging) = &self.averaging else {
            return Ok(fast::layer_norm(x, Some(&self.weight), bias, self.eps)?);
        };
        let centred = x.subtract(ops::matmul(x, averaging)?)?;
        let variance = ops::matmul(centred.multiply(&centred)?, averaging)?;
        let scale = variance.add(Array::from_f32(self.eps))?.rsqrt()?;
        let scaled = centred.multiply(scale)?.multiply(&self.weight)?;
        Ok(match bias {
            Some(bias) => scaled.add(bias)?,
            None => scaled,
        })
    }
}
