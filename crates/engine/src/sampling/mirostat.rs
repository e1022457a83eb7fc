//! Mirostat: a draw that steers how surprising the text is (Basu et al., "Mirostat: A Neural Text
//! Decoding Algorithm that Directly Controls Perplexity"), in both versions as llama.cpp has them.
//!
//! Surprise is counted in bits. Candidates more surprising than a limit are left out; after each
//! draw the limit moves by how far the token was from what is aimed at.

use std::f32::consts::LN_2;

use mlx_rs::{
    Array,
    ops::{
        arange, clip, gt, indexing::TryIndexOp, is_nan, le, logsumexp_axis, lt, multiply, select,
        subtract, sum_axis,
    },
};

use super::draw::{Candidates, Drawing, Drawn, column, uniforms};
use crate::error::Result;

/// Candidates that version 1 estimates the distribution's shape from.
const ESTIMATED_FROM: i32 = 100;

/// The limit that a sequence begins with, `[1, 1]`.
pub(super) fn first_limit(tau: f32) -> Array {
    Array::from_slice(&[2.0 * tau], &[1, 1])
}

/// Draws one token a row from `[rows, vocab]` of `f32`.
pub(super) fn draw(logits: &Array, version: u32, rows: &[Drawing<'_>]) -> Result<Drawn> {
    let limits = limits(rows)?;
    let mut candidates = Candidates::new(logits.clone());
    candidates.heat(&column(rows, |row| row.parameters.numbers.temperature))?;
    candidates.sort()?;
    let position = arange::<_, f32>(None, logits.dim(-1), None)?.reshape(&[1, -1])?;
    let kept = if version == 1 {
        lt(
            &position,
            candidates_of_version_1(&candidates.logits, &limits)?,
        )?
    } else {
        let is_first = lt(&position, Array::from_f32(1.0))?;
        le(surprise(&candidates.logits)?, &limits)?.logical_or(&is_first)?
    };
    candidates.keep(&kept)?;
    let (tokens, drawn) = candidates.pick(&uniforms(rows))?;
    let surprise = surprise(&candidates.logits)?.take_along_axis(&drawn, -1)?;
    let error = subtract(
        surprise,
        column(rows, |row| row.parameters.numbers.mirostat_tau),
    )?;
    let rate = column(rows, |row| row.parameters.numbers.mirostat_eta);
    Ok(Drawn {
        tokens,
        surprise_limits: Some(subtract(&limits, multiply(rate, error)?)?),
    })
}

/// The limits of all rows, `[rows, 1]`.
fn limits(rows: &[Drawing<'_>]) -> Result<Array> {
    let limits: Vec<Array> = rows
        .iter()
        .map(|row| match row.surprise_limit {
            Some(limit) => limit.clone(),
            None => first_limit(row.parameters.numbers.mirostat_tau),
        })
        .collect();
    Ok(mlx_rs::ops::concatenate(&limits, 0)?)
}

/// Bits of each candidate.
fn surprise(logits: &Array) -> Result<Array> {
    let logarithms = subtract(logits, logsumexp_axis(logits, -1, true)?)?;
    Ok(logarithms.divide(Array::from_f32(-LN_2))?)
}

/// How many of the sorted candidates are within the limit if probabilities fall off by Zipf's law,
/// whose exponent is estimated from the first of them; `[rows, 1]`, at least 1.
fn candidates_of_version_1(logits: &Array, limits: &Array) -> Result<Array> {
    let vocab = logits.dim(-1);
    let count = ESTIMATED_FROM.min(vocab);
    let (one, nothing) = (Array::from_f32(1.0), Array::from_f32(0.0));
    // ln((i + 2) / (i + 1)) for each pair of neighbours.
    let rank = arange::<_, f32>(1, count, None)?;
    let steps = rank.add(&one)?.divide(&rank)?.log()?.reshape(&[1, -1])?;
    let falls = subtract(
        logits.try_index((.., ..count - 1))?,
        logits.try_index((.., 1..count))?,
    )?;
    // A pair with a candidate that was taken away says nothing.
    let is_there = gt(
        logits.try_index((.., 1..count))?,
        Array::from_f32(f32::NEG_INFINITY),
    )?;
    let weighted = select(&is_there, multiply(&steps, &falls)?, &nothing)?;
    let squares = select(&is_there, multiply(&steps, &steps)?, &nothing)?;
    let exponent = sum_axis(&weighted, -1, true)?.divide(sum_axis(&squares, -1, true)?)?;
    let excess = subtract(&exponent, &one)?;
    let mass = Array::from_f32(2.0).power(limits)?;
    let whole = subtract(
        &one,
        Array::from_f32(vocab as f32).power(excess.negative()?)?,
    )?;
    let count = multiply(&excess, &mass)?
        .divide(whole)?
        .power(one.divide(&exponent)?)?
        .floor()?;
    let count = select(is_nan(&count)?, &one, &count)?;
    Ok(clip(&count, (1.0, vocab as f32))?)
}
