//! Everything that can go wrong between a request and its answer, and what the caller can do.

use serde::{Deserialize, Serialize};

/// Errors of a [`crate::Backend`] or [`crate::Catalog`]. Each dialect maps each variant to its own
/// wire form once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum InferenceError {
    /// No local model matches the reference.
    #[error("{}", model_not_found(reference, suggestions))]
    ModelNotFound {
        reference: String,
        suggestions: Vec<String>,
    },
    /// Several local models match the reference.
    #[error("model `{reference}` is ambiguous: it matches {}", candidates.join(", "))]
    AmbiguousModel {
        reference: String,
        candidates: Vec<String>,
    },
    /// The model's files cannot be used.
    #[error("cannot load model `{model}`: {reason}")]
    ModelLoad { model: String, reason: String },
    /// The request contradicts itself or a value is out of range.
    #[error("{message}")]
    InvalidRequest {
        /// Field of the neutral request, in the spelling most dialects share.
        param: Option<String>,
        message: String,
    },
    /// A known parameter that this model or version cannot honour.
    #[error("`{param}` is not supported: {reason}")]
    Unsupported { param: String, reason: String },
    /// The chat template refused the conversation; the words are the template's.
    #[error("the model's chat template refused this conversation: {message}")]
    Template { message: String },
    /// The model called a tool against the request: not at all where it had to, or with arguments
    /// that a strict schema forbids. Trying again may help.
    #[error("the model's output breaks the request: {message}")]
    InvalidOutput { message: String },
    /// The prompt does not fit.
    #[error(
        "the prompt has {prompt_tokens} tokens but the model's context is {limit}{}",
        longer_context(*prompt_tokens, *limit)
    )]
    ContextLength { prompt_tokens: u32, limit: u32 },
    /// Too many requests wait.
    #[error("the server is busy; try again shortly")]
    Overloaded,
    /// Memory ran out for this request; others go on.
    #[error("out of memory: {message}")]
    OutOfMemory { message: String },
    #[error("the request was cancelled")]
    Cancelled,
    #[error("the server is shutting down")]
    ShuttingDown,
    /// A bug or a failure of MLX, with its message.
    #[error("the engine failed: {message}")]
    Engine { message: String },
}

/// The tokens that the first prompts of coding agents fit into.
const AGENTS_CONTEXT: u32 = 32_768;

/// A model for them that runs on most Macs, and its context in tokens.
const LONG_CONTEXT_MODEL: (&str, u32) = ("mlx-community/Qwen3-4B-Instruct-2507-4bit", 262_144);

/// What [`InferenceError::ContextLength`] advises, to stand behind the numbers in each dialect's
/// words: a model to take in place of one whose context is too small for agents. Empty where there
/// is nothing to advise.
pub fn longer_context(prompt_tokens: u32, limit: u32) -> String {
    let (model, context) = LONG_CONTEXT_MODEL;
    if limit >= AGENTS_CONTEXT || prompt_tokens > context {
        return String::new();
    }
    format!("; take a model with a longer context, such as `{model}` ({context} tokens)")
}

fn model_not_found(reference: &str, suggestions: &[String]) -> String {
    match suggestions {
        [] => format!("model `{reference}` is not on this machine"),
        [one] => format!("model `{reference}` is not on this machine; did you mean `{one}`?"),
        many => format!(
            "model `{reference}` is not on this machine; did you mean one of {}?",
            many.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_that_agents_do_not_fit_into_comes_with_a_model_to_take() {
        for (prompt_tokens, limit, is_advised) in [
            (9_000, 8_192, true),
            (32_768, 32_767, true),
            (262_144, 8_192, true),
            (262_145, 8_192, false),
            (40_000, 32_768, false),
        ] {
            let advice = longer_context(prompt_tokens, limit);
            assert_eq!(
                advice.contains("`mlx-community/Qwen3-4B-Instruct-2507-4bit` (262144 tokens)"),
                is_advised,
                "{prompt_tokens} {limit}"
            );
            let error = InferenceError::ContextLength {
                prompt_tokens,
                limit,
            };
            let words = error.to_string();
            assert!(words.contains(&prompt_tokens.to_string()), "{words}");
            assert!(words.contains(&limit.to_string()), "{words}");
            assert!(words.ends_with(&advice), "{words}");
        }
    }
}
