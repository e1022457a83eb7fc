//! The grammar of a whole output: reasoning, then calls or the answer.

use macmlx_inference::{Grammar, InferenceError, ToolChoice, ToolDefinition};

use super::{
    answer,
    rules::{Callable, Calls, Rules, Symbol},
    schema,
};
use crate::{Format, Tokenizer};

/// White space that models put behind reasoning and before calls; the output does not have it.
const GAP: &str = r"[ \t\r\n]{0,8}";

/// What there is to know about an output before it is written.
#[derive(Debug)]
pub(crate) struct OutputGrammar<'a> {
    pub(crate) tokenizer: &'a Tokenizer,
    pub(crate) formats: &'a [&'static dyn Format],
    /// Offered to the model.
    pub(crate) tools: &'a [ToolDefinition],
    pub(crate) tool_choice: &'a ToolChoice,
    pub(crate) single_tool_call: bool,
    /// The prompt ends inside a reasoning block.
    pub(crate) starts_in_reasoning: bool,
    /// Nobody has switched reasoning off.
    pub(crate) may_reason: bool,
    pub(crate) answer: Option<&'a Grammar>,
}

/// A grammar and what asked for it.
#[derive(Debug)]
pub(crate) struct Lark {
    pub(crate) text: String,
    /// For errors.
    pub(crate) param: String,
}

/// The grammar; `None`: the output may be anything.
pub(crate) fn lark(output: &OutputGrammar<'_>) -> Result<Option<Lark>, InferenceError> {
    let is_forced = matches!(
        output.tool_choice,
        ToolChoice::Required | ToolChoice::Named(_)
    );
    let may_call = !output.tools.is_empty() && *output.tool_choice != ToolChoice::None;
    let is_strict = output.tools.iter().any(|tool| tool.strict);
    let calls_count = may_call && (is_forced || is_strict || output.answer.is_some());
    if !calls_count && output.answer.is_none() {
        return Ok(None);
    }
    let mut rules = Rules::new(output.tokenizer);
    let calls = calls_count.then(|| output.calls(&mut rules)).transpose()?;
    let answer = match output.answer {
        Some(grammar) if !is_forced => Some(answer::symbol(&mut rules, grammar)?),
        _ => None,
    };
    let gap = rules.regex(GAP);
    let visible = visible(&mut rules, output, calls, answer, is_forced, &gap);
    let start = match output.reasoning(&mut rules) {
        Some(Reasoning::Open(rest)) => Symbol::sequence([&rest, &gap, &visible]),
        Some(Reasoning::Possible(block)) => {
            let after = Symbol::sequence([&block, &gap, &visible]);
            Symbol::one_of([&visible, &after])
        }
        None => visible,
    };
    let param = match output.answer {
        Some(grammar) if !is_forced => grammar.param.clone(),
        _ if is_forced => "tool_choice".into(),
        _ => "tools".into(),
    };
    Ok(Some(Lark {
        text: rules.finish(&start),
        param,
    }))
}

/// What the client sees.
fn visible(
    rules: &mut Rules<'_>,
    output: &OutputGrammar<'_>,
    calls: Option<Calls>,
    answer: Option<Symbol>,
    is_forced: bool,
    gap: &Symbol,
) -> Symbol {
    let answer = answer.map(|answer| {
        let wrapped = output
            .formats
            .iter()
            .find_map(|format| format.answer(rules, &answer));
        wrapped.unwrap_or(answer)
    });
    let Some(calls) = calls else {
        let symbol = answer.unwrap_or_else(|| rules.text());
        return rules.rule(&symbol);
    };
    let open = rules.literal(&calls.open);
    let call = Symbol::sequence([gap, &open, &calls.body]);
    let symbol = match answer {
        _ if is_forced => call,
        Some(answer) => Symbol::one_of([&answer, &call]),
        None => free(rules, output, &calls, &call),
    };
    rules.rule(&symbol)
}

/// Text and calls as the model likes, the calls by their rules.
fn free(rules: &mut Rules<'_>, output: &OutputGrammar<'_>, calls: &Calls, call: &Symbol) -> Symbol {
    let text = rules.text();
    if calls.open.is_empty() {
        // A call is told by its first character, so text must begin otherwise.
        let text = rules.regex(r"([^\s{\[(?s:.)*)?");
        return Symbol::one_of([call, &text]);
    }
    let text = output
        .formats
        .iter()
        .find_map(|format| format.answer(rules, &text))
        .unwrap_or(text);
    let head = rules.until(&calls.open);
    let called = rules.rule(&Symbol::sequence([&head, &calls.body]));
    Symbol::sequence([&called.repeated(), &text])
}

/// Reasoning before what the client sees.
enum Reasoning {
    /// The prompt has begun it: its rest, with the closing marker.
    Open(Symbol),
    /// The model may begin it.
    Possible(Symbol),
}

impl OutputGrammar<'_> {
    fn reasoning(&self, rules: &mut Rules<'_>) -> Option<Reasoning> {
        if self.starts_in_reasoning {
            let mut formats = self.formats.iter();
            return formats
                .find_map(|format| format.rest_of_reasoning(rules))
                .map(Reasoning::Open);
        }
        if !self.may_reason {
            return None;
        }
        let mut formats = self.formats.iter();
        formats
            .find_map(|format| format.reasoning(rules))
            .map(Reasoning::Possible)
    }

    /// How the tools that may be called are called.
    fn calls(&self, rules: &mut Rules<'_>) -> Result<Calls, InferenceError> {
        let callable: Vec<Callable<'_>> = self
            .tools
            .iter()
            .filter(|tool| match self.tool_choice {
                ToolChoice::Named(name) => tool.name == *name,
                ToolChoice::Auto | ToolChoice::None | ToolChoice::Required => true,
            })
            .map(|tool| Callable { tool })
            .collect();
        if let (ToolChoice::Named(name), []) = (self.tool_choice, callable.as_slice()) {
            return Err(InferenceError::InvalidRequest {
                param: Some("tool_choice".into()),
                message: format!("`tool_choice` names `{name}`, which is not among `tools`"),
            });
        }
        for Callable { tool } in callable.iter().filter(|callable| callable.tool.strict) {
            schema::check(&tool.parameters).map_err(|reason| InferenceError::Unsupported {
                param: "tools".into(),
                reason: format!("the schema of the strict tool `{}`: {reason}", tool.name),
            })?;
        }
        // A tool that is asked for by name is called once.
        let is_single = self.single_tool_call || matches!(self.tool_choice, ToolChoice::Named(_));
        let mut formats = self.formats.iter();
        formats
            .find_map(|format| format.calls(rules, &callable, !is_single))
            .ok_or_else(|| InferenceError::Unsupported {
                param: "tools".into(),
                reason: "this model's tool calls cannot be constrained".into(),
            })
    }
}
