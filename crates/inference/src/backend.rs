//! The seam between whoever asks and whatever generates.

use std::time::Duration;

use futures::{FutureExt, future::BoxFuture, stream::BoxStream};

use crate::{
    ChatPrompt, EmbedRequest, Embeddings, GenerateRequest, GenerationEvent, InferenceError,
    ReasoningOptions, Relevance, RerankRequest,
};

/// Events of one request. Dropping it cancels the request, also during prefill.
pub type EventStream = BoxStream<'static, Result<GenerationEvent, InferenceError>>;

/// Something that generates text: the MLX engine, a script in tests, a tool loop around either.
pub trait Backend: Send + Sync + 'static {
    /// Checks and admits a request.
    ///
    /// What is wrong with the request itself (unknown model, template refusal, context length,
    /// unsupported parameter) is the outer error, so that a dialect can still choose a status code.
    /// After the first event only failures of the machine come, as the stream's last item.
    fn generate(
        &self,
        request: GenerateRequest,
    ) -> BoxFuture<'_, Result<EventStream, InferenceError>>;

    /// Turns texts into vectors. All or nothing; dropping the future cancels the request. A backend
    /// that only generates need not take this on.
    fn embed(&self, request: EmbedRequest) -> BoxFuture<'_, Result<Embeddings, InferenceError>> {
        only_generates(request.model)
    }

    /// Scores documents against a query. As [`Self::embed`] otherwise.
    fn rerank(&self, request: RerankRequest) -> BoxFuture<'_, Result<Relevance, InferenceError>> {
        only_generates(request.model)
    }

    /// Token ids of a text or a rendered conversation.
    fn tokenize(&self, request: TokenizeRequest)
    -> BoxFuture<'_, Result<Vec<u32>, InferenceError>>;

    /// Text of token ids, special tokens included.
    fn detokenize(
        &self,
        model: String,
        tokens: Vec<u32>,
    ) -> BoxFuture<'_, Result<String, InferenceError>>;

    /// What a model can do, from its tokenizer and chat template. Does not load weights.
    fn traits(&self, model: String) -> BoxFuture<'_, Result<ModelTraits, InferenceError>>;

    /// Loads a model ahead of its first request; returns its id.
    fn load(&self, model: String) -> BoxFuture<'_, Result<String, InferenceError>>;

    /// Drops a model's weights once its running requests have ended; returns whether it was loaded.
    fn unload(&self, model: String) -> BoxFuture<'_, Result<bool, InferenceError>>;

    /// Models whose weights are in memory.
    fn loaded(&self) -> Vec<LoadedModel>;
}

fn only_generates<T: Send + 'static>(
    model: String,
) -> BoxFuture<'static, Result<T, InferenceError>> {
    async move {
        Err(InferenceError::InvalidRequest {
            param: Some("model".into()),
            message: format!("`{model}` generates text and does nothing else here"),
        })
    }
    .boxed()
}

/// A backend around another one: what it does not take on itself, the inner one does.
///
/// Implement this instead of [`Backend`], and only the methods that differ.
pub trait Layer: Send + Sync + 'static {
    /// Who does the rest.
    fn inner(&self) -> &dyn Backend;

    /// See [`Backend::generate`].
    fn generate(
        &self,
        request: GenerateRequest,
    ) -> BoxFuture<'_, Result<EventStream, InferenceError>> {
        self.inner().generate(request)
    }

    /// See [`Backend::embed`].
    fn embed(&self, request: EmbedRequest) -> BoxFuture<'_, Result<Embeddings, InferenceError>> {
        self.inner().embed(request)
    }

    /// See [`Backend::rerank`].
    fn rerank(&self, request: RerankRequest) -> BoxFuture<'_, Result<Relevance, InferenceError>> {
        self.inner().rerank(request)
    }

    /// See [`Backend::tokenize`].
    fn tokenize(
        &self,
        request: TokenizeRequest,
    ) -> BoxFuture<'_, Result<Vec<u32>, InferenceError>> {
        self.inner().tokenize(request)
    }

    /// See [`Backend::load`].
    fn load(&self, model: String) -> BoxFuture<'_, Result<String, InferenceError>> {
        self.inner().load(model)
    }

    /// See [`Backend::unload`].
    fn unload(&self, model: String) -> BoxFuture<'_, Result<bool, InferenceError>> {
        self.inner().unload(model)
    }
}

impl<L: Layer> Backend for L {
    fn generate(
        &self,
        request: GenerateRequest,
    ) -> BoxFuture<'_, Result<EventStream, InferenceError>> {
        Layer::generate(self, request)
    }

    fn embed(&self, request: EmbedRequest) -> BoxFuture<'_, Result<Embeddings, InferenceError>> {
        Layer::embed(self, request)
    }

    fn rerank(&self, request: RerankRequest) -> BoxFuture<'_, Result<Relevance, InferenceError>> {
        Layer::rerank(self, request)
    }

    fn tokenize(
        &self,
        request: TokenizeRequest,
    ) -> BoxFuture<'_, Result<Vec<u32>, InferenceError>> {
        Layer::tokenize(self, request)
    }

    fn detokenize(
        &self,
        model: String,
        tokens: Vec<u32>,
    ) -> BoxFuture<'_, Result<String, InferenceError>> {
        self.inner().detokenize(model, tokens)
    }

    fn traits(&self, model: String) -> BoxFuture<'_, Result<ModelTraits, InferenceError>> {
        self.inner().traits(model)
    }

    fn load(&self, model: String) -> BoxFuture<'_, Result<String, InferenceError>> {
        Layer::load(self, model)
    }

    fn unload(&self, model: String) -> BoxFuture<'_, Result<bool, InferenceError>> {
        Layer::unload(self, model)
    }

    fn loaded(&self) -> Vec<LoadedModel> {
        self.inner().loaded()
    }
}

/// What to tokenize.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenizeRequest {
    pub model: String,
    pub input: TokenizeInput,
}

/// Text as it stands or a conversation through the chat template.
#[derive(Debug, Clone, PartialEq)]
pub enum TokenizeInput {
    Text {
        text: String,
        add_special_tokens: bool,
    },
    Chat {
        prompt: ChatPrompt,
        reasoning: ReasoningOptions,
    },
}

/// What a model can do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an ability of its own"
)]
pub struct ModelTraits {
    /// Source of the chat template; `None`: the model completes text but does not chat.
    pub chat_template: Option<String>,
    /// Takes tools and writes calls in a known format.
    pub calls_tools: bool,
    /// Marks reasoning in its output.
    pub reasons: bool,
    /// Reasoning can be switched on and off.
    pub has_reasoning_switch: bool,
    /// Sees images.
    pub sees_images: bool,
}

/// A model in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedModel {
    pub id: String,
    pub memory_bytes: u64,
    /// Requests running or waiting.
    pub active_requests: u32,
    /// Since the last request ended; zero while one runs.
    pub idle: Duration,
    /// How the weights are held, in words for a person ("float32, dequantized").
    pub weights: String,
}
