//! Whether a model's folder has a chat template, without reading its tokenizer.

use std::{fs, path::Path};

/// Files that hold nothing but the template.
const FILES: [&str; 2] = ["chat_template.jinja", "chat_template.json"];

/// A model without one completes text but does not chat.
pub fn has_chat_template(folder: &Path) -> bool {
    FILES.iter().any(|name| folder.join(name).is_file())
        || fs::read(folder.join("tokenizer_config.json"))
            .ok()
            .and_then(|bytes| macmlx_json::parse_python(&bytes).ok())
            .is_some_and(|config| !config["chat_template"].is_null())
}
