//! What a model is for, and how much text an encoder takes, as the files of its folder say.

use std::{fs, io::ErrorKind, path::Path};

use macmlx_inference::ModelTask;
use serde_json::Value;

use super::Encoders;

/// File in a model's folder that has the last word: `{"task": "rerank"}`.
const FILE: &str = "macmlx.json";

/// Tokenizers without a limit say some astronomical number.
const SANE_LENGTH: u64 = 1 << 20;

/// What the model is for; the error is a reason for a person. `id` counts only where no file says
/// it: conversions of decoders often keep nothing of their task but the name.
pub(super) fn detect(
    id: &str,
    folder: &Path,
    config: &Value,
    encoders: &Encoders,
) -> Result<ModelTask, String> {
    if let Some(task) = read_stated(folder)? {
        return Ok(task);
    }
    let architectures = || {
        let names = config["architectures"].as_array().into_iter().flatten();
        names.filter_map(Value::as_str)
    };
    if architectures().any(|name| name.ends_with("ForSequenceClassification")) {
        return Ok(ModelTask::Rerank);
    }
    if let Some(task) = of_modules(&json(folder, "modules.json")?) {
        return Ok(task);
    }
    match json(folder, "config_sentence_transformers.json")?["model_type"].as_str() {
        Some("CrossEncoder") => return Ok(ModelTask::Rerank),
        Some("SentenceTransformer") => return Ok(ModelTask::Embed),
        _ => {}
    }
    if encoders.include(config) {
        return Ok(ModelTask::Embed);
    }
    let name = id.rsplit('/').next().unwrap_or(id).to_lowercase();
    Ok(if name.contains("rerank") {
        ModelTask::Rerank
    } else if name.contains("embed") {
        ModelTask::Embed
    } else {
        ModelTask::Generate
    })
}

/// Tokens an encoder takes, special ones included: the smallest limit that its files state.
pub(super) fn encoder_length(
    folder: &Path,
    config: &Value,
    encoders: &Encoders,
) -> Result<Option<u32>, String> {
    let limits = [
        encoders.longest(config),
        json(folder, "sentence_bert_config.json")?["max_seq_length"].as_u64(),
        json(folder, "tokenizer_config.json")?["model_max_length"]
            .as_u64()
            .filter(|length| *length <= SANE_LENGTH),
    ];
    let smallest = limits
        .into_iter()
        .flatten()
        .filter(|limit| *limit > 0)
        .min();
    Ok(smallest.and_then(|limit| u32::try_from(limit).ok()))
}

fn read_stated(folder: &Path) -> Result<Option<ModelTask>, String> {
    match &json(folder, FILE)?["task"] {
        Value::Null => Ok(None),
        task => macmlx_json::read(task).map(Some).map_err(|_| {
            format!("`task` in {FILE} is {task}, but can only be one of: generate, embed, rerank")
        }),
    }
}

/// Decides by the last module that settles it: a pooling gives a vector, a score gives a number.
fn of_modules(modules: &Value) -> Option<ModelTask> {
    let modules = modules.as_array()?;
    modules.iter().rev().find_map(|module| {
        let class = module["type"].as_str()?.rsplit('.').next()?;
        match class {
            "LogitScore" | "CausalScoreHead" => Some(ModelTask::Rerank),
            "Pooling" | "Normalize" => Some(ModelTask::Embed),
            _ => None,
        }
    })
}

