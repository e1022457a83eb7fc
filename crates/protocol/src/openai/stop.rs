//! When a generation ends, as chat completions and completions say it.

use macmlx_inference::StopConditions;
use serde::Deserialize;
use utoipa::ToSchema;

use super::sampling::check_range;
use crate::{Error, sentinel::ANSWER_TOKENS};

#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = openai::StopConditions)]
pub(super) struct Fields {
    stop: Option<OneOrMany>,
    #[serde(default)]
    stop_token_ids: Option<Vec<u32>>,
    min_tokens: Option<i64>,
    ignore_eos: Option<bool>,
}

/// How long an answer may be, as all routes but responses say it.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = openai::AnswerLength)]
pub(super) struct Length {
    max_tokens: Option<i64>,
    max_completion_tokens: Option<i64>,
}

impl Length {
    /// The limit; `least` is the smallest number of tokens that may be asked for.
    pub(super) fn limit(&self, least: i64) -> Result<Option<u32>, Error> {
        let kind = ANSWER_TOKENS.with_least(least);
        // The newer name has the say when both are there.
        let newer = kind.read("max_completion_tokens", self.max_completion_tokens)?;
        let older = kind.read("max_tokens", self.max_tokens)?;
        Ok(newer.or(older).limit())
    }
}

#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = openai::Stop)]
#[serde(untagged, expecting = "must be a string or an array of strings")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl Fields {
    /// The conditions of an answer of at most `max_tokens`.
    pub(super) fn into_conditions(self, max_tokens: Option<u32>) -> Result<StopConditions, Error> {
        let sequences = match self.stop {
            None => Vec::new(),
            Some(OneOrMany::One(sequence)) => vec![sequence],
            Some(OneOrMany::Many(sequences)) => sequences,
        };
        if sequences.iter().any(String::is_empty) {
            return Err(Error::invalid("stop", "stop: a stop sequence is empty"));
        }
        let min_tokens = check_range("min_tokens", self.min_tokens, 0..)?.map_or(0, clamp);
        if max_tokens.is_some_and(|max_tokens| min_tokens > max_tokens) {
            return Err(Error::invalid(
                "min_tokens",
                "min_tokens is larger than the most tokens asked for",
            ));
        }
        Ok(StopConditions {
            sequences,
            token_ids: self.stop_token_ids.unwrap_or_default(),
            max_tokens,
            min_tokens,
            ignore_eos: self.ignore_eos.unwrap_or(false),
        })
    }
}

/// Clients ask for as much as they can think of; the context ends it anyway.
fn clamp(tokens: i64) -> u32 {
    u32::try_from(tokens).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::json::fields;

    fn conditions(body: &Value) -> Result<StopConditions, Error> {
        let max_tokens = fields::<Length>(body)?.limit(1)?;
        fields::<Fields>(body)?.into_conditions(max_tokens)
    }

    #[test]
    fn a_string_is_a_list_of_one() {
        for (stop, expected) in [
            (json!("a"), vec!["a"]),
            (json!(["a", "b"]), vec!["a", "b"]),
            (json!([]), vec![]),
            (json!(null), vec![]),
        ] {
            assert_eq!(
                conditions(&json!({"stop": stop})).unwrap().sequences,
                expected
            );
        }
    }

    #[test]
    fn the_newer_limit_has_the_say() {
        let both = json!({"max_tokens": 5, "max_completion_tokens": 7});
        assert_eq!(conditions(&both).unwrap().max_tokens, Some(7));
    }

    #[test]
    fn limits_of_any_size_are_taken() {
        let huge = json!({"max_tokens": i64::MAX});
        assert_eq!(conditions(&huge).unwrap().max_tokens, Some(u32::MAX));
    }

    #[test]
    fn wrong_values_are_named() {
        for (name, value) in [
            ("stop", json!("")),
            ("stop", json!([1])),
            ("max_tokens", json!(0)),
            ("max_tokens", json!(-3)),
            ("max_completion_tokens", json!("many")),
            ("min_tokens", json!(-1)),
            ("ignore_eos", json!(1)),
            ("stop_token_ids", json!("2")),
        ] {
            let error = conditions(&json!({name: value})).unwrap_err();
            assert!(
                matches!(&error, Error::Invalid { param: Some(param), .. } if param == name),
                "{name}: {error:?}"
            );
        }
        let contradiction = json!({"min_tokens": 9, "max_tokens": 3});
        assert!(conditions(&contradiction).is_err());
    }
}
