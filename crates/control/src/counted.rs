//! A backend that tells what the one inside does: what runs, how fast, and which models come and go.

use std::{
    collections::BTreeSet,
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures::{FutureExt, Stream, StreamExt, future::BoxFuture};
use macmlx_inference::{
    Backend, EmbedRequest, Embeddings, EventStream, GenerateRequest, GenerationEvent,
    InferenceError, Layer, ModelCard, Relevance, RerankRequest,
};
use parking_lot::Mutex;

use crate::{
    Activity,
    events::{Event, Events, ModelState},
};

/// Counts and tells, and otherwise does what the backend inside does.
#[derive(Debug)]
pub struct Counted(Arc<Watch>);

struct Watch {
    inner: Arc<dyn Backend>,
    activity: Arc<Activity>,
    events: Arc<Events>,
    /// Models that were told to be loaded.
    loaded: Mutex<BTreeSet<String>>,
}

impl fmt::Debug for Watch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Watch")
            .field("activity", &self.activity)
            .finish_non_exhaustive()
    }
}

impl Counted {
    pub fn new(inner: Arc<dyn Backend>, activity: Arc<Activity>, events: Arc<Events>) -> Self {
        let watch = Arc::new(Watch {
            inner,
            activity,
            events,
            loaded: Mutex::default(),
        });
        let weak = Arc::downgrade(&watch);
        watch.inner.watch_loaded(Box::new(move || {
            if let Some(watch) = weak.upgrade() {
                watch.tell_loaded();
            }
        }));
        Self(watch)
    }
}

impl Watch {
    /// Tells which models came and went since the last time; returns those that are there.
    fn tell_loaded(&self) -> BTreeSet<String> {
        let mut told = self.loaded.lock();
        let now: BTreeSet<String> = ids(&*self.inner).collect();
        for id in now.difference(&told) {
            self.tell(id, ModelState::Loaded, None);
        }
        for id in told.difference(&now) {
            self.tell(id, ModelState::Unloaded, None);
        }
        (*told).clone_from(&now);
        now
    }

    fn tell(&self, id: &str, state: ModelState, error: Option<String>) {
        self.events.publish(Event::Model {
            id: id.to_owned(),
            state,
            error,
        });
    }

    /// Does work whose answer comes whole, with the model it needs and the tokens that its answer
    /// says it took.
    async fn encode<T>(
        self: &Arc<Self>,
        model: &ModelCard,
        work: BoxFuture<'_, Result<T, InferenceError>>,
        tokens: fn(&T) -> u32,
    ) -> Result<T, InferenceError> {
        let mut loading = self.begin_loading(model);
        let _running = Running::begin(&self.activity);
        let answer = work
            .await
            .inspect_err(|error| note_failure(loading.as_mut(), error))?;
        self.activity.count_encoded(tokens(&answer));
        Ok(answer)
    }

    /// The model a request will have loaded, if it is not there yet.
    fn begin_loading(self: &Arc<Self>, model: &ModelCard) -> Option<Loading> {
        if ids(&*self.inner).any(|loaded| loaded == model.id) {
            return None;
        }
        self.activity.begin_loading(&model.id);
        self.tell(&model.id, ModelState::Loading, None);
        Some(Loading {
            id: model.id.clone(),
            watch: self.clone(),
            failure: None,
        })
    }
}

fn ids(backend: &dyn Backend) -> impl Iterator<Item = String> {
    backend.loaded().into_iter().map(|model| model.id)
}

/// Work whose end is counted however it ends.
struct Running<'a>(&'a Activity);

