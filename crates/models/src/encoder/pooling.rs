//! Reduces the rows of each text's tokens to one row a text.

use mlx_rs::{Array, Dtype, ops, ops::indexing::TryIndexOp};

use crate::Result;

/// Hidden states of several texts, perhaps with padding between them.
#[derive(Debug)]
pub(crate) struct Rows {
    /// `[rows, features]`.
    pub(crate) hidden: Array,
    /// First row of each text.
    pub(crate) starts: Vec<i32>,
    /// Tokens of each text.
    pub(crate) lengths: Vec<i32>,
}

/// How the rows of a text become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pool {
    First,
    Last,
    Max,
    Mean,
    /// The sum over the root of the length.
    MeanSqrtLength,
    /// The mean with weights that grow with the position: 1, 2, 3…
    WeightedMean,
}

impl Rows {
    /// Texts of `lengths` one after the other, without padding.
    pub(crate) fn end_to_end(hidden: Array, lengths: &[usize]) -> Self {
        let lengths: Vec<_> = lengths.iter().map(|&length| length as i32).collect();
        let starts = lengths.iter().scan(0, |next, length| {
            let start = *next;
            *next += length;
            Some(start)
        });
        Self {
            hidden,
            starts: starts.collect(),
            lengths,
        }
    }

    /// `[texts, features]` in float32.
    pub(crate) fn pool(&self, pool: Pool) -> Result<Array> {
        let ends = self
            .starts
            .iter()
            .zip(&self.lengths)
            .map(|(start, length)| start + length);
        let pooled = match pool {
            Pool::First => self.take(self.starts.iter().copied())?,
            Pool::Last => self.take(ends.map(|end| end - 1))?,
            Pool::Max => {
                let of = |(&start, end): (&i32, i32)| -> Result<Array> {
                    Ok(self.hidden.try_index(start..end)?.max_axis(0, true)?)
                };
                let rows = self.starts.iter().zip(ends).map(of);
                ops::concatenate(&rows.collect::<Result<Vec<_>>>()?, 0)?
            }
            Pool::Mean => return self.weigh(|_, length| 1.0 / length),
            Pool::MeanSqrtLength => return self.weigh(|_, length| length.sqrt().recip()),
            Pool::WeightedMean => {
                return self.weigh(|index, length| (index + 1.0) * 2.0 / (length * (length + 1.0)));
            }
        };
        Ok(pooled.as_dtype(Dtype::Float32)?)
    }

    fn take(&self, rows: impl Iterator<Item = i32>) -> Result<Array> {
        let rows = Array::from_iter(rows, &[self.starts.len() as i32]);
        Ok(self.hidden.take_axis(rows, 0)?)
    }

    /// The sum of each text's rows by `weight(index, length)`, as one product.
    fn weigh(&self, weight: impl Fn(f32, f32) -> f32) -> Result<Array> {
        let (texts, rows) = (self.starts.len(), self.hidden.dim(0) as usize);
        let mut weights = vec![0.0; texts * rows];
        let of_texts = weights.chunks_exact_mut(rows);
        for (weights, (&start, &length)) in of_texts.zip(self.starts.iter().zip(&self.lengths)) {
            let own = &mut weights[start as usize..][..length as usize];
            for (index, each) in own.iter_mut().enumerate() {
                *each = weight(index as f32, length as f32);
            }
        }
        let weights = Array::from_slice(&weights, &[texts as i32, rows as i32]);
        Ok(ops::matmul(weights, self.hidden.as_dtype(Dtype::Float32)?)?)
    }
}
