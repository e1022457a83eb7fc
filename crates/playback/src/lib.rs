//! Plays written answers where a model would generate them, for tests of clients and agents.
//!
//! Only the weights are missing: prompts pass the model's real chat template and tokenizer, answers
//! its detokenizer, stop sequences and output formats. A [`Script`] says what is answered:
//!
//! ```json
//! {
//!   "turns": [
//!     {
//!       "when": {"tool_offered": "weather", "last_role": "user"},
//!       "say": "<tool_call>\n{\"name\": \"weather\", \"arguments\": {}}\n</tool_call>"
//!     },
//!     {"when": {"last_role": "tool"}, "say": "It rains."},
//!     {"when": {"last_message_contains": "later"}, "refuse": "Overloaded"}
//!   ]
//! }
//! ```

mod backend;
mod condition;
mod models;
mod performance;
mod prefixes;
mod script;

pub use backend::Playback;
pub use condition::Condition;
pub use script::{Say, Script, ScriptError, Turn};
