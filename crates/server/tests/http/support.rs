//! A server on a free port and a backend led by hand.

use std::{sync::Arc, time::Duration};

use axum::Router;
use futures::{
    FutureExt, StreamExt,
    channel::{mpsc, oneshot},
    future::BoxFuture,
};
use macmlx_inference::{
    Backend, EventStream, FinishReason, GenerateRequest, GenerationEvent, InferenceError,
    LoadedModel, ModelCard, ModelFiles, ModelTraits, ScriptedBackend, ScriptedCatalog,
    ScriptedModelFiles, Timings, TokenizeRequest, Usage,
};
use macmlx_server::{IfBusy, Options, bind, router, serve};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{sync::watch, task::JoinHandle};

/// A running server.
pub(crate) struct Served {
    pub(crate) url: String,
    pub(crate) stop: Option<oneshot::Sender<()>>,
    pub(crate) task: JoinHandle<std::io::Result<()>>,
}

impl Served {
    pub(crate) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    pub(crate) fn begin_shutdown(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }
}

pub(crate) async fn start(backend: impl Backend, options: Options) -> Served {
    start_shared(Arc::new(backend), options, Duration::from_secs(5)).await
}

/// Starts a server for tests that keep a hand on the backend, or choose how long answers may take
/// to end.
pub(crate) async fn start_shared(
    backend: Arc<dyn Backend>,
    options: Options,
    grace: Duration,
) -> Served {
    let files = Arc::new(ScriptedModelFiles::default());
    start_with_files(backend, files, options, grace).await
}

/// Starts a server for tests that look at what is asked of the models' files.
pub(crate) async fn start_with_files(
    backend: Arc<dyn Backend>,
    files: Arc<dyn ModelFiles>,
    options: Options,
    grace: Duration,
) -> Served {
    let models = vec![card("org/small"), card("flat")];
    serve_all(backend, models, files, Router::new(), options, grace).await
}

/// Starts a server for tests that look at how models are listed.
pub(crate) async fn start_with_models(backend: Arc<dyn Backend>, models: Vec<ModelCard>) -> Served {
    let files = Arc::new(ScriptedModelFiles::default());
    let options = Options::default();
    let control = Router::new();
    serve_all(backend, models, files, control, options, Duration::ZERO).await
}

/// Starts a server for tests that look at what stands before the owner's routes.
pub(crate) async fn start_with_control(control: Router, options: Options) -> Served {
    let backend = Arc::new(ScriptedBackend::default());
    let models = vec![card("org/small"), card("flat")];
    let files = Arc::new(ScriptedModelFiles::default());
    serve_all(backend, models, files, control, options, Duration::ZERO).await
}

