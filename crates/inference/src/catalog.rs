//! What models there are on this machine, without knowing where or how they are kept.

use std::{path::PathBuf, sync::Arc};

use serde_json::Value;

use crate::{InferenceError, ModelTask, Modelfile};

/// The local models under every name they answer to.
pub trait Catalog: Send + Sync + 'static {
    /// Decides which model a request is for. What a client typed may be any model's name, or none:
    /// then a model for `task` answers whose turn it is (see README, "Which model answers"). A model
    /// that is named and is for something else is refused. May read the disk.
    ///
    /// `None` asks for the model that answers when none is named. An empty name is refused.
    fn choose(
        &self,
        reference: Option<&str>,
        task: ModelTask,
    ) -> Result<Arc<ModelCard>, InferenceError>;

    /// Finds the model that a reference names, for a question about it: full id, bare name, path,
    /// unique prefix, alias. Never another model. May read the disk.
    fn find(&self, reference: &str) -> Result<Arc<ModelCard>, InferenceError>;

    /// All local models that can be loaded, in a stable order.
    fn list(&self) -> Vec<ModelCard>;

    /// What the files beside a model's weights say about it. Reads the disk.
    fn describe(&self, card: &ModelCard) -> ModelDescription;
}

/// Reads a name that a client typed, without the space around it. An empty one is no name, for any
/// catalog.
///
/// # Errors
///
/// The name is empty.
pub fn read_name(reference: &str) -> Result<&str, InferenceError> {
    match reference.trim() {
        "" => Err(InferenceError::InvalidRequest {
            param: Some("model".into()),
            message: "`model` is empty; name a model".into(),
        }),
        name => Ok(name),
    }
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
    /// The quantization as people write it: `4-bit`, `bf16`.
    pub quantization: Option<String>,
    pub parameters: Option<u64>,
    /// Last change of the files, seconds since the Unix epoch.
    pub modified_unix: u64,
    /// 64 hexadecimal digits that tell this model from any other and change with its files. Copies
    /// share it.
    pub digest: String,
    /// What it says itself, if it was made from another model.
    pub modelfile: Option<Arc<Modelfile>>,
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
