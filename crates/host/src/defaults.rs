//! Parameters that a person set for a model, for every request that does not say otherwise.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use futures::future::BoxFuture;
use macmlx_control::parameters::{fill_in, fill_in_chat};
use macmlx_inference::{
    Backend, EventStream, GenerateRequest, InferenceError, Layer, ModelCard, TokenizeInput,
    TokenizeRequest,
};
use macmlx_settings::ModelParametersFolder;
use tokio::time::MissedTickBehavior;

/// How often idle models are looked for.
const TICK: Duration = Duration::from_secs(5);

/// Fills in what requests leave unset.
pub(crate) struct ModelDefaults {
    inner: Arc<dyn Backend>,
    folder: Arc<ModelParametersFolder>,
}

impl ModelDefaults {
    pub(crate) fn new(inner: Arc<dyn Backend>, folder: Arc<ModelParametersFolder>) -> Self {
        Self { inner, folder }
    }
}

impl Layer for ModelDefaults {
    fn inner(&self) -> &dyn Backend {
        &*self.inner
    }

    fn generate(
        &self,
        model: Arc<ModelCard>,
        mut request: GenerateRequest,
    ) -> BoxFuture<'_, Result<EventStream, InferenceError>> {
        fill_in(&mut request, &self.folder.get(&model.id));
        self.inner.generate(model, request)
    }

    /// What is counted must be what would be read.
    fn tokenize(
        &self,
        model: Arc<ModelCard>,
        mut request: TokenizeRequest,
    ) -> BoxFuture<'_, Result<Vec<u32>, InferenceError>> {
        if let TokenizeInput::Chat { prompt, reasoning } = &mut request.input {
            fill_in_chat(prompt, reasoning, &self.folder.get(&model.id));
        }
        self.inner.tokenize(model, request)
    }
}

