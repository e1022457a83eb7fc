//! What form an answer has.

use serde_json::{Value, json};

use super::{
    Api::{Chat, Completions, Infill, Messages, Responses},
    GENERATING, OLLAMA, OPENAI, V1, Word, Wrong,
    value::{is_empty, is_false, is_true},
    word,
};

/// Why the whitespace of JSON stays as the model writes it.
pub(crate) const WHITESPACE: &str = "the whitespace of JSON cannot be chosen";

/// Why only a whole answer has a grammar.
pub(crate) const TAGS: &str = "tagged parts of an answer cannot have grammars of their own";

const JSON_OR_SCHEMA: &str = "it is \"json\" or a JSON Schema object";

pub(super) const WORDS: &[Word] = &[
    word(&["response_format"])
        .read(&[Chat, Completions, Infill], &["response_format"])
        .rewritten(&[Responses], |format| match parts(format)? {
            Form::Text => Ok(Vec::new()),
            Form::Json => Ok(vec![("text.format", json!({"type": "json_object"}))]),
            Form::Schema(mut labels) => {
                labels["type"] = "json_schema".into();
                Ok(vec![("text.format", labels)])
            }
            Form::Other(word, value) => Ok(vec![(word, value)]),
        })
        .rewritten(&[Messages], |format| {
            let schema = match parts(format)? {
                Form::Text => return Ok(Vec::new()),
                Form::Json => json!({"type": "object"}),
                Form::Schema(labels) => labels["schema"].clone(),
                Form::Other(word, value) => return Ok(vec![(word, value)]),
            };
            let format = json!({"type": "json_schema", "schema": schema});
            Ok(vec![("output_config.format", format)])
        })
        .rewritten(OLLAMA, |format| match parts(format)? {
            Form::Text => Ok(Vec::new()),
            Form::Json => Ok(vec![("format", "json".into())]),
            Form::Schema(labels) => Ok(vec![("format", labels["schema"].clone())]),
            Form::Other(word, value) => Ok(vec![(word, value)]),
        }),
    word(&["format"])
        .read(OLLAMA, &["format"])
        .rewritten(V1, format),
    word(&["output_format"])
        .read(&[Messages], &["output_format"])
        .rewritten(OPENAI, format)
        .rewritten(OLLAMA, format),
    word(&["response_schema"]).rewritten(GENERATING, |schema| match schema {
        Value::Object(_) => Ok(vec![("response_format", of_schema(schema))]),
        _ => Err(Wrong("it is a JSON Schema object")),
    }),
    word(&["text"])
        .read(&[Responses], &["text"])
        .rewritten(&[Chat, Completions, Infill, Messages], text)
        .rewritten(OLLAMA, text),
    word(&["structured_outputs"]).read(GENERATING, &["structured_outputs"]),
    word(&["guided_json"]).read(GENERATING, &["guided_json"]),
    word(&["guided_regex"]).read(GENERATING, &["guided_regex"]),
    word(&["guided_choice"]).read(GENERATING, &["guided_choice"]),
    word(&["guided_grammar"]).read(GENERATING, &["guided_grammar"]),
    word(&["grammar", "grammar_string"]).read(GENERATING, &["grammar"]),
    word(&["json_schema"]).read(GENERATING, &["json_schema"]),
    word(&["regex"]).read(GENERATING, &["regex"]),
    word(&["ebnf"]).read(GENERATING, &["ebnf"]),
    word(&["guided_whitespace_pattern"])
        .refused(GENERATING, WHITESPACE)
        .unless(is_empty),
    word(&["structural_tag"])
        .refused(GENERATING, TAGS)
        .unless(is_empty),
    word(&["grammar_lazy"])
        .refused(GENERATING, TAGS)
        .unless(is_false),
    word(&["grammar_triggers", "preserved_tokens"])
        .refused(GENERATING, TAGS)
        .unless(is_empty),
    word(&["modalities"])
        .refused(GENERATING, "only text is produced")
        .unless(|modalities| {
            let modalities = modalities.as_array();
            modalities.is_some_and(|all| all.iter().all(|modality| modality == "text"))
        }),
    word(&["audio"])
        .refused(GENERATING, "only text is produced")
        .unless(is_empty),
    word(&["prediction"])
        .refused(GENERATING, "predicted output is not available")
        .unless(is_empty),
    word(&["response_fields"])
        .refused(GENERATING, "an answer has all its fields")
        .read(&[Infill], &["response_fields"])
        .unless(is_empty),
    word(&[
        "return_tokens_as_token_ids",
        "return_token_ids",
        "return_tokens",
        "return_hidden_states",
    ])
    .refused(GENERATING, "tokens are given as text and bytes")
    .unless(is_false),
    word(&["parse_tool_calls"])
        .refused(GENERATING, "calls are always parsed")
        .unless(is_true),
];

