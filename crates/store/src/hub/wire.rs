//! Values in answers of the hub and its mirrors, which leave out what they like and write numbers as
//! text: a value that is none costs itself, never the model.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;

/// A count that is zero where there is none.
pub(super) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    Ok(size(deserializer)?.unwrap_or_default())
}

/// A number of bytes.
pub(super) fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(to_count(&Value::deserialize(deserializer)?))
}

pub(super) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(text) if !text.is_empty() => Some(text),
        _ => None,
    })
}

/// A whole value, of which `T` reads what it knows.
pub(super) fn maybe<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Ok(macmlx_json::read(&Value::deserialize(deserializer)?).ok())
}

/// The items that are a `T`.
pub(super) fn list<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    Ok(to_list(&Value::deserialize(deserializer)?))
}

pub(super) fn to_list<T: DeserializeOwned>(value: &Value) -> Vec<T> {
    let items = value.as_array().into_iter().flatten();
    items
        .filter_map(|item| macmlx_json::read(item).ok())
        .collect()
}

/// The values that are counts, by their names.
pub(super) fn counts<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, u64>, D::Error> {
    let counts = Value::deserialize(deserializer)?;
    let counts = counts.as_object().into_iter().flatten();
    Ok(counts
        .filter_map(|(name, value)| Some((name.clone(), to_count(value)?)))
        .collect())
}

/// The whole number that a value is, as text, too. None is negative.
pub(super) fn to_count(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64().or_else(|| whole(number.as_f64()?)),
        Value::String(text) => {
            let text = text.trim();
            text.parse().ok().or_else(|| whole(text.parse().ok()?))
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn whole(number: f64) -> Option<u64> {
    (0.0..18_446_744_073_709_551_616.0)
        .contains(&number)
        .then_some(number as u64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn counts_as_they_are_written() {
        for (value, read) in [
            (json!(12), Some(12)),
            (json!(12.0), Some(12)),
            (json!(12.7), Some(12)),
            (json!(1.5e3), Some(1500)),
            (json!("12"), Some(12)),
            (json!(" 12.0 "), Some(12)),
            (json!("18446744073709551615"), Some(u64::MAX)),
            (json!(-1), None),
            (json!(-0.5), None),
            (json!("-1"), None),
            (json!(1e30), None),
            (json!("NaN"), None),
            (json!("inf"), None),
            (json!("many"), None),
            (json!(""), None),
            (json!(null), None),
            (json!(true), None),
            (json!([1]), None),
        ] {
            assert_eq!(to_count(&value), read, "{value}");
        }
    }
}
