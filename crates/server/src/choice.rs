//! Asks the catalog which model a request is for, once for each request.

use std::sync::Arc;

use macmlx_inference::{Catalog, InferenceError, ModelCard, ModelTask};

/// The model that is to answer to what a client typed.
pub(crate) async fn choose(
    catalog: &Arc<dyn Catalog>,
    reference: &str,
    task: ModelTask,
) -> Result<Arc<ModelCard>, InferenceError> {
    let reference = reference.to_owned();
    ask(catalog, move |catalog| {
        catalog.choose(Some(&reference), task)
    })
    .await?
}

/// The model whose tokens are counted: any that the name means, else the one that would generate.
pub(crate) async fn choose_tokenizer(
    catalog: &Arc<dyn Catalog>,
    reference: &str,
) -> Result<Arc<ModelCard>, InferenceError> {
    let reference = reference.to_owned();
    ask(catalog, move |catalog| {
        let named = catalog.find(&reference);
        named.or_else(|_| catalog.choose(Some(&reference), ModelTask::Generate))
    })
    .await?
}

/// The model that generates where none is named.
pub(crate) async fn choose_default(
    catalog: &Arc<dyn Catalog>,
) -> Result<Arc<ModelCard>, InferenceError> {
    ask(catalog, |catalog| catalog.choose(None, ModelTask::Generate)).await?
}

/// The model that a question is about, which is no other than the one that is named.
pub(crate) async fn find(
    catalog: &Arc<dyn Catalog>,
    reference: String,
) -> Result<Arc<ModelCard>, InferenceError> {
    ask(catalog, move |catalog| catalog.find(&reference)).await?
}

/// Asks the catalog, which may read the disk, without holding up other requests.
pub(crate) async fn ask<T: Send + 'static>(
    catalog: &Arc<dyn Catalog>,
    question: impl FnOnce(&dyn Catalog) -> T + Send + 'static,
) -> Result<T, InferenceError> {
    let catalog = Arc::clone(catalog);
    tokio::task::spawn_blocking(move || question(catalog.as_ref()))
        .await
        .map_err(|error| InferenceError::Engine {
            message: format!("the catalog failed: {error}"),
        })
}
