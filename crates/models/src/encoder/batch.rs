//! Texts laid out for one forward pass.

use mlx_rs::{Array, Dtype, ops::indexing::TryIndexOp};

use super::{EncoderText, Rows};
use crate::{Result, compute::Compute};

/// Takes all weight from a score, twice over within float16. It is finite, so that a row of padding
/// that sees nothing gets numbers, if meaningless ones.
const UNSEEN: f32 = -30_000.0;

/// Texts one after the other. Only attention looks at groups of them.
///
/// A GPU pays for each operation, so there all texts are one group, padded to the longest. The CPU
/// pays for each row: there a group has texts of one length, and nothing is padded.
#[derive(Debug)]
pub(crate) struct Batch {
    groups: Vec<Group>,
    /// `[rows]`; padding is token 0, which every vocabulary has and no real token sees.
    pub(crate) tokens: Array,
    /// Place of each row in its text.
    places: Vec<i32>,
    /// Segment of each row, `[rows]`; `None` where all is first segment.
    segments: Option<Array>,
}

/// Consecutive texts, each padded to the same length.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) texts: i32,
    /// Rows of each text.
    pub(crate) length: i32,
    start: i32,
    /// Tokens of each text.
    lengths: Vec<i32>,
}

/// What is added to the scores of each group, [`UNSEEN`] where a token does not see another.
#[derive(Debug)]
pub(crate) struct Masks(Vec<Option<Array>>);

impl Group {
    /// Its rows of `[rows, features]`.
    pub(crate) fn of(&self, rows: &Array) -> Result<Array> {
        let end = self.start + self.texts * self.length;
        if self.start == 0 && end == rows.dim(0) {
            return Ok(rows.clone());
        }
        Ok(rows.try_index(self.start..end)?)
    }

    fn mask(&self, window: Option<i32>, dtype: Dtype) -> Result<Option<Array>> {
        let length = self.length;
        let score = |is_seen: bool| if is_seen { 0.0 } else { UNSEEN };
        let is_padded = self.lengths.iter().any(|&own| own < length);
        let padding = is_padded.then(|| {
            let of = |&own: &i32| (0..length).map(move |index| score(index < own));
            let shape = [self.texts, 1, 1, length];
            Array::from_iter(self.lengths.iter().flat_map(of), &shape)
        });
        let window = window.filter(|&window| window < length - 1).map(|window| {
            let of = |row: i32| (0..length).map(move |index| score((index - row).abs() <= window));
            let values: Vec<f32> = (0..length).flat_map(of).collect();
            Array::from_slice(&values, &[1, 1, length, length])
        });
        let mask = match (padding, window) {
            (Some(padding), Some(window)) => Some(padding.add(window)?),
            (padding, window) => padding.or(window),
        };
        Ok(mask.map(|mask| mask.as_dtype(dtype)).transpose()?)
    }
}

impl Batch {
    /// `texts` is not empty.
    pub(crate) fn new(texts: &[EncoderText<'_>], compute: Compute) -> Self {
        let longest = texts.iter().map(|text| text.tokens.len()).max();
        let padded = longest.filter(|_| !compute.saves_operations);
        let length = |text: &EncoderText<'_>| padded.unwrap_or(text.tokens.len());
        let mut groups: Vec<Group> = Vec::new();
        let mut tokens = Vec::new();
        for text in texts {
            let start = tokens.len() as i32;
            tokens.extend_from_slice(text.tokens);
            tokens.resize(start as usize + length(text), 0);
            let (own, length) = (text.tokens.len() as i32, length(text) as i32);
            match groups.last_mut().filter(|group| group.length == length) {
                Some(group) => {
                    group.texts += 1;
                    group.lengths.push(own);
                }
                None => groups.push(Group {
                    texts: 1,
                    length,
                    start,
                    lengths: vec![own],
                }),
            }
        }
        let rows = [tokens.len() as i32];
        let has_segments = texts.iter().any(|text| text.second_segment.is_some());
        let segments = has_segments.then(|| {
            let of = |text: &EncoderText<'_>| {
                let second = text.second_segment.unwrap_or(usize::MAX);
                (0..length(text)).map(move |index| u32::from(index >= second))
            };
            Array::from_iter(texts.iter().flat_map(of), &rows)
        });
        let places = texts.iter().flat_map(|text| 0..length(text) as i32);
        Self {
            places: places.collect(),
            tokens: Array::from_slice(&tokens, &rows),
            groups,
            segments,
        }
    }

    pub(crate) fn groups<'a>(
        &'a self,
        masks: &'a Masks,
    ) -> impl Iterator<Item = (&'a Group, Option<&'a Array>)> {
        self.groups.iter().zip(masks.0.iter().map(Option::as_ref))
    }

    /// Masks by which no token sees padding, nor farther than `window` to either side.
    pub(crate) fn masks(&self, window: Option<i32>, dtype: Dtype) -> Result<Masks> {
        let masks = self.groups.iter().map(|group| group.mask(window, dtype));
        Ok(Masks(masks.collect::<Result<_>>()?))
    }

    /// Rows of `table` (`[positions, features]`) by each token's place, the first of which is row
    /// `first`.
    pub(crate) fn positions(&self, table: &Array, first: i32) -> Result<Array> {
        let rows = self.places.iter().map(|place| first + place);
        let rows = Array::from_iter(rows, &[self.places.len() as i32]);
        Ok(table.take_axis(rows, 0)?)
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
        let of = |group: &Group| {
            let (start, length) = (group.start, group.length);
            (0..group.texts).map(move |text| start + text * length)
        };
        Rows {
            starts: self.groups.iter().flat_map(of).collect(),
            lengths: self
                .groups
                .iter()
                .flat_map(|group| group.lengths.iter().copied())
                .collect(),
            hidden,
        }
    }
}
