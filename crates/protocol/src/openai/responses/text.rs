//! `text` of a request: what form the answer's text has, told back in the response.

use macmlx_inference::{Grammar, Language};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::{
    Error,
    grammar::{grammar, json_schema_by},
    json::fields_at,
};

#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = responses::TextOptions)]
pub(super) struct TextOptions {
    pub(super) verbosity: Option<String>,
    #[schema(value_type = Option<Format>)]
    format: Option<Value>,
}

/// What form the answer's text has. A schema is enforced or refused, unless `strict` is
/// false: then it is enforced as far as it can be.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schema(as = responses::TextFormat)]
pub enum Format {
    Text,
    JsonObject,
    JsonSchema {
        /// A label, as is the description: the model is not told of them.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        #[schema(value_type = Object)]
        schema: Value,
        #[serde(skip_serializing_if = "Option::is_none")]
        strict: Option<bool>,
    },
}

/// All fields of all forms.
#[derive(Debug, Deserialize)]
struct Fields {
    r#type: String,
    name: Option<String>,
    description: Option<String>,
    schema: Option<Value>,
    strict: Option<bool>,
}

impl TextOptions {
    pub(super) fn format(&self) -> Result<Format, Error> {
        const PARAM: &str = "text.format";
        let Some(format) = self.format.as_ref() else {
            return Ok(Format::Text);
        };
        let fields: Fields = fields_at(format, PARAM)?;
        match (fields.r#type.as_str(), fields.schema) {
            ("json_schema", Some(schema)) => Ok(Format::JsonSchema {
                name: fields.name,
                description: fields.description,
                schema,
                strict: fields.strict,
            }),
            ("json_schema", None) => Err(Error::invalid(
                format!("{PARAM}.schema"),
                format!("{PARAM}.schema is missing"),
            )),
            (kind @ ("text" | "json_object"), Some(_)) => Err(Error::unsupported(
                format!("{PARAM}.schema"),
                format!("it means nothing to the type `{kind}`"),
            )),
            ("text", None) => Ok(Format::Text),
            ("json_object", None) => Ok(Format::JsonObject),
            (other, _) => Err(Error::invalid(
                format!("{PARAM}.type"),
                format!("{PARAM}.type is text, json_object or json_schema, not `{other}`"),
            )),
        }
    }
}

impl Format {
    pub(super) fn grammar(&self) -> Result<Option<Grammar>, Error> {
        match self {
            Self::Text => Ok(None),
            Self::JsonObject => Ok(Some(grammar(Language::JsonObject, "text.format"))),
            Self::JsonSchema { schema, strict, .. } => {
                json_schema_by(schema.clone(), "text.format.schema", *strict).map(Some)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn format(format: &Value) -> Result<Format, Error> {
        fields_at::<TextOptions>(&json!({"format": format}), "text")?.format()
    }

    #[test]
    fn every_form_is_told_back_as_it_came() {
        for sent in [
            json!({"type": "text"}),
            json!({"type": "json_object"}),
            json!({"type": "json_schema", "name": "dog", "schema": {"type": "object"}}),
            json!({
                "type": "json_schema", "name": "dog", "description": "A dog.",
                "schema": {"type": "object"}, "strict": true,
            }),
        ] {
            let told = serde_json::to_value(format(&sent).unwrap()).unwrap();
            assert_eq!(told, sent);
        }
        assert_eq!(format(&json!(null)), Ok(Format::Text));
    }

    #[test]
    fn each_form_is_a_grammar_or_none() {
        let grammar_of = |sent: Value| format(&sent).unwrap().grammar().unwrap();
        assert_eq!(grammar_of(json!({"type": "text"})), None);
        assert_eq!(
            grammar_of(json!({"type": "json_object"})),
            Some(grammar(Language::JsonObject, "text.format"))
        );
        let schema = json!({"type": "object"});
        for strict in [json!(null), json!(false), json!(true)] {
            let language = if strict == false {
                Language::LooseJsonSchema(schema.clone())
            } else {
                Language::JsonSchema(schema.clone())
            };
            let sent = json!({"type": "json_schema", "schema": schema, "strict": strict});
            assert_eq!(
                grammar_of(sent),
                Some(grammar(language, "text.format.schema"))
            );
        }
    }

    #[test]
    fn what_cannot_be_honoured_is_named() {
        for (sent, param) in [
            (json!("json"), "text.format"),
            (json!({}), "text.format.type"),
            (json!({"type": "grammar"}), "text.format.type"),
            (json!({"type": "json_schema"}), "text.format.schema"),
            (
                json!({"type": "json_schema", "json_schema": {"schema": {}}}),
                "text.format.schema",
            ),
            (
                json!({"type": "json_schema", "schema": {}, "strict": 1}),
                "text.format.strict",
            ),
            (
                json!({"type": "json_schema", "schema": []}),
                "text.format.schema",
            ),
            (
                json!({"type": "json_object", "schema": {}}),
                "text.format.schema",
            ),
        ] {
            let error = format(&sent).and_then(|format| format.grammar());
            let named = match error.unwrap_err() {
                Error::Invalid { param, .. } => param.unwrap(),
                Error::Unsupported { param, .. } => param,
                other => panic!("{other:?}"),
            };
            assert_eq!(named, param, "{sent}");
        }
    }
}
