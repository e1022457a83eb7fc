//! What clients replay of a model's thoughts, in every shape that they have for it.

use serde_json::Value;

use crate::Error;

/// Fields of an assistant's turn that hold its thoughts; a client that sends several says the same
/// in each.
const OF_TURN: &[&str] = &[
    "reasoning_content",
    "reasoning",
    "thinking",
    "reasoning_text",
    "thinking_blocks",
    "reasoning_details",
];

/// Fields of one piece of a thought that hold its text.
const OF_PIECE: &[&str] = &[
    "thinking",
    "text",
    "reasoning",
    "reasoning_content",
    "content",
    "summary",
    "value",
];

/// The thoughts of a turn, empty where it has none.
pub(crate) fn of_turn(turn: &Value, path: &str) -> Result<String, Error> {
    for field in OF_TURN {
        let text = text(turn.get(field), &format!("{path}.{field}"))?;
        if !text.is_empty() {
            return Ok(text);
        }
    }
    Ok(String::new())
}

/// The text of a string, of a piece, or of a list of either. Pieces that only another server can
/// read have none.
pub(crate) fn text(value: Option<&Value>, path: &str) -> Result<String, Error> {
    match value {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Array(pieces)) => pieces
            .iter()
            .enumerate()
            .map(|(index, piece)| text(Some(piece), &format!("{path}[{index}]")))
            .collect(),
        Some(Value::Object(piece)) => {
            for field in OF_PIECE {
                let text = text(piece.get(*field), &format!("{path}.{field}"))?;
                if !text.is_empty() {
                    return Ok(text);
                }
            }
            Ok(String::new())
        }
        Some(Value::Bool(_) | Value::Number(_)) => Err(Error::invalid(
            path,
            format!("{path} must be text, or a list of pieces with text"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_shape_has_the_same_text() {
        for thought in [
            json!("hm"),
            json!(["h", "m"]),
            json!({"text": "hm"}),
            json!({"thinking": "hm", "signature": "c2ln"}),
            json!({"type": "reasoning", "reasoning": "hm"}),
            json!([{"type": "thinking", "thinking": "h"}, {"type": "text", "text": "m"}]),
            json!([{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]),
            json!({"summary": [{"type": "summary_text", "text": "hm"}]}),
            json!({"content": [{"type": "reasoning_text", "text": "hm"}], "summary": []}),
            json!([{"type": "reasoning.encrypted", "data": "x"}, {"type": "reasoning.text", "text": "hm"}]),
        ] {
            assert_eq!(text(Some(&thought), "t").as_deref(), Ok("hm"), "{thought}");
            for field in OF_TURN {
                let turn = json!({"role": "assistant", *field: thought});
                assert_eq!(of_turn(&turn, "t").as_deref(), Ok("hm"), "{turn}");
            }
        }
    }

    #[test]
    fn the_same_thought_in_two_fields_is_read_once() {
        let turn = json!({"reasoning": "hm", "reasoning_content": "", "thinking": null,
            "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]});
        assert_eq!(of_turn(&turn, "t").as_deref(), Ok("hm"));
    }

    #[test]
    fn what_is_no_text_is_named() {
        for (turn, param) in [
            (json!({"reasoning_content": 5}), "t.reasoning_content"),
            (json!({"thinking": ["a", true]}), "t.thinking[1]"),
            (
                json!({"reasoning_details": [{"text": 1}]}),
                "t.reasoning_details[0].text",
            ),
        ] {
            assert!(
                matches!(of_turn(&turn, "t"), Err(Error::Invalid { param: Some(named), .. }) if named == param),
                "{turn}"
            );
        }
    }
}
