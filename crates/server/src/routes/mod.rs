//! All routes of clients: the endpoints that generate or encode, and what answers at once.

pub(crate) mod anthropic;
pub(crate) mod endpoints;
mod infill;
pub(crate) mod lm_studio;
pub(crate) mod models;
pub(crate) mod ollama;
pub(crate) mod openai;
pub(crate) mod responses;
pub(crate) mod status;
mod tokenize;

use macmlx_inference::{ModelCard, ModelTask, ModelTraits};

use crate::{choice::find, router::App};

/// What a model that is listed can do beside its task. One whose tokenizer cannot be read is listed
/// all the same; loading it says what is wrong.
async fn traits(app: &App, card: &ModelCard) -> ModelTraits {
    if card.task != ModelTask::Generate {
        return ModelTraits::default();
    }
    // It may be listed under an alias.
    let traits = async {
        let model = find(&app.catalog, card.id.clone()).await?;
        app.backend.traits(model).await
    };
    traits.await.unwrap_or_else(|error| {
        tracing::debug!(model = card.id, %error, "what it can do is unknown");
        ModelTraits::default()
    })
}
