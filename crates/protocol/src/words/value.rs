//! Values of words: which of them ask for nothing, and which say the same.

use serde_json::Value;

/// What leaving the word out would mean, too.
pub(super) fn asks_nothing(value: &Value) -> bool {
    value == false || is_empty(value)
}

pub(super) fn never(_: &Value) -> bool {
    false
}

pub(super) fn is_true(value: &Value) -> bool {
    value == true
}

pub(super) fn is_false(value: &Value) -> bool {
    value == false
}

pub(super) fn is_zero(value: &Value) -> bool {
    value.as_f64() == Some(0.0)
}

pub(super) fn is_one(value: &Value) -> bool {
    value.as_f64() == Some(1.0)
}

pub(super) fn is_not_positive(value: &Value) -> bool {
    value.as_f64().is_some_and(|number| number <= 0.0)
}

pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether two values say the same: numbers may be written with and without a fraction.
pub(super) fn is_same(one: &Value, other: &Value) -> bool {
    match (one.as_f64(), other.as_f64()) {
        (Some(one), Some(other)) => one.to_bits() == other.to_bits(),
        _ => match (one, other) {
            (Value::Object(ones), Value::Object(others)) => {
                ones.len() == others.len()
                    && ones.iter().all(|(name, one)| {
                        others.get(name).is_some_and(|other| is_same(one, other))
                    })
            }
            (Value::Array(ones), Value::Array(others)) => {
                ones.len() == others.len()
                    && ones
                        .iter()
                        .zip(others)
                        .all(|(one, other)| is_same(one, other))
            }
            (one, other) => one == other,
        },
    }
}
