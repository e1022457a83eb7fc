//! Models on the hub: finding them, and what a person wants to know before downloading one.

use std::{fmt, sync::Arc};

use axum::{
    Json,
    extract::{Path, State},
};
use macmlx_fit::{Fit, Question, StoredWeights};
use macmlx_store::{
    disk,
    hub::{Card, Connection, Error, Hub, Listed, Reference, Repository, Search},
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{Problem, body::Asked, downloads::problem, models::Models, reply::ErrorBody};

/// Author whose models are shown when the query names none.
const DEFAULT_AUTHOR: &str = "mlx-community";
/// The author that means everyone.
const EVERYONE: &str = "*";
const DEFAULT_LIMIT: u32 = 30;
const MAX_LIMIT: u32 = 100;

/// What the hub routes act on.
pub struct HubSources {
    pub connection: Arc<Connection>,
    /// The local models, to say which models are here already and which can run here.
    pub models: Arc<Models>,
}

impl fmt::Debug for HubSources {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("HubSources").finish_non_exhaustive()
    }
}

/// `/x/hub`.
pub fn routes() -> OpenApiRouter<Arc<HubSources>> {
    OpenApiRouter::new()
        .routes(routes!(search_hub))
        .routes(routes!(hub_model))
}

/// What comes first.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = HubSort)]
enum Sort {
    #[default]
    Downloads,
    Likes,
    Modified,
    Trending,
}

impl From<Sort> for macmlx_store::hub::Sort {
    fn from(sort: Sort) -> Self {
        match sort {
            Sort::Downloads => Self::Downloads,
            Sort::Likes => Self::Likes,
            Sort::Modified => Self::Modified,
            Sort::Trending => Self::Trending,
        }
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct SearchQuery {
    /// Part of the name.
    search: Option<String>,
    /// Whose models; `*` is everyone, none is mlx-community.
    author: Option<String>,
    #[serde(default)]
    #[param(inline, required = false)]
    sort: Sort,
    /// Models of a page, at most 100.
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// A model on the hub.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
struct HubModel {
    /// `owner/name`.
    id: String,
    author: String,
    name: String,
    downloads: u64,
    likes: u64,
    #[schema(required, format = DateTime)]
    modified: Option<String>,
    tags: Vec<String>,
    #[schema(required)]
    pipeline_tag: Option<String>,
    is_gated: bool,
    /// True if the model is on this machine.
    is_local: bool,
    /// Number of parameters before quantization, if the hub says it.
    #[schema(required)]
    parameters: Option<u64>,
    #[schema(required)]
    quantization: Option<String>,
    /// Bytes of the weight files.
    #[schema(required)]
    size_bytes: Option<u64>,
    is_mlx: bool,
    /// It turns texts into vectors, as the hub has it.
    is_embedder: bool,
    /// It orders documents by a query, as the hub has it.
    is_reranker: bool,
}

#[derive(Debug, Serialize, ToSchema)]
struct HubModels {
    models: Vec<HubModel>,
    #[schema(required)]
    next_cursor: Option<String>,
}

/// What a person wants to know before downloading a model.
#[derive(Debug, Serialize, ToSchema)]
struct HubModelDetail {
    #[serde(flatten)]
    model: HubModel,
    commit: String,
    #[schema(required)]
    license: Option<String>,
    /// Markdown.
    #[schema(required)]
    readme: Option<String>,
    #[schema(required)]
    model_type: Option<String>,
    /// True if the model can run here, as far as its configuration tells.
    is_supported: bool,
    #[schema(required)]
    unsupported_reason: Option<String>,
    #[schema(required)]
    context_length: Option<u32>,
    files: Vec<HubFile>,
    /// Bytes of the files that are needed.
    download_bytes: u64,
    #[schema(required)]
    fit: Option<Fit>,
    #[schema(required)]
    disk_free_bytes: Option<u64>,
}

#[derive(Debug, Serialize, ToSchema)]
struct HubFile {
    path: String,
    size_bytes: u64,
    /// A download brings it.
    is_needed: bool,
}

/// Find models on the hub.
#[utoipa::path(
    get,
    path = "/x/hub/models",
    params(SearchQuery),
    responses(
        (status = 200, body = HubModels),
        (status = 429, description = "The hub asks to slow down", body = ErrorBody),
        (status = 502, description = "The hub cannot be reached", body = ErrorBody)
    )
)]
async fn search_hub(
    State(sources): State<Arc<HubSources>>,
    Asked(asked): Asked<SearchQuery>,
) -> Result<Json<HubModels>, Problem> {
    let limit = asked.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Problem::invalid_param(
            "limit",
            format!("`limit` must be from 1 to {MAX_LIMIT}"),
        ));
    }
    let given = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    let search = Search {
        text: given(asked.search),
        author: match given(asked.author) {
            None => Some(DEFAULT_AUTHOR.into()),
            Some(author) if author == EVERYONE => None,
            author => author,
        },
        sort: asked.sort.into(),
        limit,
        cursor: given(asked.cursor),
    };
    let hub = hub(&sources).await?;
    let page = hub.search(&search).await.map_err(|error| problem(&error))?;
    let models = blocking(move || {
        let models = page.models.into_iter();
        models.map(|listed| model(&sources, listed)).collect()
    })
    .await?;
    Ok(Json(HubModels {
        models,
        next_cursor: page.next_cursor,
    }))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct RevisionQuery {
    /// A branch, a tag or a commit; none is the main branch.
    revision: Option<String>,
}

