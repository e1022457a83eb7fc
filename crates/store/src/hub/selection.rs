//! Which files of a repository a model needs: the decision alone, over names.

use std::path::Path;

/// Files beside weights, by their whole name.
const NAMED: [&str; 13] = [
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
];

/// Whether a model needs the file. Folders inside repositories hold other forms of the same
/// weights.
pub(crate) fn is_needed(path: &str, all: &[&str]) -> bool {
    if path.contains('/') {
        return false;
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
    fn weights_of_any_name_when_there_are_no_others() {
        assert_eq!(
            needed(&["weights.00.safetensors", "config.json"]),
            ["weights.00.safetensors", "config.json"]
        );
    }
}
