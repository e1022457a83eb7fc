//! Sampling fields that routes with OpenAI's samplers share: those of the table of parameters, and
//! those that are more than a number.
//!
//! Names are OpenAI's; what it lacks is spelled as vLLM and mlx-lm do. DRY's defaults are
//! llama.cpp's.

use std::{collections::BTreeMap, sync::LazyLock};

use macmlx_inference::{Dry, SamplingParameter, SamplingParams, Spelling, Xtc};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

pub(super) use crate::range::check_range;
use crate::{
    Error, json,
    sampling::{Numbers, Spelled},
    sentinel::{self, Count, WINDOW},
};

/// Names as vLLM, mlx-lm and llama.cpp have them.
#[derive(Debug)]
pub(crate) enum Names {}

impl Spelled for Names {
    const SCHEMA: &str = "openai.SamplingNumbers";
    const PREFIX: &str = "";

    fn spell(row: &SamplingParameter) -> Option<Spelling> {
        Some(row.openai())
    }

    fn names() -> &'static [&'static str] {
        static NAMES: LazyLock<Vec<&str>> = LazyLock::new(Names::all);
        &NAMES
    }
}

// The schema's derive looks into generic types.
type NamedNumbers = Numbers<Names>;

/// All of a body that says how tokens are drawn.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = openai::Sampling)]
pub(crate) struct Sampling {
    #[serde(flatten)]
    numbers: NamedNumbers,
    #[serde(flatten)]
    fields: Fields,
}

/// What is more than a number, or belongs to what is.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = openai::OtherSampling)]
struct Fields {
    xtc_probability: Option<f32>,
    xtc_threshold: Option<f32>,
    repetition_context_size: Option<i64>,
    presence_context_size: Option<i64>,
    frequency_context_size: Option<i64>,
    dry_multiplier: Option<f32>,
    dry_base: Option<f32>,
    dry_allowed_length: Option<u32>,
    dry_sequence_breakers: Option<Vec<String>>,
    dry_penalty_last_n: Option<i64>,
    logit_bias: Option<BTreeMap<String, f32>>,
    /// -1: a random one.
    #[schema(value_type = Option<i64>)]
    seed: Option<i128>,
}

impl Sampling {
    pub(crate) fn read(body: &Value) -> Result<Self, Error> {
        Ok(Self {
            numbers: json::fields(body)?,
            fields: json::fields(body)?,
        })
    }

    pub(crate) fn into_params(self) -> Result<SamplingParams, Error> {
        let fields = self.fields;
        Ok(SamplingParams {
            xtc: fields.xtc()?,
            penalty_window: fields.penalty_window()?,
            dry: fields.dry()?,
            logit_bias: logit_bias(fields.logit_bias.unwrap_or_default())?,
            seed: sentinel::seed("seed", fields.seed)?,
            ..self.numbers.into_params()?
        })
    }
}

impl Fields {
    fn xtc(&self) -> Result<Option<Xtc>, Error> {
        let probability = check_range("xtc_probability", self.xtc_probability, 0.0..=1.0)?;
        let threshold = check_range("xtc_threshold", self.xtc_threshold, 0.0..=0.5)?;
        Ok(probability.map(|probability| Xtc {
            probability,
            threshold: threshold.unwrap_or(0.1),
        }))
    }

    /// mlx-lm has a window for each penalty; here there is one for all, so they must agree.
    fn penalty_window(&self) -> Result<Option<u32>, Error> {
        let windows = [
            ("repetition_context_size", self.repetition_context_size),
            ("presence_context_size", self.presence_context_size),
            ("frequency_context_size", self.frequency_context_size),
        ];
        let mut agreed = None;
        for (name, window) in windows {
            let window = WINDOW.read(name, window)?;
            if window == Count::Unset {
                continue;
            }
            if agreed.is_some_and(|agreed| agreed != window) {
                return Err(Error::unsupported(
                    name,
                    "all penalties look at the same window, and another field set it differently",
                ));
            }
            agreed = Some(window);
        }
        Ok(agreed.and_then(Count::of))
    }

    fn dry(&self) -> Result<Option<Dry>, Error> {
        let multiplier = check_range("dry_multiplier", self.dry_multiplier, 0.0..=100.0)?;
        let base = check_range("dry_base", self.dry_base, 1.0..=100.0)?;
        let window = WINDOW.read("dry_penalty_last_n", self.dry_penalty_last_n)?;
        Ok(multiplier.filter(|&by| by > 0.0).map(|multiplier| Dry {
            multiplier,
            base: base.unwrap_or(1.75),
            allowed_length: self.dry_allowed_length.unwrap_or(2),
            window: window.of(),
            sequence_breakers: self
                .dry_sequence_breakers
                .clone()
                .unwrap_or_else(|| ["\n", ":", "\"", "*"].map(str::to_owned).to_vec()),
        }))
    }
}

