//! Numbers that must lie within a range, and the words for those that do not.

use std::{
    fmt::Display,
    ops::{Bound, RangeBounds},
};

use crate::Error;

/// A value within its range.
pub(crate) fn check_range<T, R>(name: &str, value: Option<T>, range: R) -> Result<Option<T>, Error>
where
    T: PartialOrd + Display,
    R: RangeBounds<T>,
{
    match value {
        Some(value) if !range.contains(&value) => Err(Error::invalid(
            name,
            format!("{name} must be {}, not {value}", in_words(&range)),
        )),
        value => Ok(value),
    }
}

fn in_words<T: Display>(range: &impl RangeBounds<T>) -> String {
    match (range.start_bound(), range.end_bound()) {
        (Bound::Included(low), Bound::Included(high)) => format!("between {low} and {high}"),
        (Bound::Excluded(low), Bound::Included(high)) => {
            format!("greater than {low} and at most {high}")
        }
        (Bound::Included(low), _) => format!("at least {low}"),
        (Bound::Excluded(low), _) => format!("greater than {low}"),
        (Bound::Unbounded, Bound::Included(high)) => format!("at most {high}"),
        (Bound::Unbounded, Bound::Excluded(high)) => format!("less than {high}"),
        (Bound::Unbounded, Bound::Unbounded) => "any number".to_owned(),
    }
}
