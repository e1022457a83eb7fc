//! The engine as others see it: checks and tokenizes on ordinary threads, hands over to the MLX
//! thread, gives back a stream.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use macmlx_inference::{
    Backend, EmbedRequest, Embeddings, EncodeTimings, EventStream, GenerateRequest,
    GenerationEvent, InferenceError, KeepAlive, LoadedModel, LoadedWatcher, ModelCard, ModelTask,
    ModelTraits, Relevance, RerankRequest, TimeToLive, TokenizeInput, TokenizeRequest,
};
use tokio::sync::{mpsc, oneshot};

use crate::{
    encode,
    job::{Draft, Job},
    options::EngineOptions,
    pool::{Loaders, Pool, Residents, loaders},
    profile::{Profile, Profiles},
    scheduler::Scheduler,
    thread::MlxThread,
};

/// Runs models with MLX. Dropping it ends running requests and waits for the MLX thread.
pub struct Engine {
    options: EngineOptions,
    profiles: Arc<Profiles>,
    residents: Arc<Residents>,
    /// `Err` when the thread could not be started.
    thread: Result<MlxThread<Scheduler>, String>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Engine")
            .field("options", &self.options)
            .field("residents", &self.residents)
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// Starts the MLX thread; loads nothing yet. Models stay in memory as `time_to_live` says.
    pub fn new(options: EngineOptions, time_to_live: TimeToLive) -> Self {
        let loaders = loaders(&options);
        Self::with_loaders(options, time_to_live, loaders)
    }

    pub(crate) fn with_loaders(
        options: EngineOptions,
        time_to_live: TimeToLive,
        loaders: Loaders,
    ) -> Self {
        let residents = Arc::new(Residents::new(time_to_live));
        let thread = {
            let options = options.clone();
            let residents = residents.clone();
            MlxThread::spawn(move || {
                let limit_bytes = options.memory_limit_bytes;
                Scheduler::new(options, Pool::new(loaders, residents, limit_bytes))
            })
            .map_err(|error| format!("cannot start the MLX thread: {error}"))
        };
        Self {
            options,
            profiles: Arc::default(),
            residents,
            thread,
        }
    }

    /// Requests for a model that run or wait, in memory or not.
    #[cfg(test)]
    pub(crate) fn active_requests(&self, model: &str) -> u32 {
        self.residents.active(model)
    }

    fn thread(&self) -> Result<&MlxThread<Scheduler>, InferenceError> {
        self.thread
            .as_ref()
            .map_err(|message| InferenceError::Engine {
                message: message.clone(),
            })
    }

    /// Runs `work` with the model's profile, where blocking is allowed.
    async fn with_profile<T: Send + 'static>(
        &self,
        model: Arc<ModelCard>,
        work: impl FnOnce(Arc<Profile>) -> Result<T, InferenceError> + Send + 'static,
    ) -> Result<T, InferenceError> {
        let profiles = self.profiles.clone();
        blocking(move || work(profiles.get_blocking(&model)?)).await
    }

    async fn start(
        &self,
        model: Arc<ModelCard>,
        request: GenerateRequest,
    ) -> Result<EventStream, InferenceError> {
        model.expect(ModelTask::Generate)?;
        let thread = self.thread()?;
        let submitted = Instant::now();
        let waiting = self.residents.wait(self.options.queue_limit)?;
        let draft = self
            .with_profile(model, move |profile| {
                Draft::prepare_blocking(profile, &request)
            })
            .await?;
        let (events, receiver) = mpsc::unbounded_channel();
        let (ready, is_ready) = oneshot::channel();
        let active = self.residents.activate(&draft.profile.card.id);
        let job = Job {
            draft,
            events,
            ready: Some(ready),
            submitted,
            load: Duration::ZERO,
            waiting,
            active,
        };
        thread.post(move |scheduler| scheduler.submit(job))?;
        receive_answer(is_ready).await??;
        Ok(event_stream(receiver))
    }

    async fn encode(
        &self,
        task: ModelTask,
        model: Arc<ModelCard>,
        draft: impl FnOnce(Arc<Profile>) -> Result<encode::Draft, InferenceError> + Send + 'static,
    ) -> Result<Answer, InferenceError> {
        model.expect(task)?;
        let thread = self.thread()?;
        let arrived = Instant::now();
        let waiting = self.residents.wait(self.options.queue_limit)?;
        let draft = self.with_profile(model, draft).await?;
        let model = draft.profile.card.id.clone();
        let prompt_tokens = draft.prompt_tokens();
        let (answer, is_answered) = oneshot::channel();
        let job = encode::Job {
            draft,
            answer,
            waiting,
            active: self.residents.activate(&model),
        };
        thread.post(move |scheduler| scheduler.submit_encoding(job))?;
        let encoded = receive_answer(is_answered).await??;
        Ok(Answer {
            model,
            rows: encoded.rows,
            prompt_tokens,
            timings: EncodeTimings {
                load: encoded.load,
                total: arrived.elapsed(),
            },
        })
    }

    async fn load_model(&self, model: Arc<ModelCard>) -> Result<(), InferenceError> {
        let thread = self.thread()?;
        let profile = self.with_profile(model, Ok).await?;
        let (ready, is_ready) = oneshot::channel();
        thread.post(move |scheduler| match profile.card.task {
            ModelTask::Generate => scheduler.submit_load(profile.card.clone(), ready),
            ModelTask::Embed | ModelTask::Rerank => scheduler.submit_encoder_load(profile, ready),
        })?;
        receive_answer(is_ready).await?
    }

    async fn unload_model(&self, id: String) -> Result<bool, InferenceError> {
        let (done, is_done) = oneshot::channel();
        self.thread()?
            .post(move |scheduler| scheduler.submit_unload(&id, done))?;
        receive_answer(is_done).await
    }
}