fn logit_bias(biases: BTreeMap<String, f32>) -> Result<BTreeMap<u32, f32>, Error> {
    biases
        .into_iter()
        .map(|(token, bias)| {
            let id = token.parse().map_err(|_| {
                Error::invalid(
                    "logit_bias",
                    format!("logit_bias: its keys are token ids, and `{token}` is none"),
                )
            })?;
            let name = format!("logit_bias.{token}");
            Ok((
                id,
                check_range(&name, Some(bias), -100.0..=100.0)?.unwrap_or(bias),
            ))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn params(body: &Value) -> Result<SamplingParams, Error> {
        Sampling::read(body)?.into_params()
    }

    fn refused(body: &Value) -> String {
        match params(body).unwrap_err() {
            Error::Invalid { param, .. } => param.unwrap(),
            Error::Unsupported { param, .. } => param,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn nothing_given_is_nothing_said() {
        assert_eq!(params(&json!({})).unwrap(), SamplingParams::default());
        assert_eq!(
            params(&json!({"temperature": null, "logit_bias": null, "seed": null})).unwrap(),
            SamplingParams::default()
        );
    }

    #[test]
    fn values_out_of_range_are_refused_by_name() {
        for (name, value) in [
            ("temperature", json!(2.1)),
            ("temperature", json!(-0.1)),
            ("temperature", json!(1e300)),
            ("top_p", json!(1.5)),
            ("top_k", json!(-2)),
            ("min_p", json!(-1)),
            ("typical_p", json!(2)),
            ("top_n_sigma", json!(101)),
            ("mirostat", json!(3)),
            ("mirostat", json!(-1)),
            ("mirostat_tau", json!(-1)),
            ("mirostat_eta", json!("fast")),
            ("dynatemp_range", json!(2.5)),
            ("dynatemp_exponent", json!(-1)),
            ("xtc_probability", json!(1.01)),
            ("xtc_threshold", json!(0.6)),
            ("repetition_penalty", json!(0)),
            ("presence_penalty", json!(-2.5)),
            ("frequency_penalty", json!(2.5)),
            ("dry_base", json!(0.5)),
            ("seed", json!(1.5)),
            ("temperature", json!("hot")),
            ("dry_allowed_length", json!(-1)),
        ] {
            assert_eq!(refused(&json!({name: value})), name);
        }
        assert_eq!(refused(&json!({"logit_bias": {"5": 101}})), "logit_bias.5");
        assert_eq!(refused(&json!({"logit_bias": {"a": 1}})), "logit_bias");
    }

    #[test]
    fn samplers_of_llama_cpp_are_read() {
        let body = json!({
            "mirostat": 2.0, "mirostat_tau": 4, "mirostat_eta": 0.2, "dynatemp_range": 0.5,
            "dynatemp_exponent": 1.5, "top_n_sigma": 1
        });
        let expected = SamplingParams {
            mirostat: Some(2),
            mirostat_tau: Some(4.0),
            mirostat_eta: Some(0.2),
            dynatemp_range: Some(0.5),
            dynatemp_exponent: Some(1.5),
            top_n_sigma: Some(1.0),
            ..SamplingParams::default()
        };
        assert_eq!(params(&body).unwrap(), expected);
    }

    #[test]
    fn numbers_that_ask_for_nothing_are_neutral() {
        for (name, value) in [
            ("top_k", json!(-1)),
            ("top_k", json!(-1.0)),
            ("top_n_sigma", json!(-1)),
            ("top_n_sigma", json!(-7.5)),
        ] {
            let asked = params(&json!({name: value})).unwrap();
            assert_eq!(asked, params(&json!({name: 0})).unwrap(), "{name}: {value}");
        }
        let most = params(&json!({"top_k": i64::MAX})).unwrap();
        assert_eq!(most.top_k, Some(u32::MAX));
    }

    #[test]
    fn windows_that_differ_are_refused() {
        let body = json!({"repetition_context_size": 20, "presence_context_size": 30});
        assert_eq!(refused(&body), "presence_context_size");
        let body = json!({"repetition_context_size": 20, "frequency_context_size": 20});
        assert_eq!(params(&body).unwrap().penalty_window, Some(20));
    }

    #[test]
    fn seeds_may_be_negative_and_large() {
        assert_eq!(
            params(&json!({"seed": -2})).unwrap().seed,
            Some(u64::MAX - 1)
        );
        assert_eq!(
            params(&json!({"seed": u64::MAX})).unwrap().seed,
            Some(u64::MAX)
        );
    }

    #[test]
    fn dry_is_off_until_its_multiplier_says_so() {
        assert_eq!(params(&json!({"dry_base": 2})).unwrap().dry, None);
        assert_eq!(params(&json!({"dry_multiplier": 0})).unwrap().dry, None);
        let dry = params(&json!({"dry_multiplier": 0.8, "dry_penalty_last_n": -1}))
            .unwrap()
            .dry
            .unwrap();
        assert_eq!((dry.base, dry.allowed_length, dry.window), (1.75, 2, None));
    }
}
