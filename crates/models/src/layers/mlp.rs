//! The gated feed-forward part of a block.

use mlx_rs::Array;

use super::{Activation, Linear, Projections};
use crate::{Result, weights::Scope};

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
            gate_up: Projections::load_joined(gate_up, hidden, [intermediate; 2], false)?,
            down: Linear::load(&mut scope.at("down_proj"), intermediate, hidden, false)?,
            activation,
        })
    }

    pub(crate) fn forward(&self, x: &Array) -> Result<Array> {
        let [gate, up] = self.gate_up.forward(x)?;
        self.down.forward(&self.activation.gate(&gate, &up)?)
    }
}
