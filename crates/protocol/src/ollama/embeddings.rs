//! `POST /api/embeddings`, which `/api/embed` took the place of.
//!
//! The vector is as the model's own files make it, of length 1 for most models. Ollama gives it raw;
//! its direction, which is what is compared, is the same. Nothing is cut: the API says nothing of it.

use macmlx_inference::{EmbedRequest, Embeddings, EncoderInput, KeepAlive, Overflow};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    embedding::{self, Embedding},
    generation::Residency,
};
use crate::{
    Body, Context, Dialect, Encoding, Error, Vocabulary, json,
    words::{self, Api},
};

/// The body, types checked.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ollama::EmbeddingsRequest)]
pub struct Request {
    #[serde(flatten)]
    embedding: embedding::Fields,
    #[serde(flatten)]
    fields: Fields,
}

#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ollama::EmbeddingsFields)]
struct Fields {
    /// None: the model is loaded or unloaded.
    prompt: Option<String>,
}

impl Encoding for Request {
    type Question = EmbedRequest;
    type Reply = Reply;

    const DIALECT: Dialect = Dialect::Ollama;
    const VOCABULARY: Vocabulary = Vocabulary::shared(Api::OllamaEmbeddings);
    const SUMMARY: &'static str = "Turn a text into a vector";

    fn parse(body: Body<'_>) -> Result<Self, Error> {
        let words::Body { value, renamed } = words::read(Self::VOCABULARY, body.bytes)?;
        let read = || {
            Ok(Self {
                embedding: embedding::Fields::read(&value)?,
                fields: json::fields(&value)?,
            })
        };
        renamed.name(read())
    }

    fn keep_alive(&self) -> Option<KeepAlive> {
        self.embedding.keep_alive()
    }

    fn question(&self) -> Result<EmbedRequest, Error> {
        let prompt = self.fields.prompt.clone().unwrap_or_default();
        Ok(EmbedRequest {
            model: self.embedding.model(),
            inputs: vec![EncoderInput::Text(prompt)],
            token_limit: None,
            overflow: Overflow::Refuse,
            dimensions: None,
        })
    }

    fn reply(self, answer: Embeddings, _context: &Context) -> Reply {
        Reply {
            embedding: answer.vectors.into_iter().next().unwrap_or_default(),
        }
    }
}

impl Embedding for Request {
    fn residency(&self) -> Option<Residency> {
        let is_empty = self.fields.prompt.as_ref().is_none_or(String::is_empty);
        is_empty.then(|| self.embedding.residency())
    }

    fn residency_reply(_model: String) -> Reply {
        Reply {
            embedding: Vec::new(),
        }
    }
}

/// The answer.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ollama::EmbeddingsReply)]
pub struct Reply {
    embedding: Vec<f32>,
}