/// What `response_format` asks for.
enum Form {
    Text,
    Json,
    /// `schema`, with its name and whether it is strict.
    Schema(Value),
    /// Another word that says it.
    Other(&'static str, Value),
}

fn parts(format: &Value) -> Result<Form, Wrong> {
    let schema = |schema: &Value| match schema {
        Value::Object(_) => Ok(Form::Schema(json!({"schema": schema}))),
        _ => Err(Wrong("its schema must be an object")),
    };
    match format["type"].as_str() {
        Some("text") => Ok(Form::Text),
        Some("json_object") if format["schema"].is_null() => Ok(Form::Json),
        Some("json_schema") if format["json_schema"]["schema"].is_object() => {
            Ok(Form::Schema(format["json_schema"].clone()))
        }
        Some("json_object" | "json_schema") => schema(&format["schema"]),
        Some("regex") => Ok(Form::Other("regex", format["pattern"].clone())),
        Some("grammar") => Ok(Form::Other("grammar", format["grammar"].clone())),
        _ => Err(Wrong(
            "its type is text, json_object, json_schema, regex or grammar",
        )),
    }
}

fn of_schema(schema: &Value) -> Value {
    json!({"type": "json_schema", "json_schema": {"schema": schema}})
}

/// Ollama's `format` and Anthropic's `output_format` as OpenAI's.
fn format(format: &Value) -> Result<Vec<(&'static str, Value)>, Wrong> {
    let format = match format {
        Value::String(text) if text.is_empty() || text == "text" => return Ok(Vec::new()),
        Value::String(json) if json == "json" || json == "json_object" => {
            json!({"type": "json_object"})
        }
        Value::Object(fields) => match fields.get("type").and_then(Value::as_str) {
            Some("json_schema" | "json_object" | "text") => without_labels(format),
            _ => of_schema(format),
        },
        _ => return Err(Wrong(JSON_OR_SCHEMA)),
    };
    Ok(vec![("response_format", format)])
}

/// A format of responses or Anthropic, which has the schema beside its type.
fn without_labels(format: &Value) -> Value {
    match (&format["type"], &format["schema"]) {
        (kind, schema @ Value::Object(_)) if kind == "json_schema" => {
            let mut inner = json!({"schema": schema});
            for label in ["name", "description", "strict"] {
                if !format[label].is_null() {
                    inner[label] = format[label].clone();
                }
            }
            json!({"type": "json_schema", "json_schema": inner})
        }
        _ => format.clone(),
    }
}

/// Where responses have their format; how wordy an answer is to be is only a wish.
fn text(text: &Value) -> Result<Vec<(&'static str, Value)>, Wrong> {
    match text {
        Value::Object(options) => match options.get("format") {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(format @ Value::Object(_)) => {
                Ok(vec![("response_format", without_labels(format))])
            }
            Some(_) => Err(Wrong("its `format` must be an object")),
        },
        _ => Err(Wrong("it is an object with a `format`")),
    }
}
