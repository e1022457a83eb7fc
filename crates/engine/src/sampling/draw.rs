//! Filters and the draw, for any number of rows that use the same filters.
//!
//! A row is drawn by its cumulative distribution and one host-made uniform number: cheaper than
//! noise over the vocabulary, and rows cannot influence each other. Candidates are in order of
//! token id, or sorted by a filter; both are stable against rounding, unlike a partition's order.

use mlx_rs::{
    Array,
    ops::{
        cumsum, gt, indexing::TryIndexOp, indexing::argmax_axis, le, log, logsumexp_axis, lt,
        max_axis, maximum, min_axis, multiply, select, softmax_axis, sum_axis,
    },
};

use super::{
    params::Parameters,
    random::{Purpose, uniform},
};
use crate::error::Result;

/// Which filters run. Rows that agree here are drawn together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Filters {
    /// The likeliest token; filters never change it.
    Greedy,
    Random {
        /// 0 is off.
        top_k: u32,
        typical: bool,
        top_p: bool,
        min_p: bool,
        xtc: bool,
    },
}

impl Filters {
    pub(super) fn of(parameters: &Parameters) -> Self {
        if parameters.is_greedy() {
            return Self::Greedy;
        }
        Self::Random {
            top_k: parameters.top_k,
            typical: parameters.typical_p < 1.0,
            top_p: parameters.top_p < 1.0,
            min_p: parameters.min_p > 0.0,
            xtc: parameters.xtc.is_some(),
        }
    }
}

/// Draws one token a row.
///
/// `logits` is `[rows, vocab]` (any float type when greedy, else `f32`); `rows` holds each row's
/// parameters and step; the answer is `[rows]` of `u32`.
pub(super) fn draw(logits: &Array, filters: Filters, rows: &[(&Parameters, u64)]) -> Result<Array> {
    let Filters::Random {
        top_k,
        typical,
        top_p,
        min_p,
        xtc,
    } = filters
    else {
        return Ok(argmax_axis(logits, -1, None)?);
    };
    let column = |value: &dyn Fn(&Parameters, u64) -> f32| {
        let values: Vec<f32> = rows.iter().map(|&(row, step)| value(row, step)).collect();
        Array::from_slice(&values, &[values.len() as i32, 1])
    };
    let mut candidates = Candidates {
        logits: logits.clone(),
        ids: None,
    };
    if top_k > 0 && (top_k as i32) < logits.dim(-1) {
        candidates.top_k(top_k as i32)?;
    }
    if typical {
        candidates.typical(&column(&|row, _| row.typical_p))?;
    }
    if top_p {
        candidates.top_p(&column(&|row, _| row.top_p))?;
    }
    if min_p {
        candidates.min_p(&column(&|row, _| row.min_p))?;
    }
    if xtc {
        candidates.xtc(&column(&xtc_threshold))?;
    }
    candidates.pick(
        &column(&|row, _| row.temperature),
        &column(&|row, step| uniform(row.seed, step, Purpose::Draw)),
    )
}

/// The row's threshold when XTC fires at this step, else one that nothing reaches.
fn xtc_threshold(row: &Parameters, step: u64) -> f32 {
    match row.xtc {
        Some(xtc) if uniform(row.seed, step, Purpose::Xtc) < xtc.probability => xtc.threshold,
        Some(_) | None => 2.0,
    }
}

/// What may still be drawn; removed candidates have a logit of minus infinity.
struct Candidates {
    /// `[rows, candidates]`
    logits: Array,
    /// Token ids of the same shape; `None` while every token is in its place.
    ids: Option<Array>,
}

impl Candidates {
    fn probabilities(&self) -> Result<Array> {
        Ok(softmax_axis(&self.logits, -1, None)?)
    }

    /// Puts candidates in the order of `positions`, `[rows, any]`.
    fn reorder(&mut self, positions: &Array) -> Result<()> {
        self.logits = self.logits.take_along_axis(positions, -1)?;
        self.ids = Some(match &self.ids {
            Some(ids) => ids.take_along_axis(positions, -1)?,
            None => positions.clone(),
        });
        Ok(())
    }

    fn keep(&mut self, kept: &Array) -> Result<()> {
        self.logits = select(kept, &self.logits, Array::from_f32(f32::NEG_INFINITY))?;
        Ok(())
    }

    fn sort(&mut self) -> Result<()> {
        let order = mlx_rs::ops::argsort_axis(self.logits.negative()?, -1)?;
        self.reorder(&order)
    }

    fn top_k(&mut self, k: i32) -> Result<()> {
        let partition = mlx_rs::ops::argpartition_axis(self.logits.negative()?, k - 1, -1)?;
        self.reorder(&partition.try_index((.., ..k))?)?;
        self.sort()
    }

    /// Keeps those nearest to the distribution's entropy until they reach `mass`
    /// (Meister et al., "Locally Typical Sampling").
    fn typical(&mut self, mass: &Array) -> Result<()> {
        let normalizer = logsumexp_axis(&self.logits, -1, true)?;
        let surprise = normalizer.subtract(&self.logits)?;
        let probabilities = self.probabilities()?;
        let is_possible = gt(&probabilities, Array::from_f32(0.0))?;
        // Zero times infinity is not a number.
        let weighted = select(
            &is_possible,
            multiply(&probabilities, &surprise)?,
            Array::from_f32(0.0),
        )?;
        let entropy = sum_axis(&weighted, -1, true)?;
        let order = mlx_rs::ops::argsort_axis(surprise.subtract(&entropy)?.abs()?, -1)?;
        self.reorder(&order)?;
        self.keep_mass(mass)
    }

    /// Keeps the likeliest until they reach `mass`.
    fn top_p(&mut self, mass: &Array) -> Result<()> {
        self.sort()?;
        self.keep_mass(mass)
    }

    /// Keeps the first candidates, up to and with the one that reaches `mass`.
    fn keep_mass(&mut self, mass: &Array) -> Result<()> {
        let before = cumsum(self.probabilities()?, -1, false, false)?;
        // The first is always kept, also when the mass is zero.
        let mass = maximum(mass, Array::from_f32(f32::MIN_POSITIVE))?;
        self.keep(&lt(&before, &mass)?)
    }

    /// Keeps those at least `fraction` times as likely as the likeliest.
    fn min_p(&mut self, fraction: &Array) -> Result<()> {
        let floor = max_axis(&self.logits, -1, true)?.add(log(fraction)?)?;
        self.keep(&le(&floor, &self.logits)?)
    }

    /// Removes all at least as likely as `threshold` but the least likely of them.
    fn xtc(&mut self, threshold: &Array) -> Result<()> {
        let probabilities = self.probabilities()?;
        let above = le(threshold, &probabilities)?;
        let least = min_axis(
            select(&above, &probabilities, Array::from_f32(f32::INFINITY))?,
            -1,
            true,
        )?;
        self.keep(&le(&probabilities, &least)?)
    }

    /// The first candidate whose cumulative probability is above `uniform` of the whole.
    fn pick(&self, temperature: &Array, uniform: &Array) -> Result<Array> {
        let scaled = self.logits.divide(temperature)?;
        let cumulative = cumsum(softmax_axis(&scaled, -1, None)?, -1, None, None)?;
        let total = cumulative.try_index((.., -1..))?;
        let is_above = gt(&cumulative, multiply(&total, uniform)?)?;
        let position = argmax_axis(&is_above, -1, true)?;
        let token = match &self.ids {
            Some(ids) => ids.take_along_axis(&position, -1)?,
            None => position,
        };
        Ok(token.reshape(&[-1])?)
    }
}
