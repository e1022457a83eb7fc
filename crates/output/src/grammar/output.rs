//! The grammar of a whole output: reasoning, then calls or the answer.

use macmlx_inference::{Grammar, InferenceError, ToolChoice, ToolDefinition};

use super::{
    answer,
    calls::{Callable, Calls, Marked, Wanted},
    pattern::{Pattern, escape},
    rules::{Rules, Symbol},
    schema,
    vocabulary::Vocabulary,
};
use crate::{
    Tools,
    formats::{Format, Kind},
};

/// What there is to know about an output before it is written.
#[derive(Debug)]
pub struct OutputGrammar<'a> {
    pub vocabulary: &'a dyn Vocabulary,
    pub formats: &'a [&'static dyn Format],
    /// Offered to the model.
    pub tools: &'a [ToolDefinition],
    pub tool_choice: &'a ToolChoice,
    pub single_tool_call: bool,
    /// The end of the prompt that the output goes on from.
    pub opened: &'a str,
    /// The prompt ends inside a reasoning block.
    pub starts_in_reasoning: bool,
    /// True unless reasoning has been switched off.
    pub may_reason: bool,
    pub answer: Option<&'a Grammar>,
}

/// A grammar and what asked for it.
#[derive(Debug)]
pub struct Lark {
    pub text: String,
    /// Name of the request's field, for errors.
    pub param: String,
}

