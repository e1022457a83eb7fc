//! How the next token is drawn from the logits, for each sequence by itself.
//!
//! A parameter that is one number is a row of the table in `sampling_parameters!`: the parsers of
//! the dialects and what they know of each other's words, the parameters of models and
//! conversations, `generation_config.json`, Ollama's `show` and the form of the UI all read the
//! table, so that a new one is its row and what it does in the engine.

use std::{collections::BTreeMap, ops::Bound};

use serde::{Deserialize, Serialize};

/// Where a value may lie.
pub type ParameterRange = (Bound<f64>, Bound<f64>);

/// How a dialect has a parameter.
#[derive(Debug, Clone, Copy)]
pub struct Spelling {
    pub name: &'static str,
    pub range: ParameterRange,
    /// Numbers from this one up to [`SamplingParameter::neutral`] ask for nothing.
    pub nothing_from: f64,
}

/// What is known of a sampling parameter that is one number.
#[derive(Debug, Clone, Copy)]
pub struct SamplingParameter {
    /// The name in `generation_config.json` and on servers with OpenAI's API.
    pub name: &'static str,
    /// Other names that clients of such servers have for it.
    pub aliases: &'static [&'static str],
    /// The option of Ollama; `None`: it has none.
    pub ollama: Option<Spelling>,
    /// The parameter without which this one means nothing.
    pub only_with: Option<&'static str>,
    /// The name in files and routes of this program.
    pub setting: &'static str,
    /// The name that people read.
    pub label: &'static str,
    /// What it does, in sentences.
    pub meaning: &'static str,
    /// The value that does nothing.
    pub neutral: f64,
    pub range: ParameterRange,
    nothing_from: f64,
    pub is_integer: bool,
    get: fn(&SamplingParams) -> Option<f64>,
    set: fn(&mut SamplingParams, Option<f64>),
}

impl SamplingParameter {
    /// The value that is given.
    pub fn get(&self, params: &SamplingParams) -> Option<f64> {
        (self.get)(params)
    }

    /// Gives a value; one that is out of range becomes the nearest that fits the type.
    pub fn set(&self, params: &mut SamplingParams, value: Option<f64>) {
        (self.set)(params, value);
    }

    /// The parameter that files and routes of this program call so.
    pub fn of_setting(setting: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|row| row.setting == setting)
    }

    /// Whether a number asks for nothing where the parameter is spelled so.
    pub fn is_nothing(&self, spelling: &Spelling, number: f64) -> bool {
        (spelling.nothing_from..=self.neutral).contains(&number)
    }

    /// How servers with OpenAI's API have it.
    pub const fn openai(&self) -> Spelling {
        Spelling {
            name: self.name,
            range: self.range,
            nothing_from: self.nothing_from,
        }
    }

    const fn also(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    const fn nothing_from(mut self, number: f64) -> Self {
        self.nothing_from = number;
        self
    }

    const fn ollama(mut self, spelling: Spelling) -> Self {
        self.ollama = Some(Spelling {
            nothing_from: spelling.nothing_from.min(self.neutral),
            ..spelling
        });
        self
    }

    const fn only_with(mut self, name: &'static str) -> Self {
        self.only_with = Some(name);
        self
    }
}

/// Both ends may be taken.
const fn between(least: f64, most: f64) -> ParameterRange {
    (Bound::Included(least), Bound::Included(most))
}

/// The lower end may not be taken.
const fn above(limit: f64, most: f64) -> ParameterRange {
    (Bound::Excluded(limit), Bound::Included(most))
}

const fn named(name: &'static str, range: ParameterRange) -> Spelling {
    Spelling {
        name,
        range,
        nothing_from: f64::INFINITY,
    }
}

/// A number as people write it: 0.1 and not the nearest `f32` to it.
trait Decimal: Copy {
    fn decimal(self) -> f64;
}

impl Decimal for f32 {
    fn decimal(self) -> f64 {
        self.to_string().parse().unwrap_or_else(|_| f64::from(self))
    }
}

impl Decimal for u32 {
    fn decimal(self) -> f64 {
        f64::from(self)
    }
}

