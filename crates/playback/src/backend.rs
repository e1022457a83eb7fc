//! The backend: finds the turn of a request and plays it.

use std::{collections::HashMap, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use macmlx_inference::{
    Backend, EventStream, GenerateRequest, InferenceError, KeepAlive, LoadedModel, ModelCard,
    ModelTask, ModelTraits, TimeToLive, TokenizeInput, TokenizeRequest,
};
use parking_lot::Mutex;

use crate::{
    condition::Asked,
    models::{Models, PlayedModel},
    performance::Performance,
    prefixes::Prefixes,
    script::{Script, Turn},
};

/// Plays a script through the tokenizers and templates of the catalog's models.
#[derive(Debug)]
pub struct Playback {
    stage: Arc<Stage>,
}

/// What requests share.
#[derive(Debug)]
struct Stage {
    script: Script,
    models: Models,
    /// One flag for each turn: true once it has been played.
    played: Mutex<Vec<bool>>,
    /// Prefix caches by model id.
    prefixes: Mutex<HashMap<String, Prefixes>>,
}

impl Playback {
    pub fn new(script: Script, time_to_live: TimeToLive) -> Self {
        Self {
            stage: Arc::new(Stage {
                played: Mutex::new(vec![false; script.turns.len()]),
                script,
                models: Models::new(time_to_live),
                prefixes: Mutex::default(),
            }),
        }
    }

    /// Runs `work` where blocking is allowed: tokenizers are slow to load and long prompts to
    /// tokenize.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<Stage>) -> Result<T, InferenceError> + Send + 'static,
    ) -> Result<T, InferenceError> {
        let stage = self.stage.clone();
        tokio::task::spawn_blocking(move || work(&stage))
            .await
            .unwrap_or_else(|error| {
                Err(InferenceError::Engine {
                    message: error.to_string(),
                })
            })
    }

    async fn with_model<T: Send + 'static>(
        &self,
        card: Arc<ModelCard>,
        work: impl FnOnce(&Stage, &PlayedModel) -> Result<T, InferenceError> + Send + 'static,
    ) -> Result<T, InferenceError> {
        self.blocking(move |stage| work(stage, &*stage.models.get_blocking(&card)?))
            .await
    }
}

impl Stage {
    fn perform_blocking(
        self: &Arc<Self>,
        card: &ModelCard,
        mut request: GenerateRequest,
    ) -> Result<Performance, InferenceError> {
        if request.choices == 0 {
            return Err(invalid("n", "`n` must be at least 1"));
        }
        let model = self.models.get_blocking(card)?;
        let mut rendered = model.chat.prompt(&request.prompt, &request.reasoning)?;
        if rendered.tokens.is_empty() {
            return Err(invalid("prompt", "the prompt is empty"));
        }
        if rendered.text.is_empty() {
            rendered.text = model.chat.tokenizer().detokenize(&rendered.tokens);
        }
        let prompt_tokens = rendered.tokens.len() as u32;
        let fits = |limit: u32| {
            if prompt_tokens <= limit {
                return Ok(());
            }
            Err(InferenceError::ContextLength {
                prompt_tokens,
                limit,
            })
        };
        let context = self.script.max_context.or(model.card.context_length);
        let context = context.unwrap_or(u32::MAX);
        fits(context)?;
        let turn = self.take_turn(&Asked {
            model: &request.model,
            prompt: &request.prompt,
            rendered: &rendered.text,
        })?;
        let context = turn.max_context.unwrap_or(context);
        fits(context)?;
        let say = match (&turn.say, &turn.refuse) {
            (Some(say), None) => say,
            (_, Some(error)) => return Err(error.clone()),
            (None, None) => return Err(invalid("model", "the turn says nothing")),
        };
        request.choices = request.choices.max(1);
        let cached_tokens = self
            .prefixes
            .lock()
            .entry(model.card.id.clone())
            .or_default()
            .count_cached(&rendered.tokens) as u32;
        let running = self.models.run(&model.card);
        let (stage, id) = (self.clone(), model.card.id.clone());
        let remember = Box::new(move |tokens| {
            let mut prefixes = stage.prefixes.lock();
            prefixes.entry(id.clone()).or_default().remember(tokens);
        });
        Performance::new(
            model,
            rendered,
            &request,
            (turn, say),
            (context, cached_tokens),
            running,
            remember,
        )
    }

    /// The first turn that fits; an error shows what was asked.
    fn take_turn(&self, asked: &Asked<'_>) -> Result<&Turn, InferenceError> {
        let mut played = self.played.lock();
        let found = self
            .script
            .turns
            .iter()
            .zip(played.iter_mut())
            .find(|(turn, played)| !(turn.once && **played) && turn.when.holds(asked));
        match found {
            Some((turn, played)) => {
                *played = true;
                Ok(turn)
            }
            None => Err(InferenceError::InvalidRequest {
                param: None,
                message: format!("no turn of the script fits: {}", asked.describe()),
            }),
        }
    }
}

fn invalid(param: &str, message: &str) -> InferenceError {
    InferenceError::InvalidRequest {
        param: Some(param.into()),
        message: message.into(),
    }
}

impl Backend for Playback {
    fn generate(
        &self,
        model: Arc<ModelCard>,
        request: GenerateRequest,
    ) -> BoxFuture<'_, Result<EventStream, InferenceError>> {
        async move {
            model.expect(ModelTask::Generate)?;
            let performance = self
                .blocking(move |stage| stage.perform_blocking(&model, request))
                .await?;
            Ok(performance.events())
        }
        .boxed()
    }

    fn tokenize(
        &self,
        model: Arc<ModelCard>,
        request: TokenizeRequest,
    ) -> BoxFuture<'_, Result<Vec<u32>, InferenceError>> {
        self.with_model(model, move |_, model| match request.input {
            TokenizeInput::Text {
                text,
                add_special_tokens,
            } => model.chat.tokenizer().encode(&text, add_special_tokens),
            TokenizeInput::Chat { prompt, reasoning } => {
                Ok(model.chat.render(&prompt, &reasoning)?.tokens)
            }
        })
        .boxed()
    }

    fn detokenize(
        &self,
        model: Arc<ModelCard>,
        tokens: Vec<u32>,
    ) -> BoxFuture<'_, Result<String, InferenceError>> {
        self.with_model(model, move |_, model| {
            Ok(model.chat.tokenizer().detokenize(&tokens))
        })
        .boxed()
    }

    fn traits(&self, model: Arc<ModelCard>) -> BoxFuture<'_, Result<ModelTraits, InferenceError>> {
        self.with_model(model, |_, model| Ok(model.chat.traits()))
            .boxed()
    }

    fn load(&self, model: Arc<ModelCard>) -> BoxFuture<'_, Result<(), InferenceError>> {
        self.with_model(model, |stage, model| {
            stage.models.load(&model.card);
            Ok(())
        })
        .boxed()
    }

    fn unload(&self, id: String) -> BoxFuture<'_, Result<bool, InferenceError>> {
        let was_loaded = self.stage.models.unload(&id);
        async move { Ok(was_loaded) }.boxed()
    }

    fn keep(&self, id: &str, keep_alive: KeepAlive) {
        self.stage.models.keep(id, keep_alive);
    }

    fn loaded(&self) -> Vec<LoadedModel> {
        self.stage.models.loaded()
    }
}
