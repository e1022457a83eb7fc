//! What is answered to whom, as it stands in a file.

use std::{fs, path::Path};

use macmlx_inference::InferenceError;
use serde::Deserialize;

use crate::condition::Condition;

/// Turns in order of preference: the first one whose condition holds is played.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// Tokens of the context, in place of the model's own.
    pub max_context: Option<u32>,
    pub turns: Vec<Turn>,
}

/// One answer and when it is given. It either says or refuses something.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Turn {
    pub when: Condition,
    /// What the model writes, markers included. What the prompt has already begun is left out, so
    /// that it can be written whole.
    pub say: Option<Say>,
    /// The request is refused with this error, in its serialised form.
    pub refuse: Option<InferenceError>,
    /// The turn is over once it has been played.
    pub once: bool,
    /// Tokens of the context for this turn.
    pub max_context: Option<u32>,
    /// Seconds until the first token.
    pub prefill_seconds: f64,
    /// `None`: as fast as they are read.
    pub tokens_per_second: Option<f64>,
    /// Tokens that come at once; 0 is 1.
    pub chunk_tokens: usize,
    /// The answer breaks off with an error after this many tokens, all choices together.
    pub fail_after: Option<u32>,
}

/// An answer, or one for each choice of a request, taken in turn.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Say {
    Same(String),
    Each(Vec<String>),
}

/// A script that cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    #[error("cannot read the script: {0}")]
    Read(#[from] std::io::Error),
    #[error("the script is not valid: {0}")]
    Parse(#[from] serde_json::Error),
    #[error("turn {index} of the script must either `say` or `refuse` something")]
    Answer { index: usize },
    #[error("turn {index} of the script has a `{field}` that is no duration")]
    Time { index: usize, field: &'static str },
}

impl Script {
    pub fn read(path: &Path) -> Result<Self, ScriptError> {
        Self::parse(&fs::read_to_string(path)?)
    }

    /// Reads JSON.
    pub fn parse(json: &str) -> Result<Self, ScriptError> {
        let script: Self = serde_json::from_str(json)?;
        for (index, turn) in script.turns.iter().enumerate() {
            turn.check(index)?;
        }
        Ok(script)
    }
}

impl Turn {
    fn check(&self, index: usize) -> Result<(), ScriptError> {
        let says = match &self.say {
            Some(Say::Each(answers)) => !answers.is_empty(),
            Some(Say::Same(_)) => true,
            None => false,
        };
        if says == self.refuse.is_some() {
            return Err(ScriptError::Answer { index });
        }
        // A day is longer than any test.
        let is_time = |seconds: f64| (0.0..86_400.0).contains(&seconds);
        if !is_time(self.prefill_seconds) {
            return Err(ScriptError::Time {
                index,
                field: "prefill_seconds",
            });
        }
        if !self
            .tokens_per_second
            .is_none_or(|rate| is_time(1.0 / rate))
        {
            return Err(ScriptError::Time {
                index,
                field: "tokens_per_second",
            });
        }
        Ok(())
    }
}

impl Say {
    /// What a choice is answered.
    pub fn of(&self, choice: u32) -> &str {
        match self {
            Self::Same(answer) => answer,
            Self::Each(answers) => answers
                .get(choice as usize % answers.len().max(1))
                .map_or("", String::as_str),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(json: &str) -> String {
        Script::parse(json).unwrap_err().to_string()
    }

    #[test]
    fn a_turn_says_or_refuses() {
        let script = Script::parse(
            r#"{"max_context": 9, "turns": [{"say": "a", "once": true},
                {"say": ["b", "c"], "tokens_per_second": 4},
                {"refuse": {"ContextLength": {"prompt_tokens": 2, "limit": 1}}}]}"#,
        )
        .unwrap();
        assert_eq!(script.max_context, Some(9));
        let says: Vec<&str> = script
            .turns
            .iter()
            .filter_map(|turn| turn.say.as_ref())
            .flat_map(|say| [say.of(0), say.of(1), say.of(2)])
            .collect();
        assert_eq!(says, ["a", "a", "a", "b", "c", "b"]);
        assert!(matches!(
            script.turns[2].refuse,
            Some(InferenceError::ContextLength { limit: 1, .. })
        ));
    }

    #[test]
    fn mistakes_are_named() {
        for (json, word) in [
            (r#"{"turns": [{"say": "a"}, {}]}"#, "turn 1"),
            (
                r#"{"turns": [{"say": "a", "refuse": "Overloaded"}]}"#,
                "turn 0",
            ),
            (r#"{"turns": [{"say": []}]}"#, "turn 0"),
            (r#"{"turns": [{"sya": "a"}]}"#, "sya"),
            (
                r#"{"turns": [{"when": {"role": "user"}, "say": "a"}]}"#,
                "role",
            ),
            (
                r#"{"turns": [{"say": "a", "tokens_per_second": 0}]}"#,
                "tokens_per_second",
            ),
            (
                r#"{"turns": [{"say": "a", "prefill_seconds": -1}]}"#,
                "prefill_seconds",
            ),
        ] {
            assert!(refusal(json).contains(word), "{json}: {}", refusal(json));
        }
    }
}
