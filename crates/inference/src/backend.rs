//! The interface between the code that asks for text and the code that generates it.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture, stream::BoxStream};

use crate::{
    ChatPrompt, EmbedRequest, Embeddings, GenerateRequest, GenerationEvent, InferenceError,
    KeepAlive, ModelCard, ReasoningOptions, Relevance, RerankRequest,
};

/// Events of one request. Dropping it cancels the request, also during prefill.
pub type EventStream = BoxStream<'static, Result<GenerationEvent, InferenceError>>;

/// Something that generates text: the MLX engine, a script in tests, a tool loop around either.
///
/// A backend is told which model it is to use: [`crate::Catalog::choose`] has decided it at the edge.
/// The `model` of a request is no more than the client's spelling.
pub trait Backend: Send + Sync + 'static {
    /// Checks and admits a request.
    ///
    /// What is wrong with the request itself (template refusal, context length, unsupported
    /// parameter) is the outer error, so that a dialect can still choose a status code.
    /// After the first event only failures of the machine come, as the stream's last item. Whether a
    /// model that is not in memory can be loaded is told in the stream, which begins when loading
    /// does.
    fn generate(
        &self,
        model: Arc<ModelCard>,
        request: GenerateRequest,
    ) -> BoxFuture<'_, Result<EventStream, InferenceError>>;

    /// Turns texts into vectors. All or nothing; dropping the future cancels the request. A backend
    /// that only generates need not take this on.
    fn embed(
        &self,
        model: Arc<ModelCard>,
        _: EmbedRequest,
    ) -> BoxFuture<'_, Result<Embeddings, InferenceError>> {
        only_generates(&model)
    }

    /// Scores documents against a query. As [`Self::embed`] otherwise.
    fn rerank(
        &self,
        model: Arc<ModelCard>,
        _: RerankRequest,
    ) -> BoxFuture<'_, Result<Relevance, InferenceError>> {
        only_generates(&model)
    }

    /// Token ids of a text or a rendered conversation.
    fn tokenize(
        &self,
        model: Arc<ModelCard>,
        request: TokenizeRequest,
    ) -> BoxFuture<'_, Result<Vec<u32>, InferenceError>>;

    /// Text of token ids, special tokens included.
    fn detokenize(
        &self,
        model: Arc<ModelCard>,
        tokens: Vec<u32>,
    ) -> BoxFuture<'_, Result<String, InferenceError>>;

    /// What a model can do, from its tokenizer and chat template. Does not load weights.
    fn traits(&self, model: Arc<ModelCard>) -> BoxFuture<'_, Result<ModelTraits, InferenceError>>;

    /// Loads a model ahead of its first request.
    fn load(&self, model: Arc<ModelCard>) -> BoxFuture<'_, Result<(), InferenceError>>;

    /// Drops the weights of the model with this id once its running requests have ended; returns
    /// whether it was loaded. Its files may be gone by now.
    fn unload(&self, id: String) -> BoxFuture<'_, Result<bool, InferenceError>>;

    /// Sets how long the model with this id stays after its last use, until it leaves memory or a
    /// later call changes it. It does nothing for a model that is not in memory.
    fn keep(&self, _id: &str, _keep_alive: KeepAlive) {}

    /// Models whose weights are in memory.
    fn loaded(&self) -> Vec<LoadedModel>;

    /// Has `watcher` called after each change of which models are in memory. It must not block.
    fn watch_loaded(&self, _watcher: LoadedWatcher) {}
}

/// Is called when models have come into memory or left it.
pub type LoadedWatcher = Box<dyn Fn() + Send + Sync>;

fn only_generates<T: Send + 'static>(
    model: &ModelCard,
) -> BoxFuture<'static, Result<T, InferenceError>> {
    let error = InferenceError::InvalidRequest {
        param: Some("model".into()),
        message: format!("`{}` generates text and does nothing else here", model.id),
    };
    async move { Err(error) }.boxed()
}