/// The grammar; `None`: the output may be anything.
pub fn lark(output: &OutputGrammar<'_>) -> Result<Option<Lark>, InferenceError> {
    let is_forced = output.is_forced();
    let may_call = output.may_call();
    let is_told = output.formats.iter().any(|format| format.is_told());
    let calls_count = may_call && (output.is_asked_for() || is_told);
    if !calls_count && output.answer.is_none() {
        return Ok(None);
    }
    let mut rules = Rules::new(output.vocabulary, output.opened);
    let callable = if calls_count {
        output.callable()?
    } else {
        Vec::new()
    };
    let answer = output.answer.filter(|_| !(is_forced && may_call));
    let visible = visible(&mut rules, output, &callable, answer)?;
    let visible = rules.rule(&visible);
    let start = match output.reasoning(&mut rules) {
        Some(Reasoning::Open(rest)) => Symbol::sequence([&rest, &visible]),
        Some(Reasoning::Possible(block)) => {
            let after = Symbol::sequence([&block, &visible]);
            Symbol::one_of([&visible, &after])
        }
        None => visible,
    };
    let param = match answer {
        Some(grammar) => grammar.param.clone(),
        None if is_forced => "tool_choice".into(),
        None if output.is_strict() => "strict".into(),
        None => "tools".into(),
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
    callable: &[Callable<'_>],
    answer: Option<&Grammar>,
) -> Result<Symbol, InferenceError> {
    let answer = answer
        .map(|grammar| answer::symbol(rules, grammar))
        .transpose()?
        .map(|answer| output.in_message(rules, &answer));
    if callable.is_empty() {
        return Ok(answer.unwrap_or_else(|| {
            let text = rules.text(&Pattern::any());
            output.in_message(rules, &text)
        }));
    }
    let is_free = answer.is_none() && !output.is_forced();
    // A tool that is asked for by name is called once.
    let is_single = output.single_tool_call || matches!(output.tool_choice, ToolChoice::Named(_));
    let wanted = Wanted {
        tools: callable,
        may_repeat: !is_single,
        beside_text: is_free,
    };
    let mut own = output.formats.iter().filter(|_| is_free);
    if let Some(free) = own.find_map(|format| format.free(rules, &wanted)) {
        return Ok(free);
    }
    let mut formats = output.formats.iter();
    let calls = formats.find_map(|format| Some((*format, format.calls(rules, &wanted)?)));
    let (format, calls) = calls.ok_or_else(|| unsupported("this model's tool calls"))?;
    if is_free {
        return Ok(free(rules, output, format, &calls));
    }
    let gap = Rules::gap();
    let marked = calls.marked.map(|Marked { open, body }| {
        let open = rules.literal(&open);
        Symbol::sequence([&gap, &open, &body])
    });
    let choices: Vec<Symbol> = answer.into_iter().chain(calls.bare).chain(marked).collect();
    Ok(Symbol::one_of(&choices))
}

/// Text and calls as the model likes, the calls by their rules.
fn free(
    rules: &mut Rules<'_>,
    output: &OutputGrammar<'_>,
    format: &dyn Format,
    calls: &Calls,
) -> Symbol {
    let prose = output.prose(format);
    let text = rules.text(&prose);
    let text = rules.rule(&text);
    // Markers around text that are no text to a lexer.
    let silent: Vec<Symbol> = output
        .formats
        .iter()
        .flat_map(|format| format.silent())
        .filter(|marker| rules.is_special(marker))
        .map(|marker| rules.literal(marker))
        .collect();
    let led = if silent.is_empty() {
        rules.literal("")
    } else {
        let marked = Symbol::sequence([&text, &Symbol::one_of(&silent)]);
        rules.rule(&marked).repeat()
    };
    let led = rules.rule(&led);
    let rest = Symbol::sequence([&led, &text]);
    let Some(Marked { open, body }) = &calls.marked else {
        let bare: Vec<Symbol> = calls.bare.iter().cloned().chain([rest]).collect();
        return Symbol::one_of(&bare);
    };
    let head = rules.end_with(&prose, open);
    let called = rules.rule(&Symbol::sequence([&led, &head, body]));
    let marked = if format.is_told() {
        Symbol::one_of([&called, &rest])
    } else {
        Symbol::sequence([&called.repeat(), &rest])
    };
    match &calls.bare {
        Some(bare) => Symbol::one_of([bare, &marked]),
        None => marked,
    }
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

    /// The answer with the markers around it.
    fn in_message(&self, rules: &mut Rules<'_>, answer: &Symbol) -> Symbol {
        let mut formats = self.formats.iter();
        formats
            .find_map(|format| format.answer(rules, answer))
            .unwrap_or_else(|| answer.clone())
    }

    /// Whether the request asks for a form of the output, rather than the format.
    pub fn is_asked_for(&self) -> bool {
        self.answer.is_some() || (self.may_call() && (self.is_forced() || self.is_strict()))
    }

    fn may_call(&self) -> bool {
        !self.tools.is_empty() && *self.tool_choice != ToolChoice::None
    }

    fn is_strict(&self) -> bool {
        self.tools.iter().any(|tool| tool.strict)
    }

    fn is_forced(&self) -> bool {
        matches!(
            self.tool_choice,
            ToolChoice::Required | ToolChoice::Named(_)
        )
    }

    /// Text in which no reader sees the beginning of a call, however its tokens spell it.
    fn prose(&self, format: &dyn Format) -> Pattern {
        let prose = Pattern::any().without(format.open());
        let tools = Tools::new(self.tools.to_vec());
        let starts: Vec<String> = format
            .open_at_start(&tools)
            .iter()
            .map(|start| {
                let characters = start.chars().map(|c| escape(&c.to_string()));
                characters.collect::<Vec<_>>().join(r"\s*")
            })
            .collect();
        if starts.is_empty() {
            return prose;
        }
        let starts = starts.join("|");
        // Behind these, text begins anew.
        let anew: Vec<String> = self
            .formats
            .iter()
            .flat_map(|format| {
                let close = format.close().filter(|_| format.kind() == Kind::Reasoning);
                format.silent().iter().copied().chain(close)
            })
            .map(escape)
            .collect();
        let prose = prose.except(&format!(r"\s*({starts})(?s:.*)"));
        if anew.is_empty() {
            return prose;
        }
        let anew = anew.join("|");
        prose.except(&format!(r"(?s:.*)({anew})\s*({starts})(?s:.*)"))
    }

    /// The tools that may be called; the one that is named is among them.
    fn callable(&self) -> Result<Vec<Callable<'_>>, InferenceError> {
        let callable: Vec<Callable<'_>> = self
            .tools
            .iter()
            .filter(|tool| match self.tool_choice {
                ToolChoice::Named(name) => tool.name == *name,
                ToolChoice::Auto | ToolChoice::None | ToolChoice::Required => true,
            })
            .map(|tool| Callable { tool })
            .collect();
        for Callable { tool } in &callable {
            // Each format has its own characters that end a name.
            let is_name = |c: char| c.is_alphanumeric() || "_.-:/".contains(c);
            if tool.name.is_empty() || !tool.name.chars().all(is_name) {
                return Err(unsupported(&format!(
                    "calls of a tool named `{}`",
                    tool.name
                )));
            }
            if tool.strict {
                let checked = if schema::takes_objects(&tool.parameters) {
                    schema::check(&tool.parameters)
                } else {
                    Err("arguments are always an object, which its `type` is not (at `/`)".into())
                };
                checked.map_err(|reason| InferenceError::Unsupported {
                    param: "strict".into(),
                    reason: format!("the schema of the strict tool `{}`: {reason}", tool.name),
                })?;
            }
        }
        Ok(callable)
    }
}

fn unsupported(what: &str) -> InferenceError {
    InferenceError::Unsupported {
        param: "strict".into(),
        reason: format!("{what} cannot be constrained"),
    }
}
