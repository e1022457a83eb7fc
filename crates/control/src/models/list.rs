//! All local models, usable or not.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::Path,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use axum::{Json, extract::State};
use macmlx_inference::{LoadedModel, ModelCard, ModelTask, ModelTraits, ToolSupport, rfc3339};
use macmlx_store::models::{self as store, Entry};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::Models;
use crate::Problem;

/// Where downloads of older versions noted what they are.
const META: &str = ".macmlx-meta.json";

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ModelList {
    /// Sorted by id.
    models: Vec<Model>,
    /// Id of the model that answers now where none is named, and to unknown names.
    #[schema(required)]
    chosen: Option<String>,
}

/// A model on this machine.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Model {
    /// `owner/repo`, or the folder's name.
    pub id: String,
    pub path: String,
    pub state: Completeness,
    /// What is missing or wrong.
    #[schema(required)]
    pub reason: Option<String>,
    #[schema(required)]
    pub model_type: Option<String>,
    /// The engine knows the architecture.
    pub is_supported: bool,
    #[schema(required)]
    pub unsupported_reason: Option<String>,
    /// Bytes on disk.
    pub size_bytes: u64,
    #[schema(required)]
    pub parameters: Option<u64>,
    /// The quantization as people write it: `4-bit`, `bf16`.
    #[schema(required)]
    pub quantization: Option<String>,
    /// Tokens the model was made for.
    #[schema(required)]
    pub context_length: Option<u32>,
    pub modified: String,
    pub capabilities: Capabilities,
    /// Other names of it.
    pub aliases: Vec<String>,
    pub is_loaded: bool,
    pub is_loading: bool,
    /// Bytes in memory, while the model is loaded.
    #[schema(required)]
    pub memory_bytes: Option<u64>,
    /// Time until it leaves memory if it is not used; null: it stays, or it is not there.
    #[schema(required)]
    pub expires_in_seconds: Option<u64>,
    /// Revision of the hub's repository.
    #[schema(required)]
    pub commit: Option<String>,
    /// The settings name it as the default model.
    pub is_default: bool,
}

/// Whether all of a model is here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Completeness {
    Complete,
    Incomplete,
}

/// What a model can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ToSchema)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an ability of its own"
)]
pub struct Capabilities {
    pub chat: bool,
    pub tools: Tools,
    pub reasoning: bool,
    pub images: bool,
    /// It turns texts into vectors, and does not generate.
    pub embedding: bool,
    /// It orders documents by a query, and does not generate.
    pub reranking: bool,
}

/// How a model is told about tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Tools {
    /// It takes none.
    #[default]
    None,
    /// The model calls tools in the notation for models whose chat template takes none.
    Generic,
    /// The model's chat template takes tools.
    Native,
}

impl Tools {
    fn of(support: ToolSupport) -> Self {
        match support {
            ToolSupport::None => Self::None,
            ToolSupport::Generic => Self::Generic,
            ToolSupport::Native => Self::Native,
        }
    }
}

impl Capabilities {
    fn of(card: &ModelCard, traits: &ModelTraits) -> Self {
        Self {
            chat: traits.chat_template.is_some(),
            tools: Tools::of(traits.tools),
            reasoning: traits.reasons,
            images: traits.sees_images,
            embedding: card.task == ModelTask::Embed,
            reranking: card.task == ModelTask::Rerank,
        }
    }
}

/// List the models of this machine.
#[utoipa::path(get, path = "/x/models", responses((status = 200, body = ModelList)))]
pub(super) async fn models(State(models): State<Arc<Models>>) -> Result<Json<ModelList>, Problem> {
    let snapshot = Snapshot::take(&models).await?;
    let shown = snapshot
        .entries
        .iter()
        .map(|entry| snapshot.show(&models, entry));
    Ok(Json(ModelList {
        models: futures::future::join_all(shown).await,
        chosen: snapshot.chosen.clone(),
    }))
}

/// What is the same for all models of an answer.
pub(super) struct Snapshot {
    pub(super) entries: Vec<Entry>,
    loaded: HashMap<String, LoadedModel>,
    loading: Vec<String>,
    /// Aliases by the id they stand for.
    aliases: BTreeMap<String, Vec<String>>,
    default_model: Option<String>,
    /// Answers where no model is named.
    chosen: Option<String>,
}

impl Snapshot {
    pub(super) async fn take(models: &Arc<Models>) -> Result<Self, Problem> {
        let models = models.clone();
        Ok(tokio::task::spawn_blocking(move || Self::read(&models)).await?)
    }

