//! A temperature that follows how certain the model is, as llama.cpp has it.

use mlx_rs::{
    Array, Dtype,
    ops::{gt, log, logsumexp_axis, maximum, multiply, select, subtract, sum_axis},
};

use crate::error::Result;

/// No temperature is lower: a division by zero would leave nothing to draw.
const LEAST: f32 = 1e-4;

/// From `temperature - range`, where one candidate is certain, to `temperature + range`, where all
/// are as likely.
///
/// The entropy of the candidates, as a part of the most they could have, to the power of `exponent`
/// says where in between. `logits` is `[rows, candidates]`, the others and the answer are
/// `[rows, 1]`.
pub(super) fn follow(
    logits: &Array,
    temperature: &Array,
    range: &Array,
    exponent: &Array,
) -> Result<Array> {
    let nothing = Array::from_f32(0.0);
    let logarithms = subtract(logits, logsumexp_axis(logits, -1, true)?)?;
    let probabilities = logarithms.exp()?;
    let is_possible = gt(&probabilities, &nothing)?;
    // Zero times infinity is not a number.
    let weighted = select(
        &is_possible,
        multiply(&probabilities, &logarithms)?,
        &nothing,
    )?;
    let entropy = sum_axis(&weighted, -1, true)?.negative()?;
    let candidates = sum_axis(is_possible.as_dtype(Dtype::Float32)?, -1, true)?;
    let most = log(&candidates)?;
    let uncertainty = select(gt(&most, &nothing)?, entropy.divide(&most)?, &nothing)?;
    // Rounding may have taken it below zero, where no power is.
    let uncertainty = maximum(&uncertainty, &nothing)?.power(exponent)?;
    let lowest = maximum(subtract(temperature, range)?, &nothing)?;
    let highest = temperature.add(range)?;
    let reached = lowest.add(multiply(subtract(&highest, &lowest)?, uncertainty)?)?;
    Ok(maximum(reached, Array::from_f32(LEAST))?)
}
