//! Rows that grow along one axis in place.

use mlx_rs::{
    Array,
    error::Exception,
    ops::{
        self,
        indexing::{Ellipsis, IndexUpdateError, TryIndexOp, TryIndexUpdateOp, UpdateMode},
    },
};

use crate::Result;

/// Rows allocated at a time: rare enough that copying on growth does not matter, and small enough
/// not to waste memory on short sequences.
const STEP: i32 = 256;

/// `[1, heads, capacity, features]`, of which the first rows are used.
#[derive(Debug, Clone, Default)]
pub(super) struct Buffer {
    array: Option<Array>,
}

impl Buffer {
    pub(super) fn array(&self) -> Option<&Array> {
        self.array.as_ref()
    }

    pub(super) fn size_bytes(&self) -> usize {
        self.array.as_ref().map_or(0, Array::nbytes)
    }

    /// Writes `rows` from row `start` on, in place where nothing else holds the array, and returns
    /// all rows up to their end.
    pub(super) fn append(&mut self, start: i32, rows: &Array) -> Result<Array> {
        let end = start + rows.dim(2);
        let array = self.reserve(start, end, rows)?;
        let array = write(&array, start, rows)?;
        let used = if end < array.dim(2) {
            rows_of(&array, 0, end)?
        } else {
            array.clone()
        };
        self.array = Some(array);
        Ok(used)
    }

    /// The array, with room for rows up to `end`; rows from `used` on may be lost.
    fn reserve(&mut self, used: i32, end: i32, like: &Array) -> Result<Array> {
        let array = self.array.take();
        let capacity = array.as_ref().map_or(0, |array| array.dim(2));
        if let Some(array) = array {
            if end <= capacity {
                return Ok(array);
            }
            let kept = if used < capacity {
                rows_of(&array, 0, used)?
            } else {
                array
            };
            return Ok(ops::concatenate(&[kept, room(end - used, like)?], 2)?);
        }
        room(end, like)
    }
}

/// Zeros for at least `rows` rows, shaped otherwise like `like`.
fn room(rows: i32, like: &Array) -> Result<Array> {
    let rows = (rows + STEP - 1) / STEP * STEP;
    Ok(ops::zeros_dtype(
        &[like.dim(0), like.dim(1), rows, like.dim(3)],
        like.dtype(),
    )?)
}

/// Rows `start..end` of `[1, heads, rows, features]`.
pub(super) fn rows_of(array: &Array, start: i32, end: i32) -> Result<Array> {
    Ok(array.try_index((Ellipsis, start..end, ..))?)
}

/// `array` with `rows` from row `start` on.
pub(super) fn write(array: &Array, start: i32, rows: &Array) -> Result<Array> {
    let range = start..start + rows.dim(2);
    let updated = array.try_index_update((Ellipsis, range, ..), rows, UpdateMode::Replace);
    Ok(updated.map_err(|error| match error {
        IndexUpdateError::Exception(exception) => exception,
        IndexUpdateError::ZeroStride { .. } => Exception::custom(error.to_string()),
    })?)
}