/// A backend around another one: what it does not take on itself, the inner one does.
///
/// Implement this instead of [`Backend`], and only the methods that differ.
pub trait Layer: Send + Sync + 'static {
    /// The backend below this layer, which does all that the layer does not.
    fn inner(&self) -> &dyn Backend;

    /// See [`Backend::generate`].
    fn generate(
        &self,
        model: Arc<ModelCard>,
        request: GenerateRequest,
    ) -> BoxFuture<'_, Result<EventStream, InferenceError>> {
        self.inner().generate(model, request)
    }

    /// See [`Backend::embed`].
    fn embed(
        &self,
        model: Arc<ModelCard>,
        request: EmbedRequest,
    ) -> BoxFuture<'_, Result<Embeddings, InferenceError>> {
        self.inner().embed(model, request)
    }

    /// See [`Backend::rerank`].
    fn rerank(
        &self,
        model: Arc<ModelCard>,
        request: RerankRequest,
    ) -> BoxFuture<'_, Result<Relevance, InferenceError>> {
        self.inner().rerank(model, request)
    }

    /// See [`Backend::tokenize`].
    fn tokenize(
        &self,
        model: Arc<ModelCard>,
        request: TokenizeRequest,
    ) -> BoxFuture<'_, Result<Vec<u32>, InferenceError>> {
        self.inner().tokenize(model, request)
    }

    /// See [`Backend::traits`].
    fn traits(&self, model: Arc<ModelCard>) -> BoxFuture<'_, Result<ModelTraits, InferenceError>> {
        self.inner().traits(model)
    }

    /// See [`Backend::load`].
    fn load(&self, model: Arc<ModelCard>) -> BoxFuture<'_, Result<(), InferenceError>> {
        self.inner().load(model)
    }

    /// See [`Backend::unload`].
    fn unload(&self, id: String) -> BoxFuture<'_, Result<bool, InferenceError>> {
        self.inner().unload(id)
    }
}

impl<L: Layer> Backend for L {
    fn generate(
        &self,
        model: Arc<ModelCard>,
        request: GenerateRequest,
    ) -> BoxFuture<'_, Result<EventStream, InferenceError>> {
        Layer::generate(self, model, request)
    }

    fn embed(
        &self,
        model: Arc<ModelCard>,
        request: EmbedRequest,
    ) -> BoxFuture<'_, Result<Embeddings, InferenceError>> {
        Layer::embed(self, model, request)
    }

    fn rerank(
        &self,
        model: Arc<ModelCard>,
        request: RerankRequest,
    ) -> BoxFuture<'_, Result<Relevance, InferenceError>> {
        Layer::rerank(self, model, request)
    }

    fn tokenize(
        &self,
        model: Arc<ModelCard>,
        request: TokenizeRequest,
    ) -> BoxFuture<'_, Result<Vec<u32>, InferenceError>> {
        Layer::tokenize(self, model, request)
    }

    fn detokenize(
        &self,
        model: Arc<ModelCard>,
        tokens: Vec<u32>,
    ) -> BoxFuture<'_, Result<String, InferenceError>> {
        self.inner().detokenize(model, tokens)
    }

    fn traits(&self, model: Arc<ModelCard>) -> BoxFuture<'_, Result<ModelTraits, InferenceError>> {
        Layer::traits(self, model)
    }

    fn load(&self, model: Arc<ModelCard>) -> BoxFuture<'_, Result<(), InferenceError>> {
        Layer::load(self, model)
    }

    fn unload(&self, id: String) -> BoxFuture<'_, Result<bool, InferenceError>> {
        Layer::unload(self, id)
    }

    fn keep(&self, id: &str, keep_alive: KeepAlive) {
        self.inner().keep(id, keep_alive);
    }

    fn loaded(&self) -> Vec<LoadedModel> {
        self.inner().loaded()
    }

    fn watch_loaded(&self, watcher: LoadedWatcher) {
        self.inner().watch_loaded(watcher);
    }
}

/// What to tokenize.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenizeRequest {
    /// Model reference as the client typed it.
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
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct ModelTraits {
    /// Source of the chat template; `None`: the model completes text but does not chat.
    pub chat_template: Option<String>,
    pub tools: ToolSupport,
    /// Marks reasoning in its output.
    pub reasons: bool,
    /// Reasoning can be switched on and off.
    pub has_reasoning_switch: bool,
    /// Sees images.
    pub sees_images: bool,
    /// Fills a gap between a prefix and a suffix.
    pub fills_in: bool,
}

/// How a model is told about tools and writes calls of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolSupport {
    /// Requests with tools are refused.
    #[default]
    None,
    /// Its chat template takes no tools: they are told in the system turn, in a notation that is the
    /// same for all such models.
    Generic,
    /// Its chat template takes tools, and it writes calls in a known format of its own.
    Native,
}

impl ToolSupport {
    /// Whether requests may offer tools.
    pub fn takes_tools(self) -> bool {
        self != Self::None
    }
}

/// A model in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedModel {
    pub id: String,
    pub memory_bytes: u64,
    /// Requests running or waiting.
    pub active_requests: u32,
    /// Time since the last request ended; zero while one runs.
    pub idle: Duration,
    /// Time until it leaves memory if it is not used again; `None`: it stays.
    pub expires_in: Option<Duration>,
    /// How the weights are held, in words for a person ("float32, dequantized").
    pub weights: String,
}
