//! How much of a prompt is read, as vLLM says it.

use serde::Deserialize;
use utoipa::ToSchema;

use crate::{Error, sentinel::TEXT_TOKENS};

/// Fields of the body. `OpenAI` has none.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = openai::PromptLimit)]
pub(super) struct Fields {
    /// At most this many tokens of the prompt are read, its last ones; -1: as many as leave room
    /// for the answer.
    truncate_prompt_tokens: Option<i64>,
    /// Only `left`, in either case.
    truncation_side: Option<String>,
}

impl Fields {
    /// How many tokens are read at most, as [`macmlx_inference::GenerateRequest`] has it.
    pub(super) fn limit(&self) -> Result<Option<u32>, Error> {
        let side = self.truncation_side.as_deref();
        if side.is_some_and(|side| !side.eq_ignore_ascii_case("left")) {
            return Err(Error::unsupported(
                "truncation_side",
                "it is the beginning of a prompt that is cut off",
            ));
        }
        let tokens = TEXT_TOKENS.read("truncate_prompt_tokens", self.truncate_prompt_tokens)?;
        Ok(tokens.limit())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_tokens_are_counted() {
        for (body, expected) in [
            (json!({}), None),
            (json!({"truncate_prompt_tokens": null}), None),
            (json!({"truncate_prompt_tokens": 7}), Some(7)),
            (
                json!({"truncate_prompt_tokens": 7.0, "truncation_side": "Left"}),
                Some(7),
            ),
            (json!({"truncate_prompt_tokens": -1}), Some(u32::MAX)),
        ] {
            let fields: Fields = crate::json::fields(&body).unwrap();
            assert_eq!(fields.limit(), Ok(expected), "{body}");
        }
    }

    #[test]
    fn what_cannot_be_had_is_named() {
        for (body, name) in [
            (
                json!({"truncate_prompt_tokens": 0}),
                "truncate_prompt_tokens",
            ),
            (
                json!({"truncate_prompt_tokens": -2}),
                "truncate_prompt_tokens",
            ),
            (json!({"truncation_side": "right"}), "truncation_side"),
        ] {
            let fields: Fields = crate::json::fields(&body).unwrap();
            let named = match fields.limit() {
                Err(Error::Invalid { param, .. }) => param,
                Err(Error::Unsupported { param, .. }) => Some(param),
                other => panic!("{other:?}"),
            };
            assert_eq!(named.as_deref(), Some(name), "{body}");
        }
    }
}