/// Unloads models that had no request for as long as their `ttlSeconds` say, until the backend is
/// gone.
pub(crate) async fn unload_idle(backend: Weak<dyn Backend>, folder: Arc<ModelParametersFolder>) {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(backend) = backend.upgrade() else {
            return;
        };
        for model in backend.loaded() {
            let is_expired = folder.get(&model.id).ttl_seconds.is_some_and(|seconds| {
                model.active_requests == 0 && model.idle >= Duration::from_secs(seconds)
            });
            if is_expired {
                tracing::info!(model = model.id, "unloading a model that was idle");
                if let Err(error) = backend.unload(model.id.clone()).await {
                    tracing::warn!(model = model.id, %error, "an idle model stays");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures::FutureExt;
    use macmlx_inference::{ChatPrompt, LoadedModel, Prompt, ReasoningOptions, ScriptedBackend};
    use macmlx_settings::{Aliases, Home};
    use serde_json::json;

    use super::*;

    fn folder(home: &Home) -> Arc<ModelParametersFolder> {
        Arc::new(ModelParametersFolder::new(
            home,
            Arc::new(Aliases::new(home)),
        ))
    }

    fn set(folder: &ModelParametersFolder, changes: &serde_json::Value) {
        folder.patch("org/m", changes.as_object().unwrap()).unwrap();
    }

    fn card(id: &str) -> Arc<ModelCard> {
        Arc::new(ModelCard::scripted(id))
    }

    #[tokio::test]
    async fn requests_get_what_they_leave_unset() {
        let place = tempfile::tempdir().unwrap();
        let folder = folder(&Home::at(place.path()));
        set(
            &folder,
            &json!({"temperature": 0.25, "maxTokens": 5, "templateKwargs": {"style": "brief"}}),
        );
        let inner = Arc::new(
            ScriptedBackend::default()
                .then_events(Vec::new())
                .then_events(Vec::new()),
        );
        let layer = ModelDefaults::new(inner.clone(), folder);
        let prompt = || Prompt::Chat(ChatPrompt::default());
        let mut own = GenerateRequest::new("org/m", prompt());
        own.sampling.temperature = Some(1.0);
        drop(Layer::generate(&layer, card("org/m"), own).await.unwrap());
        let other = GenerateRequest::new("org/other", prompt());
        drop(
            Layer::generate(&layer, card("org/other"), other)
                .await
                .unwrap(),
        );
        let [seen, other] = &inner.requests()[..] else {
            panic!("two requests");
        };
        assert_eq!(seen.sampling.temperature, Some(1.0));
        assert_eq!(seen.stop.max_tokens, Some(5));
        let Prompt::Chat(chat) = &seen.prompt else {
            panic!("a chat");
        };
        assert_eq!(chat.template_kwargs["style"], "brief");
        assert_eq!(*other, GenerateRequest::new("org/other", prompt()));
    }

    /// Says that a model is idle, until it is unloaded; keeps what it is asked to count.
    struct Idle {
        since: Duration,
        unloaded: Mutex<Vec<String>>,
        counted: Mutex<Vec<TokenizeRequest>>,
        rest: ScriptedBackend,
    }

    impl Idle {
        fn new(idle: Duration) -> Arc<Self> {
            Arc::new(Self {
                since: idle,
                unloaded: Mutex::default(),
                counted: Mutex::default(),
                rest: ScriptedBackend::default(),
            })
        }
    }

    impl Backend for Idle {
        fn generate(
            &self,
            model: Arc<ModelCard>,
            request: GenerateRequest,
        ) -> BoxFuture<'_, Result<EventStream, InferenceError>> {
            self.rest.generate(model, request)
        }

        fn tokenize(
            &self,
            model: Arc<ModelCard>,
            request: TokenizeRequest,
        ) -> BoxFuture<'_, Result<Vec<u32>, InferenceError>> {
            self.counted.lock().unwrap().push(request.clone());
            self.rest.tokenize(model, request)
        }

        fn detokenize(
            &self,
            model: Arc<ModelCard>,
            tokens: Vec<u32>,
        ) -> BoxFuture<'_, Result<String, InferenceError>> {
            self.rest.detokenize(model, tokens)
        }

        fn traits(
            &self,
            model: Arc<ModelCard>,
        ) -> BoxFuture<'_, Result<macmlx_inference::ModelTraits, InferenceError>> {
            self.rest.traits(model)
        }

        fn load(&self, model: Arc<ModelCard>) -> BoxFuture<'_, Result<(), InferenceError>> {
            self.rest.load(model)
        }

        fn unload(&self, model: String) -> BoxFuture<'_, Result<bool, InferenceError>> {
            self.unloaded.lock().unwrap().push(model);
            async { Ok(true) }.boxed()
        }

        fn loaded(&self) -> Vec<LoadedModel> {
            if !self.unloaded.lock().unwrap().is_empty() {
                return Vec::new();
            }
            vec![LoadedModel {
                id: "org/m".into(),
                memory_bytes: 1,
                active_requests: 0,
                idle: self.since,
                weights: String::new(),
            }]
        }
    }

    #[tokio::test]
    async fn tokens_are_counted_of_what_would_be_read() {
        let place = tempfile::tempdir().unwrap();
        let folder = folder(&Home::at(place.path()));
        set(&folder, &json!({"reasoning": false}));
        let inner = Idle::new(Duration::ZERO);
        let layer = ModelDefaults::new(inner.clone(), folder);
        let request = TokenizeRequest {
            model: "org/m".into(),
            input: TokenizeInput::Chat {
                prompt: ChatPrompt::default(),
                reasoning: ReasoningOptions::default(),
            },
        };
        Layer::tokenize(&layer, card("org/m"), request)
            .await
            .unwrap();
        let counted = inner.counted.lock().unwrap();
        let TokenizeInput::Chat { reasoning, .. } = &counted[0].input else {
            panic!("a chat");
        };
        assert_eq!(reasoning.enabled, Some(false));
    }

    #[tokio::test(start_paused = true)]
    async fn a_model_leaves_once_it_was_idle_for_long_enough() {
        for (ttl, leaves) in [(json!(60), true), (json!(61), false), (json!(null), false)] {
            let place = tempfile::tempdir().unwrap();
            let folder = folder(&Home::at(place.path()));
            set(&folder, &json!({"ttlSeconds": ttl}));
            let inner = Idle::new(Duration::from_mins(1));
            let backend: Arc<dyn Backend> = inner.clone();
            let watching = tokio::spawn(unload_idle(Arc::downgrade(&backend), folder));
            tokio::time::sleep(TICK * 3).await;
            let unloaded = inner.unloaded.lock().unwrap().clone();
            assert_eq!(unloaded.len(), usize::from(leaves), "{ttl}");
            drop((backend, inner));
            watching.await.unwrap();
        }
    }
}
