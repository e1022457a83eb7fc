//! `think`: a switch, or how much.

use macmlx_inference::ReasoningOptions;
use serde_json::Value;

use crate::Error;

const LEVELS: &[&str] = &["low", "medium", "high", "max"];

/// Reads the field. Without it the chat template's default counts; with it a model that cannot be
/// switched refuses the request.
pub(super) fn read(value: Option<&Value>) -> Result<ReasoningOptions, Error> {
    let (enabled, effort) = match value {
        None | Some(Value::Null) => return Ok(ReasoningOptions::default()),
        Some(Value::Bool(enabled)) => (*enabled, None),
        Some(Value::String(level)) if LEVELS.contains(&level.as_str()) => {
            (true, Some(level.clone()))
        }
        Some(_) => {
            return Err(Error::invalid(
                "think",
                "think must be true, false, \"low\", \"medium\", \"high\" or \"max\"",
            ));
        }
    };
    Ok(ReasoningOptions {
        enabled: Some(enabled),
        effort,
        ..ReasoningOptions::default()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn switches_and_levels() {
        assert_eq!(read(None).unwrap(), ReasoningOptions::default());
        for (value, enabled, effort) in [
            (json!(true), true, None),
            (json!(false), false, None),
            (json!("low"), true, Some("low")),
            (json!("max"), true, Some("max")),
        ] {
            let options = read(Some(&value)).unwrap();
            assert_eq!(options.enabled, Some(enabled));
            assert_eq!(options.effort.as_deref(), effort);
            assert!(!options.is_hint);
        }
        for value in [json!("lots"), json!(""), json!(1), json!({}), json!("true")] {
            assert!(read(Some(&value)).is_err(), "{value}");
        }
    }
}
