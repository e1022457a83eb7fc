//! Texts side by side, each padded to the longest.

use mlx_rs::{Array, Dtype, ops};

use super::{EncoderText, Rows};
use crate::Result;

/// Takes all weight from a score, twice over within float16. It is finite, so that a row of padding
/// that sees nothing gets numbers, if meaningless ones.
const UNSEEN: f32 = -30_000.0;

/// Tokens of several texts as `texts · length` rows, text by text.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) texts: i32,
    /// Of the longest text.
    pub(crate) length: i32,
    lengths: Vec<i32>,
    /// `[rows]`; padding is token 0, which every vocabulary has and no real token sees.
    pub(crate) tokens: Array,
    /// Segment of each row, `[rows]`; `None` where all is first segment.
    segments: Option<Array>,
}

impl Batch {
    /// `texts` is not empty.
    pub(crate) fn new(texts: &[EncoderText<'_>]) -> Self {
        let lengths: Vec<_> = texts.iter().map(|text| text.tokens.len()).collect();
        let length = lengths.iter().copied().max().unwrap_or(0);
        let mut tokens = Vec::with_capacity(texts.len() * length);
        for text in texts {
            tokens.extend_from_slice(text.tokens);
            tokens.resize(tokens.len() + length - text.tokens.len(), 0);
        }
        let rows = [tokens.len() as i32];
        let has_segments = texts.iter().any(|text| text.second_segment.is_some());
        let segments = has_segments.then(|| {
            let of = |text: &EncoderText<'_>| {
                let second = text.second_segment.unwrap_or(length);
                (0..length).map(move |index| u32::from(index >= second))
            };
            Array::from_iter(texts.iter().flat_map(of), &rows)
        });
        Self {
            texts: texts.len() as i32,
            length: length as i32,
            lengths: lengths.into_iter().map(|length| length as i32).collect(),
            tokens: Array::from_slice(&tokens, &rows),
            segments,
        }
    }

    /// What is added to attention scores, [`UNSEEN`] where a token does not see another because that
    /// is padding or farther than `window` to either side. `None` where each sees all.
    pub(crate) fn mask(&self, window: Option<i32>, dtype: Dtype) -> Result<Option<Array>> {
        let length = self.length;
        let hidden = |is_hidden: bool| if is_hidden { UNSEEN } else { 0.0 };
        let is_padded = self.lengths.iter().any(|&own| own < length);
        let padding = is_padded.then(|| {
            let of = |&own: &i32| (0..length).map(move |index| hidden(index >= own));
            let shape = [self.texts, 1, 1, length];
            Array::from_iter(self.lengths.iter().flat_map(of), &shape)
        });
        let window = window.filter(|&window| window < length - 1).map(|window| {
            let of = |row: i32| (0..length).map(move |index| hidden((index - row).abs() > window));
            let values: Vec<f32> = (0..length).flat_map(of).collect();
            Array::from_slice(&values, &[1, 1, length, length])
        });
        let mask = match (padding, window) {
            (Some(padding), Some(window)) => Some(padding.add(window)?),
            (padding, window) => padding.or(window),
        };
        Ok(mask.map(|mask| mask.as_dtype(dtype)).transpose()?)
    }

    /// `table[first..]` (`[positions, features]`) repeated for each text, `[rows, features]`.
    pub(crate) fn positions(&self, table: &Array, first: i32) -> Result<Array> {
        let features = table.dim(1);
        let rows = ops::arange::<_, i32>(first, first + self.length, None)?;
        let one = table
            .take_axis(rows, 0)?
            .reshape(&[1, self.length, features])?;
        Ok(
            ops::broadcast_to(one, &[self.texts, self.length, features])?
                .reshape(&[-1, features])?,
        )
    }

    /// Rows of `table` (`[segments, features]`) by each token's segment, or the first for all. A
    /// table of one row is that of a family without segments.
    pub(crate) fn segment_rows(&self, table: &Array) -> Result<Array> {
        let first = || Array::from_slice(&[0], &[1]);
        let segments = self.segments.as_ref().filter(|_| table.dim(0) > 1);
        Ok(table.take_axis(segments.map_or_else(first, Array::clone), 0)?)
    }

    /// `hidden` (`[rows, features]`) with where each text lies in it.
    pub(crate) fn rows(self, hidden: Array) -> Rows {
        let starts = (0..self.texts).map(|text| text * self.length).collect();
        Rows {
            hidden,
            starts,
            lengths: self.lengths,
        }
    }
}
