//! Where a model's chat template is found, and the one tag of `transformers` that Jinja lacks.

use std::path::Path;

use macmlx_inference::InferenceError;
use serde_json::Value;

use crate::tokenizer::{read_json, read_text};

/// The texts of a model's templates.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sources {
    pub(super) default: String,
    /// The template for conversations with tools, where it is another.
    pub(super) tool_use: Option<String>,
}

/// The first of `chat_template.jinja` (with `additional_chat_templates/tool_use.jinja`),
/// `chat_template.json` and `tokenizer_config.json` that has a template.
pub(super) fn find(
    model_dir: &Path,
    model: &str,
    tokenizer_config: &Value,
) -> Result<Option<Sources>, InferenceError> {
    if let Some(default) = read_text(model_dir, "chat_template.jinja", model)? {
        let tool_use = read_text(model_dir, "additional_chat_templates/tool_use.jinja", model)?;
        return Ok(Some(Sources { default, tool_use }));
    }
    let file = read_json(model_dir, "chat_template.json", model)?.unwrap_or_default();
    Ok(in_config(&file["chat_template"]).or_else(|| in_config(&tokenizer_config["chat_template"])))
}

/// A template, or a list of named ones.
fn in_config(value: &Value) -> Option<Sources> {
    if let Some(default) = value.as_str() {
        return Some(Sources {
            default: default.into(),
            tool_use: None,
        });
    }
    let list = value.as_array()?;
    let named = |name: &str| {
        let entry = list.iter().find(|entry| entry["name"] == name)?;
        entry["template"].as_str().map(str::to_owned)
    };
    let tool_use = named("tool_use");
    Some(Sources {
        default: named("default").or_else(|| tool_use.clone())?,
        tool_use,
    })
}

/// Replaces `{% generation %}` blocks, which mark text for training, by blocks that do nothing, so
/// that white space control stays as written.
pub(super) fn without_generation_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find("{%") {
        let (before, tag) = rest.split_at(at + 2);
        out.push_str(before);
        rest = tag;
        let word = tag.trim_start_matches(['-', '+']).trim_start();
        let control = &tag[..tag.len() - word.len()];
        for (name, instead) in [("generation", "if true"), ("endgeneration", "endif")] {
            if let Some(after) = word.strip_prefix(name)
                && after.trim_start().starts_with(['-', '+', '%'])
            {
                out.push_str(control);
                out.push_str(instead);
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn generation_tags_keep_their_white_space_control() {
        assert_eq!(
            without_generation_tags("a{%- generation %}b{% endgeneration -%}c{% if generation %}"),
            "a{%- if true %}b{% endif -%}c{% if generation %}"
        );
    }

    #[test]
    fn sources_are_looked_for_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let config = json!({"chat_template": [
            {"name": "default", "template": "D"},
            {"name": "tool_use", "template": "T"},
        ]});
        let found = |config: &Value| find(folder.path(), "m", config).unwrap();
        let sources = |default: &str, tool_use: Option<&str>| {
            Some(Sources {
                default: default.into(),
                tool_use: tool_use.map(str::to_owned),
            })
        };
        assert_eq!(found(&json!({})), None);
        assert_eq!(found(&json!({"chat_template": "S"})), sources("S", None));
        assert_eq!(found(&config), sources("D", Some("T")));
        std::fs::write(
            folder.path().join("chat_template.json"),
            r#"{"chat_template": "J"}"#,
        )
        .unwrap();
        assert_eq!(found(&config), sources("J", None));
        std::fs::write(folder.path().join("chat_template.jinja"), "F").unwrap();
        assert_eq!(found(&config), sources("F", None));
    }
}
