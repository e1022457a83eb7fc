//! Elementwise activations.

use std::f32::consts::FRAC_2_PI;

use mlx_rs::{Array, ops};

use crate::{ModelError, Result, compute::Compute};

/// What is applied to each feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activation {
    Silu,
    /// Gelu by the error function.
    Gelu,
    /// The same without the error function, where that is slow.
    GeluByArithmetic,
    /// Gelu by its tanh approximation.
    GeluTanh,
    Relu,
    Tanh,
    Sigmoid,
}

impl Activation {
    /// The activation that config.json calls `name` under `setting`; it must be `self`, the only
    /// one that mlx-lm computes for the architecture.
    pub(crate) fn expect(self, setting: &str, name: Option<&str>) -> Result<Self> {
        let known = match self {
            Self::Silu => ["silu", "swish"],
            _ => ["gelu_pytorch_tanh", "gelu_new"],
        };
        match name {
            Some(name) if !known.contains(&name) => Err(ModelError::unsupported(
                format!("{setting} = {name}"),
                format!("this architecture computes {}", known[0]),
            )),
            _ => Ok(self),
        }
    }

    /// The activation that config.json calls `name` under `setting`, as transformers computes it.
    pub(crate) fn named(setting: &str, name: &str, compute: Compute) -> Result<Self> {
        Ok(match name {
            "gelu" | "gelu_python" if compute.saves_operations => Self::GeluByArithmetic,
            "gelu" | "gelu_python" => Self::Gelu,
            "gelu_new" | "gelu_fast" | "gelu_pytorch_tanh" => Self::GeluTanh,
            "silu" | "swish" => Self::Silu,
            "relu" => Self::Relu,
            "tanh" => Self::Tanh,
            "sigmoid" => Self::Sigmoid,
            _ => {
                let known = "known are gelu, gelu_new, gelu_pytorch_tanh, gelu_fast, silu, relu, \
                             tanh and sigmoid";
                return Err(ModelError::unsupported(
                    format!("{setting} = {name}"),
                    known,
                ));
            }
        })
    }

    pub(crate) fn apply(self, x: &Array) -> Result<Array> {
        Ok(match self {
            Self::Silu => x.multiply(ops::sigmoid(x)?)?,
            Self::Gelu => gelu(x)?,
            Self::GeluByArithmetic => gelu_by_arithmetic(x)?,
            Self::GeluTanh => gelu_tanh(x)?,
            Self::Relu => ops::maximum(x, zero(x)?)?,
            Self::Tanh => ops::tanh(x)?,
            Self::Sigmoid => ops::sigmoid(x)?,
        })
    }

    /// `activation(gate) · x`.
    pub(crate) fn gate(self, gate: &Array, x: &Array) -> Result<Array> {
        Ok(self.apply(gate)?.multiply(x)?)
    }
}

fn scalar(value: f32, like: &Array) -> Result<Array> {
    Ok(Array::from_f32(value).as_dtype(like.dtype())?)
}

fn zero(like: &Array) -> Result<Array> {
    scalar(0.0, like)
}

/// `x/2 · (1 + erf(x/√2))`.
fn gelu(x: &Array) -> Result<Array> {
    let erf = ops::erf(x.multiply(scalar(0.5_f32.sqrt(), x)?)?)?;
    let half = x.multiply(scalar(0.5, x)?)?;
    Ok(erf.add(scalar(1.0, x)?)?.multiply(half)?)
}

/// The same within 3e-7, by twenty operations of plain arithmetic. On the CPU each of them takes a
/// hundredth of MLX's error function.
///
/// `erfc(z) ≈ (1 + a₁z + … + a₆z⁶)⁻¹⁶` for positive `z` (Abramowitz and Stegun, 7.1.28), so that
/// `gelu(x) = max(x, 0) − |x|/2 · erfc(|x|/√2)`. The factors 1/√2 and 1/2 are in the coefficients.
fn gelu_by_arithmetic(x: &Array) -> Result<Array> {
    const COEFFICIENTS: [f64; 7] = [
        1.0,
        0.070_523_078_4,
        0.042_282_012_3,
        0.009_270_527_2,
        0.000_152_014_3,
        0.000_276_567_2,
        0.000_043_063_8,
    ];
    let double_root = 2_f64.powf(1.0 / 16.0);
    let coefficient = |power: usize| {
        let scale = 0.5_f64.powf(power as f64 / 2.0);
        Array::from_f32((COEFFICIENTS[power] * scale * double_root) as f32)
    };
    let size = x.abs()?;
    let mut sum = size.multiply(coefficient(6))?.add(coefficient(5))?;
    for power in (0..5).rev() {
        sum = sum.multiply(&size)?.add(coefficient(power))?;
    }
    for _ in 0..4 {
        sum = sum.multiply(&sum)?;
    }
    Ok(ops::maximum(x, zero(x)?)?.subtract(size.divide(sum)?)?)
}

/// `x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))`.
fn gelu_tanh(x: &Array) -> Result<Array> {
    let cubic = x
        .multiply(x)?
        .multiply(x)?
        .multiply(scalar(0.044_715, x)?)?;
    let inner = x.add(cubic)?.multiply(scalar(FRAC_2_PI.sqrt(), x)?)?;
    let half = x.multiply(scalar(0.5, x)?)?;
    Ok(ops::tanh(inner)?.add(scalar(1.0, x)?)?.multiply(half)?)
}