impl<'a> Running<'a> {
    fn begin(activity: &'a Activity) -> Self {
        activity.begin();
        activity.count(0, 0);
        Self(activity)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// A model on its way into memory, until dropped.
struct Loading {
    id: String,
    watch: Arc<Watch>,
    failure: Option<String>,
}

impl Drop for Loading {
    fn drop(&mut self) {
        let is_last = self.watch.activity.end_loading(&self.id);
        let loaded = self.watch.tell_loaded();
        if is_last && !loaded.contains(&self.id) {
            match self.failure.take() {
                Some(error) => self.watch.tell(&self.id, ModelState::Failed, Some(error)),
                None => self.watch.tell(&self.id, ModelState::Unloaded, None),
            }
        }
    }
}

/// Notes why a model did not come, where that is what the error says.
fn note_failure(loading: Option<&mut Loading>, error: &InferenceError) {
    if let Some(loading) = loading
        && let InferenceError::ModelLoad { .. }
        | InferenceError::OutOfMemory { .. }
        | InferenceError::Engine { .. } = error
    {
        loading.failure = Some(error.to_string());
    }
}

/// The events of a request, whose end is counted however it ends.
struct Observed {
    events: EventStream,
    watch: Arc<Watch>,
    /// The note that the model is loading, held until the first event that comes after that.
    loading: Option<Loading>,
    /// Tokens of the prompt that have been counted so far.
    processed: u32,
}

impl Observed {
    fn observe(&mut self, event: &GenerationEvent) {
        let activity = &self.watch.activity;
        match event {
            GenerationEvent::Started { .. } => activity.count(0, 0),
            GenerationEvent::Prefill { processed, .. } => {
                // A tool loop begins anew with each turn.
                let more = processed.checked_sub(self.processed).unwrap_or(*processed);
                self.processed = *processed;
                activity.count(0, u64::from(more));
            }
            GenerationEvent::Text { tokens, .. }
            | GenerationEvent::Reasoning { tokens, .. }
            | GenerationEvent::ToolCall { tokens, .. } => {
                activity.count(tokens.len().max(1) as u64, 0);
            }
            GenerationEvent::Completed { usage, .. } => activity.count_usage(usage),
            GenerationEvent::Loading { .. }
            | GenerationEvent::Loaded { .. }
            | GenerationEvent::PromptLogprobs { .. }
            | GenerationEvent::ToolRun { .. }
            | GenerationEvent::Finished { .. } => {}
        }
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        self.watch.activity.end();
    }
}

impl Stream for Observed {
    type Item = Result<GenerationEvent, InferenceError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.events.poll_next_unpin(context);
        if let Poll::Ready(item) = &next {
            match item {
                Some(Ok(event)) => self.observe(event),
                Some(Err(error)) => note_failure(self.loading.as_mut(), error),
                None => {}
            }
            if !matches!(item, Some(Ok(GenerationEvent::Loading { .. }))) {
                self.loading = None;
            }
        }
        next
    }
}

impl Layer for Counted {
    fn inner(&self) -> &dyn Backend {
        &*self.0.inner
    }

    fn generate(
        &self,
        model: Arc<ModelCard>,
        request: GenerateRequest,
    ) -> BoxFuture<'_, Result<EventStream, InferenceError>> {
        async move {
            let mut loading = self.0.begin_loading(&model);
            let events = self
                .0
                .inner
                .generate(model, request)
                .await
                .inspect_err(|error| note_failure(loading.as_mut(), error))?;
            self.0.activity.admit();
            Ok(Observed {
                events,
                watch: self.0.clone(),
                loading,
                processed: 0,
            }
            .boxed())
        }
        .boxed()
    }

