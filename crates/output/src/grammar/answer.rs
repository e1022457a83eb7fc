//! The language of the answer as a rule.

use macmlx_inference::{Grammar, InferenceError, Language};
use serde_json::json;

use super::{
    gbnf,
    pattern::Pattern,
    rules::{Rules, Symbol},
    schema,
};

/// Adds the rules of a language. A schema is not looked into here, as compiling the whole grammar
/// does that; [`refusal`] says then what is wrong with it.
pub(super) fn symbol(rules: &mut Rules<'_>, grammar: &Grammar) -> Result<Symbol, InferenceError> {
    let refuse = |reason: String| InferenceError::Unsupported {
        param: grammar.param.clone(),
        reason,
    };
    match &grammar.language {
        Language::JsonObject => Ok(rules.json(&json!({"type": "object"}))),
        Language::JsonSchema(schema) => Ok(rules.json(schema)),
        Language::LooseJsonSchema(schema) => Ok(rules.loose_json(schema)),
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

/// Why a schema cannot be enforced, with the keyword and its place. `None`: it can, or the grammar is
/// no schema.
pub fn refusal(grammar: &Grammar) -> Option<InferenceError> {
    let Language::JsonSchema(schema) = &grammar.language else {
        return None;
    };
    schema::check(schema)
        .err()
        .map(|reason| InferenceError::Unsupported {
            param: grammar.param.clone(),
            reason,
        })
}
