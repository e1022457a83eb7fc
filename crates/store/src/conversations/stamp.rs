//! Times in files of conversations: seconds since 1970 with a fraction; the first versions wrote
//! RFC 3339 text, which is read too.

use serde::{Deserialize, Deserializer, Serializer, de::Error as _};
use time::{OffsetDateTime, error::ComponentRange, format_description::well_known::Rfc3339};

const NANOSECONDS: f64 = 1e9;

/// Now, as precisely as a file can say it.
pub(super) fn now() -> OffsetDateTime {
    let now = OffsetDateTime::now_utc();
    of_seconds(seconds(now)).unwrap_or(now)
}

// Whole seconds and the rest are kept apart: as nanoseconds since 1970 a time is too large a number
// for a float, and would not come back the same.

fn seconds(time: OffsetDateTime) -> f64 {
    time.unix_timestamp() as f64 + f64::from(time.nanosecond()) / NANOSECONDS
}

fn of_seconds(seconds: f64) -> Result<OffsetDateTime, ComponentRange> {
    let nanoseconds = ((seconds - seconds.floor()) * NANOSECONDS).round() as i128;
    OffsetDateTime::from_unix_timestamp_nanos(
        seconds.floor() as i128 * NANOSECONDS as i128 + nanoseconds,
    )
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Seconds(f64),
    Text(String),
}

pub(super) fn serialize<S: Serializer>(
    time: &OffsetDateTime,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(seconds(*time))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<OffsetDateTime, D::Error> {
    match Written::deserialize(deserializer)? {
        Written::Seconds(seconds) => of_seconds(seconds).map_err(D::Error::custom),
        Written::Text(text) => OffsetDateTime::parse(&text, &Rfc3339).map_err(D::Error::custom),
    }
}
