//! The JSON an answer must be: `output_config.format`, and `output_format` as it was called in beta.

use macmlx_inference::Grammar;
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::{
    Error,
    grammar::{Only, json_schema},
    json::fields_at,
};

/// The answer is JSON that satisfies a schema.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = anthropic::OutputFormat)]
pub(super) struct OutputFormat {
    /// Always `json_schema`.
    r#type: String,
    #[schema(value_type = Object)]
    schema: Value,
}

/// Reads `output_config.format` and `output_format`.
pub(super) fn grammar(
    format: Option<&Value>,
    format_of_beta: Option<&Value>,
) -> Result<Only, Error> {
    let mut only = Only::default();
    for (format, param) in [
        (format, "output_config.format"),
        (format_of_beta, "output_format"),
    ] {
        if let Some(format) = format {
            only.add(Some(read(format, param)?))?;
        }
    }
    Ok(only)
}

fn read(format: &Value, param: &str) -> Result<Grammar, Error> {
    let format: OutputFormat = fields_at(format, param)?;
    if format.r#type != "json_schema" {
        return Err(Error::invalid(
            format!("{param}.type"),
            format!("{param}.type is json_schema, not `{}`", format.r#type),
        ));
    }
    json_schema(format.schema, &format!("{param}.schema"))
}

#[cfg(test)]
mod tests {
    use macmlx_inference::Language;
    use serde_json::json;

    use super::*;

    #[test]
    fn both_places_are_read() {
        let schema = json!({"type": "object"});
        let sent = json!({"type": "json_schema", "schema": schema});
        for (found, param) in [
            (grammar(Some(&sent), None), "output_config.format.schema"),
            (grammar(None, Some(&sent)), "output_format.schema"),
        ] {
            let found = found.unwrap().into_grammar().unwrap();
            assert_eq!(found.language, Language::JsonSchema(schema.clone()));
            assert_eq!(found.param, param);
        }
        assert_eq!(grammar(None, None).unwrap().into_grammar(), None);
    }

    #[test]
    fn what_cannot_be_honoured_is_named() {
        let good = json!({"type": "json_schema", "schema": {}});
        for (sent, beta, param) in [
            (json!("json"), None, "output_config.format"),
            (json!({"schema": {}}), None, "output_config.format.type"),
            (
                json!({"type": "json_object"}),
                None,
                "output_config.format.schema",
            ),
            (
                json!({"type": "regex", "schema": {}}),
                None,
                "output_config.format.type",
            ),
            (
                json!({"type": "json_schema", "schema": 1}),
                None,
                "output_config.format.schema",
            ),
            (good.clone(), Some(&good), "output_format.schema"),
        ] {
            let named = match grammar(Some(&sent), beta).unwrap_err() {
                Error::Invalid { param, .. } => param.unwrap(),
                Error::Unsupported { param, .. } => param,
                other => panic!("{other:?}"),
            };
            assert_eq!(named, param, "{sent}");
        }
    }
}
