//! A backend that says what it was told to say, for tests of everything above the engine.

use std::{collections::VecDeque, sync::Arc};

use futures::{FutureExt, StreamExt, future::BoxFuture, stream, stream::BoxStream};
use parking_lot::Mutex;
use serde_json::json;

use crate::{
    Backend, Catalog, Download, EmbedRequest, Embeddings, EncoderInput, EventStream,
    GenerateRequest, GenerationEvent, InferenceError, LoadedModel, ModelCard, ModelDescription,
    ModelFiles, ModelFilesError, ModelTask, ModelTraits, NewModel, PullProgress, Relevance,
    RerankRequest, TokenizeInput, TokenizeRequest, ToolSupport, read_name,
};

type Script = Result<Vec<Result<GenerationEvent, InferenceError>>, InferenceError>;

/// Plays one script for each request, in order, and keeps the requests it saw.
#[derive(Debug, Default)]
pub struct ScriptedBackend {
    scripts: Mutex<VecDeque<Script>>,
    seen: Mutex<Vec<GenerateRequest>>,
    /// `None`: its models take tools natively.
    tools: Option<ToolSupport>,
}

impl ScriptedBackend {
    /// The next request without a script yet gets these events.
    #[must_use]
    pub fn then_events(self, events: Vec<Result<GenerationEvent, InferenceError>>) -> Self {
        self.push(Ok(events))
    }

    /// The next request without a script yet is refused.
    #[must_use]
    pub fn then_error(self, error: InferenceError) -> Self {
        self.push(Err(error))
    }

    /// Its models take tools like this.
    #[must_use]
    pub fn with_tools(mut self, tools: ToolSupport) -> Self {
        self.tools = Some(tools);
        self
    }

    /// The requests so far, oldest first.
    pub fn requests(&self) -> Vec<GenerateRequest> {
        self.seen.lock().clone()
    }

    fn push(self, script: Script) -> Self {
        self.scripts.lock().push_back(script);
        self
    }
}

impl Backend for ScriptedBackend {
    fn generate(
        &self,
        _: Arc<ModelCard>,
        request: GenerateRequest,
    ) -> BoxFuture<'_, Result<EventStream, InferenceError>> {
        self.seen.lock().push(request);
        let script = self.scripts.lock().pop_front();
        async move {
            match script {
                Some(Ok(events)) => Ok(stream::iter(events).boxed()),
                Some(Err(error)) => Err(error),
                None => Err(InferenceError::Engine {
                    message: "the script is over".into(),
                }),
            }
        }
        .boxed()
    }

    /// One token a character; the vector is how often the text has each of `a`, `b`, `c`, scaled to
    /// length 1.
    fn embed(
        &self,
        model: Arc<ModelCard>,
        request: EmbedRequest,
    ) -> BoxFuture<'_, Result<Embeddings, InferenceError>> {
        let texts: Vec<String> = request
            .inputs
            .into_iter()
            .map(|input| match input {
                EncoderInput::Text(text) => text,
                EncoderInput::Tokens(ids) => ids.into_iter().filter_map(char::from_u32).collect(),
            })
            .collect();
        let embeddings = Embeddings {
            model: model.id.clone(),
            prompt_tokens: count(texts.iter()),
            vectors: texts.iter().map(|text| letters(text)).collect(),
            ..Embeddings::default()
        };
        async move { Ok(embeddings) }.boxed()
    }

    /// One token a character; the score is the part of the query's characters that the document has.
    fn rerank(
        &self,
        model: Arc<ModelCard>,
        request: RerankRequest,
    ) -> BoxFuture<'_, Result<Relevance, InferenceError>> {
        let query = &request.query;
        let score = |document: &String| {
            let hits = query.chars().filter(|c| document.contains(*c)).count();
            hits as f32 / query.chars().count().max(1) as f32
        };
        let relevance = Relevance {
            scores: request.documents.iter().map(score).collect(),
            prompt_tokens: count(request.documents.iter().chain([query])),
            model: model.id.clone(),
            ..Relevance::default()
        };
        async move { Ok(relevance) }.boxed()
    }

    /// One token a character, its code point.
    fn tokenize(
        &self,
        _: Arc<ModelCard>,
        request: TokenizeRequest,
    ) -> BoxFuture<'_, Result<Vec<u32>, InferenceError>> {
        let text = match request.input {
            TokenizeInput::Text { text, .. } => text,
            TokenizeInput::Chat { prompt, .. } => prompt
                .messages
                .iter()
                .map(crate::Message::joined_text)
                .collect(),
        };
        async move { Ok(text.chars().map(u32::from).collect()) }.boxed()
    }

    fn detokenize(
        &self,
        _: Arc<ModelCard>,
        tokens: Vec<u32>,
    ) -> BoxFuture<'_, Result<String, InferenceError>> {
        async move { Ok(tokens.into_iter().filter_map(char::from_u32).collect()) }.boxed()
    }

    /// A model that can do everything but see, tools as was said.
    fn traits(&self, _: Arc<ModelCard>) -> BoxFuture<'_, Result<ModelTraits, InferenceError>> {
        let traits = ModelTraits {
            chat_template: Some("{{ messages }}".into()),
            tools: self.tools.unwrap_or(ToolSupport::Native),
            reasons: true,
            has_reasoning_switch: true,
            sees_images: false,
            fills_in: true,
        };
        async move { Ok(traits) }.boxed()
    }

    fn load(&self, _: Arc<ModelCard>) -> BoxFuture<'_, Result<(), InferenceError>> {
        async move { Ok(()) }.boxed()
    }

    fn unload(&self, _: String) -> BoxFuture<'_, Result<bool, InferenceError>> {
        async move { Ok(false) }.boxed()
    }

    fn loaded(&self) -> Vec<LoadedModel> {
        Vec::new()
    }
}

