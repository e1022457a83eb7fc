//! The families of clients, and the one place that says how each is told of an error.

use crate::{Error, Reply, anthropic, lm_studio, ollama, openai};

/// Whose words a reply is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    OpenAi,
    Anthropic,
    Ollama,
    /// LM Studio's own; its routes below `/api/v0` are in OpenAI's words.
    LmStudio,
}

impl Dialect {
    /// The reply for what went wrong before the first frame.
    pub fn error_reply(self, error: &Error) -> Reply {
        match self {
            Self::OpenAi => openai::error::reply(error),
            Self::Anthropic => anthropic::error::reply(error),
            Self::Ollama => ollama::error::reply(error),
            Self::LmStudio => lm_studio::error::reply(error),
        }
    }
}
