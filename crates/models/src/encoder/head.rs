//! What follows an encoder's hidden states: a vector or a score for each text.

use mlx_rs::{Array, ops};

use super::{Pool, Rows};
use crate::{
    ModelError, Result,
    layers::{Activation, LayerNorm, Linear},
    weights::Scope,
};

/// The end of an encoder.
#[derive(Debug)]
pub(crate) enum Head {
    Vector(VectorHead),
    Score(Scorer),
}

/// Pooled rows end to end, then each step in turn.
#[derive(Debug)]
pub(crate) struct VectorHead {
    pub(crate) pools: Vec<Pool>,
    pub(crate) steps: Vec<Step>,
    pub(crate) features: i32,
}

/// A module of sentence-transformers after pooling.
#[derive(Debug)]
pub(crate) enum Step {
    Dense(Linear, Option<Activation>),
    LayerNorm(LayerNorm),
    /// Scales the vector to a length of 1.
    Normalize,
}

/// A head with one label, whose score is a probability.
#[derive(Debug)]
pub(crate) struct Scorer {
    pool: Pool,
    dense: Option<(Linear, Activation)>,
    norm: Option<LayerNorm>,
    output: Linear,
}

impl Head {
    /// `[texts, features]` in float32.
    pub(crate) fn forward(&self, rows: &Rows) -> Result<Array> {
        match self {
            Self::Vector(head) => head.forward(rows),
            Self::Score(scorer) => scorer.forward(rows),
        }
    }

    pub(crate) fn features(&self) -> u32 {
        match self {
            Self::Vector(head) => head.features.unsigned_abs(),
            Self::Score(_) => 1,
        }
    }
}

impl VectorHead {
    fn forward(&self, rows: &Rows) -> Result<Array> {
        let pooled: Vec<_> = self
            .pools
            .iter()
            .map(|&pool| rows.pool(pool))
            .collect::<Result<_>>()?;
        let pooled = match &*pooled {
            [one] => one.clone(),
            several => ops::concatenate(several, 1)?,
        };
        self.steps
            .iter()
            .try_fold(pooled, |x, step| step.forward(&x))
    }
}

impl Step {
    fn forward(&self, x: &Array) -> Result<Array> {
        match self {
            Self::Dense(linear, activation) => {
                let x = linear.forward(x)?;
                activation.map_or(Ok(x.clone()), |activation| activation.apply(&x))
            }
            Self::LayerNorm(norm) => norm.forward(x),
            Self::Normalize => normalize(x),
        }
    }
}

/// A row of zeros stays what it is.
fn normalize(x: &Array) -> Result<Array> {
    let length = x.multiply(x)?.sum_axis(-1, true)?.sqrt()?;
    Ok(x.divide(ops::maximum(length, Array::from_f32(1e-12))?)?)
}

impl Scorer {
    /// A head that takes `output` (`weight` of one row) from `scope`.
    pub(crate) fn load(
        scope: &mut Scope<'_>,
        hidden: i32,
        pool: Pool,
        has_bias: bool,
    ) -> Result<Self> {
        let labels = scope.rows().unwrap_or(1);
        if labels != 1 {
            return Err(ModelError::unsupported(
                format!("num_labels = {labels}"),
                "a reranker has a single label, and this model sorts texts into several",
            ));
        }
        let output = Linear::load(scope, hidden, 1, has_bias)?;
        Ok(Self::new(pool, output))
    }

    pub(crate) fn new(pool: Pool, output: Linear) -> Self {
        Self {
            pool,
            dense: None,
            norm: None,
            output,
        }
    }

    /// The head has a layer before the last.
    pub(crate) fn with_dense(self, dense: Linear, activation: Activation) -> Self {
        Self {
            dense: Some((dense, activation)),
            ..self
        }
    }

    /// The head has a norm after that layer.
    pub(crate) fn with_norm(self, norm: LayerNorm) -> Self {
        Self {
            norm: Some(norm),
            ..self
        }
    }

    /// Probabilities, `[texts, 1]`.
    fn forward(&self, rows: &Rows) -> Result<Array> {
        let mut x = rows.pool(self.pool)?;
        if let Some((dense, activation)) = &self.dense {
            x = activation.apply(&dense.forward(&x)?)?;
        }
        if let Some(norm) = &self.norm {
            x = norm.forward(&x)?;
        }
        Ok(ops::sigmoid(self.output.forward(&x)?)?.as_type::<f32>()?)
    }
}