fn count<'a>(texts: impl Iterator<Item = &'a String>) -> u32 {
    texts.map(|text| text.chars().count() as u32).sum()
}

fn letters(text: &str) -> Vec<f32> {
    let counts = ['a', 'b', 'c'].map(|letter| text.matches(letter).count() as f32);
    let length = counts.iter().map(|n| n * n).sum::<f32>().sqrt();
    counts.map(|n| n / length.max(1.0)).to_vec()
}

impl ModelCard {
    /// A model that generates, of which no more is known than its id.
    pub fn scripted(id: &str) -> Self {
        Self {
            id: id.into(),
            path: "/nowhere".into(),
            model_type: "llama".into(),
            task: ModelTask::Generate,
            context_length: None,
            size_bytes: 0,
            quantization: None,
            parameters: None,
            modified_unix: 0,
            digest: "0".repeat(64),
            modelfile: None,
        }
    }
}

/// A fixed list of models. A name that none of them has means the first one for the task.
#[derive(Debug, Default)]
pub struct ScriptedCatalog(pub Vec<ModelCard>);

impl Catalog for ScriptedCatalog {
    fn choose(
        &self,
        reference: Option<&str>,
        task: ModelTask,
    ) -> Result<Arc<ModelCard>, InferenceError> {
        if let Some(reference) = reference
            && let Ok(card) = self.find(read_name(reference)?)
        {
            card.expect(task)?;
            return Ok(card);
        }
        let first = self.0.iter().find(|card| card.task == task);
        first
            .map(|card| Arc::new(card.clone()))
            .ok_or_else(|| not_found(reference.unwrap_or_default()))
    }

    /// Finds a model by its id, or by the part of it after the slash.
    fn find(&self, reference: &str) -> Result<Arc<ModelCard>, InferenceError> {
        let reference = read_name(reference)?;
        let is_named = |card: &&ModelCard| {
            card.id == reference || card.id.rsplit('/').next() == Some(reference)
        };
        let found = self.0.iter().find(is_named);
        found
            .map(|card| Arc::new(card.clone()))
            .ok_or_else(|| not_found(reference))
    }

    fn list(&self) -> Vec<ModelCard> {
        self.0.clone()
    }

    /// Describes the model with the fewest facts that a config can have.
    fn describe(&self, card: &ModelCard) -> ModelDescription {
        ModelDescription {
            config: json!({"model_type": card.model_type}),
            ..ModelDescription::default()
        }
    }
}

fn not_found(reference: &str) -> InferenceError {
    InferenceError::ModelNotFound {
        reference: reference.into(),
        suggestions: Vec::new(),
    }
}

/// What was asked of [`ScriptedModelFiles`].
#[derive(Debug, Clone, PartialEq)]
pub enum FilesRequest {
    Pull(String),
    Download(String),
    Delete(String),
    Copy(String, String),
    Create(Box<NewModel>),
}

/// Plays the same steps for each pull, does what else it is asked for, and keeps what it was asked.
#[derive(Debug, Default)]
pub struct ScriptedModelFiles {
    steps: Vec<Result<PullProgress, ModelFilesError>>,
    download: Option<Download>,
    refusal: Option<ModelFilesError>,
    seen: Mutex<Vec<FilesRequest>>,
}

impl ScriptedModelFiles {
    pub fn pulling(steps: Vec<Result<PullProgress, ModelFilesError>>) -> Self {
        Self {
            steps,
            ..Self::default()
        }
    }

    /// Everything is this download, which there is.
    pub fn downloading(download: Download) -> Self {
        Self {
            download: Some(download),
            ..Self::default()
        }
    }

    /// Deletions, copies and downloads fail.
    pub fn refusing(refusal: ModelFilesError) -> Self {
        Self {
            refusal: Some(refusal),
            ..Self::default()
        }
    }

    /// What was asked so far, oldest first.
    pub fn requests(&self) -> Vec<FilesRequest> {
        self.seen.lock().clone()
    }

    fn see(&self, request: FilesRequest) {
        self.seen.lock().push(request);
    }

    fn done(&self) -> Result<(), ModelFilesError> {
        self.refusal.clone().map_or(Ok(()), Err)
    }
}

impl ModelFiles for ScriptedModelFiles {
    fn pull(
        &self,
        repository: String,
    ) -> BoxStream<'static, Result<PullProgress, ModelFilesError>> {
        self.see(FilesRequest::Pull(repository));
        stream::iter(self.steps.clone()).boxed()
    }

    fn start_download(
        &self,
        repository: String,
    ) -> BoxFuture<'_, Result<Option<Download>, ModelFilesError>> {
        self.see(FilesRequest::Download(repository));
        async move { self.done().map(|()| self.download.clone()) }.boxed()
    }

    fn download(&self, id: &str) -> Option<Download> {
        self.download.clone().filter(|download| download.id == id)
    }

    fn delete(&self, reference: String) -> BoxFuture<'_, Result<String, ModelFilesError>> {
        self.see(FilesRequest::Delete(reference.clone()));
        async move { self.done().map(|()| reference) }.boxed()
    }

    fn create(&self, model: NewModel) -> BoxFuture<'_, Result<(), ModelFilesError>> {
        self.see(FilesRequest::Create(Box::new(model)));
        async move { self.done() }.boxed()
    }

    fn copy(
        &self,
        source: String,
        destination: String,
    ) -> BoxFuture<'_, Result<(), ModelFilesError>> {
        self.see(FilesRequest::Copy(source, destination));
        async move { self.done() }.boxed()
    }
}
