//! The contract between the code that asks for text and the code that produces it.
//!
//! Dialects translate a client's request into a [`GenerateRequest`]; a [`Backend`] answers with a
//! stream of [`GenerationEvent`]s; dialects turn those into frames. Nothing here knows HTTP, MLX or
//! a client's wire types.

mod backend;
mod catalog;
mod encoding;
mod error;
mod event;
mod grammar;
mod keep_alive;
mod message;
mod model_files;
mod modelfile;
mod request;
mod sampling;
mod sampling_schema;
#[cfg(feature = "test-support")]
mod scripted;
mod time;

pub use backend::{
    Backend, EventStream, Layer, LoadedModel, LoadedWatcher, ModelTraits, TokenizeInput,
    TokenizeRequest, ToolSupport,
};
pub use catalog::{Catalog, ModelCard, ModelDescription, read_name};
pub use encoding::{
    EmbedRequest, Embeddings, EncodeTimings, EncoderInput, ModelTask, Overflow, Question,
    Relevance, RerankRequest,
};
pub use error::{InferenceError, longer_context};
pub use event::{
    FinishReason, GenerationEvent, LogprobCandidate, Timings, TokenLogprob, ToolCallPart, ToolRun,
    ToolRunEnd, Usage,
};
pub use grammar::{Grammar, Language};
pub use keep_alive::{KeepAlive, TimeToLive};
pub use message::{
    ContentPart, Image, ImageSource, Message, Role, ToolCall, ToolChoice, ToolDefinition,
};
pub use model_files::{Download, DownloadState, ModelFiles, ModelFilesError, PullProgress};
pub use modelfile::{Modelfile, NewModel};
pub use request::{
    ChatPrompt, GenerateRequest, InfillFile, InfillPrompt, Logprobs, Prompt, ReasoningOptions,
    StopConditions,
};
pub use sampling::{
    Dry, ParameterRange, SamplingNumbers, SamplingParameter, SamplingParams, Spelling, Xtc,
};
#[cfg(feature = "test-support")]
pub use scripted::{FilesRequest, ScriptedBackend, ScriptedCatalog, ScriptedModelFiles};
pub use time::rfc3339;