    fn read(models: &Models) -> Self {
        let mut aliases = BTreeMap::<String, Vec<String>>::new();
        for (alias, target) in models.aliases.all().iter() {
            if let Ok(entry) = models.library.find(target) {
                aliases.entry(entry.id).or_default().push(alias.clone());
            }
        }
        let settings = models.settings.get();
        let default_model = settings
            .default_model
            .as_deref()
            .and_then(|reference| models.catalog.find(reference).ok())
            .map(|card| card.id.clone());
        let chosen = models.catalog.choose(None, ModelTask::Generate);
        Self {
            entries: models.library.entries(),
            loaded: models
                .backend
                .loaded()
                .into_iter()
                .map(|model| (model.id.clone(), model))
                .collect(),
            loading: models.activity.loading(),
            aliases,
            default_model,
            chosen: chosen.ok().map(|card| card.id.clone()),
        }
    }

    /// Bytes in memory of all models but one.
    pub(super) fn others_bytes(&self, id: &str) -> u64 {
        let others = self.loaded.values().filter(|model| model.id != id);
        others.map(|model| model.memory_bytes).sum()
    }

    /// Requests that a model is answering.
    pub(super) fn active_requests(&self, id: &str) -> u32 {
        self.loaded.get(id).map_or(0, |model| model.active_requests)
    }

    pub(super) async fn show(&self, models: &Models, entry: &Entry) -> Model {
        let card = entry.card();
        let model_type = card.map(|card| card.model_type.clone());
        let unsupported_reason = card.and_then(|card| models.find_reason(card));
        let capabilities = match card {
            Some(card) if unsupported_reason.is_none() => {
                Capabilities::of(card, &models.traits(card).await)
            }
            Some(card) => Capabilities::of(card, &ModelTraits::default()),
            None => Capabilities::default(),
        };
        let loaded = self.loaded.get(&entry.id);
        Model {
            id: entry.id.clone(),
            path: entry.path.display().to_string(),
            state: match entry.state {
                store::State::Complete(_) => Completeness::Complete,
                store::State::Incomplete { .. } => Completeness::Incomplete,
            },
            reason: match &entry.state {
                store::State::Complete(_) => None,
                store::State::Incomplete { reason } => Some(reason.clone()),
            },
            is_supported: card.is_some() && unsupported_reason.is_none(),
            unsupported_reason,
            model_type,
            size_bytes: size_bytes(entry),
            parameters: card.and_then(|card| card.parameters),
            quantization: card.and_then(|card| card.quantization.clone()),
            context_length: card.and_then(|card| card.context_length),
            modified: rfc3339(modified_unix(entry)),
            capabilities,
            aliases: self.aliases.get(&entry.id).cloned().unwrap_or_default(),
            is_loaded: loaded.is_some(),
            is_loading: self.loading.contains(&entry.id),
            memory_bytes: loaded.map(|model| model.memory_bytes),
            expires_in_seconds: loaded
                .and_then(|model| model.expires_in)
                .map(|left| left.as_secs()),
            commit: commit(&entry.path),
            is_default: self.default_model.as_deref() == Some(&*entry.id),
        }
    }
}

impl Models {
    /// Why the engine cannot load a model.
    fn find_reason(&self, card: &ModelCard) -> Option<String> {
        let known = match card.task {
            ModelTask::Generate => &self.model_types,
            ModelTask::Embed | ModelTask::Rerank => &self.encoder_types,
        };
        (!known.contains(&&*card.model_type)).then(|| describe_unsupported(&card.model_type))
    }

    /// Why the engine cannot load an architecture, for whatever task.
    pub(crate) fn unsupported_architecture(&self, model_type: &str) -> Option<String> {
        let mut known = self.model_types.iter().chain(&self.encoder_types);
        (!known.any(|known| *known == model_type)).then(|| describe_unsupported(model_type))
    }
}

fn describe_unsupported(model_type: &str) -> String {
    format!("models of the architecture `{model_type}` cannot be run by this version yet")
}

/// Returns the bytes of the weights, or of all files where not all are here.
pub(super) fn size_bytes(entry: &Entry) -> u64 {
    match entry.card() {
        Some(ModelCard { size_bytes, .. }) => *size_bytes,
        None => files(&entry.path).map(|(_, size_bytes)| size_bytes).sum(),
    }
}

/// Names and sizes of a folder's own files. Blocks.
pub(super) fn files(folder: &Path) -> impl Iterator<Item = (String, u64)> {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let entry = entry.ok()?;
            // Weights may be links to where another tool keeps them.
            let metadata = fs::metadata(entry.path()).ok()?;
            let name = entry.file_name().into_string().ok()?;
            metadata.is_file().then_some((name, metadata.len()))
        })
}

fn modified_unix(entry: &Entry) -> u64 {
    if let Some(card) = entry.card() {
        return card.modified_unix;
    }
    fs::metadata(&entry.path)
        .and_then(|metadata| metadata.modified())
        .unwrap_or(SystemTime::UNIX_EPOCH)
        .duration_since(UNIX_EPOCH)
        .map_or(0, |age| age.as_secs())
}

fn commit(folder: &Path) -> Option<String> {
    let bytes = fs::read(folder.join(META)).ok()?;
    let meta: Value = macmlx_json::parse(&bytes).ok()?;
    Some(meta["commitSHA"].as_str()?.to_owned())
}
