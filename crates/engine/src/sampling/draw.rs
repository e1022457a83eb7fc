//! Filters and the draw, for any number of rows that use the same filters.
//!
//! A row is drawn by its cumulative distribution and one host-made uniform number: cheaper than
//! noise over the vocabulary, and rows cannot influence each other. Candidates are in order of
//! token id, or sorted by a filter; both are stable against rounding, unlike a partition's order.

use macmlx_inference::SamplingNumbers;
use mlx_rs::{
    Array,
    ops::{
        cumsum, gt, indexing::TryIndexOp, indexing::argmax_axis, le, log, logsumexp_axis, lt,
        max_axis, maximum, min_axis, multiply, select, softmax_axis, sum_axis,
    },
};

use super::{
    dynamic_temperature, mirostat,
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
        sigma: bool,
        xtc: bool,
        /// The temperature follows the certainty.
        dynamic: bool,
    },
    /// Mirostat of this version, which takes the place of all filters.
    Mirostat(u32),
}

impl Filters {
    pub(super) fn of(parameters: &Parameters) -> Self {
        let numbers = &parameters.numbers;
        if parameters.is_greedy() {
            return Self::Greedy;
        }
        if numbers.mirostat > 0 {
            return Self::Mirostat(numbers.mirostat);
        }
        Self::Random {
            top_k: numbers.top_k,
            typical: numbers.typical_p < 1.0,
            top_p: numbers.top_p < 1.0,
            min_p: numbers.min_p > 0.0,
            sigma: numbers.top_n_sigma > 0.0,
            xtc: parameters.xtc.is_some(),
            dynamic: numbers.dynatemp_range > 0.0,
        }
    }
}

/// A row as it is drawn: its parameters, its step, and what Mirostat has learned so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct Drawing<'a> {
    pub(super) parameters: &'a Parameters,
    pub(super) step: u64,
    /// `[1, 1]`
    pub(super) surprise_limit: Option<&'a Array>,
}

/// One value of each row, `[rows, 1]`.
pub(super) fn column(rows: &[Drawing<'_>], value: impl Fn(&Drawing<'_>) -> f32) -> Array {
    let values: Vec<f32> = rows.iter().map(value).collect();
    Array::from_slice(&values, &[values.len() as i32, 1])
}

