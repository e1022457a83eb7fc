//! How the tokens of a chat are drawn where neither a person nor the model's files say it.

use macmlx_inference::{Catalog, ModelCard, SamplingParams};

/// The value that macMLX always had in chats: small models ramble at the neutral one.
const TEMPERATURE: f32 = 0.7;
const TOP_P: f32 = 0.95;

/// What is left to us.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Defaults {
    temperature: Option<f32>,
    top_p: Option<f32>,
}

impl Defaults {
    /// Those for a model: its own `generation_config.json` has the first word. Reads the disk.
    pub(super) fn of(catalog: &dyn Catalog, model: &ModelCard) -> Self {
        let own = catalog.describe(model).generation_config;
        if own["do_sample"] == false {
            return Self::default();
        }
        Self {
            temperature: own["temperature"].is_null().then_some(TEMPERATURE),
            top_p: own["top_p"].is_null().then_some(TOP_P),
        }
    }

    pub(super) fn fill_in(self, sampling: &mut SamplingParams) {
        // The spread of a temperature that someone chose is not ours to narrow.
        if sampling.temperature.is_none() {
            sampling.top_p = sampling.top_p.or(self.top_p);
        }
        sampling.temperature = sampling.temperature.or(self.temperature);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use macmlx_inference::{InferenceError, ModelDescription, ModelTask};
    use serde_json::{Value, json};

    use super::*;

    struct Described(Value);

    impl Catalog for Described {
        fn choose(&self, _: Option<&str>, _: ModelTask) -> Result<Arc<ModelCard>, InferenceError> {
            self.find("")
        }

        fn find(&self, _: &str) -> Result<Arc<ModelCard>, InferenceError> {
            Ok(Arc::new(ModelCard::scripted("m")))
        }

        fn list(&self) -> Vec<ModelCard> {
            Vec::new()
        }

        fn describe(&self, _: &ModelCard) -> ModelDescription {
            ModelDescription {
                generation_config: self.0.clone(),
                ..ModelDescription::default()
            }
        }
    }

    #[test]
    fn people_and_the_models_files_come_first() {
        for (config, asked, temperature, top_p) in [
            (Value::Null, None, Some(TEMPERATURE), Some(TOP_P)),
            (json!({"temperature": 0.6}), None, None, Some(TOP_P)),
            (json!({"do_sample": false}), None, None, None),
            (Value::Null, Some(0.0), Some(0.0), None),
        ] {
            let mut sampling = SamplingParams {
                temperature: asked,
                ..SamplingParams::default()
            };
            let described = Described(config.clone());
            Defaults::of(&described, &ModelCard::scripted("m")).fill_in(&mut sampling);
            assert_eq!(sampling.temperature, temperature, "{config}");
            assert_eq!(sampling.top_p, top_p, "{config}");
        }
    }
}
