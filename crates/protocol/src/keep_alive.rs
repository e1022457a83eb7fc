//! `keep_alive`: a number of seconds, or a duration as Go writes it (`5m`, `1h30m`, `-1m`).

use std::time::Duration;

use macmlx_inference::{KeepAlive, rfc3339};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::{Error, json};

/// What Ollama takes "for ever" for, in seconds: the longest duration that Go knows.
const FOREVER_SECONDS: u64 = i64::MAX as u64 / 1_000_000_000;

const UNITS: &[(&str, f64)] = &[
    ("ns", 1e-9),
    ("us", 1e-6),
    ("µs", 1e-6),
    ("μs", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3600.0),
];

/// When a model goes that stays for as long from now, as `expires_at` says it.
pub(crate) fn expiry(now_unix: u64, remaining: Option<Duration>) -> String {
    let seconds = remaining.map_or(FOREVER_SECONDS, |remaining| remaining.as_secs());
    rfc3339(now_unix.saturating_add(seconds.min(FOREVER_SECONDS)))
}

/// The field, beside others of a body.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = KeepAlive)]
pub(crate) struct Fields {
    /// How long the model stays in memory after its last use, as Ollama has it; in LM Studio's
    /// words `ttl`, in seconds.
    keep_alive: Option<Value>,
}

impl Fields {
    /// Reads the field of a body and checks it.
    pub(crate) fn read(body: &Value) -> Result<Self, Error> {
        let fields: Self = json::fields(body)?;
        read(fields.keep_alive.as_ref())?;
        Ok(fields)
    }

    pub(crate) fn wish(&self) -> Option<KeepAlive> {
        read(self.keep_alive.as_ref()).ok().flatten()
    }
}

/// Reads the field; `null` is as if it were not there.
pub(crate) fn read(value: Option<&Value>) -> Result<Option<KeepAlive>, Error> {
    read_as("keep_alive", value)
}

/// Does the same as [`read`], for a field of another name.
pub(crate) fn read_as(
    name: &'static str,
    value: Option<&Value>,
) -> Result<Option<KeepAlive>, Error> {
    let seconds = match value {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Number(seconds)) => seconds.as_f64(),
        Some(Value::String(text)) => duration(text),
        Some(_) => None,
    };
    let Some(seconds) = seconds.filter(|seconds| !seconds.is_nan()) else {
        return Err(Error::invalid(
            name,
            format!("{name} must be a number of seconds or a duration such as \"5m\""),
        ));
    };
    Ok(Some(if seconds < 0.0 {
        KeepAlive::Forever
    } else {
        Duration::try_from_secs_f64(seconds).map_or(KeepAlive::Forever, KeepAlive::For)
    }))
}

/// Seconds. Go wants a unit with every number but 0; clients also write bare numbers as text.
fn duration(text: &str) -> Option<f64> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return seconds.is_finite().then_some(seconds);
    }
    let (sign, mut rest) = match text.as_bytes().first()? {
        b'-' => (-1.0, &text[1..]),
        b'+' => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    if rest.is_empty() {
        return None;
    }
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .filter(|&end| end > 0)?;
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let unit_end = rest
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(rest.len());
        let (_, factor) = UNITS.iter().find(|(unit, _)| *unit == &rest[..unit_end])?;
        seconds += number * factor;
        rest = &rest[unit_end..];
    }
    Some(sign * seconds)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn seconds(seconds: f64) -> KeepAlive {
        KeepAlive::For(Duration::from_secs_f64(seconds))
    }

    #[test]
    fn every_way_to_say_how_long() {
        for (value, expected) in [
            (json!(null), None),
            (json!("5m"), Some(seconds(300.0))),
            (json!("1h30m"), Some(seconds(5400.0))),
            (json!("1.5h"), Some(seconds(5400.0))),
            (json!("300ms"), Some(seconds(0.3))),
            (json!("+10s"), Some(seconds(10.0))),
            (json!(300), Some(seconds(300.0))),
            (json!("300"), Some(seconds(300.0))),
            (json!(0.5), Some(seconds(0.5))),
            (json!(0), Some(seconds(0.0))),
            (json!("0"), Some(seconds(0.0))),
            (json!("0s"), Some(seconds(0.0))),
            (json!(-1), Some(KeepAlive::Forever)),
            (json!("-1"), Some(KeepAlive::Forever)),
            (json!("-1m"), Some(KeepAlive::Forever)),
            (json!(1e300), Some(KeepAlive::Forever)),
        ] {
            assert_eq!(read(Some(&value)).unwrap(), expected, "{value}");
        }
        assert_eq!(read(None).unwrap(), None);
    }

    #[test]
    fn nonsense_is_named() {
        for value in [
            json!("soon"),
            json!(""),
            json!("5".repeat(3) + "x"),
            json!("m"),
            json!("1m2"),
            json!("1..5m"),
            json!("NaN"),
            json!("inf"),
            json!("-"),
            json!("5µ"),
            json!(true),
            json!([]),
        ] {
            assert!(
                matches!(
                    read(Some(&value)),
                    Err(Error::Invalid { param: Some(param), .. }) if param == "keep_alive"
                ),
                "{value}"
            );
        }
    }

    #[test]
    fn for_ever_is_a_date() {
        assert_eq!(
            expiry(1_700_000_000, Some(Duration::from_mins(5))),
            "2023-11-14T22:18:20Z"
        );
        assert_eq!(expiry(1_700_000_000, None), "2316-02-24T22:00:36Z");
    }
}
