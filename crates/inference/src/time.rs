//! How a point in time is written.

use jiff::Timestamp;

/// Seconds since the Unix epoch as RFC 3339 in UTC: what dialects and control routes show.
pub fn rfc3339(unix_seconds: u64) -> String {
    i64::try_from(unix_seconds)
        .ok()
        .and_then(|seconds| Timestamp::from_second(seconds).ok())
        // The format knows no year beyond 9999.
        .map_or_else(
            || "9999-12-31T23:59:59Z".to_owned(),
            |time| time.to_string(),
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_dates() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(1_700_000_000), "2023-11-14T22:13:20Z");
        assert_eq!(rfc3339(u64::MAX), "9999-12-31T23:59:59Z");
    }
}