/// Look at a model on the hub.
#[utoipa::path(
    get,
    path = "/x/hub/models/{id}",
    params(("id" = String, Path, description = "`owner/name`, percent-encoded"), RevisionQuery),
    responses(
        (status = 200, body = HubModelDetail),
        (status = 404, body = ErrorBody),
        (status = 409, description = "It is not for this token", body = ErrorBody),
        (status = 429, description = "The hub asks to slow down", body = ErrorBody),
        (status = 502, description = "The hub cannot be reached", body = ErrorBody)
    )
)]
async fn hub_model(
    State(sources): State<Arc<HubSources>>,
    Path(id): Path<String>,
    Asked(asked): Asked<RevisionQuery>,
) -> Result<Json<HubModelDetail>, Problem> {
    let id = match asked.revision {
        Some(revision) => format!("{id}@{revision}"),
        None => id,
    };
    let reference = Reference::parse(&id).map_err(|error| problem(&error))?;
    let hub = hub(&sources).await?;
    let (repository, card) = look(&hub, &reference)
        .await
        .map_err(|error| problem(&error))?;
    let detail = blocking(move || detail(&sources, repository, card)).await?;
    Ok(Json(detail))
}

async fn look(hub: &Hub, reference: &Reference) -> Result<(Repository, Card), Error> {
    let repository = hub.repository(reference, true).await?;
    let card = hub.card(&repository).await?;
    Ok((repository, card))
}

/// Blocks.
fn detail(sources: &HubSources, repository: Repository, card: Card) -> HubModelDetail {
    let download_bytes = repository.download_bytes();
    let weights_bytes = repository.weights_bytes();
    let model = model(sources, repository.listed);
    let model_type = card
        .config
        .as_ref()
        .and_then(|config| config["model_type"].as_str())
        .map(str::to_owned);
    let unsupported_reason = match (&model_type, weights_bytes) {
        (_, 0) => Some("it has no safetensors weights".to_owned()),
        (Some(model_type), _) => sources.models.unsupported_architecture(model_type),
        // Seen only by those with access.
        (None, _) if model.is_gated => None,
        (None, _) => Some("its config.json names no model_type".to_owned()),
    };
    let fit = card
        .config
        .as_ref()
        .filter(|_| weights_bytes > 0)
        .map(|config| {
            let question = Question {
                config,
                weights: StoredWeights {
                    size_bytes: weights_bytes,
                    parameters: model.parameters,
                },
                generates: !(model.is_embedder || model.is_reranker),
                context_tokens: None,
                other_models_bytes: other_models_bytes(sources, &model.id),
            };
            macmlx_fit::estimate(&question, &sources.models.fit)
        });
    HubModelDetail {
        commit: repository.commit,
        license: repository.license,
        readme: card.readme,
        is_supported: unsupported_reason.is_none(),
        unsupported_reason,
        context_length: card.config.as_ref().and_then(macmlx_fit::context_length),
        model_type,
        files: repository
            .files
            .into_iter()
            .map(|file| HubFile {
                path: file.path,
                size_bytes: file.size_bytes,
                is_needed: file.is_needed,
            })
            .collect(),
        download_bytes,
        fit,
        disk_free_bytes: disk::free_bytes(sources.models.library.root()).ok(),
        model,
    }
}

fn other_models_bytes(sources: &HubSources, id: &str) -> u64 {
    let loaded = sources.models.backend.loaded();
    let others = loaded.iter().filter(|model| model.id != id);
    others.map(|model| model.memory_bytes).sum()
}

fn model(sources: &HubSources, listed: Listed) -> HubModel {
    let (author, name) = listed.id.split_once('/').unwrap_or(("", &listed.id));
    HubModel {
        author: author.to_owned(),
        name: name.to_owned(),
        is_local: sources.models.library.root().join(&listed.id).is_dir(),
        downloads: listed.downloads,
        likes: listed.likes,
        modified: listed.modified,
        tags: listed.tags,
        is_embedder: matches!(
            listed.pipeline_tag.as_deref(),
            Some("feature-extraction" | "sentence-similarity")
        ),
        is_reranker: listed.pipeline_tag.as_deref() == Some("text-ranking"),
        pipeline_tag: listed.pipeline_tag,
        is_gated: listed.is_gated,
        parameters: listed.facts.parameters,
        quantization: listed.facts.quantization,
        size_bytes: listed.facts.size_bytes,
        is_mlx: listed.is_mlx,
        id: listed.id,
    }
}

/// The hub of the moment; reading the token may block.
async fn hub(sources: &HubSources) -> Result<Hub, Problem> {
    let connection = sources.connection.clone();
    blocking(move || connection.hub())
        .await?
        .map_err(|error| problem(&error))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    Ok(tokio::task::spawn_blocking(work).await?)
}
