//! Grammars as requests spell them, in neutral terms.

use macmlx_inference::{Grammar, Language};
use serde_json::Value;

use crate::Error;

/// JSON that satisfies the schema found at `param`.
pub(crate) fn json_schema(schema: Value, param: &str) -> Result<Grammar, Error> {
    if schema.is_object() {
        Ok(grammar(Language::JsonSchema(schema), param))
    } else {
        Err(Error::invalid(
            param,
            format!("{param} must be a JSON Schema object"),
        ))
    }
}

/// The same by what the client says of strictness: one that must not be strict is enforced as far as
/// it can be.
pub(crate) fn json_schema_by(
    schema: Value,
    param: &str,
    strict: Option<bool>,
) -> Result<Grammar, Error> {
    let strictly = json_schema(schema, param)?;
    Ok(match (strictly.language, strict) {
        (Language::JsonSchema(schema), Some(false)) => {
            grammar(Language::LooseJsonSchema(schema), param)
        }
        (language, _) => grammar(language, param),
    })
}

/// What `param` asks for.
pub(crate) fn grammar(language: Language, param: &str) -> Grammar {
    Grammar {
        language,
        param: param.to_owned(),
    }
}

/// The one grammar of a request that has several places for it.
#[derive(Debug, Default)]
pub(crate) struct Only(Option<Grammar>);

impl Only {
    /// Refuses a second grammar: an answer cannot be in two languages.
    pub(crate) fn add(&mut self, grammar: Option<Grammar>) -> Result<(), Error> {
        match (&self.0, grammar) {
            (_, None) => {}
            (None, grammar) => self.0 = grammar,
            (Some(first), Some(second)) => {
                let message = format!("{} and {} exclude each other", first.param, second.param);
                return Err(Error::invalid(second.param, message));
            }
        }
        Ok(())
    }

    pub(crate) fn into_grammar(self) -> Option<Grammar> {
        self.0
    }
}
