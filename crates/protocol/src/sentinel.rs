//! Counts that clients send, and the numbers that stand for no count: one table for all dialects.
//!
//! `null` always means what leaving the field out means. What −1 and 0 mean is told by the servers
//! that a field's clients were written for: llama.cpp and LM Studio (which runs it), vLLM, mlx-lm,
//! Ollama, Cohere and Voyage. What numbers mean for a sampling parameter stands in the table of
//! those.

use std::ops::RangeInclusive;

use crate::Error;

/// What a client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Count {
    /// Nothing: the same as if the field were not there.
    Unset,
    /// There is no limit but the model's own.
    Unlimited,
    /// A number that the field takes.
    Of(u64),
}

/// What counts of one kind may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kind {
    /// The smallest real count.
    least: i64,
    /// The numbers below it that stand for none, and what they mean. Other numbers are refused.
    sentinels: RangeInclusive<i64>,
    meaning: Count,
    /// What a refusal says of the sentinels.
    words: &'static str,
}

/// Tokens of an answer. llama.cpp and LM Studio have −1 for no limit, llama.cpp also −2, until the
/// context is full, which ends an answer here in either case.
pub(crate) const ANSWER_TOKENS: Kind = Kind {
    least: 1,
    sentinels: -2..=-1,
    meaning: Count::Unlimited,
    words: "-1 for no limit",
};

/// `num_predict`: to Ollama 0 is no limit, too.
pub(crate) const NUM_PREDICT: Kind = Kind {
    least: 1,
    sentinels: -2..=0,
    meaning: Count::Unlimited,
    words: "-1 for no limit",
};

/// Tokens that a penalty looks back: none of them with 0, all of them with −1 (llama.cpp, Ollama).
pub(crate) const WINDOW: Kind = Kind {
    least: 0,
    sentinels: -1..=-1,
    meaning: Count::Unlimited,
    words: "-1 for all",
};

/// Tokens of reasoning: −1 is as many as the model likes (llama.cpp, Gemini).
pub(crate) const REASONING_TOKENS: Kind = Kind {
    least: 0,
    sentinels: -1..=-1,
    meaning: Count::Unlimited,
    words: "-1 for no limit",
};

/// Tokens of a text that are read: −1 is the model's own limit (vLLM).
pub(crate) const TEXT_TOKENS: Kind = Kind {
    least: 1,
    sentinels: -1..=-1,
    meaning: Count::Unlimited,
    words: "-1 for the model's own limit",
};

/// Features of a vector: 0 is all that the model gives (Ollama, also where it speaks `OpenAI`'s
/// dialect).
pub(crate) const DIMENSIONS: Kind = Kind {
    least: 1,
    sentinels: 0..=0,
    meaning: Count::Unset,
    words: "0 for the model's own",
};

/// The same in Ollama's own dialect, to which every number below is all of them.
pub(crate) const DIMENSIONS_OF_OLLAMA: Kind = Kind {
    least: 1,
    sentinels: i64::MIN..=0,
    meaning: Count::Unset,
    words: "0 for the model's own",
};

/// Results of a ranking: 0 and every number below is all of them (vLLM).
pub(crate) const RESULTS: Kind = Kind {
    least: 1,
    sentinels: i64::MIN..=0,
    meaning: Count::Unset,
    words: "0 for all",
};

/// Tokens of a context: 0 is the server's default (Ollama).
pub(crate) const CONTEXT_TOKENS: Kind = Kind {
    least: 1,
    sentinels: 0..=0,
    meaning: Count::Unset,
    words: "0 for the model's own",
};

/// The seed that means a random one to llama.cpp, LM Studio, vLLM and Ollama.
const RANDOM_SEED: i128 = -1;

impl Kind {
    /// The same kind where smaller counts are real.
    pub(crate) const fn with_least(self, least: i64) -> Self {
        Self { least, ..self }
    }

    /// What the field `name` asks for.
    ///
    /// # Errors
    ///
    /// The number is neither a count nor stands for none.
    pub(crate) fn read(&self, name: &str, value: Option<i64>) -> Result<Count, Error> {
        match value {
            None => Ok(Count::Unset),
            Some(value) if value >= self.least => Ok(Count::Of(value.unsigned_abs())),
            Some(value) if self.sentinels.contains(&value) => Ok(self.meaning),
            Some(value) => Err(Error::invalid(
                name,
                format!(
                    "{name} must be at least {}, or {}, not {value}",
                    self.least, self.words
                ),
            )),
        }
    }
}

