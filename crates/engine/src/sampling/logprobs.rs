//! Log probabilities of raw logits, computed on the device and read back as plain numbers.

use mlx_rs::{
    Array,
    ops::{argpartition_axis, indexing::TryIndexOp, logsumexp_axis},
};

use crate::error::Result;

/// Log probabilities of some rows, not yet evaluated.
#[derive(Debug)]
pub(crate) struct LogprobArrays {
    /// Log probability of the row's own token, `[rows, 1]`.
    chosen: Array,
    /// Ids and log probabilities of the likeliest, `[rows, top]` each, in no order.
    top: Option<(Array, Array)>,
}

/// Log probabilities of one row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LogprobRow {
    pub(crate) chosen: f32,
    /// Likeliest first; equal ones by id.
    pub(crate) top: Vec<(u32, f32)>,
}

/// Natural log probabilities of `tokens` (`[rows]`) and of the `top` likeliest under `logits`
/// (`[rows, vocab]` of `f32`).
pub(crate) fn logprobs(logits: &Array, tokens: &Array, top: u8) -> Result<LogprobArrays> {
    let normalizer = logsumexp_axis(logits, -1, true)?;
    let tokens = tokens.reshape(&[-1, 1])?;
    let chosen = logits.take_along_axis(&tokens, -1)?.subtract(&normalizer)?;
    let vocab = logits.dim(-1);
    let top = match i32::from(top).min(vocab) {
        0 => None,
        count => {
            let ids = argpartition_axis(logits.negative()?, count - 1, -1)?
                .try_index((.., ..count))?
                .contiguous()?;
            let values = logits.take_along_axis(&ids, -1)?.subtract(&normalizer)?;
            Some((ids, values))
        }
    };
    Ok(LogprobArrays { chosen, top })
}

impl LogprobArrays {
    /// What must be evaluated.
    pub(crate) fn arrays(&self) -> impl Iterator<Item = &Array> {
        std::iter::once(&self.chosen).chain(self.top.iter().flat_map(|(ids, values)| [ids, values]))
    }

    /// Waits for the values, one entry a row.
    pub(crate) fn read(&self) -> Result<Vec<LogprobRow>> {
        let chosen = self.chosen.to_vec_exact::<f32>()?;
        let (ids, values, width) = match &self.top {
            Some((ids, values)) => (
                ids.to_vec_cast::<u32>()?,
                values.to_vec_exact::<f32>()?,
                ids.dim(-1) as usize,
            ),
            None => (Vec::new(), Vec::new(), 0),
        };
        Ok(chosen
            .into_iter()
            .enumerate()
            .map(|(row, chosen)| {
                let span = row * width..(row + 1) * width;
                let mut top: Vec<(u32, f32)> = ids[span.clone()]
                    .iter()
                    .copied()
                    .zip(values[span].iter().copied())
                    .collect();
                top.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
                LogprobRow { chosen, top }
            })
            .collect())
    }
}