/// `Null` where there is no such file.
fn json(folder: &Path, name: &str) -> Result<Value, String> {
    match fs::read(folder.join(name)) {
        Ok(bytes) => {
            macmlx_json::parse_python(&bytes).map_err(|error| format!("{name} is damaged: {error}"))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Value::Null),
        Err(error) => Err(format!("{name} cannot be read: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ENCODERS: Encoders = Encoders {
        is_encoder: |model_type| ["bert", "xlm-roberta", "modernbert"].contains(&model_type),
        positions: |_| None,
    };

    fn folder(files: &[(&str, Value)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, value) in files {
            fs::write(folder.path().join(name), value.to_string()).unwrap();
        }
        folder
    }

    fn modules(classes: &[&str]) -> Value {
        classes
            .iter()
            .map(|class| json!({"type": format!("sentence_transformers.models.{class}")}))
            .collect()
    }

    fn config(architecture: &str, model_type: &str) -> Value {
        json!({"architectures": [architecture], "model_type": model_type})
    }

    #[test]
    fn files_then_names_say_the_task() {
        use ModelTask::{Embed, Generate, Rerank};
        let qwen3 = || config("Qwen3ForCausalLM", "qwen3");
        let pooling = || {
            vec![(
                "modules.json",
                modules(&["Transformer", "Pooling", "Normalize"]),
            )]
        };
        let cases = [
            ("org/chat", qwen3(), vec![], Generate),
            ("org/bge", config("BertModel", "bert"), vec![], Embed),
            (
                "org/bge",
                json!({"model_type": "xlm-roberta"}),
                vec![],
                Embed,
            ),
            (
                "org/mlm",
                config("ModernBertForMaskedLM", "modernbert"),
                vec![],
                Embed,
            ),
            (
                "org/m",
                config("BertForSequenceClassification", "bert"),
                vec![],
                Rerank,
            ),
            (
                "org/m",
                config("Qwen3ForSequenceClassification", "qwen3"),
                vec![],
                Rerank,
            ),
            ("org/m", qwen3(), pooling(), Embed),
            (
                "org/m",
                qwen3(),
                vec![("modules.json", modules(&["Transformer", "LogitScore"]))],
                Rerank,
            ),
            (
                "org/m",
                qwen3(),
                vec![("modules.json", modules(&["Transformer", "CausalScoreHead"]))],
                Rerank,
            ),
            (
                "org/m",
                qwen3(),
                vec![(
                    "config_sentence_transformers.json",
                    json!({"model_type": "CrossEncoder"}),
                )],
                Rerank,
            ),
            (
                "mlx-community/Qwen3-Embedding-0.6B-4bit-DWQ",
                qwen3(),
                vec![],
                Embed,
            ),
            (
                "mlx-community/Qwen3-Reranker-0.6B-mxfp8",
                qwen3(),
                vec![],
                Rerank,
            ),
            // An owner's name says nothing of the model.
            ("embedders/chat", qwen3(), vec![], Generate),
            (
                "org/reranker",
                qwen3(),
                vec![("macmlx.json", json!({"task": "generate"}))],
                Generate,
            ),
            (
                "org/m",
                qwen3(),
                vec![("macmlx.json", json!({"tool_format": "hermes"}))],
                Generate,
            ),
        ];
        for (id, config, files, task) in cases {
            let folder = folder(&files);
            assert_eq!(
                detect(id, folder.path(), &config, &ENCODERS),
                Ok(task),
                "{id} {config} {files:?}"
            );
        }
    }

    #[test]
    fn a_task_that_does_not_exist_is_named() {
        let folder = folder(&[("macmlx.json", json!({"task": "sing"}))]);
        let reason = detect("m", folder.path(), &json!({}), &ENCODERS).unwrap_err();
        assert!(
            reason.contains("\"sing\"") && reason.contains("rerank"),
            "{reason}"
        );
    }

    #[test]
    fn the_smallest_limit_counts() {
        let bert = || json!({"model_type": "bert", "max_position_embeddings": 512});
        let length = |files: &[(&str, Value)], config: &Value| {
            encoder_length(folder(files).path(), config, &ENCODERS).unwrap()
        };
        assert_eq!(length(&[], &bert()), Some(512));
        let shorter = ("sentence_bert_config.json", json!({"max_seq_length": 256}));
        assert_eq!(length(&[shorter], &bert()), Some(256));
        let unknown = ("sentence_bert_config.json", json!({"max_seq_length": null}));
        assert_eq!(length(&[unknown], &bert()), Some(512));
        let tokenizer = |length| ("tokenizer_config.json", json!({"model_max_length": length}));
        assert_eq!(length(&[tokenizer(128.into())], &bert()), Some(128));
        let endless = tokenizer(json!(1e30));
        assert_eq!(length(&[endless], &bert()), Some(512));
        assert_eq!(length(&[], &json!({"model_type": "bert"})), None);
    }

    #[test]
    fn numbers_that_only_python_writes_spoil_no_file() {
        let folder = folder(&[]);
        let text = r#"{"max_seq_length": 256, "scale": NaN, "limits": [0.0, Infinity]}"#;
        fs::write(folder.path().join("sentence_bert_config.json"), text).unwrap();
        let config = json!({"max_position_embeddings": 512});
        assert_eq!(
            encoder_length(folder.path(), &config, &ENCODERS),
            Ok(Some(256))
        );
    }
}
