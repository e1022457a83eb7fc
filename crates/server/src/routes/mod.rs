//! All routes of clients: the endpoints that generate or encode, and what answers at once.

pub(crate) mod anthropic;
pub(crate) mod endpoints;
pub(crate) mod models;
pub(crate) mod ollama;
pub(crate) mod openai;
pub(crate) mod responses;
pub(crate) mod status;
mod tokenize;

use std::sync::Arc;

use macmlx_inference::{Catalog, ModelCard, ModelTask, ModelTraits};
use macmlx_protocol::Error;

use crate::router::App;

/// Asks the catalog, which may read the disk, without holding up other requests.
async fn ask_catalog<T: Send + 'static>(
    catalog: &Arc<dyn Catalog>,
    question: impl FnOnce(&dyn Catalog) -> T + Send + 'static,
) -> Result<T, Error> {
    let catalog = Arc::clone(catalog);
    tokio::task::spawn_blocking(move || question(catalog.as_ref()))
        .await
        .map_err(|error| {
            tracing::error!(%error, "the catalog failed");
            Error::Internal
        })
}

/// What a model that is listed can do beside its task. One whose tokenizer cannot be read is listed
/// all the same; loading it says what is wrong.
async fn traits(app: &App, card: &ModelCard) -> ModelTraits {
    if card.task != ModelTask::Generate {
        return ModelTraits::default();
    }
    app.backend
        .traits(card.id.clone())
        .await
        .unwrap_or_else(|error| {
            tracing::debug!(model = card.id, %error, "what it can do is unknown");
            ModelTraits::default()
        })
}
