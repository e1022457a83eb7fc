//! Sampling parameters after the model's defaults and the neutral values have filled the gaps.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher, RandomState},
};

use macmlx_inference::{Dry, SamplingNumbers, SamplingParameter, SamplingParams, Xtc};
use serde::Deserialize;
use serde_json::{Map, Value};

/// What `generation_config.json` says about sampling; every parameter is optional there.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(from = "Map<String, Value>")]
pub(crate) struct GenerationDefaults(SamplingParams);

impl From<Map<String, Value>> for GenerationDefaults {
    /// Takes what is a number; files in the wild also say `null`, or `-1` for "all".
    fn from(config: Map<String, Value>) -> Self {
        let mut params = SamplingParams::default();
        for row in SamplingParameter::ALL {
            row.set(&mut params, config.get(row.name).and_then(Value::as_f64));
        }
        Self(params)
    }
}

/// Parameters of one sequence, nothing left open.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Parameters {
    pub(crate) numbers: SamplingNumbers,
    pub(crate) xtc: Option<Xtc>,
    pub(crate) penalty_window: Option<usize>,
    pub(crate) dry: Option<Dry>,
    pub(crate) logit_bias: BTreeMap<u32, f32>,
    pub(crate) seed: u64,
}

impl Parameters {
    /// What the client gave, else what the model's makers recommend, else what does nothing.
    pub(crate) fn resolve(
        given: &SamplingParams,
        defaults: &GenerationDefaults,
        seed: u64,
    ) -> Self {
        let mut numbers = given.clone();
        numbers.fill_in(&defaults.0);
        Self {
            numbers: numbers.numbers(),
            xtc: given
                .xtc
                .filter(|xtc| xtc.probability > 0.0 && xtc.threshold <= 0.5),
            penalty_window: given.penalty_window.map(|window| window as usize),
            dry: given.dry.clone().filter(|dry| dry.multiplier > 0.0),
            logit_bias: given.logit_bias.clone(),
            seed,
        }
    }

    /// Takes the likeliest token.
    pub(crate) fn is_greedy(&self) -> bool {
        self.numbers.temperature <= 0.0
    }
}

/// Returns a seed that cannot be guessed, for requests without one.
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
                resolved.numbers.top_p,
                resolved.numbers.top_k,
                resolved.numbers.min_p,
                resolved.numbers.repetition_penalty
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
            GenerationDefaults(SamplingParams {
                top_k: Some(0),
                top_p: Some(1.0),
                ..SamplingParams::default()
            })
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
