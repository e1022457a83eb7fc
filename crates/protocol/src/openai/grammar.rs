//! The grammar an answer must be in, in every spelling that servers of OpenAI's API have for it.
//!
//! `response_format` is OpenAI's; `structured_outputs` is vLLM's and the `guided_` fields are how it
//! had them before; `grammar` and `json_schema` are llama.cpp's, `regex` and `ebnf` are `SGLang`'s.

use macmlx_inference::{Grammar, Language};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::response_format;
use crate::{
    Error,
    grammar::{Only, grammar, json_schema},
    json::{fields, fields_at},
    words::{TAGS, WHITESPACE},
};

#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = openai::Grammar)]
pub(super) struct Fields {
    #[serde(flatten)]
    format: response_format::Fields,
    #[serde(flatten)]
    extras: Extras,
}

/// What is not OpenAI's own. At most one grammar may be asked for; what is empty asks for none.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[schema(as = openai::GrammarExtras)]
pub(crate) struct Extras {
    #[schema(value_type = Option<StructuredOutputs>)]
    structured_outputs: Option<Value>,
    /// A JSON Schema, or the text of one.
    guided_json: Option<Value>,
    guided_regex: Option<String>,
    guided_choice: Option<Vec<String>>,
    guided_grammar: Option<String>,
    /// Lark or GBNF.
    grammar: Option<String>,
    /// A JSON Schema, or the text of one.
    json_schema: Option<Value>,
    regex: Option<String>,
    ebnf: Option<String>,
}

/// One of the kinds.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = openai::StructuredOutputs)]
#[serde(deny_unknown_fields)]
struct StructuredOutputs {
    /// A JSON Schema, or the text of one.
    json: Option<Value>,
    /// The whole answer matches.
    regex: Option<String>,
    /// The answer is one of these.
    choice: Option<Vec<String>>,
    /// Lark or GBNF.
    grammar: Option<String>,
    /// Any JSON object.
    json_object: Option<bool>,
    /// Refused.
    structural_tag: Option<Value>,
    /// Refused.
    whitespace_pattern: Option<String>,
    /// Only false.
    disable_any_whitespace: Option<bool>,
    /// Only false.
    disable_additional_properties: Option<bool>,
}

impl Fields {
    pub(super) fn read(body: &Value) -> Result<Self, Error> {
        Ok(Self {
            format: fields(body)?,
            extras: fields(body)?,
        })
    }

    pub(super) fn into_grammar(self) -> Result<Option<Grammar>, Error> {
        let mut only = Only::default();
        only.add(self.format.into_grammar()?)?;
        self.extras.add_to(&mut only)?;
        Ok(only.into_grammar())
    }
}

impl Extras {
    pub(crate) fn add_to(self, only: &mut Only) -> Result<(), Error> {
        if let Some(outputs) = self.structured_outputs {
            fields_at::<StructuredOutputs>(&outputs, "structured_outputs")?.add_to(only)?;
        }
        only.add(schema(self.guided_json, "guided_json")?)?;
        only.add(text(self.guided_regex, "guided_regex", Language::Regex))?;
        only.add(choice(self.guided_choice, "guided_choice"))?;
        only.add(text(self.guided_grammar, "guided_grammar", Language::Rules))?;
        only.add(text(self.grammar, "grammar", Language::Rules))?;
        only.add(schema(self.json_schema, "json_schema")?)?;
        only.add(text(self.regex, "regex", Language::Regex))?;
        only.add(text(self.ebnf, "ebnf", Language::Rules))
    }
}

impl StructuredOutputs {
    fn add_to(self, only: &mut Only) -> Result<(), Error> {
        self.check()?;
        only.add(schema(self.json, "structured_outputs.json")?)?;
        only.add(text(
            self.regex,
            "structured_outputs.regex",
            Language::Regex,
        ))?;
        only.add(choice(self.choice, "structured_outputs.choice"))?;
        only.add(text(
            self.grammar,
            "structured_outputs.grammar",
            Language::Rules,
        ))?;
        let is_object = self.json_object == Some(true);
        only.add(is_object.then(|| grammar(Language::JsonObject, "structured_outputs.json_object")))
    }

    fn check(&self) -> Result<(), Error> {
        for (is_asked, name, reason) in [
            (self.structural_tag.is_some(), "structural_tag", TAGS),
            (
                self.whitespace_pattern.is_some(),
                "whitespace_pattern",
                WHITESPACE,
            ),
            (
                self.disable_any_whitespace == Some(true),
                "disable_any_whitespace",
                WHITESPACE,
            ),
            (
                self.disable_additional_properties == Some(true),
                "disable_additional_properties",
                "set `additionalProperties` to false in the schema",
            ),
        ] {
            if is_asked {
                return Err(Error::unsupported(
                    format!("structured_outputs.{name}"),
                    reason,
                ));
            }
        }
        Ok(())
    }
}

fn text(
    text: Option<String>,
    param: &str,
    language: impl FnOnce(String) -> Language,
) -> Option<Grammar> {
    let text = text.filter(|text| !text.is_empty())?;
    Some(grammar(language(text), param))
}

fn choice(choices: Option<Vec<String>>, param: &str) -> Option<Grammar> {
    let choices = choices.filter(|choices| !choices.is_empty())?;
    Some(grammar(Language::Choice(choices), param))
}

