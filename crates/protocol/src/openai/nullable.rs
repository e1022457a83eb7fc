//! A field that may be left out, be `null` or have a value.

use serde::Serialize;

/// `null` or a value, in a field that is an `Option` of its own.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub(super) struct Nullable<T>(pub(super) Option<T>);
