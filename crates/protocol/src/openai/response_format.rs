//! `response_format` of chat completions and completions.
//!
//! `json_object` may have a `schema`, as llama.cpp and Together have it; `regex` is Together's and
//! `grammar` is Fireworks'. A schema is enforced or refused, unless `strict` is false: then it is
//! enforced as far as it can be.

use macmlx_inference::{Grammar, Language};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::{
    Error,
    grammar::{grammar, json_schema, json_schema_by},
    json::fields_at,
};

#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = openai::ResponseFormatField)]
pub(super) struct Fields {
    #[schema(value_type = Option<ResponseFormat>)]
    response_format: Option<Value>,
}

/// What form the answer has.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = openai::ResponseFormat)]
struct ResponseFormat {
    /// `text`, `json_object`, `json_schema`, `regex` or `grammar`.
    r#type: String,
    json_schema: Option<JsonSchema>,
    /// JSON Schema of a `json_object`.
    schema: Option<Value>,
    /// The whole answer matches; with `regex`.
    pattern: Option<String>,
    /// Lark or GBNF; with `grammar`.
    grammar: Option<String>,
}

/// Names and descriptions are labels; the model is not told of them.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = openai::JsonSchema)]
struct JsonSchema {
    #[serde(rename = "name")]
    _name: Option<String>,
    #[serde(rename = "description")]
    _description: Option<String>,
    schema: Option<Value>,
    /// `false`: what cannot be enforced of the schema is no error.
    strict: Option<bool>,
}

impl Fields {
    /// `None`: text of any form.
    pub(super) fn into_grammar(self) -> Result<Option<Grammar>, Error> {
        read(self.response_format.as_ref())
    }
}

fn read(value: Option<&Value>) -> Result<Option<Grammar>, Error> {
    const PARAM: &str = "response_format";
    let Some(value) = value.filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let format: ResponseFormat = fields_at(value, PARAM)?;
    let kind = format.r#type.as_str();
    let fields: &[&str] = match kind {
        "text" => &[],
        "json_object" => &["schema"],
        "json_schema" => &["json_schema", "schema"],
        "regex" => &["pattern"],
        "grammar" => &["grammar"],
        other => {
            return Err(Error::invalid(
                format!("{PARAM}.type"),
                format!(
                    "{PARAM}.type is text, json_object, json_schema, regex or grammar, not `{other}`"
                ),
            ));
        }
    };
    check_fields(value, fields, kind)?;
    let missing = |field: &str| {
        let param = format!("{PARAM}.{field}");
        let message = format!("{param} is missing");
        Error::invalid(param, message)
    };
    let language = match kind {
        "text" => return Ok(None),
        "regex" => Language::Regex(format.pattern.ok_or_else(|| missing("pattern"))?),
        "grammar" => Language::Rules(format.grammar.ok_or_else(|| missing("grammar"))?),
        _ => match (format.json_schema, format.schema) {
            (Some(_), Some(_)) => {
                return Err(Error::invalid(
                    format!("{PARAM}.schema"),
                    format!("{PARAM}.schema and {PARAM}.json_schema exclude each other"),
                ));
            }
            (Some(JsonSchema { schema, strict, .. }), None) => {
                let schema = schema.ok_or_else(|| missing("json_schema.schema"))?;
                let param = format!("{PARAM}.json_schema.schema");
                return json_schema_by(schema, &param, strict).map(Some);
            }
            (None, Some(schema)) => {
                return json_schema(schema, &format!("{PARAM}.schema")).map(Some);
            }
            (None, None) if kind == "json_object" => Language::JsonObject,
            (None, None) => return Err(missing("json_schema")),
        },
    };
    Ok(Some(grammar(language, PARAM)))
}

/// Refuses what would say more about the answer than its type has a place for.
fn check_fields(value: &Value, fields: &[&str], kind: &str) -> Result<(), Error> {
    let others = value.as_object().into_iter().flatten();
    for (name, value) in others {
        if name != "type" && !value.is_null() && !fields.contains(&name.as_str()) {
            return Err(Error::unsupported(
                format!("response_format.{name}"),
                format!("it means nothing to the type `{kind}`"),
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(value: &Value) -> String {
        match read(Some(value)).unwrap_err() {
            Error::Invalid { param, .. } => param.unwrap(),
            Error::Unsupported { param, .. } => param,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_form_is_read_and_named_by_its_place() {
        let schema = json!({"type": "object"});
        let of_schema = || Language::JsonSchema(schema.clone());
        for (value, language, param) in [
            (
                json!({"type": "json_object"}),
                Language::JsonObject,
                "response_format",
            ),
            (
                json!({"type": "json_object", "schema": schema}),
                of_schema(),
                "response_format.schema",
            ),
            (
                json!({"type": "json_schema", "schema": schema}),
                of_schema(),
                "response_format.schema",
            ),
            (
                json!({"type": "json_schema", "json_schema": {
                    "name": "dog", "description": "A dog.", "schema": schema, "strict": true,
                }}),
                of_schema(),
                "response_format.json_schema.schema",
            ),
            (
                json!({"type": "json_schema", "json_schema": {"schema": schema, "strict": false}}),
                Language::LooseJsonSchema(schema.clone()),
                "response_format.json_schema.schema",
            ),
            (
                json!({"type": "regex", "pattern": "[ab]+"}),
                Language::Regex("[ab]+".into()),
                "response_format",
            ),
            (
                json!({"type": "grammar", "grammar": "root ::= \"a\""}),
                Language::Rules("root ::= \"a\"".into()),
                "response_format",
            ),
        ] {
            let expected = grammar(language, param);
            assert_eq!(read(Some(&value)), Ok(Some(expected)), "{value}");
        }
    }

    #[test]
    fn text_is_no_grammar() {
        for value in [
            json!(null),
            json!({"type": "text"}),
            json!({"type": "text", "json_schema": null}),
        ] {
            assert_eq!(read(Some(&value)), Ok(None), "{value}");
        }
    }

    #[test]
    fn what_cannot_be_honoured_is_named() {
        for (value, param) in [
            (json!("json"), "response_format"),
            (json!({}), "response_format.type"),
            (json!({"type": 1}), "response_format.type"),
            (json!({"type": "structural_tag"}), "response_format.type"),
            (
                json!({"type": "json_schema"}),
                "response_format.json_schema",
            ),
            (
                json!({"type": "json_schema", "json_schema": {"name": "dog"}}),
                "response_format.json_schema.schema",
            ),
            (
                json!({"type": "json_schema", "json_schema": {"schema": "dog"}}),
                "response_format.json_schema.schema",
            ),
            (
                json!({"type": "json_schema", "json_schema": {"schema": {}, "strict": "yes"}}),
                "response_format.json_schema.strict",
            ),
            (
                json!({"type": "json_schema", "json_schema": {"schema": {}}, "schema": {}}),
                "response_format.schema",
            ),
            (
                json!({"type": "json_object", "schema": true}),
                "response_format.schema",
            ),
            (
                json!({"type": "json_object", "value": {}}),
                "response_format.value",
            ),
            (
                json!({"type": "text", "json_schema": {"schema": {}}}),
                "response_format.json_schema",
            ),
            (json!({"type": "regex"}), "response_format.pattern"),
            (
                json!({"type": "grammar", "grammar": 1}),
                "response_format.grammar",
            ),
        ] {
            assert_eq!(refused(&value), param, "{value}");
        }
    }
}
