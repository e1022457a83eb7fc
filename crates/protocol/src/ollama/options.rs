//! `options`: how to draw tokens and when to end.
//!
//! What concerns only how Ollama's own runner uses the machine (`num_ctx`, `num_batch`, `num_gpu`,
//! `num_thread`, …) is taken and not needed: every model gets its whole context and all of the
//! device.

use std::sync::LazyLock;

use macmlx_inference::{SamplingParameter, SamplingParams, Spelling, StopConditions};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::{
    Error,
    json::fields_at,
    sampling::{Numbers, Spelled},
    sentinel::{self, CONTEXT_TOKENS, Count, NUM_PREDICT, WINDOW},
};

/// Tokens that penalties look back, when a client sets a penalty and says no more.
const DEFAULT_PENALTY_WINDOW: u32 = 64;

/// Names of Ollama's options.
#[derive(Debug)]
enum Names {}

impl Spelled for Names {
    const SCHEMA: &str = "ollama.OptionNumbers";
    const PREFIX: &str = "options.";

    fn spell(row: &SamplingParameter) -> Option<Spelling> {
        row.ollama
    }

    fn names() -> &'static [&'static str] {
        static NAMES: LazyLock<Vec<&str>> = LazyLock::new(Names::all);
        &NAMES
    }
}

// The schema's derive looks into generic types.
type OptionNumbers = Numbers<Names>;

/// The options that change an answer; others may be there.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = ollama::Options)]
pub(super) struct Options {
    #[serde(flatten)]
    numbers: OptionNumbers,
    #[serde(flatten)]
    fields: Fields,
}

/// Those that are no number of the table of sampling parameters.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = ollama::OtherOptions)]
struct Fields {
    /// Most tokens of the answer; −2 to 0: until the context is full.
    num_predict: Option<i64>,
    /// Tokens that penalties look back; −1: all.
    repeat_last_n: Option<i64>,
    /// −1: random.
    #[schema(value_type = Option<i64>)]
    seed: Option<i128>,
    #[schema(value_type = Option<Vec<String>>)]
    stop: Option<OneOrMany>,
    /// Taken; a model always has its whole context.
    num_ctx: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged, expecting = "must be an array of strings")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

/// Reads the field. Some languages write an empty object as an empty list.
pub(super) fn read(options: Option<&Value>) -> Result<(SamplingParams, StopConditions), Error> {
    match options {
        None | Some(Value::Null) => Options::default().into_parts(),
        Some(Value::Array(items)) if items.is_empty() => Options::default().into_parts(),
        Some(options @ Value::Object(_)) => Options {
            numbers: fields_at(options, "options")?,
            fields: fields_at(options, "options")?,
        }
        .into_parts(),
        Some(_) => Err(Error::invalid("options", "options must be an object")),
    }
}

impl Options {
    fn into_parts(self) -> Result<(SamplingParams, StopConditions), Error> {
        let sampling = self.fields.complete(self.numbers.into_params()?)?;
        Ok((sampling, self.fields.stop()?))
    }
}

impl Fields {
    fn stop(self) -> Result<StopConditions, Error> {
        CONTEXT_TOKENS.read("options.num_ctx", self.num_ctx)?;
        let max_tokens = NUM_PREDICT.read("options.num_predict", self.num_predict)?;
        let sequences = match self.stop {
            None => Vec::new(),
            Some(OneOrMany::One(sequence)) => vec![sequence],
            Some(OneOrMany::Many(sequences)) => sequences,
        };
        if sequences.iter().any(String::is_empty) {
            return Err(Error::invalid(
                "options.stop",
                "options.stop: a stop sequence is empty",
            ));
        }
        Ok(StopConditions {
            sequences,
            max_tokens: max_tokens.limit(),
            ..StopConditions::default()
        })
    }