fn schema(schema: Option<Value>, param: &str) -> Result<Option<Grammar>, Error> {
    let schema = match schema {
        None => return Ok(None),
        Some(Value::String(text)) if text.is_empty() => return Ok(None),
        Some(Value::String(text)) => macmlx_json::parse(text.as_bytes()).map_err(|error| {
            Error::invalid(param, format!("{param} is not the text of JSON: {error}"))
        })?,
        Some(schema) => schema,
    };
    json_schema(schema, param).map(Some)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(body: &Value) -> Result<Option<Grammar>, Error> {
        Fields::read(body)?.into_grammar()
    }

    fn refused(body: &Value) -> String {
        match read(body).unwrap_err() {
            Error::Invalid { param, .. } => param.unwrap(),
            Error::Unsupported { param, .. } => param,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_spelling_is_read_and_named_by_its_place() {
        let schema = json!({"type": "object"});
        let written = json!(schema.to_string());
        let json = || Language::JsonSchema(schema.clone());
        let regex = || Language::Regex("[ab]".into());
        let choice = || Language::Choice(vec!["a".into(), "b".into()]);
        let rules = || Language::Rules("root ::= \"a\"".into());
        let text = json!("root ::= \"a\"");
        let outputs = |kind: &str, value: Value| json!({"structured_outputs": {kind: value}});
        for (body, language, param) in [
            (json!({"guided_json": schema}), json(), "guided_json"),
            (json!({"guided_json": written}), json(), "guided_json"),
            (
                json!({"guided_json": "\u{feff}{\"type\": \"object\"}"}),
                json(),
                "guided_json",
            ),
            (json!({"guided_regex": "[ab]"}), regex(), "guided_regex"),
            (
                json!({"guided_choice": ["a", "b"]}),
                choice(),
                "guided_choice",
            ),
            (json!({"guided_grammar": text}), rules(), "guided_grammar"),
            (json!({"grammar": text}), rules(), "grammar"),
            (json!({"json_schema": schema}), json(), "json_schema"),
            (json!({"json_schema": written}), json(), "json_schema"),
            (json!({"regex": "[ab]"}), regex(), "regex"),
            (json!({"ebnf": text}), rules(), "ebnf"),
            (
                outputs("json", schema.clone()),
                json(),
                "structured_outputs.json",
            ),
            (outputs("json", written), json(), "structured_outputs.json"),
            (
                outputs("regex", json!("[ab]")),
                regex(),
                "structured_outputs.regex",
            ),
            (
                outputs("choice", json!(["a", "b"])),
                choice(),
                "structured_outputs.choice",
            ),
            (
                outputs("grammar", text.clone()),
                rules(),
                "structured_outputs.grammar",
            ),
            (
                outputs("json_object", json!(true)),
                Language::JsonObject,
                "structured_outputs.json_object",
            ),
            (
                json!({"response_format": {"type": "json_object"}}),
                Language::JsonObject,
                "response_format",
            ),
        ] {
            assert_eq!(read(&body), Ok(Some(grammar(language, param))), "{body}");
        }
    }

    #[test]
    fn what_is_empty_asks_for_nothing() {
        for body in [
            json!({}),
            json!({"response_format": {"type": "text"}, "guided_json": null, "guided_regex": "",
                   "guided_choice": [], "guided_grammar": "", "grammar": "", "json_schema": "",
                   "regex": null, "ebnf": "", "structured_outputs": {}}),
            json!({"structured_outputs": {"json_object": false, "regex": null, "choice": [],
                   "disable_any_whitespace": false, "disable_additional_properties": false}}),
        ] {
            assert_eq!(read(&body), Ok(None), "{body}");
        }
    }

    #[test]
    fn two_grammars_exclude_each_other() {
        for (body, param) in [
            (
                json!({"guided_json": {}, "guided_regex": "a"}),
                "guided_regex",
            ),
            (
                json!({"response_format": {"type": "json_object"}, "guided_choice": ["a"]}),
                "guided_choice",
            ),
            (
                json!({"structured_outputs": {"json": {}, "regex": "a"}}),
                "structured_outputs.regex",
            ),
            (json!({"grammar": "a", "json_schema": {}}), "json_schema"),
        ] {
            assert_eq!(refused(&body), param, "{body}");
        }
        let body = json!({"guided_regex": "a", "response_format": {"type": "text"}});
        assert!(read(&body).is_ok());
    }

    #[test]
    fn what_cannot_be_honoured_is_named() {
        for (body, param) in [
            (json!({"guided_json": "{"}), "guided_json"),
            (json!({"guided_json": "1"}), "guided_json"),
            (json!({"guided_json": true}), "guided_json"),
            (json!({"guided_regex": 1}), "guided_regex"),
            (json!({"guided_choice": "a"}), "guided_choice"),
            (json!({"guided_choice": ["a", 1]}), "guided_choice[1]"),
            (json!({"guided_grammar": {}}), "guided_grammar"),
            (json!({"grammar": {"type": "regex"}}), "grammar"),
            (json!({"json_schema": []}), "json_schema"),
            (json!({"structured_outputs": "json"}), "structured_outputs"),
            (
                json!({"structured_outputs": {"json": 1}}),
                "structured_outputs.json",
            ),
            (
                json!({"structured_outputs": {"choice": [1]}}),
                "structured_outputs.choice[0]",
            ),
            (
                json!({"structured_outputs": {"jsn": {}}}),
                "structured_outputs.jsn",
            ),
            (
                json!({"structured_outputs": {"structural_tag": "{}"}}),
                "structured_outputs.structural_tag",
            ),
            (
                json!({"structured_outputs": {"json": {}, "whitespace_pattern": " ?"}}),
                "structured_outputs.whitespace_pattern",
            ),
            (
                json!({"structured_outputs": {"json": {}, "disable_any_whitespace": true}}),
                "structured_outputs.disable_any_whitespace",
            ),
            (
                json!({"structured_outputs": {"json": {}, "disable_additional_properties": true}}),
                "structured_outputs.disable_additional_properties",
            ),
        ] {
            assert_eq!(refused(&body), param, "{body}");
        }
    }
}
