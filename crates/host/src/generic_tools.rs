//! Whether models whose chat template takes no tools are told about them all the same, as the settings
//! say.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use macmlx_inference::{
    Backend, EventStream, GenerateRequest, InferenceError, Layer, ModelCard, ModelTraits, Prompt,
    TokenizeInput, TokenizeRequest, ToolSupport,
};
use macmlx_settings::LiveSettings;

/// Refuses tools for such models where the setting `genericTools` is off.
pub(crate) struct GenericTools {
    inner: Arc<dyn Backend>,
    settings: Arc<LiveSettings>,
}

impl GenericTools {
    pub(crate) fn new(inner: Arc<dyn Backend>, settings: Arc<LiveSettings>) -> Self {
        Self { inner, settings }
    }

    fn is_on(&self) -> bool {
        self.settings.get().generic_tools
    }

    async fn check(
        &self,
        model: &Arc<ModelCard>,
        offers_tools: bool,
    ) -> Result<(), InferenceError> {
        if !offers_tools || self.is_on() {
            return Ok(());
        }
        let traits = self.inner.traits(model.clone()).await?;
        if traits.tools != ToolSupport::Generic {
            return Ok(());
        }
        Err(InferenceError::Unsupported {
            param: "tools".into(),
            reason: format!(
                "the chat template of `{}` does not take tools, and the setting \
                 `genericTools` is off",
                model.id
            ),
        })
    }
}

impl Layer for GenericTools {
    fn inner(&self) -> &dyn Backend {
        &*self.inner
    }

    fn generate(
        &self,
        model: Arc<ModelCard>,
        request: GenerateRequest,
    ) -> BoxFuture<'_, Result<EventStream, InferenceError>> {
        async move {
            let offers_tools = match &request.prompt {
                Prompt::Chat(chat) => chat.offers_tools(),
                Prompt::Text(_) | Prompt::Tokens(_) | Prompt::Infill(_) => false,
            };
            self.check(&model, offers_tools).await?;
            self.inner.generate(model, request).await
        }
        .boxed()
    }

    fn tokenize(
        &self,
        model: Arc<ModelCard>,
        request: TokenizeRequest,
    ) -> BoxFuture<'_, Result<Vec<u32>, InferenceError>> {
        async move {
            let offers_tools = match &request.input {
                TokenizeInput::Chat { prompt, .. } => prompt.offers_tools(),
                TokenizeInput::Text { .. } => false,
            };
            self.check(&model, offers_tools).await?;
            self.inner.tokenize(model, request).await
        }
        .boxed()
    }

    fn traits(&self, model: Arc<ModelCard>) -> BoxFuture<'_, Result<ModelTraits, InferenceError>> {
        async move {
            let mut traits = self.inner.traits(model).await?;
            if traits.tools == ToolSupport::Generic && !self.is_on() {
                traits.tools = ToolSupport::None;
            }
            Ok(traits)
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use macmlx_inference::{ChatPrompt, ReasoningOptions, ScriptedBackend, ToolDefinition};
    use macmlx_settings::Home;
    use serde_json::json;

    use super::*;

    fn card() -> Arc<ModelCard> {
        Arc::new(ModelCard::scripted("org/m"))
    }

    fn prompt() -> ChatPrompt {
        ChatPrompt {
            tools: vec![ToolDefinition {
                name: "f".into(),
                description: None,
                parameters: json!({}),
                strict: false,
            }],
            ..ChatPrompt::default()
        }
    }

    #[tokio::test]
    async fn the_setting_takes_generic_tools_away_and_gives_them_back() {
        let place = tempfile::tempdir().unwrap();
        let settings = Arc::new(LiveSettings::new(&Home::at(place.path())));
        for (support, is_on, shown) in [
            (ToolSupport::Generic, true, ToolSupport::Generic),
            (ToolSupport::Generic, false, ToolSupport::None),
            (ToolSupport::Native, false, ToolSupport::Native),
            (ToolSupport::None, true, ToolSupport::None),
        ] {
            settings.patch(&json!({"genericTools": is_on})).unwrap();
            let inner = ScriptedBackend::default()
                .with_tools(support)
                .then_events(Vec::new());
            let layer = GenericTools::new(Arc::new(inner), settings.clone());
            let traits = Layer::traits(&layer, card()).await.unwrap();
            assert_eq!(traits.tools, shown, "{support:?} {is_on}");
            let request = GenerateRequest::new("org/m", Prompt::Chat(prompt()));
            let generated = Layer::generate(&layer, card(), request).await.err();
            let request = TokenizeRequest {
                model: "org/m".into(),
                input: TokenizeInput::Chat {
                    prompt: prompt(),
                    reasoning: ReasoningOptions::default(),
                },
            };
            let counted = Layer::tokenize(&layer, card(), request).await.err();
            assert_eq!(generated, counted, "{support:?} {is_on}");
            let refusal = generated.map(|error| error.to_string());
            let is_refused = support == ToolSupport::Generic && !is_on;
            assert_eq!(
                refusal.is_some_and(|words| words.contains("the setting `genericTools` is off")),
                is_refused,
                "{support:?} {is_on}"
            );
        }
    }

    #[tokio::test]
    async fn requests_without_tools_pass_where_it_is_off() {
        let place = tempfile::tempdir().unwrap();
        let settings = Arc::new(LiveSettings::new(&Home::at(place.path())));
        settings.patch(&json!({"genericTools": false})).unwrap();
        let none = ChatPrompt {
            tool_choice: macmlx_inference::ToolChoice::None,
            ..prompt()
        };
        for chat in [ChatPrompt::default(), none] {
            let inner = ScriptedBackend::default()
                .with_tools(ToolSupport::Generic)
                .then_events(Vec::new());
            let layer = GenericTools::new(Arc::new(inner), settings.clone());
            let request = GenerateRequest::new("org/m", Prompt::Chat(chat));
            assert!(Layer::generate(&layer, card(), request).await.is_ok());
        }
    }
}
