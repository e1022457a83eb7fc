//! Texts turned into vectors and scores.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{Backend, InferenceError, ModelCard};

/// What a backend is asked for that is answered as a whole, and the method that answers it.
pub trait Question: Serialize + Send {
    type Answer: DeserializeOwned + Send + 'static;

    /// What the model that answers must be for.
    const TASK: ModelTask;

    /// Model reference as the client typed it.
    fn model(&self) -> &str;

    /// Asks the backend for this model's answer. Dropping the future cancels the request.
    fn put(
        self,
        backend: &dyn Backend,
        model: Arc<ModelCard>,
    ) -> BoxFuture<'_, Result<Self::Answer, InferenceError>>;
}

impl Question for EmbedRequest {
    type Answer = Embeddings;

    const TASK: ModelTask = ModelTask::Embed;

    fn model(&self) -> &str {
        &self.model
    }

    fn put(
        self,
        backend: &dyn Backend,
        model: Arc<ModelCard>,
    ) -> BoxFuture<'_, Result<Embeddings, InferenceError>> {
        backend.embed(model, self)
    }
}

impl Question for RerankRequest {
    type Answer = Relevance;

    const TASK: ModelTask = ModelTask::Rerank;

    fn model(&self) -> &str {
        &self.model
    }

    fn put(
        self,
        backend: &dyn Backend,
        model: Arc<ModelCard>,
    ) -> BoxFuture<'_, Result<Relevance, InferenceError>> {
        backend.rerank(model, self)
    }
}

/// What a model is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelTask {
    /// Goes on from a prompt, token by token.
    #[default]
    Generate,
    /// Turns a text into a vector.
    Embed,
    /// Scores how well a document answers a query.
    Rerank,
}

/// Texts to be turned into vectors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EmbedRequest {
    /// Model reference as the client typed it.
    pub model: String,
    /// The inputs to embed, at least one.
    pub inputs: Vec<EncoderInput>,
    /// Tokens of each input that are read, special ones included, the rest being cut off. `None`: as
    /// many as fit.
    pub token_limit: Option<u32>,
    pub overflow: Overflow,
    /// Features of the answer, cut from the model's own and normalized again. `None`: all of them.
    pub dimensions: Option<u32>,
}

/// One text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EncoderInput {
    /// Tokenized with the tokenizer's own special tokens.
    Text(String),
    /// Used as they stand; ids outside the vocabulary are refused.
    Tokens(Vec<u32>),
}

/// How a text that is longer than the model takes is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Overflow {
    /// The request is refused with both numbers.
    Refuse,
    /// Its end is cut off.
    Truncate,
}

/// Vectors, in the order of the inputs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Embeddings {
    /// Id of the model that answers, which may differ from the reference in the request.
    pub model: String,
    pub vectors: Vec<Vec<f32>>,
    /// Tokens computed, all inputs together.
    pub prompt_tokens: u32,
    pub timings: EncodeTimings,
}

/// Documents to be scored against a query.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RerankRequest {
    /// Model reference as the client typed it.
    pub model: String,
    pub query: String,
    /// The documents to rank, at least one.
    pub documents: Vec<String>,
    /// Tokens of each document that are read, the rest being cut off. `None`: as many as fit.
    pub document_tokens: Option<u32>,
    /// Tokens of the query and a document together that are read, special ones included, the rest of
    /// the document being cut off. `None`: as many as fit.
    pub token_limit: Option<u32>,
    pub overflow: Overflow,
}

/// Scores, in the order of the documents.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Relevance {
    /// Id of the model that answers, which may differ from the reference in the request.
    pub model: String,
    /// 0 to 1, more is better.
    pub scores: Vec<f32>,
    /// Tokens computed, all pairs together.
    pub prompt_tokens: u32,
    pub timings: EncodeTimings,
}

/// Wall-clock times of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EncodeTimings {
    /// Waiting for the model to load, zero when it was loaded.
    pub load: std::time::Duration,
    /// Time from the request's arrival to its answer.
    pub total: std::time::Duration,
}
