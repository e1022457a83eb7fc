//! Samples all rows of a step, those with the same filters together.

use mlx_rs::{
    Array, Dtype,
    ops::{concatenate, indexing::TryIndexOp},
};

use super::{
    Row,
    draw::{Drawing, Filters, draw},
    logprobs::{LogprobArrays, logprobs},
};
use crate::error::Result;

/// Tokens of a step, not yet evaluated.
#[derive(Debug)]
pub(crate) struct Sampled {
    /// `[rows]` of `u32`.
    pub(crate) tokens: Array,
    /// Log probabilities for the rows that asked for them.
    pub(crate) logprobs: Option<LogprobArrays>,
}

/// Samples one token for each row of `logits`, `[rows, vocab]`.
pub(crate) fn sample(logits: &Array, rows: &mut [Row<'_>]) -> Result<Sampled> {
    let is_all_greedy = rows
        .iter()
        .all(|row| row.sampler.is_plain() && row.sampler.parameters().is_greedy());
    if is_all_greedy && rows.iter().all(|row| row.logprobs.is_none()) {
        let tokens = mlx_rs::ops::indexing::argmax_axis(logits, -1, None)?;
        return Ok(Sampled {
            tokens,
            logprobs: None,
        });
    }
    let logits = logits.as_dtype(Dtype::Float32)?;
    let processed = process(&logits, rows)?;
    let tokens = draw_in_groups(&processed, rows)?;
    let logprobs = row_logprobs(&logits, &tokens, rows)?;
    Ok(Sampled { tokens, logprobs })
}

fn process(logits: &Array, rows: &mut [Row<'_>]) -> Result<Array> {
    if rows.iter().all(|row| row.sampler.is_plain()) {
        return Ok(logits.clone());
    }
    let processed = rows
        .iter_mut()
        .enumerate()
        .map(|(index, row)| {
            let index = index as i32;
            let logits = logits.try_index((index..=index, ..))?;
            row.sampler.process(logits, &row.step)
        })
        .collect::<Result<Vec<_>>>()?;
    match processed.as_slice() {
        [one] => Ok(one.clone()),
        many => Ok(concatenate(many, 0)?),
    }
}

fn draw_in_groups(logits: &Array, rows: &mut [Row<'_>]) -> Result<Array> {
    let mut order: Vec<(Filters, usize)> = rows
        .iter()
        .enumerate()
        .map(|(index, row)| (Filters::of(row.sampler.parameters()), index))
        .collect();
    order.sort_unstable();
    let groups: Vec<&[(Filters, usize)]> = order.chunk_by(|a, b| a.0 == b.0).collect();
    let mut drawn = Vec::with_capacity(groups.len());
    for group in &groups {
        let logits = if groups.len() == 1 {
            logits.clone()
        } else {
            let members: Vec<i32> = group.iter().map(|&(_, index)| index as i32).collect();
            logits.take_axis(Array::from_slice(&members, &[members.len() as i32]), 0)?
        };
        drawn.push(draw_group(&logits, group, rows)?);
    }
    if let [tokens] = drawn.as_slice() {
        return Ok(tokens.clone());
    }
    let mut places = vec![0_i32; rows.len()];
    for (place, &(_, index)) in order.iter().enumerate() {
        places[index] = place as i32;
    }
    let places = Array::from_slice(&places, &[places.len() as i32]);
    Ok(concatenate(&drawn, 0)?.take_axis(&places, 0)?)
}

/// Tokens of rows with the same filters, which learn from them where Mirostat draws.
fn draw_group(logits: &Array, group: &[(Filters, usize)], rows: &mut [Row<'_>]) -> Result<Array> {
    let drawings: Vec<Drawing<'_>> = group
        .iter()
        .map(|&(_, index)| Drawing {
            parameters: rows[index].sampler.parameters(),
            step: rows[index].step.index as u64,
            surprise_limit: rows[index].sampler.surprise_limit(),
        })
        .collect();
    let drawn = draw(logits, group[0].0, &drawings)?;
    if let Some(limits) = &drawn.surprise_limits {
        for (place, &(_, index)) in group.iter().enumerate() {
            let place = place as i32;
            let limit = limits.try_index((place..=place, ..))?;
            rows[index].sampler.set_surprise_limit(limit);
        }
    }
    Ok(drawn.tokens)
}

fn row_logprobs(logits: &Array, tokens: &Array, rows: &[Row<'_>]) -> Result<Option<LogprobArrays>> {
    let Some(top) = rows.iter().filter_map(|row| row.logprobs).max() else {
        return Ok(None);
    };
    let asking: Vec<i32> = (0..rows.len())
        .filter(|&index| rows[index].logprobs.is_some())
        .map(|index| index as i32)
        .collect();
    if asking.len() == rows.len() {
        return logprobs(logits, tokens, top).map(Some);
    }
    let asking = Array::from_slice(&asking, &[asking.len() as i32]);
    logprobs(
        &logits.take_axis(&asking, 0)?,
        &tokens.take_axis(&asking, 0)?,
        top,
    )
    .map(Some)
}
