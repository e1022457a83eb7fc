//! What is to happen to texts that are too long, in the words of all who have one for it.

use macmlx_inference::Overflow;
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::{
    Error,
    sentinel::{Count, TEXT_TOKENS},
};

/// Fields of the body. OpenAI has none.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(super) struct Fields {
    /// A switch (text-embeddings-inference), or `END` and `NONE` (Cohere, NVIDIA).
    truncate: Option<Value>,
    /// A switch (Voyage).
    truncation: Option<bool>,
    /// Tokens of a text that are read, special ones included; -1: the model's own limit (vLLM).
    truncate_prompt_tokens: Option<i64>,
    /// Only `right` (vLLM), in either case; text-embeddings-inference has it as
    /// `truncation_direction`.
    truncation_side: Option<String>,
}

impl Fields {
    /// `default` where the client says nothing.
    pub(super) fn overflow(&self, default: Overflow) -> Result<Overflow, Error> {
        let side = self.truncation_side.as_deref();
        if side.is_some_and(|side| !side.eq_ignore_ascii_case("right")) {
            return Err(from_the_end("truncation_side"));
        }
        let wanted = [
            self.truncate()?,
            self.truncation,
            self.truncate_prompt_tokens()?,
        ];
        let Some(is_cut) = wanted
            .into_iter()
            .flatten()
            .reduce(|one, other| one || other)
        else {
            return Ok(default);
        };
        Ok(if is_cut {
            Overflow::Truncate
        } else {
            Overflow::Refuse
        })
    }

    fn truncate(&self) -> Result<Option<bool>, Error> {
        match &self.truncate {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(is_cut)) => Ok(Some(*is_cut)),
            Some(Value::String(word)) => match word.to_ascii_uppercase().as_str() {
                "END" => Ok(Some(true)),
                "NONE" => Ok(Some(false)),
                "START" => Err(from_the_end("truncate")),
                _ => Err(wrong_truncate()),
            },
            Some(_) => Err(wrong_truncate()),
        }
    }

    fn truncate_prompt_tokens(&self) -> Result<Option<bool>, Error> {
        match TEXT_TOKENS.read("truncate_prompt_tokens", self.truncate_prompt_tokens)? {
            Count::Unlimited => Ok(Some(true)),
            // A text that is cut at a number may still be longer than the model takes.
            Count::Unset | Count::Of(_) => Ok(None),
        }
    }

    /// Tokens of each text that are read, beside the model's own limit.
    pub(super) fn token_limit(&self) -> Result<Option<u32>, Error> {
        let tokens = TEXT_TOKENS.read("truncate_prompt_tokens", self.truncate_prompt_tokens)?;
        Ok(tokens.of())
    }
}

fn from_the_end(name: &str) -> Error {
    Error::unsupported(name, "it is the end of a text that is cut off")
}

fn wrong_truncate() -> Error {
    Error::invalid("truncate", "truncate must be true, false, END or NONE")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn overflow(body: &Value) -> Result<Overflow, Error> {
        let fields: Fields = crate::json::fields(body)?;
        fields.overflow(Overflow::Refuse)
    }

    #[test]
    fn every_word_for_it_is_known() {
        for body in [
            json!({"truncate": true}),
            json!({"truncate": "END"}),
            json!({"truncation": true}),
            json!({"truncate_prompt_tokens": -1}),
            json!({"truncate": "end", "truncation_side": "right"}),
            json!({"truncate": true, "truncation_side": "Right"}),
        ] {
            assert_eq!(overflow(&body), Ok(Overflow::Truncate), "{body}");
        }
        for body in [
            json!({}),
            json!({"truncate": null, "truncation": null, "truncate_prompt_tokens": null}),
            json!({"truncate": "NONE"}),
            json!({"truncation": false}),
        ] {
            assert_eq!(overflow(&body), Ok(Overflow::Refuse), "{body}");
        }
        for (tokens, expected) in [
            (json!(7.0), Some(7)),
            (json!(-1), None),
            (json!(null), None),
        ] {
            let body = json!({"truncate_prompt_tokens": tokens});
            let fields: Fields = crate::json::fields(&body).unwrap();
            assert_eq!(fields.token_limit(), Ok(expected), "{body}");
        }
        let silent = Fields::default();
        assert_eq!(silent.overflow(Overflow::Truncate), Ok(Overflow::Truncate));
    }

    #[test]
    fn what_cannot_be_had_is_named() {
        for (name, value) in [
            ("truncate", json!("START")),
            ("truncate", json!("MIDDLE")),
            ("truncate", json!(1)),
            ("truncation", json!("yes")),
            ("truncate_prompt_tokens", json!(0)),
            ("truncate_prompt_tokens", json!(-2)),
            ("truncation_side", json!("left")),
        ] {
            let named = match overflow(&json!({name: value})) {
                Err(Error::Invalid { param, .. }) => param,
                Err(Error::Unsupported { param, .. }) => Some(param),
                other => panic!("{other:?}"),
            };
            assert_eq!(named.as_deref(), Some(name), "{value}");
        }
    }
}
