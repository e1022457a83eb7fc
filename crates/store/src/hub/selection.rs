//! Which files of a repository a model needs: the decision alone, over names.

use std::path::Path;

/// Files beside weights, by their whole name.
const NAMED: [&str; 16] = [
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "chat_template.jinja",
    "chat_template.json",
    "preprocessor_config.json",
    "processor_config.json",
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
];

/// Whether a model needs the file. Folders inside repositories hold other forms of the same
/// weights, or a module that comes after an encoder, such as `1_Pooling` and `2_Dense`.
pub(crate) fn is_needed(path: &str, all: &[&str]) -> bool {
    if let Some((folder, name)) = path.split_once('/') {
        let is_module = folder
            .split_once('_')
            .is_some_and(|(index, _)| index.parse::<u8>().is_ok());
        return is_module && matches!(name, "config.json" | "model.safetensors");
    }
    if NAMED.contains(&path) || path == "model.safetensors.index.json" || is_notice(path) {
        return true;
    }
    if !has_extension(path, "safetensors") {
        return false;
    }
    // Some repositories carry the original weights a second time under another name.
    let is_model = |path: &str| path.starts_with("model") && has_extension(path, "safetensors");
    is_model(path) || !all.iter().any(|other| is_model(other))
}

/// What to say when there are no safetensors.
pub(super) fn hint_without_weights(all: &[&str]) -> &'static str {
    if all.iter().any(|path| has_extension(path, "gguf")) {
        "download one of its GGUF files and use `macmlx import`, or look for an MLX version"
    } else {
        "look for an MLX version of it, for example by mlx-community"
    }
}

pub(super) fn has_extension(path: &str, wanted: &str) -> bool {
    Path::new(path)
        .extension()
        .is_some_and(|extension| extension == wanted)
}

fn is_notice(path: &str) -> bool {
    let stem = path.split('.').next().unwrap_or(path).to_uppercase();
    matches!(
        stem.as_str(),
        "LICENSE" | "LICENCE" | "NOTICE" | "README" | "USE_POLICY"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needed<'a>(all: &[&'a str]) -> Vec<&'a str> {
        all.iter()
            .copied()
            .filter(|path| is_needed(path, all))
            .collect()
    }

    #[test]
    fn weights_once_and_the_files_beside_them() {
        assert_eq!(
            needed(&[
                ".gitattributes",
                "LICENSE",
                "README.md",
                "config.json",
                "consolidated.safetensors",
                "model-00001-of-00002.safetensors",
                "model-00002-of-00002.safetensors",
                "model.safetensors.index.json",
                "onnx/model.onnx",
                "original/model.safetensors",
                "pytorch_model.bin",
                "tokenizer.json",
            ]),
            [
                "LICENSE",
                "README.md",
                "config.json",
                "model-00001-of-00002.safetensors",
                "model-00002-of-00002.safetensors",
                "model.safetensors.index.json",
                "tokenizer.json",
            ]
        );
    }

    #[test]
    fn modules_of_encoders() {
        assert_eq!(
            needed(&[
                "1_Pooling/config.json",
                "2_Dense/config.json",
                "2_Dense/model.safetensors",
                "2_Dense/pytorch_model.bin",
                "config_sentence_transformers.json",
                "model.safetensors",
                "modules.json",
                "onnx/config.json",
                "onnx/model.onnx",
                "openvino/config.json",
            ]),
            [
                "1_Pooling/config.json",
                "2_Dense/config.json",
                "2_Dense/model.safetensors",
                "config_sentence_transformers.json",
                "model.safetensors",
                "modules.json",
            ]
        );
    }

    #[test]
    fn weights_of_any_name_when_there_are_no_others() {
        assert_eq!(
            needed(&["weights.00.safetensors", "config.json"]),
            ["weights.00.safetensors", "config.json"]
        );
    }
}
