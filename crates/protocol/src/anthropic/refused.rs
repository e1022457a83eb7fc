//! What is refused by name within the objects of a request.

use serde_json::Value;

use crate::Error;

/// JSON pointers and why what they point to is refused. `null`, `[]` and `{}` ask for nothing.
const FIELDS: &[(&str, &str)] = &[
    (
        "/container/skills",
        "there is no container to run skills in",
    ),
    (
        "/output_config/task_budget",
        "the model is not told of budgets; use max_tokens",
    ),
];

/// Refuses what cannot be honoured.
pub(super) fn check(body: &Value) -> Result<(), Error> {
    for (pointer, reason) in FIELDS {
        if body.pointer(pointer).is_some_and(asks_for_something) {
            let param = pointer.trim_start_matches('/').replace('/', ".");
            return Err(Error::unsupported(param, *reason));
        }
    }
    Ok(())
}

fn asks_for_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_cannot_be_honoured_is_refused_by_name() {
        for (body, param) in [
            (
                json!({"container": {"skills": [{"skill_id": "pdf"}]}}),
                "container.skills",
            ),
            (
                json!({"output_config": {"task_budget": {"type": "tokens", "total": 9}}}),
                "output_config.task_budget",
            ),
        ] {
            assert!(
                matches!(check(&body), Err(Error::Unsupported { param: named, .. }) if named == param),
                "{body}"
            );
        }
    }

    #[test]
    fn what_asks_for_nothing_is_taken() {
        let body = json!({
            "container": "container_1",
            "output_config": {"effort": "high", "task_budget": null},
            "service_tier": "auto",
            "metadata": {"user_id": "u"},
            "speed": "fast",
            "safeguards": [{"type": "dangerous_tool_use"}],
            "something_new": {"a": 1},
        });
        assert_eq!(check(&body), Ok(()));
    }
}
