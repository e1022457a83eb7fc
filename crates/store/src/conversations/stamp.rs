//! Times in files of conversations: seconds since 1970 with a fraction; the first versions wrote
//! RFC 3339 text, which is read too.

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

const NANOSECONDS: f64 = 1e9;

/// Now, as precisely as a file can say it.
pub(super) fn now() -> Timestamp {
    let now = Timestamp::now();
    of_seconds(seconds(now)).unwrap_or(now)
}

// Whole seconds and the rest are kept apart: as nanoseconds since 1970 a time is too large a number
// for a float, and would not come back the same.

fn seconds(time: Timestamp) -> f64 {
    time.as_second() as f64 + f64::from(time.subsec_nanosecond()) / NANOSECONDS
}

fn of_seconds(seconds: f64) -> Result<Timestamp, jiff::Error> {
    let nanoseconds = ((seconds - seconds.floor()) * NANOSECONDS).round() as i128;
    Timestamp::from_nanosecond(seconds.floor() as i128 * NANOSECONDS as i128 + nanoseconds)
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Seconds(f64),
    Text(String),
}

pub(super) fn serialize<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(seconds(*time))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Timestamp, D::Error> {
    match Written::deserialize(deserializer)? {
        Written::Seconds(seconds) => of_seconds(seconds).map_err(D::Error::custom),
        Written::Text(text) => text.parse().map_err(D::Error::custom),
    }
}