macro_rules! sampling_parameters {
    ($(
        $(#[doc = $meaning:literal])+
        $name:ident: $type:ident = $neutral:literal, $setting:literal, $label:literal, $range:expr
            $(, $column:ident($value:expr))*;
    )+) => {
        /// Sampling parameters as a client gave them.
        ///
        /// `None` means: not given. The engine then takes the model's `generation_config.json`, then
        /// the value that does nothing. Dialects check ranges; the engine trusts them.
        #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
        pub struct SamplingParams {
            $($(#[doc = $meaning])+ pub $name: Option<$type>,)+
            pub xtc: Option<Xtc>,
            /// How many of the last tokens penalties look at. `None`: all of them.
            pub penalty_window: Option<u32>,
            pub dry: Option<Dry>,
            /// Added to the logits of these tokens (−100 to 100).
            pub logit_bias: BTreeMap<u32, f32>,
            /// The same seed, parameters and prompt give the same output, whatever other requests are
            /// in the batch. Choice `i` of a request uses `seed + i`. `None`: random.
            pub seed: Option<u64>,
        }

        /// The parameters that are one number, none left open.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct SamplingNumbers {
            $($(#[doc = $meaning])+ pub $name: $type,)+
        }

        impl SamplingParams {
            /// The numbers that are given, and for the others the value that does nothing.
            pub fn numbers(&self) -> SamplingNumbers {
                SamplingNumbers {
                    $($name: self.$name.unwrap_or($neutral),)+
                }
            }

            /// Takes the numbers that are not given from `defaults`.
            pub fn fill_in(&mut self, defaults: &Self) {
                $(self.$name = self.$name.or(defaults.$name);)+
            }
        }

        impl SamplingParameter {
            /// The whole table, in the order people read it.
            pub const ALL: &[Self] = &[$(
                Self {
                    name: stringify!($name),
                    aliases: &[],
                    ollama: None,
                    only_with: None,
                    setting: $setting,
                    label: $label,
                    meaning: concat!($($meaning),+).trim_ascii_start(),
                    neutral: $neutral as f64,
                    range: $range,
                    nothing_from: $neutral as f64,
                    is_integer: sampling_parameters!(@is_integer $type),
                    get: |params| params.$name.map(Decimal::decimal),
                    set: |params, value| params.$name = value.map(|value| value as $type),
                }
                $(.$column($value))*,
            )+];

            /// [`Self::setting`] of all of them.
            pub const SETTINGS: &[&str] = &[$($setting),+];
        }
    };
    (@is_integer u32) => { true };
    (@is_integer f32) => { false };
}

sampling_parameters! {
    /// How varied the answer is; 0 takes the likeliest token each time.
    temperature: f32 = 1.0, "temperature", "Temperature", between(0.0, 2.0),
        ollama(named("temperature", between(0.0, 100.0)));
    /// Only the smallest set of tokens whose probability reaches this; 1 is all.
    top_p: f32 = 1.0, "topP", "Top-p", between(0.0, 1.0),
        ollama(named("top_p", between(0.0, 1.0)));
    /// Only that many of the likeliest tokens; 0 is all.
    top_k: u32 = 0, "topK", "Top-k", between(0.0, 4_294_967_295.0), nothing_from(-1.0),
        ollama(Spelling {
            nothing_from: f64::NEG_INFINITY,
            ..named("top_k", between(0.0, 4_294_967_295.0))
        });
    /// Only tokens at least this fraction as likely as the likeliest; 0 is all.
    min_p: f32 = 0.0, "minP", "Min-p", between(0.0, 1.0),
        ollama(named("min_p", between(0.0, 1.0)));
    /// Only tokens whose logit is at most this many standard deviations below the highest; 0 is all.
    top_n_sigma: f32 = 0.0, "topNSigma", "Top-nσ", between(0.0, 100.0), also(&["nsigma"]),
        nothing_from(f64::NEG_INFINITY);
    /// Only tokens about as surprising as is typical, until their probability reaches this; 1 is
    /// all.
    typical_p: f32 = 1.0, "typicalP", "Typical-p", between(0.0, 1.0),
        also(&["typical", "typ_p"]), ollama(named("typical_p", between(0.0, 1.0)));
    /// Divides positive and multiplies negative logits of tokens seen in prompt or output; 1 does
    /// nothing.
    repetition_penalty: f32 = 1.0, "repetitionPenalty", "Repetition penalty", above(0.0, 100.0),
        also(&["repeat_penalty", "rep_pen"]), ollama(named("repeat_penalty", above(0.0, 100.0)));
    /// Subtracted once from the logits of tokens seen in the output.
    presence_penalty: f32 = 0.0, "presencePenalty", "Presence penalty", between(-2.0, 2.0),
        ollama(named("presence_penalty", between(-2.0, 2.0)));
    /// Subtracted from the logits of tokens for each time they were seen in the output.
    frequency_penalty: f32 = 0.0, "frequencyPenalty", "Frequency penalty", between(-2.0, 2.0),
        ollama(named("frequency_penalty", between(-2.0, 2.0)));
    /// The temperature follows the model's certainty, and goes so far below and above what is set; 0
    /// keeps it.
    dynatemp_range: f32 = 0.0, "dynatempRange", "Dynamic temperature", between(0.0, 2.0);
    /// How the temperature follows the certainty, as an exponent.
    dynatemp_exponent: f32 = 1.0, "dynatempExponent", "Dynamic temperature exponent",
        between(0.0, 100.0), only_with("dynatemp_range");
    /// 1 or 2: Mirostat of that version takes the place of the filters above, and steers how
    /// surprising the answer is; 0 is off.
    mirostat: u32 = 0, "mirostat", "Mirostat", between(0.0, 2.0), also(&["mirostat_mode"]),
        ollama(named("mirostat", between(0.0, 2.0)));
    /// The surprise that Mirostat aims at, in bits for each token.
    mirostat_tau: f32 = 5.0, "mirostatTau", "Mirostat tau", between(0.0, 100.0),
        ollama(named("mirostat_tau", between(0.0, 100.0))), only_with("mirostat");
    /// How fast Mirostat learns.
    mirostat_eta: f32 = 0.1, "mirostatEta", "Mirostat eta", between(0.0, 100.0),
        ollama(named("mirostat_eta", between(0.0, 100.0))), only_with("mirostat");
}

/// Exclude top choices: with `probability`, all tokens above `threshold` but the least likely of
/// them are removed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Xtc {
    /// 0 to 1.
    pub probability: f32,
    /// 0 to 0.5; above 0.5 it never fires.
    pub threshold: f32,
}

/// DRY ("don't repeat yourself") penalty: a token that would extend a repeated run of length `n`
/// loses `multiplier * base^(n - allowed_length)` from its logit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dry {
    pub multiplier: f32,
    pub base: f32,
    pub allowed_length: u32,
    /// How many of the last tokens are searched. `None`: all.
    pub window: Option<u32>,
    /// Text over which a repeated run never reaches.
    pub sequence_breakers: Vec<String>,
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_row_is_about_its_own_field() {
        for row in SamplingParameter::ALL {
            let mut params = SamplingParams::default();
            assert_eq!(row.get(&params), None);
            row.set(&mut params, Some(2.0));
            assert_eq!(row.get(&params), Some(2.0), "{}", row.name);
            let given = SamplingParameter::ALL
                .iter()
                .filter(|other| other.get(&params).is_some());
            assert_eq!(given.count(), 1, "{}", row.name);
            let mut filled = SamplingParams::default();
            filled.fill_in(&params);
            assert_eq!(filled, params, "{}", row.name);
            row.set(&mut params, None);
            assert_eq!(params, SamplingParams::default(), "{}", row.name);
        }
    }

    #[test]
    fn no_name_means_two_parameters() {
        let names: Vec<&str> = SamplingParameter::ALL
            .iter()
            .flat_map(|row| [row.name].into_iter().chain(row.aliases.iter().copied()))
            .collect();
        let distinct: HashSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len());
        let settings: HashSet<_> = SamplingParameter::SETTINGS.iter().collect();
        assert_eq!(settings.len(), SamplingParameter::ALL.len());
    }

    #[test]
    fn numbers_stay_as_people_write_them() {
        let row = SamplingParameter::of_setting("topP").unwrap();
        let mut params = SamplingParams::default();
        row.set(&mut params, Some(0.9));
        assert_eq!(row.get(&params), Some(0.9));
        assert_eq!(row.meaning.split(' ').next(), Some("Only"));
    }

    #[test]
    fn what_is_given_stays() {
        let mut given = SamplingParams {
            temperature: Some(0.0),
            ..SamplingParams::default()
        };
        given.fill_in(&SamplingParams {
            temperature: Some(0.5),
            top_k: Some(3),
            seed: Some(1),
            ..SamplingParams::default()
        });
        assert_eq!((given.temperature, given.top_k), (Some(0.0), Some(3)));
        // Only what is a number of the table is meant.
        assert_eq!(given.seed, None);
        assert_eq!(
            (given.numbers().top_p, given.numbers().mirostat_tau),
            (1.0, 5.0)
        );
    }
}