/// The number that decides each row's draw, `[rows, 1]`.
pub(super) fn uniforms(rows: &[Drawing<'_>]) -> Array {
    column(rows, |row| {
        uniform(row.parameters.seed, row.step, Purpose::Draw)
    })
}

/// What came of a draw.
#[derive(Debug)]
pub(super) struct Drawn {
    /// `[rows]` of `u32`.
    pub(super) tokens: Array,
    /// What Mirostat has learned, `[rows, 1]`; only of rows that use it.
    pub(super) surprise_limits: Option<Array>,
}

/// Draws one token a row.
///
/// `logits` is `[rows, vocab]`, of any float type when greedy, else `f32`.
pub(super) fn draw(logits: &Array, filters: Filters, rows: &[Drawing<'_>]) -> Result<Drawn> {
    let tokens = match filters {
        Filters::Greedy => argmax_axis(logits, -1, None)?,
        Filters::Mirostat(version) => return mirostat::draw(logits, version, rows),
        Filters::Random {
            top_k,
            typical,
            top_p,
            min_p,
            sigma,
            xtc,
            dynamic,
        } => {
            let number = |value: fn(&SamplingNumbers) -> f32| {
                column(rows, |row| value(&row.parameters.numbers))
            };
            let mut candidates = Candidates::new(logits.clone());
            if sigma {
                candidates.top_n_sigma(&number(|row| row.top_n_sigma))?;
            }
            if top_k > 0 && (top_k as i32) < logits.dim(-1) {
                candidates.top_k(top_k as i32)?;
            }
            if typical {
                candidates.typical(&number(|row| row.typical_p))?;
            }
            if top_p {
                candidates.top_p(&number(|row| row.top_p))?;
            }
            if min_p {
                candidates.min_p(&number(|row| row.min_p))?;
            }
            if xtc {
                candidates.xtc(&column(rows, xtc_threshold))?;
            }
            let mut temperature = number(|row| row.temperature);
            if dynamic {
                temperature = dynamic_temperature::follow(
                    &candidates.logits,
                    &temperature,
                    &number(|row| row.dynatemp_range),
                    &number(|row| row.dynatemp_exponent),
                )?;
            }
            candidates.heat(&temperature)?;
            candidates.pick(&uniforms(rows))?.0
        }
    };
    Ok(Drawn {
        tokens,
        surprise_limits: None,
    })
}

/// The row's threshold when XTC fires at this step, else one that nothing reaches.
fn xtc_threshold(row: &Drawing<'_>) -> f32 {
    let Parameters { xtc, seed, .. } = row.parameters;
    match xtc {
        Some(xtc) if uniform(*seed, row.step, Purpose::Xtc) < xtc.probability => xtc.threshold,
        Some(_) | None => 2.0,
    }
}

/// What may still be drawn; removed candidates have a logit of minus infinity.
pub(super) struct Candidates {
    /// `[rows, candidates]`
    pub(super) logits: Array,
    /// Token ids of the same shape; `None` while every token is in its place.
    ids: Option<Array>,
}

impl Candidates {
    /// Every token, `[rows, vocab]`.
    pub(super) fn new(logits: Array) -> Self {
        Self { logits, ids: None }
    }

    /// Divides the logits by a temperature, `[rows, 1]`.
    pub(super) fn heat(&mut self, temperature: &Array) -> Result<()> {
        self.logits = self.logits.divide(temperature)?;
        Ok(())
    }

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

    /// Removes the candidates that are not `kept`, `[rows, candidates]` of booleans.
    pub(super) fn keep(&mut self, kept: &Array) -> Result<()> {
        self.logits = select(kept, &self.logits, Array::from_f32(f32::NEG_INFINITY))?;
        Ok(())
    }

    /// Puts the likeliest first.
    pub(super) fn sort(&mut self) -> Result<()> {
        let order = mlx_rs::ops::argsort_axis(self.logits.negative()?, -1)?;
        self.reorder(&order)
    }

    fn top_k(&mut self, k: i32) -> Result<()> {
        let partition = mlx_rs::ops::argpartition_axis(self.logits.negative()?, k - 1, -1)?;
        self.reorder(&partition.try_index((.., ..k))?)?;
        self.sort()
    }

    /// Keeps those within `sigmas` standard deviations of the highest logit
    /// (Tang et al., "Top-nσ: Not All Logits Are You Need").
    fn top_n_sigma(&mut self, sigmas: &Array) -> Result<()> {
        let is_possible = gt(&self.logits, Array::from_f32(f32::NEG_INFINITY))?;
        let ones = select(&is_possible, Array::from_f32(1.0), Array::from_f32(0.0))?;
        let count = sum_axis(&ones, -1, true)?;
        let possible = select(&is_possible, &self.logits, Array::from_f32(0.0))?;
        let mean = sum_axis(&possible, -1, true)?.divide(&count)?;
        let distance = select(
            &is_possible,
            self.logits.subtract(&mean)?,
            Array::from_f32(0.0),
        )?;
        let variance = sum_axis(multiply(&distance, &distance)?, -1, true)?.divide(&count)?;
        let highest = max_axis(&self.logits, -1, true)?;
        let limit = highest.subtract(multiply(variance.sqrt()?, sigmas)?)?;
        self.keep(&le(&limit, &self.logits)?)
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

    /// The first candidate whose cumulative probability is above `uniform` of the whole: its token,
    /// `[rows]`, and where it stands among the candidates, `[rows, 1]`.
    pub(super) fn pick(&self, uniform: &Array) -> Result<(Array, Array)> {
        let cumulative = cumsum(self.probabilities()?, -1, None, None)?;
        let total = cumulative.try_index((.., -1..))?;
        let is_above = gt(&cumulative, multiply(&total, uniform)?)?;
        let position = argmax_axis(&is_above, -1, true)?;
        let token = match &self.ids {
            Some(ids) => ids.take_along_axis(&position, -1)?,
            None => position.clone(),
        };
        Ok((token.reshape(&[-1])?, position))
    }
}