    fn embed(
        &self,
        model: Arc<ModelCard>,
        request: EmbedRequest,
    ) -> BoxFuture<'_, Result<Embeddings, InferenceError>> {
        async move {
            let work = self.0.inner.embed(model.clone(), request);
            let tokens = |answer: &Embeddings| answer.prompt_tokens;
            self.0.encode(&model, work, tokens).await
        }
        .boxed()
    }

    fn rerank(
        &self,
        model: Arc<ModelCard>,
        request: RerankRequest,
    ) -> BoxFuture<'_, Result<Relevance, InferenceError>> {
        async move {
            let work = self.0.inner.rerank(model.clone(), request);
            let tokens = |answer: &Relevance| answer.prompt_tokens;
            self.0.encode(&model, work, tokens).await
        }
        .boxed()
    }

    fn load(&self, model: Arc<ModelCard>) -> BoxFuture<'_, Result<(), InferenceError>> {
        async move {
            let mut loading = self.0.begin_loading(&model);
            let loaded = self.0.inner.load(model).await;
            if let Err(error) = &loaded {
                note_failure(loading.as_mut(), error);
            }
            loaded
        }
        .boxed()
    }

    fn unload(&self, id: String) -> BoxFuture<'_, Result<bool, InferenceError>> {
        async move {
            let unloaded = self.0.inner.unload(id).await;
            self.0.tell_loaded();
            unloaded
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use macmlx_inference::{EncoderInput, Overflow, Prompt, ScriptedBackend, Timings, Usage};

    use super::*;

    fn counted(script: ScriptedBackend) -> (Counted, Arc<Activity>, Arc<Events>) {
        let (activity, events) = (Arc::new(Activity::default()), Arc::new(Events::default()));
        let counted = Counted::new(Arc::new(script), activity.clone(), events.clone());
        (counted, activity, events)
    }

    fn card() -> Arc<ModelCard> {
        Arc::new(ModelCard::scripted("m"))
    }

    fn request() -> GenerateRequest {
        GenerateRequest::new("m", Prompt::Text("hi".into()))
    }

    #[tokio::test]
    async fn completed_and_dropped_requests_are_both_over() {
        let completed = GenerationEvent::Completed {
            usage: Usage {
                prompt_tokens: 3,
                completion_tokens: 5,
                ..Usage::default()
            },
            timings: Timings::default(),
        };
        let script = ScriptedBackend::default()
            .then_events(vec![Ok(completed.clone())])
            .then_events(vec![Ok(completed)])
            .then_error(InferenceError::Overloaded);
        let (counted, activity, _) = counted(script);
        let first = Backend::generate(&counted, card(), request())
            .await
            .unwrap();
        assert_eq!(activity.running(), 1);
        assert_eq!(first.count().await, 1);
        drop(
            Backend::generate(&counted, card(), request())
                .await
                .unwrap(),
        );
        assert!(
            Backend::generate(&counted, card(), request())
                .await
                .is_err()
        );
        assert_eq!(activity.running(), 0);
        assert_eq!(activity.requests(), 2);
        assert_eq!(activity.prompt_tokens(), 3);
        assert_eq!(activity.completion_tokens(), 5);
    }

    fn embedding() -> EmbedRequest {
        EmbedRequest {
            model: "m".into(),
            inputs: vec![EncoderInput::Text("four".into())],
            token_limit: None,
            overflow: Overflow::Refuse,
            dimensions: None,
        }
    }

    #[tokio::test]
    async fn texts_that_are_embedded_and_ranked_are_counted() {
        let (counted, activity, _) = counted(ScriptedBackend::default());
        Backend::embed(&counted, card(), embedding()).await.unwrap();
        let ranking = RerankRequest {
            model: "m".into(),
            query: "q".into(),
            documents: vec!["ab".into()],
            document_tokens: None,
            token_limit: None,
            overflow: Overflow::Truncate,
        };
        Backend::rerank(&counted, card(), ranking).await.unwrap();
        assert_eq!((activity.requests(), activity.running()), (2, 0));
        assert_eq!(activity.prompt_tokens(), 7);
        assert_eq!(activity.completion_tokens(), 0);
    }

    /// A backend whose embeddings never come.
    struct Slow(ScriptedBackend);

    impl Layer for Slow {
        fn inner(&self) -> &dyn Backend {
            &self.0
        }

        fn embed(
            &self,
            _: Arc<ModelCard>,
            _: EmbedRequest,
        ) -> BoxFuture<'_, Result<Embeddings, InferenceError>> {
            std::future::pending().boxed()
        }
    }

    #[tokio::test]
    async fn embedding_runs_until_it_is_given_up() {
        let activity = Arc::new(Activity::default());
        let counted = Counted::new(
            Arc::new(Slow(ScriptedBackend::default())),
            activity.clone(),
            Arc::default(),
        );
        let work = Backend::embed(&counted, card(), embedding());
        let patience = std::time::Duration::from_millis(50);
        let running = async {
            tokio::time::sleep(patience).await;
            activity.running()
        };
        tokio::select! {
            _ = work => panic!("nobody answers"),
            running = running => assert_eq!(running, 1),
        }
        assert_eq!((activity.requests(), activity.running()), (0, 0));
    }

    #[tokio::test]
    async fn tokens_make_a_rate_while_the_request_runs() {
        let text = || {
            Ok(GenerationEvent::Text {
                choice: 0,
                text: "a".into(),
                tokens: Vec::new(),
            })
        };
        let prefill = Ok(GenerationEvent::Prefill {
            processed: 40,
            total: 40,
        });
        let script = ScriptedBackend::default().then_events(vec![prefill, text(), text()]);
        let (counted, activity, _) = counted(script);
        let mut events = Backend::generate(&counted, card(), request())
            .await
            .unwrap();
        while events.next().await.is_some() {}
        let throughput = activity.throughput();
        assert_eq!(throughput.running, 1);
        assert!(throughput.decode_tokens_per_second > 0.0);
        assert!(
            throughput.prompt_tokens_per_second > throughput.decode_tokens_per_second,
            "{throughput:?}"
        );
        drop(events);
        assert_eq!(activity.throughput().running, 0);
    }
}
