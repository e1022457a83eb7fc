//! Times in files of conversations: seconds since 1970 with a fraction; the first versions wrote
//! RFC 3339 text, which is read too.

use serde::{Deserialize, Deserializer, Serializer, de::Error as _, ser::Error as _};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

const NANOSECONDS: f64 = 1e9;

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
    let seconds = time.unix_timestamp_nanos() as f64 / NANOSECONDS;
    if !seconds.is_finite() {
        return Err(S::Error::custom("the time is out of range"));
    }
    serializer.serialize_f64(seconds)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<OffsetDateTime, D::Error> {
    match Written::deserialize(deserializer)? {
        Written::Seconds(seconds) => {
            OffsetDateTime::from_unix_timestamp_nanos((seconds * NANOSECONDS).round() as i128)
                .map_err(D::Error::custom)
        }
        Written::Text(text) => OffsetDateTime::parse(&text, &Rfc3339).map_err(D::Error::custom),
    }
}
