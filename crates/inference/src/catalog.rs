//! What models there are on this machine, without knowing where or how they are kept.

use std::path::PathBuf;

use serde_json::Value;

use crate::{InferenceError, ModelTask};

/// The local models. Implemented by the store; the engine and the dialects only ask.
pub trait Catalog: Send + Sync + 'static {
    /// Finds the model a client's reference means: full id, bare name, path, unique prefix.
    fn resolve(&self, reference: &str) -> Result<ModelCard, InferenceError>;

    /// As [`Self::resolve`], of models for `task`; one that is for something else is refused. A name
    /// that is nobody's may mean another model for each task.
    fn resolve_for(&self, reference: &str, task: ModelTask) -> Result<ModelCard, InferenceError> {
        let card = self.resolve(reference)?;
        card.expect(task)?;
        Ok(card)
    }

    /// All local models that can be loaded, in a stable order.
    fn list(&self) -> Vec<ModelCard>;

    /// What the files beside a model's weights say about it. Reads the disk.
    fn describe(&self, reference: &str) -> Result<ModelDescription, InferenceError>;
}

/// What is known of a local model without loading it.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelCard {
    /// `owner/repo`, or the folder's name.
    pub id: String,
    /// Folder with config.json, weights and tokenizer.
    pub path: PathBuf,
    /// `model_type` of config.json.
    pub model_type: String,
    pub task: ModelTask,
    /// Tokens the model was made for, from its config; `None` when it does not say.
    pub context_length: Option<u32>,
    /// Sum of the weight files.
    pub size_bytes: u64,
    /// As people write it: `4-bit`, `bf16`.
    pub quantization: Option<String>,
    pub parameters: Option<u64>,
    /// Last change of the files, seconds since the Unix epoch.
    pub modified_unix: u64,
    /// 64 hexadecimal digits that tell this model from any other and change with its files. Copies
    /// share it.
    pub digest: String,
}

impl ModelCard {
    /// Refuses a model that is for something else.
    pub fn expect(&self, task: ModelTask) -> Result<(), InferenceError> {
        if self.task == task {
            return Ok(());
        }
        let what = match self.task {
            ModelTask::Generate => "generates text",
            ModelTask::Embed => "makes embeddings",
            ModelTask::Rerank => "reranks documents",
        };
        let wanted = match task {
            ModelTask::Generate => "a model that generates text",
            ModelTask::Embed => "an embedding model",
            ModelTask::Rerank => "a reranker",
        };
        Err(InferenceError::InvalidRequest {
            param: Some("model".into()),
            message: format!("`{}` {what}; this needs {wanted}", self.id),
        })
    }
}

/// What a model's own files say, beyond its card.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelDescription {
    /// `config.json`.
    pub config: Value,
    /// `generation_config.json`; `Null` where there is none.
    pub generation_config: Value,
    /// Text of the licence file.
    pub license: Option<String>,
}