    /// Adds what is no number of the table.
    fn complete(&self, numbers: SamplingParams) -> Result<SamplingParams, Error> {
        let has_penalty = numbers.repetition_penalty.is_some()
            || numbers.presence_penalty.is_some()
            || numbers.frequency_penalty.is_some();
        Ok(SamplingParams {
            penalty_window: match WINDOW.read("options.repeat_last_n", self.repeat_last_n)? {
                Count::Unset => has_penalty.then_some(DEFAULT_PENALTY_WINDOW),
                window => window.of(),
            },
            seed: sentinel::seed("options.seed", self.seed)?,
            ..numbers
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parts(options: &Value) -> Result<(SamplingParams, StopConditions), Error> {
        read(Some(options))
    }

    fn refused(options: &Value) -> String {
        match parts(options).unwrap_err() {
            Error::Invalid { param, .. } => param.unwrap(),
            Error::Unsupported { param, .. } => param,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn options_of_the_documentation_are_mapped() {
        let (sampling, stop) = parts(&json!({
            "num_keep": 5, "seed": 42, "num_predict": 100, "top_k": 20, "top_p": 0.9, "min_p": 0.5,
            "typical_p": 0.7, "repeat_last_n": 33, "temperature": 0.8, "repeat_penalty": 1.2,
            "presence_penalty": 1.5, "frequency_penalty": 1.0, "penalize_newline": true,
            "stop": ["\n", "user:"], "numa": false, "num_ctx": 1024, "num_batch": 2, "num_gpu": 1,
            "main_gpu": 0, "use_mmap": true, "num_thread": 8, "mirostat": 1,
            "mirostat_tau": 0.8, "mirostat_eta": 0.6, "tfs_z": 1,
            "draft_num_predict": 4, "low_vram": false,
        }))
        .unwrap();
        assert_eq!(
            sampling,
            SamplingParams {
                temperature: Some(0.8),
                top_p: Some(0.9),
                top_k: Some(20),
                min_p: Some(0.5),
                typical_p: Some(0.7),
                mirostat: Some(1),
                mirostat_tau: Some(0.8),
                mirostat_eta: Some(0.6),
                repetition_penalty: Some(1.2),
                presence_penalty: Some(1.5),
                frequency_penalty: Some(1.0),
                penalty_window: Some(33),
                seed: Some(42),
                ..SamplingParams::default()
            }
        );
        assert_eq!(stop.sequences, ["\n", "user:"]);
        assert_eq!(stop.max_tokens, Some(100));
    }

    #[test]
    fn values_that_leave_it_to_the_model() {
        let (sampling, stop) = parts(&json!({
            "seed": -1, "num_predict": null, "temperature": null, "stop": null, "mirostat": null,
        }))
        .unwrap();
        assert_eq!(sampling, SamplingParams::default());
        assert_eq!(stop, StopConditions::default());
        for (tokens, expected) in [
            (-2, Some(u32::MAX)),
            (-1, Some(u32::MAX)),
            (0, Some(u32::MAX)),
            (1, Some(1)),
            (i64::MAX, Some(u32::MAX)),
        ] {
            let (_, stop) = parts(&json!({"num_predict": tokens})).unwrap();
            assert_eq!(stop.max_tokens, expected, "{tokens}");
        }
    }

    #[test]
    fn penalties_look_back_as_far_as_ollamas() {
        let window = |options: Value| parts(&options).unwrap().0.penalty_window;
        assert_eq!(window(json!({"repeat_penalty": 1.1})), Some(64));
        assert_eq!(
            window(json!({"repeat_penalty": 1.1, "repeat_last_n": -1})),
            None
        );
        assert_eq!(
            window(json!({"repeat_penalty": 1.1, "repeat_last_n": 0})),
            Some(0)
        );
        assert_eq!(window(json!({})), None);
    }

    #[test]
    fn whole_numbers_may_have_a_fraction_of_nothing() {
        let (sampling, stop) =
            parts(&json!({"top_k": 20.0, "num_predict": 5.0, "num_ctx": 8192.0, "stop": "x"}))
                .unwrap();
        assert_eq!((sampling.top_k, stop.max_tokens), (Some(20), Some(5)));
        assert_eq!(stop.sequences, ["x"]);
    }

    #[test]
    fn what_cannot_be_honoured_is_named() {
        for (name, value) in [
            ("mirostat", json!(3)),
            ("mirostat_tau", json!(-1)),
            ("mirostat_eta", json!("fast")),
            ("temperature", json!(-1)),
            ("temperature", json!("hot")),
            ("top_p", json!(1.5)),
            ("min_p", json!(-0.1)),
            ("typical_p", json!(2)),
            ("repeat_penalty", json!(0)),
            ("presence_penalty", json!(3)),
            ("frequency_penalty", json!(-3)),
            ("repeat_last_n", json!(-2)),
            ("num_predict", json!(-3)),
            ("num_predict", json!("all")),
            ("num_ctx", json!("big")),
            ("num_ctx", json!(-1)),
            ("seed", json!("x")),
            ("stop", json!([""])),
            ("stop", json!([1])),
        ] {
            assert_eq!(refused(&json!({name: value})), format!("options.{name}"));
        }
        for options in [json!([1]), json!("hot"), json!(1)] {
            assert_eq!(refused(&options), "options");
        }
        assert!(parts(&json!([])).is_ok());
    }
}