/// Starts a server made of what is given.
pub(crate) async fn serve_all(
    backend: Arc<dyn Backend>,
    models: Vec<ModelCard>,
    files: Arc<dyn ModelFiles>,
    control: Router,
    options: Options,
    grace: Duration,
) -> Served {
    let listener = bind("127.0.0.1", 0, IfBusy::Fail, &options).await.unwrap();
    let url = format!("http://{}", listener.local_addr());
    let catalog = Arc::new(ScriptedCatalog(models));
    let router = router(backend, catalog, files, control, options);
    let (stop, stopped) = oneshot::channel();
    let shutdown = async move {
        if stopped.await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    Served {
        url,
        stop: Some(stop),
        task: tokio::spawn(serve(listener, router, shutdown, grace)),
    }
}

pub(crate) fn card(id: &str) -> ModelCard {
    ModelCard {
        context_length: Some(2048),
        size_bytes: 1,
        modified_unix: 7,
        ..ModelCard::scripted(id)
    }
}

pub(crate) fn chat(stream: bool) -> Value {
    json!({
        "model": "small",
        "stream": stream,
        "messages": [{"role": "user", "content": "Hi"}],
    })
}

pub(crate) fn started() -> GenerationEvent {
    GenerationEvent::Started {
        model: "org/small".into(),
        prompt_tokens: 3,
        cached_tokens: 0,
    }
}

pub(crate) fn text(text: &str) -> GenerationEvent {
    GenerationEvent::Text {
        choice: 0,
        text: text.into(),
        tokens: Vec::new(),
    }
}

pub(crate) fn finished() -> GenerationEvent {
    GenerationEvent::Finished {
        choice: 0,
        reason: FinishReason::Stop,
        stop_sequence: None,
    }
}

pub(crate) fn completed() -> GenerationEvent {
    GenerationEvent::Completed {
        usage: Usage {
            prompt_tokens: 3,
            cached_tokens: 0,
            completion_tokens: 2,
            reasoning_tokens: 0,
        },
        timings: Timings::default(),
    }
}

/// A whole generation that says the words.
pub(crate) fn says(words: &[&str]) -> Vec<Result<GenerationEvent, InferenceError>> {
    let mut events = vec![started()];
    events.extend(words.iter().copied().map(text));
    events.extend([finished(), completed()]);
    events.into_iter().map(Ok).collect()
}

/// Leads one generation step by step and sees it dropped.
pub(crate) struct Hand {
    pub(crate) admit: Option<oneshot::Sender<Result<(), InferenceError>>>,
    pub(crate) events: mpsc::UnboundedSender<Result<GenerationEvent, InferenceError>>,
    state: watch::Receiver<State>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Asked,
    Dropped,
}

impl Hand {
    pub(crate) fn admit(&mut self) {
        self.admit.take().unwrap().send(Ok(())).unwrap();
    }

    pub(crate) fn say(&self, event: GenerationEvent) {
        self.events.unbounded_send(Ok(event)).unwrap();
    }

    /// The backend has been asked to generate.
    pub(crate) async fn asked(&mut self) {
        self.reached(State::Asked).await;
    }

    /// What the backend gave out has been dropped.
    pub(crate) async fn dropped(&mut self) {
        self.reached(State::Dropped).await;
    }

    async fn reached(&mut self, state: State) {
        tokio::time::timeout(
            Duration::from_secs(10),
            self.state.wait_for(|reached| *reached == state),
        )
        .await
        .unwrap()
        .unwrap();
    }
}

/// A backend for one request, led by a [`Hand`].
pub(crate) struct LedBackend(Mutex<Option<Led>>);

struct Led {
    admitted: oneshot::Receiver<Result<(), InferenceError>>,
    events: mpsc::UnboundedReceiver<Result<GenerationEvent, InferenceError>>,
    state: watch::Sender<State>,
}

struct ReportsDrop(watch::Sender<State>);

impl Drop for ReportsDrop {
    fn drop(&mut self) {
        self.0.send_replace(State::Dropped);
    }
}

pub(crate) fn led() -> (LedBackend, Hand) {
    let (admit, admitted) = oneshot::channel();
    let (event_sender, events) = mpsc::unbounded();
    let (state_sender, state) = watch::channel(State::Idle);
    let led = Led {
        admitted,
        events,
        state: state_sender,
    };
    let hand = Hand {
        admit: Some(admit),
        events: event_sender,
        state,
    };
    (LedBackend(Mutex::new(Some(led))), hand)
}

impl Backend for LedBackend {
    fn generate(
        &self,
        _: Arc<ModelCard>,
        _request: GenerateRequest,
    ) -> BoxFuture<'_, Result<EventStream, InferenceError>> {
        let led = self.0.lock().take().unwrap();
        led.state.send_replace(State::Asked);
        let reports_drop = ReportsDrop(led.state);
        async move {
            led.admitted.await.unwrap()?;
            let events = led.events.map(move |event| {
                let _held = &reports_drop;
                event
            });
            Ok(events.boxed())
        }
        .boxed()
    }

    fn tokenize(
        &self,
        _: Arc<ModelCard>,
        _request: TokenizeRequest,
    ) -> BoxFuture<'_, Result<Vec<u32>, InferenceError>> {
        panic!("the tokenizer is broken")
    }

    fn detokenize(
        &self,
        _: Arc<ModelCard>,
        _tokens: Vec<u32>,
    ) -> BoxFuture<'_, Result<String, InferenceError>> {
        async { Err(InferenceError::ShuttingDown) }.boxed()
    }

    fn traits(&self, _: Arc<ModelCard>) -> BoxFuture<'_, Result<ModelTraits, InferenceError>> {
        async { Ok(ModelTraits::default()) }.boxed()
    }

    fn load(&self, _: Arc<ModelCard>) -> BoxFuture<'_, Result<(), InferenceError>> {
        async { Ok(()) }.boxed()
    }

    fn unload(&self, _model: String) -> BoxFuture<'_, Result<bool, InferenceError>> {
        async { Ok(false) }.boxed()
    }

    fn loaded(&self) -> Vec<LoadedModel> {
        Vec::new()
    }
}
