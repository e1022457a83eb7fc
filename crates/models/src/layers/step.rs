//! How the rows of one forward pass belong to sequences.

use std::ops::Range;

use mlx_rs::{
    Array,
    ops::{self, indexing::TryIndexOp},
};

use super::Rope;
use crate::{LogitsRows, Result, Segment};

/// The segments of one forward pass and where their rows lie.
#[derive(Debug)]
pub(crate) struct Step<'a, 'b> {
    pub(crate) segments: &'a mut [Segment<'b>],
    /// Rows of all segments.
    pub(crate) total: i32,
    /// First rows of the second and following segments: where to split rows into segments.
    pub(crate) borders: Vec<i32>,
    /// Position of each sequence's token, `[segments]`, where each has one: a decode step, whose
    /// rotation is one operation.
    pub(crate) positions: Option<Array>,
    /// Rotation matrices at `positions`, by the rope that made them.
    rotations: Vec<(*const Rope, Array)>,
}

impl<'a, 'b> Step<'a, 'b> {
    pub(crate) fn new(segments: &'a mut [Segment<'b>]) -> Self {
        let mut total = 0;
        let mut borders = Vec::with_capacity(segments.len());
        for segment in segments.iter() {
            total += segment.length as i32;
            borders.push(total);
        }
        borders.pop();
        let is_decode = segments.iter().all(|segment| segment.length == 1);
        let positions = is_decode.then(|| {
            let offsets: Vec<_> = segments.iter().map(|s| s.cache.offset() as i32).collect();
            Array::from_slice(&offsets, &[offsets.len() as i32])
        });
        Self {
            segments,
            total,
            borders,
            positions,
            rotations: Vec::new(),
        }
    }

    /// Rotation matrices of a decode step, made once for all layers that share `rope`; `None` where
    /// rotation is not by matrix.
    pub(crate) fn rotation(&mut self, rope: &Rope) -> Result<Option<Array>> {
        let Some(positions) = &self.positions else {
            return Ok(None);
        };
        let made = self
            .rotations
            .iter()
            .find(|(by, _)| std::ptr::eq(*by, rope));
        if let Some((_, matrices)) = made {
            return Ok(Some(matrices.clone()));
        }
        let matrices = rope.matrices(positions)?;
        self.rotations.extend(
            matrices
                .iter()
                .map(|made| (std::ptr::from_ref(rope), made.clone())),
        );
        Ok(matrices)
    }

    /// The rows of `hidden` (`[rows, features]`) that need logits; `None` when none does.
    pub(crate) fn logits_rows(&self, hidden: Array) -> Result<Option<Array>> {
        let mut ranges: Vec<Range<i32>> = Vec::new();
        let mut start = 0;
        for segment in self.segments.iter() {
            let end = start + segment.length as i32;
            let range = match segment.logits {
                LogitsRows::None => end..end,
                LogitsRows::Last => end - 1..end,
                LogitsRows::All => start..end,
            };
            match ranges.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ if range.is_empty() => {}
                _ => ranges.push(range),
            }
            start = end;
        }
        ranges.retain(|range| !range.is_empty());
        Ok(match &*ranges {
            [] => None,
            [all] if all.len() as i32 == self.total => Some(hidden),
            [one] => Some(hidden.try_index(one.clone())?),
            several => {
                let parts = several.iter().map(|range| hidden.try_index(range.clone()));
                let parts = parts.collect::<std::result::Result<Vec<_>, _>>()?;
                Some(ops::concatenate(&parts, 0)?)
            }
        })
    }
}
