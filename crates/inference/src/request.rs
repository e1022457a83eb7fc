//! What is asked for: the pivot every dialect translates into.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Grammar, Message, SamplingParams, ToolChoice, ToolDefinition};

/// One request for one or more generations from the same prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GenerateRequest {
    /// Model reference as the client typed it; [`crate::Catalog::choose`] gives it a meaning.
    pub model: String,
    pub prompt: Prompt,
    /// Tokens of the prompt that are read, its last ones. `None`: all of them, and a prompt that is
    /// longer than the context is refused. The largest number: as many as leave room for the answer.
    pub prompt_limit: Option<u32>,
    pub sampling: SamplingParams,
    pub stop: StopConditions,
    /// `None`: no log probabilities are computed.
    pub logprobs: Option<Logprobs>,
    /// How many independent generations (`n`), at least 1. Events carry the index of theirs.
    pub choices: u32,
    pub reasoning: ReasoningOptions,
    /// `None`: the answer may be anything.
    pub grammar: Option<Grammar>,
}

impl GenerateRequest {
    /// A request with every option left to the model.
    pub fn new(model: impl Into<String>, prompt: Prompt) -> Self {
        Self {
            model: model.into(),
            prompt,
            prompt_limit: None,
            sampling: SamplingParams::default(),
            stop: StopConditions::default(),
            logprobs: None,
            choices: 1,
            reasoning: ReasoningOptions::default(),
            grammar: None,
        }
    }
}

/// Where the prompt's tokens come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Prompt {
    /// Rendered by the model's chat template; output is parsed for reasoning and tool calls.
    Chat(ChatPrompt),
    /// Tokenized as it stands (with the tokenizer's own special tokens); output is raw text.
    Text(String),
    /// Used as it stands; ids outside the vocabulary are refused.
    Tokens(Vec<u32>),
    /// A text with a gap, put between the model's fill-in-the-middle tokens; output is raw text.
    /// Models that have no such tokens refuse it.
    Infill(InfillPrompt),
}

/// What stands around a gap that the model is to fill.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct InfillPrompt {
    pub prefix: String,
    pub suffix: String,
    /// What the gap begins with; the output goes on from it.
    pub start: String,
    /// Other files that the model is to know, the farthest first.
    pub files: Vec<InfillFile>,
    /// Name of the field that asks for it, for errors.
    pub param: String,
}

/// A file, or a piece of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InfillFile {
    /// The file's path as the client has it.
    pub name: String,
    pub text: String,
}

/// A conversation and what its template needs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ChatPrompt {
    pub messages: Vec<Message>,
    pub tools: Vec<ToolDefinition>,
    pub tool_choice: ToolChoice,
    /// A choice ends with its first tool call (`parallel_tool_calls: false`).
    pub single_tool_call: bool,
    /// Variables handed to the chat template beside its own (`chat_template_kwargs`).
    pub template_kwargs: Map<String, Value>,
    /// The last message is an assistant's and is continued rather than answered (prefill of the
    /// answer by the client).
    pub continue_final_message: bool,
}

impl ChatPrompt {
    /// Whether the model is told about tools and may call them.
    pub fn offers_tools(&self) -> bool {
        !self.tools.is_empty() && self.tool_choice != ToolChoice::None
    }
}

/// When a generation ends, beside the model's own end-of-sequence tokens.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StopConditions {
    /// Text that ends the generation and is not part of the output. Matched on text, so it may span
    /// token borders. Empty strings are refused by dialects.
    pub sequences: Vec<String>,
    /// Tokens that end the generation, beside the model's EOS set.
    pub token_ids: Vec<u32>,
    /// `None`: until the context is full.
    pub max_tokens: Option<u32>,
    /// No EOS token and no stop sequence ends the generation before this many tokens.
    pub min_tokens: u32,
    /// EOS tokens are text like any other.
    pub ignore_eos: bool,
}

/// Which log probabilities to report with each token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Logprobs {
    /// Most likely alternatives for each position, besides the sampled token (0 to 20).
    pub top: u8,
    /// If true, the prompt's own tokens are reported, too (`echo` with `logprobs`), before any
    /// output.
    pub prompt: bool,
}

/// How much the model may think before it answers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReasoningOptions {
    /// `None`: the template's own default.
    pub enabled: Option<bool>,
    /// `enabled` is what the client would like: a model that cannot be switched is left as it is.
    /// Otherwise such a model refuses the request.
    pub is_hint: bool,
    /// Tokens of reasoning after which the block is closed for the model. `None`: unbounded.
    pub budget_tokens: Option<u32>,
    /// `low`, `medium`, `high` and so on, for templates that take it.
    pub effort: Option<String>,
}
