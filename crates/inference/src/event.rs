//! What a generation says while it runs.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One step of a running request. Order for each choice: text, reasoning and tool calls as they
/// come, then `Finished`. `Started` is the first event of a stream, `Completed` the last one; only
/// `Loading` and `Loaded` may come before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum GenerationEvent {
    /// The model is not in memory, and is being loaded now. That may happen again where the model has
    /// to leave before the request's turn.
    Loading {
        /// Its id.
        model: String,
    },
    /// The model is in memory, after this time since `Loading`.
    Loaded { elapsed: Duration },
    /// The prompt is tokenized and admitted; nothing has been computed yet.
    Started {
        /// Id of the model that answers, which may differ from the reference in the request.
        model: String,
        prompt_tokens: u32,
        /// Prompt tokens whose KV cache is reused.
        cached_tokens: u32,
    },
    /// Prompt tokens computed so far, of `total`.
    Prefill { processed: u32, total: u32 },
    /// Log probabilities of the prompt's own tokens, when asked for. The first has none.
    PromptLogprobs { tokens: Vec<TokenLogprob> },
    /// Visible text. `tokens` are those whose text ends in this piece; `text` may be empty when
    /// only log probabilities are to be reported.
    Text {
        choice: u32,
        text: String,
        tokens: Vec<TokenLogprob>,
    },
    /// Hidden thinking.
    Reasoning {
        choice: u32,
        text: String,
        tokens: Vec<TokenLogprob>,
    },
    /// A bit of a tool call. Each call is one `Start`, any number of `Arguments`, one `End`, with
    /// nothing else of its choice between them.
    ToolCall {
        choice: u32,
        part: ToolCallPart,
        tokens: Vec<TokenLogprob>,
    },
    /// A call that the backend carries out itself goes on: only from a tool loop, for the calls it
    /// knows, after their `End`. When all calls of a turn have ended, the model's next turn follows
    /// in the same stream; there is one `Started` and one `Completed` around all of them, whose
    /// usage counts the last turn's prompt and every turn's completion.
    ToolRun {
        choice: u32,
        /// [`ToolCallPart::Start`]'s.
        id: String,
        run: ToolRun,
    },
    /// A choice ended.
    Finished {
        choice: u32,
        reason: FinishReason,
        /// The stop sequence that matched, if one did.
        stop_sequence: Option<String>,
    },
    /// All choices ended.
    Completed { usage: Usage, timings: Timings },
}

/// A tool call as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToolCallPart {
    /// `id` is unique among all calls of the server.
    Start { id: String, name: String },
    /// The next JSON text of the arguments object. All of them together are what the model wrote,
    /// which is a whole object unless the choice ends with [`FinishReason::Length`] or the model
    /// made a mistake.
    Arguments(String),
    /// The arguments are all there. A call that was cut has no end when its choice is finished: what
    /// came of its arguments is not to be acted upon.
    End,
}

/// A stage in the life of a tool call that the backend carries out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToolRun {
    /// A person is asked whether it may run.
    ApprovalNeeded {
        /// Name of the server that offers the tool.
        server: String,
        /// The tool, as its server calls it.
        tool: String,
        /// JSON text of the arguments object.
        arguments: String,
    },
    /// It runs.
    Began { server: String, tool: String },
    /// What the model is told.
    Ended {
        end: ToolRunEnd,
        content: String,
        duration: Duration,
    },
}

/// How a tool call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ToolRunEnd {
    Done,
    /// The tool or its server reported an error.
    Failed,
    /// A person or the policy said no.
    Denied,
}

/// Why a choice ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FinishReason {
    /// EOS token, stop token or stop sequence.
    Stop,
    /// `max_tokens` or the end of the context.
    Length,
    ToolCalls,
    Cancelled,
}

/// Tokens counted for one request, all choices together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    pub prompt_tokens: u32,
    /// Tokens of the prompt that the prefix cache had.
    pub cached_tokens: u32,
    pub completion_tokens: u32,
    /// Tokens of the completion that are inside reasoning blocks.
    pub reasoning_tokens: u32,
}

/// Wall-clock times of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Timings {
    /// Waiting for the model to load, zero when it was loaded.
    pub load: Duration,
    /// Waiting to be admitted.
    pub queue: Duration,
    /// Time from admission to the first token.
    pub prefill: Duration,
    /// Time from the first token to the last.
    pub decode: Duration,
}

/// A token with its natural-log probability under the model's distribution before any sampling
/// parameter but after penalties, biases and grammars are left out (that is: of the raw logits).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TokenLogprob {
    pub id: u32,
    /// The token's own bytes; need not be valid UTF-8 on their own.
    pub bytes: Vec<u8>,
    /// `None` only for the first token of a prompt.
    pub logprob: Option<f32>,
    /// Most likely tokens at this position, best first.
    pub top: Vec<LogprobCandidate>,
}

/// An alternative at a position.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogprobCandidate {
    pub id: u32,
    pub bytes: Vec<u8>,
    pub logprob: f32,
}
