//! Points in time as the wire writes them: RFC 3339, in UTC.

use time::{OffsetDateTime, format_description::well_known::Rfc3339};

/// Seconds since the Unix epoch; what no calendar has is written as the epoch.
pub(crate) fn rfc3339(unix_seconds: u64) -> String {
    i64::try_from(unix_seconds)
        .ok()
        .and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok())
        .and_then(|date| date.format(&Rfc3339).ok())
        .unwrap_or_else(|| "1970-01-01T00:00:00Z".into())
}