/// The answer to a batch of texts.
struct Answer {
    model: String,
    rows: Vec<Vec<f32>>,
    prompt_tokens: u32,
    timings: EncodeTimings,
}

/// The events of a request. A stream always has an end: the last event or an error.
fn event_stream(
    receiver: mpsc::UnboundedReceiver<Result<GenerationEvent, InferenceError>>,
) -> EventStream {
    stream::unfold(Some(receiver), |receiver| async move {
        let mut receiver = receiver?;
        match receiver.recv().await {
            Some(last @ (Ok(GenerationEvent::Completed { .. }) | Err(_))) => Some((last, None)),
            Some(event) => Some((event, Some(receiver))),
            None => Some((Err(gave_up()), None)),
        }
    })
    .boxed()
}

/// Runs `work` where blocking is allowed.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, InferenceError> + Send + 'static,
) -> Result<T, InferenceError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| {
            Err(InferenceError::Engine {
                message: error.to_string(),
            })
        })
}

/// The MLX thread's answer; it gives none when the work for it panicked.
async fn receive_answer<T>(answer: oneshot::Receiver<T>) -> Result<T, InferenceError> {
    answer.await.map_err(|_| gave_up())
}

fn gave_up() -> InferenceError {
    InferenceError::Engine {
        message: "the MLX thread gave up on this request; its log says why".into(),
    }
}

impl Backend for Engine {
    fn generate(
        &self,
        model: Arc<ModelCard>,
        request: GenerateRequest,
    ) -> BoxFuture<'_, Result<EventStream, InferenceError>> {
        self.start(model, request).boxed()
    }

    fn embed(
        &self,
        model: Arc<ModelCard>,
        request: EmbedRequest,
    ) -> BoxFuture<'_, Result<Embeddings, InferenceError>> {
        let draft = move |profile| encode::Draft::embed_blocking(profile, request);
        async move {
            let answer = self.encode(ModelTask::Embed, model, draft).await?;
            Ok(Embeddings {
                model: answer.model,
                vectors: answer.rows,
                prompt_tokens: answer.prompt_tokens,
                timings: answer.timings,
            })
        }
        .boxed()
    }

    fn rerank(
        &self,
        model: Arc<ModelCard>,
        request: RerankRequest,
    ) -> BoxFuture<'_, Result<Relevance, InferenceError>> {
        let draft = move |profile| encode::Draft::rerank_blocking(profile, &request);
        async move {
            let answer = self.encode(ModelTask::Rerank, model, draft).await?;
            Ok(Relevance {
                model: answer.model,
                scores: answer.rows.into_iter().flatten().collect(),
                prompt_tokens: answer.prompt_tokens,
                timings: answer.timings,
            })
        }
        .boxed()
    }

    fn tokenize(
        &self,
        model: Arc<ModelCard>,
        request: TokenizeRequest,
    ) -> BoxFuture<'_, Result<Vec<u32>, InferenceError>> {
        self.with_profile(model, move |profile| match request.input {
            TokenizeInput::Text {
                text,
                add_special_tokens,
            } => profile.chat.tokenizer().encode(&text, add_special_tokens),
            TokenizeInput::Chat { prompt, reasoning } => {
                profile.card.expect(ModelTask::Generate)?;
                Ok(profile.chat.render(&prompt, &reasoning)?.tokens)
            }
        })
        .boxed()
    }

    fn detokenize(
        &self,
        model: Arc<ModelCard>,
        tokens: Vec<u32>,
    ) -> BoxFuture<'_, Result<String, InferenceError>> {
        self.with_profile(model, move |profile| {
            Ok(profile.chat.tokenizer().detokenize(&tokens))
        })
        .boxed()
    }

    fn traits(&self, model: Arc<ModelCard>) -> BoxFuture<'_, Result<ModelTraits, InferenceError>> {
        self.with_profile(model, |profile| {
            Ok(match profile.card.task {
                ModelTask::Generate => profile.chat.traits(),
                // A decoder that encodes may have kept the template of the chat model it was.
                ModelTask::Embed | ModelTask::Rerank => ModelTraits::default(),
            })
        })
        .boxed()
    }

    fn load(&self, model: Arc<ModelCard>) -> BoxFuture<'_, Result<(), InferenceError>> {
        self.load_model(model).boxed()
    }

    fn unload(&self, id: String) -> BoxFuture<'_, Result<bool, InferenceError>> {
        self.unload_model(id).boxed()
    }

    fn keep(&self, id: &str, keep_alive: KeepAlive) {
        self.residents.keep(id, keep_alive);
        // A thread that waits for nothing else is to look at the new time.
        if let Ok(thread) = self.thread() {
            let _ = thread.post(|_| {});
        }
    }

    fn loaded(&self) -> Vec<LoadedModel> {
        self.residents.list()
    }

    fn watch_loaded(&self, watcher: LoadedWatcher) {
        self.residents.watch(watcher);
    }
}