impl Count {
    /// The number of a limit. Clients ask for as much as they can think of, so the largest number
    /// stands for no limit.
    pub(crate) fn limit(self) -> Option<u32> {
        match self {
            Self::Unset => None,
            Self::Unlimited => Some(u32::MAX),
            Self::Of(count) => Some(u32::try_from(count).unwrap_or(u32::MAX)),
        }
    }

    /// This count, or the other where this says nothing.
    pub(crate) fn or(self, other: Self) -> Self {
        match self {
            Self::Unset => other,
            Self::Unlimited | Self::Of(_) => self,
        }
    }

    /// The number, where no limit and nothing said come to the same.
    pub(crate) fn of(self) -> Option<u32> {
        match self {
            Self::Unset | Self::Unlimited => None,
            Self::Of(_) => self.limit(),
        }
    }

    /// The number as it was sent.
    pub(crate) fn exact(self) -> Option<u64> {
        match self {
            Self::Unset | Self::Unlimited => None,
            Self::Of(count) => Some(count),
        }
    }
}

/// The seed that the field `name` asks for. Negative seeds are seeds too, but for −1.
pub(crate) fn seed(name: &str, value: Option<i128>) -> Result<Option<u64>, Error> {
    let Some(seed) = value.filter(|&seed| seed != RANDOM_SEED) else {
        return Ok(None);
    };
    u64::try_from(seed)
        .or_else(|_| i64::try_from(seed).map(i64::cast_unsigned))
        .map(Some)
        .map_err(|_| {
            Error::invalid(
                name,
                format!("{name} must be an integer of at most 64 bits, not {seed}"),
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_a_count_stands_for_none_or_is_refused() {
        for (kind, value, expected) in [
            (ANSWER_TOKENS, 1, Some(Count::Of(1))),
            (ANSWER_TOKENS, i64::MAX, Some(Count::Of(i64::MAX as u64))),
            (ANSWER_TOKENS, 0, None),
            (ANSWER_TOKENS, -1, Some(Count::Unlimited)),
            (ANSWER_TOKENS, -2, Some(Count::Unlimited)),
            (ANSWER_TOKENS, -3, None),
            (ANSWER_TOKENS.with_least(0), 0, Some(Count::Of(0))),
            (NUM_PREDICT, 0, Some(Count::Unlimited)),
            (NUM_PREDICT, -3, None),
            (WINDOW, 0, Some(Count::Of(0))),
            (WINDOW, -1, Some(Count::Unlimited)),
            (WINDOW, -2, None),
            (REASONING_TOKENS, 0, Some(Count::Of(0))),
            (REASONING_TOKENS, -1, Some(Count::Unlimited)),
            (TEXT_TOKENS, 0, None),
            (TEXT_TOKENS, -1, Some(Count::Unlimited)),
            (DIMENSIONS, 0, Some(Count::Unset)),
            (DIMENSIONS, -1, None),
            (DIMENSIONS_OF_OLLAMA, -1, Some(Count::Unset)),
            (RESULTS, 0, Some(Count::Unset)),
            (RESULTS, -1, Some(Count::Unset)),
            (CONTEXT_TOKENS, 0, Some(Count::Unset)),
            (CONTEXT_TOKENS, -1, None),
        ] {
            let read = kind.read("x", Some(value));
            assert_eq!(read.as_ref().ok(), expected.as_ref(), "{kind:?}: {value}");
            assert_eq!(kind.read("x", None), Ok(Count::Unset));
        }
    }

    #[test]
    fn a_refusal_says_what_may_be_written() {
        let error = ANSWER_TOKENS.read("max_tokens", Some(0)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "max_tokens must be at least 1, or -1 for no limit, not 0"
        );
    }

    #[test]
    fn seeds_have_64_bits_and_minus_one_is_none() {
        for (value, expected) in [
            (0, Some(0)),
            (u64::MAX.into(), Some(u64::MAX)),
            (-2, Some(u64::MAX - 1)),
            (i64::MIN.into(), Some(1 << 63)),
            (-1, None),
        ] {
            assert_eq!(seed("seed", Some(value)), Ok(expected), "{value}");
        }
        for value in [i128::from(u64::MAX) + 1, i128::from(i64::MIN) - 1] {
            assert!(seed("seed", Some(value)).is_err(), "{value}");
        }
    }
}
