//! Routes that answer at once.

pub(crate) mod anthropic;
pub(crate) mod models;
pub(crate) mod ollama;
pub(crate) mod openai;
pub(crate) mod responses;
pub(crate) mod status;
mod tokenize;

use std::sync::Arc;

use macmlx_inference::Catalog;
use macmlx_protocol::Error;

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
