//! The language of the answer as a rule.

use macmlx_inference::{Grammar, InferenceError, Language};
use serde_json::json;

use super::{
    gbnf,
    pattern::Pattern,
    rules::{Rules, Symbol},
    schema,
};

/// Adds the rules of a language; what they cannot enforce is refused.
pub(super) fn symbol(rules: &mut Rules<'_>, grammar: &Grammar) -> Result<Symbol, InferenceError> {
    let refuse = |reason: String| InferenceError::Unsupported {
        param: grammar.param.clone(),
        reason,
    };
    match &grammar.language {
        Language::JsonObject => Ok(rules.json(&json!({"type": "object"}))),
        Language::JsonSchema(schema) => {
            schema::check(schema).map_err(refuse)?;
            Ok(rules.json(schema))
        }
        Language::Regex(pattern) => Ok(rules.text(&Pattern::regex(pattern))),
        Language::Choice(texts) if texts.is_empty() => {
            Err(refuse("there is nothing to choose from".into()))
        }
        Language::Choice(texts) => {
            let texts: Vec<Symbol> = texts.iter().map(|text| rules.literal(text)).collect();
            Ok(Symbol::one_of(&texts))
        }
        Language::Rules(text) => {
            let lark = if gbnf::is_gbnf(text) {
                gbnf::to_lark(text).map_err(refuse)?
            } else {
                text.clone()
            };
            Ok(rules.grammar(&lark))
        }
    }
}
