//! The gated feed-forward part of a block.

use std::f32::consts::FRAC_2_PI;

use mlx_rs::{Array, ops};

use super::{Linear, Projections};
use crate::{ModelError, Result, weights::Scope};

/// Activation of the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activation {
    Silu,
    /// Gelu by its tanh approximation.
    GeluTanh,
}

impl Activation {
    /// The activation that config.json calls `name` under `setting`; it must be `self`, the only
    /// one that mlx-lm computes for the architecture.
    pub(crate) fn expect(self, setting: &str, name: Option<&str>) -> Result<Self> {
        let known = match self {
            Self::Silu => ["silu", "swish"],
            Self::GeluTanh => ["gelu_pytorch_tanh", "gelu_new"],
        };
        match name {
            Some(name) if !known.contains(&name) => Err(ModelError::unsupported(
                format!("{setting} = {name}"),
                format!("this architecture computes {}", known[0]),
            )),
            _ => Ok(self),
        }
    }

    /// `activation(gate) · x`.
    pub(crate) fn gate(self, gate: &Array, x: &Array) -> Result<Array> {
        Ok(match self {
            Self::Silu => gate.multiply(ops::sigmoid(gate)?)?.multiply(x)?,
            Self::GeluTanh => gelu_tanh(gate)?.multiply(x)?,
        })
    }
}

/// `x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))`.
fn gelu_tanh(x: &Array) -> Result<Array> {
    let scalar = |value: f32| Array::from_f32(value).as_dtype(x.dtype());
    let cubic = x.multiply(x)?.multiply(x)?.multiply(scalar(0.044_715)?)?;
    let inner = x.add(cubic)?.multiply(scalar(FRAC_2_PI.sqrt())?)?;
    let half = x.multiply(scalar(0.5)?)?;
    Ok(ops::tanh(inner)?.add(scalar(1.0)?)?.multiply(half)?)
}

/// `down(activation(gate(x)) · up(x))`.
#[derive(Debug)]
pub(crate) struct GatedMlp {
    gate_up: Projections<2>,
    down: Linear,
    activation: Activation,
}

impl GatedMlp {
    /// Takes `gate_proj`, `up_proj` and `down_proj`.
    pub(crate) fn load(
        scope: &mut Scope<'_>,
        hidden: i32,
        intermediate: i32,
        has_bias: bool,
        activation: Activation,
    ) -> Result<Self> {
        let gate_up = [("gate_proj", intermediate), ("up_proj", intermediate)];
        Ok(Self {
            gate_up: Projections::load(scope, hidden, gate_up, has_bias)?,
            down: Linear::load(&mut scope.at("down_proj"), intermediate, hidden, has_bias)?,
            activation,
        })
    }

    /// Takes `gate_up_proj`, gate first, and `down_proj`.
    pub(crate) fn load_joined(
        scope: &mut Scope<'_>,
        hidden: i32,
        intermediate: i32,
        activation: Activation,
    ) -> Result<Self> {
        let gate_up = &mut scope.at("gate_up_proj");
        Ok(Self {
            gate_up: Projections::load_joined(gate_up, hidden, [intermediate; 2])?,
            down: Linear::load(&mut scope.at("down_proj"), intermediate, hidden, false)?,
            activation,
        })
    }

    pub(crate) fn forward(&self, x: &Array) -> Result<Array> {
        let [gate, up] = self.gate_up.forward(x)?;
        self.down.forward(&self.activation.gate(&gate, &up)?)
    }
}
