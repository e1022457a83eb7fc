//! The starter model, imported from its GGUF file.

use std::{
    ops::ControlFlow,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use macmlx_chat::{ChatModel, Constraint};
use macmlx_engine::{Engine, EngineOptions};
use macmlx_inference::{Grammar, InferenceError, Language, ModelCard, Prompt, ReasoningOptions};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) const NAME: &str = "starter";

pub(crate) struct Starter {
    _home: TempDir,
    pub(crate) card: Arc<ModelCard>,
    pub(crate) chat: ChatModel,
    engine: OnceLock<Engine>,
}

impl Starter {
    pub(crate) fn import() -> Self {
        let home = tempfile::tempdir().unwrap();
        let options = macmlx_gguf::Options {
            file: environment("MACMLX_STARTER_GGUF"),
            models: home.path().to_owned(),
            id: NAME.into(),
        };
        macmlx_gguf::import(&options, &mut |_| ControlFlow::Continue(())).unwrap();
        let path = home.path().join(NAME);
        let card = ModelCard {
            path: path.clone(),
            context_length: Some(2048),
            ..ModelCard::scripted(NAME)
        };
        Self {
            chat: ChatModel::load(&path, NAME).unwrap(),
            _home: home,
            card: Arc::new(card),
            engine: OnceLock::new(),
        }
    }

    pub(crate) fn engine(&self) -> &Engine {
        self.engine
            .get_or_init(|| Engine::new(EngineOptions::default(), Arc::new(|_| None)))
    }

    /// The beginning of the grammar of a schema.
    pub(crate) fn constraint(&self, schema: &Value) -> Result<Constraint, InferenceError> {
        let prompt = Prompt::Text("x".into());
        let rendered = self.chat.prompt(&prompt, &ReasoningOptions::default())?;
        let grammar = grammar(schema);
        Ok(self.chat.constraint(&rendered, Some(&grammar))?.unwrap())
    }
}

pub(crate) fn grammar(schema: &Value) -> Grammar {
    Grammar {
        language: Language::JsonSchema(schema.clone()),
        param: "schema".into(),
    }
}

/// A path that `cargo xtask test schemas` sets.
#[expect(
    clippy::disallowed_methods,
    reason = "where fixtures are is no setting of the program"
)]
pub(crate) fn environment(name: &str) -> PathBuf {
    match std::env::var_os(name) {
        Some(path) => path.into(),
        None => panic!("{name} is not set: run `cargo xtask test schemas`"),
    }
}
