//! What a person set for a model and what the model says itself, for every request that does not
//! say otherwise.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use macmlx_control::parameters::{fill_in, fill_in_chat};
use macmlx_inference::{
    Backend, EventStream, GenerateRequest, InferenceError, Layer, ModelCard, TimeToLive,
    TokenizeInput, TokenizeRequest,
};
use macmlx_settings::ModelParametersFolder;

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
        if let Some(modelfile) = &model.modelfile {
            modelfile.fill_in(&mut request);
        }
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
            if let Some(modelfile) = &model.modelfile {
                modelfile.fill_in_chat(prompt);
            }
        }
        self.inner.tokenize(model, request)
    }
}

/// How long models stay in memory where no client says so: as their `ttlSeconds` have it now.
pub(crate) fn time_to_live(folder: Arc<ModelParametersFolder>) -> TimeToLive {
    Arc::new(move |id| folder.get(id).ttl_seconds.map(Duration::from_secs))
}

#[cfg(test)]
mod tests {
    use macmlx_inference::{
        ChatPrompt, Modelfile, Prompt, ReasoningOptions, SamplingParams, ScriptedBackend,
    };
    use macmlx_settings::{Aliases, Home};
    use parking_lot::Mutex;
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

    #[tokio::test]
    async fn a_model_has_its_say_behind_the_request_and_the_person() {
        let place = tempfile::tempdir().unwrap();
        let folder = folder(&Home::at(place.path()));
        set(&folder, &json!({"temperature": 0.25}));
        let mut made = ModelCard::scripted("org/m");
        made.modelfile = Some(Arc::new(Modelfile {
            from: "org/parent".into(),
            system: Some("Be brief.".into()),
            sampling: SamplingParams {
                temperature: Some(1.0),
                top_p: Some(0.5),
                ..SamplingParams::default()
            },
            stop: vec!["END".into()],
            ..Modelfile::default()
        }));
        let inner = Arc::new(ScriptedBackend::default().then_events(Vec::new()));
        let layer = ModelDefaults::new(inner.clone(), folder);
        let request = GenerateRequest::new("org/m", Prompt::Chat(ChatPrompt::default()));
        drop(
            Layer::generate(&layer, Arc::new(made), request)
                .await
                .unwrap(),
        );
        let seen = &inner.requests()[0];
        assert_eq!(seen.sampling.temperature, Some(0.25));
        assert_eq!(seen.sampling.top_p, Some(0.5));
        assert_eq!(seen.stop.sequences, ["END"]);
        let Prompt::Chat(chat) = &seen.prompt else {
            panic!("a chat");
        };
        assert_eq!(chat.messages[0].joined_text(), "Be brief.");
    }

    /// Keeps what it is asked to count.
    #[derive(Default)]
    struct Counting {
        counted: Mutex<Vec<TokenizeRequest>>,
        rest: ScriptedBackend,
    }

    impl Layer for Counting {
        fn inner(&self) -> &dyn Backend {
            &self.rest
        }

        fn tokenize(
            &self,
            model: Arc<ModelCard>,
            request: TokenizeRequest,
        ) -> BoxFuture<'_, Result<Vec<u32>, InferenceError>> {
            self.counted.lock().push(request.clone());
            self.rest.tokenize(model, request)
        }
    }

    #[tokio::test]
    async fn tokens_are_counted_of_what_would_be_read() {
        let place = tempfile::tempdir().unwrap();
        let folder = folder(&Home::at(place.path()));
        set(&folder, &json!({"reasoning": false}));
        let inner = Arc::new(Counting::default());
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
        let counted = inner.counted.lock();
        let TokenizeInput::Chat { reasoning, .. } = &counted[0].input else {
            panic!("a chat");
        };
        assert_eq!(reasoning.enabled, Some(false));
    }

    #[test]
    fn a_models_time_to_live_is_asked_anew_each_time() {
        let place = tempfile::tempdir().unwrap();
        let folder = folder(&Home::at(place.path()));
        let time_to_live = time_to_live(folder.clone());
        assert_eq!(time_to_live("org/m"), None);
        set(&folder, &json!({"ttlSeconds": 60}));
        assert_eq!(time_to_live("org/m"), Some(Duration::from_mins(1)));
        assert_eq!(time_to_live("org/other"), None);
        set(&folder, &json!({"ttlSeconds": null}));
        assert_eq!(time_to_live("org/m"), None);
    }
}
