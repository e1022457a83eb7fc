//! The engine as others see it: checks and tokenizes on ordinary threads, hands over to the MLX
//! thread, gives back a stream.

use std::{sync::Arc, time::Instant};

use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use macmlx_inference::{
    Backend, Catalog, EventStream, GenerateRequest, GenerationEvent, InferenceError, LoadedModel,
    ModelTraits, TokenizeInput, TokenizeRequest,
};
use tokio::sync::{mpsc, oneshot};

use crate::{
    job::{Draft, Job},
    options::EngineOptions,
    pool::{Loader, Pool, Residents, loader},
    profile::{Profile, Profiles},
    scheduler::Scheduler,
    thread::MlxThread,
};

/// Runs models with MLX. Dropping it ends running requests and waits for the MLX thread.
pub struct Engine {
    options: EngineOptions,
    catalog: Arc<dyn Catalog>,
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
    /// Starts the MLX thread; loads nothing yet.
    pub fn new(options: EngineOptions, catalog: Arc<dyn Catalog>) -> Self {
        let loader = loader(&options);
        Self::with_loader(options, catalog, loader)
    }

    pub(crate) fn with_loader(
        options: EngineOptions,
        catalog: Arc<dyn Catalog>,
        loader: Loader,
    ) -> Self {
        let residents = Arc::new(Residents::default());
        let thread = {
            let options = options.clone();
            let residents = residents.clone();
            MlxThread::spawn(move || Scheduler::new(options, Pool::new(loader, residents)))
                .map_err(|error| format!("cannot start the MLX thread: {error}"))
        };
        Self {
            options,
            catalog,
            profiles: Arc::default(),
            residents,
            thread,
        }
    }

    fn thread(&self) -> Result<&MlxThread<Scheduler>, InferenceError> {
        self.thread
            .as_ref()
            .map_err(|message| InferenceError::Engine {
                message: message.clone(),
            })
    }

    /// Runs `work` with the profile of the model that `reference` means, where blocking is allowed.
    async fn with_profile<T: Send + 'static>(
        &self,
        reference: String,
        work: impl FnOnce(Arc<Profile>) -> Result<T, InferenceError> + Send + 'static,
    ) -> Result<T, InferenceError> {
        let (catalog, profiles) = (self.catalog.clone(), self.profiles.clone());
        blocking(move || work(profiles.get_blocking(catalog.resolve(&reference)?)?)).await
    }

    async fn start(&self, request: GenerateRequest) -> Result<EventStream, InferenceError> {
        let thread = self.thread()?;
        let submitted = Instant::now();
        let waiting = self.residents.wait(self.options.queue_limit)?;
        let reference = request.model.clone();
        let draft = self
            .with_profile(reference, move |profile| {
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
            loaded: None,
            waiting,
            active,
        };
        thread.post(move |scheduler| scheduler.submit(job))?;
        answered(is_ready).await??;
        Ok(event_stream(receiver))
    }

    async fn load_model(&self, reference: String) -> Result<String, InferenceError> {
        let thread = self.thread()?;
        let profile = self.with_profile(reference, Ok).await?;
        let card = profile.card.clone();
        let (ready, is_ready) = oneshot::channel();
        thread.post(move |scheduler| scheduler.submit_load(card, ready))?;
        answered(is_ready).await??;
        Ok(profile.card.id.clone())
    }

    async fn unload_model(&self, reference: String) -> Result<bool, InferenceError> {
        let thread = self.thread()?;
        let catalog = self.catalog.clone();
        let is_resident = self
            .residents
            .list()
            .iter()
            .any(|model| model.id == reference);
        // A model in memory can be dropped also when its files are gone.
        let id = if is_resident {
            reference
        } else {
            blocking(move || Ok(catalog.resolve(&reference)?.id)).await?
        };
        let (done, is_done) = oneshot::channel();
        thread.post(move |scheduler| scheduler.submit_unload(&id, done))?;
        answered(is_done).await
    }
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
async fn answered<T>(answer: oneshot::Receiver<T>) -> Result<T, InferenceError> {
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
        request: GenerateRequest,
    ) -> BoxFuture<'_, Result<EventStream, InferenceError>> {
        self.start(request).boxed()
    }

    fn tokenize(
        &self,
        request: TokenizeRequest,
    ) -> BoxFuture<'_, Result<Vec<u32>, InferenceError>> {
        let TokenizeRequest { model, input } = request;
        self.with_profile(model, move |profile| match input {
            TokenizeInput::Text {
                text,
                add_special_tokens,
            } => profile.chat.tokenizer().encode(&text, add_special_tokens),
            TokenizeInput::Chat { prompt, reasoning } => {
                Ok(profile.chat.render(&prompt, &reasoning)?.tokens)
            }
        })
        .boxed()
    }

    fn detokenize(
        &self,
        model: String,
        tokens: Vec<u32>,
    ) -> BoxFuture<'_, Result<String, InferenceError>> {
        self.with_profile(model, move |profile| {
            Ok(profile.chat.tokenizer().detokenize(&tokens))
        })
        .boxed()
    }

    fn traits(&self, model: String) -> BoxFuture<'_, Result<ModelTraits, InferenceError>> {
        self.with_profile(model, |profile| Ok(profile.chat.traits()))
            .boxed()
    }

    fn load(&self, model: String) -> BoxFuture<'_, Result<String, InferenceError>> {
        self.load_model(model).boxed()
    }

    fn unload(&self, model: String) -> BoxFuture<'_, Result<bool, InferenceError>> {
        self.unload_model(model).boxed()
    }

    fn loaded(&self) -> Vec<LoadedModel> {
        self.residents.list()
    }
}
