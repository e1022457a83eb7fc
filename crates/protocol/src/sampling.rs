//! Sampling parameters within the ranges of their table, whatever dialect they came in.

use macmlx_inference::{ParameterRange, SamplingParameter, SamplingParams};

use crate::{Error, range::checked};

/// Refuses a value that is out of range, under the name that the client has for it. `place` says that
/// name and the range there; `None`: the dialect has no such parameter.
pub(crate) fn within_ranges(
    params: SamplingParams,
    place: impl Fn(&SamplingParameter) -> Option<(String, ParameterRange)>,
) -> Result<SamplingParams, Error> {
    for row in SamplingParameter::ALL {
        if let Some((name, range)) = place(row) {
            checked(&name, row.get(&params), range)?;
        }
    }
    Ok(params)
}
