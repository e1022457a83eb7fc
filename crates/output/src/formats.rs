//! The output formats: what marks reasoning and tool calls in generated text.
//!
//! To add one: a file here, its line in [`FORMATS`], its cases in `tests/cases/`. Chunking,
//! markers cut in two, missing closes and text that only looks like a block are the parser's
//! business; notations that several formats share are in `readers`.

mod command_r;
mod command_r7b;
mod deepseek_v3;
mod deepseek_v32;
mod functionary;
mod functools;
mod gemma;
pub mod generic;
mod glm;
mod granite;
mod harmony;
mod hermes;
mod kimi_k2;
mod lfm2;
mod llama3_json;
mod longcat;
mod minimax_m2;
mod mistral;
mod nemotron;
mod phi4;
mod plain_json;
mod pythonic;
mod qwen3_coder;
mod reasoning;
mod seed_oss;

use std::fmt::Debug;

use crate::{
    Block, Tools,
    grammar::{Calls, Rules, Symbol, Wanted},
};

/// All formats. Of those that recognise a template, the first of each kind is used.
pub static FORMATS: &[&dyn Format] = &[
    &harmony::Harmony,
    &reasoning::MAGISTRAL,
    &reasoning::SEED,
    &reasoning::LONGCAT,
    &reasoning::COMMAND,
    &reasoning::GEMMA4,
    &reasoning::KIMI_VL,
    &reasoning::EXAONE_DEEP,
    &reasoning::APERTUS,
    &reasoning::GRANITE_RESPONSE,
    &reasoning::GRANITE,
    &reasoning::HUNYUAN,
    &reasoning::MINIMAX_M3,
    &reasoning::THINK,
    &deepseek_v32::DEEPSEEK_V4,
    &deepseek_v32::DEEPSEEK_V32,
    &deepseek_v3::DEEPSEEK_V3,
    &deepseek_v3::DEEPSEEK_V31,
    &kimi_k2::KIMI_K2,
    &minimax_m2::MINIMAX_M2,
    &seed_oss::SEED_OSS,
    &longcat::LONGCAT,
    &glm::GLM,
    &qwen3_coder::QWEN3_CODER,
    &gemma::GEMMA4,
    &gemma::FUNCTION_GEMMA,
    &lfm2::LFM2,
    &granite::GRANITE,
    &nemotron::NEMOTRON,
    &phi4::PHI4,
    &functools::FUNCTOOLS,
    &command_r7b::COMMAND_R7B,
    &command_r::COMMAND_R,
    &functionary::FUNCTIONARY_V32,
    &functionary::FUNCTIONARY_V31,
    &mistral::MISTRAL_ARGS,
    &mistral::MISTRAL,
    &hermes::HERMES,
    &pythonic::PYTHONIC,
    &llama3_json::LLAMA3_JSON,
    &plain_json::PLAIN_JSON,
    &generic::Generic,
];

/// How a family of models marks blocks in its output.
pub trait Format: Debug + Send + Sync {
    /// The name that model cards and other servers use.
    fn name(&self) -> &'static str;

    fn kind(&self) -> Kind;

    /// Whether a model with this chat template writes this format.
    fn detect(&self, template: &str) -> bool;

    /// Markers that begin a block wherever they stand. None may be a suffix of another's prefix.
    fn open(&self) -> &'static [&'static str];

    /// Texts that begin a block only as the first thing of the output, white space aside, and
    /// belong to it. They are compared without white space.
    fn open_at_start(&self, _tools: &Tools) -> Vec<String> {
        Vec::new()
    }

    /// What ends a block of tool calls or reasoning; `None`: nothing in particular.
    fn close(&self) -> Option<&'static str> {
        None
    }

    /// Markers around visible text, which are left out.
    fn silent(&self) -> &'static [&'static str] {
        &[]
    }

    /// Markers that may stand behind an answer and are left out there.
    fn answer_ends(&self) -> &'static [&'static str] {
        self.silent()
    }

    /// Other strings with a meaning inside a block, which may be special tokens.
    fn inner_markers(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// What reads a block, from behind the opening marker, which is empty where the text was one
    /// of [`Self::open_at_start`].
    fn block(&self, open: &'static str, tools: &Tools) -> Box<dyn Block>;

    /// The end of a prompt that the output goes on from, where a template opens a block for the
    /// model.
    fn opened_by(&self, prompt: &str) -> Option<&'static str> {
        let end = prompt.trim_end();
        let mut markers = self.open().iter().copied();
        let is_reasoning = self.kind() == Kind::Reasoning;
        markers.find(|marker| is_reasoning && end.ends_with(marker))
    }

    /// Text that makes the model stop thinking and answer. `None`: no reasoning in this format.
    fn reasoning_close(&self) -> Option<&'static str> {
        None
    }

    /// The same where a call must follow.
    fn reasoning_close_before_call(&self) -> Option<&'static str> {
        self.reasoning_close()
    }

    /// How tools are called, for outputs that must be right. `None`: calls of this format cannot
    /// be constrained, or it has none.
    fn calls(&self, _rules: &mut Rules<'_>, _wanted: &Wanted<'_>) -> Option<Calls> {
        None
    }

    /// Whether the prompt alone tells the model how to write calls. They are then held to their
    /// grammar in any request, and end the output: the model would go on with results of its own.
    fn is_told(&self) -> bool {
        false
    }

    /// Text and calls as the model likes, where either has a structure that [`Self::calls`] and
    /// plain text do not make.
    fn free(&self, _rules: &mut Rules<'_>, _wanted: &Wanted<'_>) -> Option<Symbol> {
        None
    }

    /// A reasoning block, or several, from its opening marker to its closing one. `None`: no
    /// reasoning in this format.
    fn reasoning(&self, _rules: &mut Rules<'_>) -> Option<Symbol> {
        None
    }

    /// What follows in a reasoning block that the prompt has begun, up to its closing marker.
    fn rest_of_reasoning(&self, _rules: &mut Rules<'_>) -> Option<Symbol> {
        None
    }

    /// The answer with the markers around it. `None`: it has none.
    fn answer(&self, _rules: &mut Rules<'_>, _answer: &Symbol) -> Option<Symbol> {
        None
    }
}

/// What a format's blocks hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Reasoning,
    ToolCalls,
    /// Reasoning, tool calls and text too.
    Messages,
}

impl Kind {
    /// Whether a format of this kind will do where the other is looked for.
    pub fn covers(self, other: Self) -> bool {
        self == other || self == Self::Messages
    }
}

/// The first format of a kind that recognises a template.
pub fn detect(template: &str, kind: Kind) -> Option<&'static dyn Format> {
    FORMATS
        .iter()
        .copied()
        .find(|format| format.kind().covers(kind) && format.detect(template))
}

/// The format of a kind with a name.
pub fn find(name: &str, kind: Kind) -> Option<&'static dyn Format> {
    FORMATS
        .iter()
        .copied()
        .find(|format| format.kind().covers(kind) && format.name() == name)
}

/// The names of a kind's formats.
pub fn names(kind: Kind) -> Vec<&'static str> {
    FORMATS
        .iter()
        .filter(|format| format.kind().covers(kind))
        .map(|format| format.name())
        .collect()
}

/// Returns the format for models whose template takes no tools.
pub fn generic() -> &'static dyn Format {
    &generic::Generic
}

/// Returns the format for models whose template takes tools and shows no marker.
pub fn without_markers() -> &'static dyn Format {
    &plain_json::PLAIN_JSON
}
