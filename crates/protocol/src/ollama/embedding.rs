//! What requests to embed and to embeddings have in common.

use macmlx_inference::{EmbedRequest, KeepAlive};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{
    generation::Residency,
    options::{self, Options},
    read_model_name,
};
use crate::{Encoding, Error, json, keep_alive};

/// A route that embeds, which may also be asked to load or unload its model.
pub trait Embedding: Encoding<Question = EmbedRequest> {
    /// `None`: there is something to embed.
    fn residency(&self) -> Option<Residency>;

    /// The reply once that is done; `model` is the id of the model that was meant.
    fn residency_reply(model: String) -> Self::Reply;
}

/// Fields of both bodies.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ollama::Embedding)]
pub struct Fields {
    #[schema(required)]
    model: Option<String>,
    /// Seconds, or a duration such as `5m`; negative: for ever; 0: unload after the answer.
    keep_alive: Option<Value>,
    /// How to draw tokens, which changes nothing here.
    #[schema(value_type = Option<Options>)]
    options: Option<Value>,
}

impl Fields {
    /// The fields, checked.
    pub(super) fn read(body: &Value) -> Result<Self, Error> {
        let fields: Self = json::fields(body)?;
        read_model_name(fields.model.clone(), None)?;
        keep_alive::read(fields.keep_alive.as_ref())?;
        options::read(fields.options.as_ref())?;
        Ok(fields)
    }

    pub(super) fn model(&self) -> String {
        self.model.clone().unwrap_or_default()
    }

    pub(super) fn keep_alive(&self) -> Option<KeepAlive> {
        keep_alive::read(self.keep_alive.as_ref()).ok().flatten()
    }

    pub(super) fn residency(&self) -> Residency {
        Residency {
            model: self.model(),
            keep_alive: self.keep_alive(),
        }
    }
}
