//! Sampling parameters after the model's defaults and the neutral values have filled the gaps.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher, RandomState},
};

use macmlx_inference::{Dry, SamplingParams, Xtc};
use serde::Deserialize;
use serde_json::{Map, Value};

/// What `generation_config.json` says about sampling; every field is optional there.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(from = "Map<String, Value>")]
pub(crate) struct GenerationDefaults {
    pub(crate) temperature: Option<f32>,
    pub(crate) top_p: Option<f32>,
    pub(crate) top_k: Option<u32>,
    pub(crate) min_p: Option<f32>,
    pub(crate) typical_p: Option<f32>,
    pub(crate) repetition_penalty: Option<f32>,
}

impl From<Map<String, Value>> for GenerationDefaults {
    /// Takes what is a number; files in the wild also say `null`, or `-1` for "all".
    fn from(config: Map<String, Value>) -> Self {
        let number = |key: &str| config.get(key).and_then(Value::as_f64);
        let float = |key: &str| number(key).map(|value| value as f32);
        Self {
            temperature: float("temperature"),
            top_p: float("top_p"),
            top_k: number("top_k").map(|value| value.max(0.0) as u32),
            min_p: float("min_p"),
            typical_p: float("typical_p"),
            repetition_penalty: float("repetition_penalty"),
        }
    }
}

/// Parameters of one sequence, nothing left open.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Parameters {
    /// 0 is greedy.
    pub(crate) temperature: f32,
    /// 0 is off.
    pub(crate) top_k: u32,
    pub(crate) typical_p: f32,
    pub(crate) top_p: f32,
    pub(crate) min_p: f32,
    pub(crate) xtc: Option<Xtc>,
    pub(crate) repetition_penalty: f32,
    pub(crate) presence_penalty: f32,
    pub(crate) frequency_penalty: f32,
    pub(crate) penalty_window: Option<usize>,
    pub(crate) dry: Option<Dry>,
    pub(crate) logit_bias: BTreeMap<u32, f32>,
    pub(crate) seed: u64,
}

impl Parameters {
    /// What the client gave, else what the model's makers recommend, else the neutral value.
    pub(crate) fn resolve(
        given: &SamplingParams,
        defaults: &GenerationDefaults,
        seed: u64,
    ) -> Self {
        Self {
            temperature: given.temperature.or(defaults.temperature).unwrap_or(1.0),
            top_k: given.top_k.or(defaults.top_k).unwrap_or(0),
            typical_p: given.typical_p.or(defaults.typical_p).unwrap_or(1.0),
            top_p: given.top_p.or(defaults.top_p).unwrap_or(1.0),
            min_p: given.min_p.or(defaults.min_p).unwrap_or(0.0),
            xtc: given
                .xtc
                .filter(|xtc| xtc.probability > 0.0 && xtc.threshold <= 0.5),
            repetition_penalty: given
                .repetition_penalty
                .or(defaults.repetition_penalty)
                .unwrap_or(1.0),
            presence_penalty: given.presence_penalty.unwrap_or(0.0),
            frequency_penalty: given.frequency_penalty.unwrap_or(0.0),
            penalty_window: given.penalty_window.map(|window| window as usize),
            dry: given.dry.clone().filter(|dry| dry.multiplier > 0.0),
            logit_bias: given.logit_bias.clone(),
            seed,
        }
    }

    /// Takes the likeliest token.
    pub(crate) fn is_greedy(&self) -> bool {
        self.temperature <= 0.0
    }
}

/// A seed nobody can guess, for requests without one.
pub(crate) fn random_seed() -> u64 {
    // The standard library keys each of these from the system's entropy.
    RandomState::new().hash_one(0_u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_then_model_then_neutral() {
        let defaults: GenerationDefaults = serde_json::from_str(
            r#"{"temperature": 0.6, "top_k": 20, "top_p": 0.95, "eos_token_id": [1, 2]}"#,
        )
        .unwrap();
        let given = SamplingParams {
            temperature: Some(0.0),
            top_p: Some(0.5),
            ..SamplingParams::default()
        };
        let resolved = Parameters::resolve(&given, &defaults, 7);
        assert!(resolved.is_greedy());
        assert_eq!(
            (
                resolved.top_p,
                resolved.top_k,
                resolved.min_p,
                resolved.repetition_penalty
            ),
            (0.5, 20, 0.0, 1.0)
        );
    }

    #[test]
    fn odd_defaults_are_read_as_meant() {
        let odd = r#"{"temperature": null, "top_k": -1, "top_p": 1, "min_p": "0.1"}"#;
        let defaults: GenerationDefaults = serde_json::from_str(odd).unwrap();
        assert_eq!(
            defaults,
            GenerationDefaults {
                top_k: Some(0),
                top_p: Some(1.0),
                ..GenerationDefaults::default()
            }
        );
    }

    #[test]
    fn what_cannot_fire_is_dropped() {
        let given = SamplingParams {
            xtc: Some(Xtc {
                probability: 0.5,
                threshold: 0.6,
            }),
            dry: Some(Dry {
                multiplier: 0.0,
                base: 1.75,
                allowed_length: 2,
                window: None,
                sequence_breakers: Vec::new(),
            }),
            ..SamplingParams::default()
        };
        let resolved = Parameters::resolve(&given, &GenerationDefaults::default(), 0);
        assert_eq!((resolved.xtc, resolved.dry), (None, None));
    }
}
