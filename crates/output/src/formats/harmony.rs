//! Harmony, the messages of gpt-oss: `<|channel|>analysis<|message|>…<|end|>` is reasoning,
//! `commentary` and `final` are text, and a message `to=functions.f` is a call.

use super::{Format, Kind};
use crate::{
    Block, Sink, Step, Tools,
    grammar::{Calls, Pattern, Rules, Symbol, Wanted},
    scan::{certain, first_of},
    value_end::{End, Quotes, ValueEnd},
};

const START: &str = "<|start|>";
const CHANNEL: &str = "<|channel|>";
const MESSAGE: &str = "<|message|>";
const CONSTRAIN: &str = "<|constrain|>";
/// What ends a message; the beginning of the next one does too.
const ENDS: [&str; 5] = ["<|end|>", "<|return|>", "<|call|>", START, CHANNEL];
/// What ends a text, whether it means to or not.
const MARKERS: [&str; 6] = ["<|end|>", "<|return|>", "<|call|>", START, CHANNEL, MESSAGE];
/// Begins the model's messages.
const ROLE: &str = "<|start|>assistant";
const HEAD_LIMIT: usize = 256;

#[derive(Debug)]
pub(super) struct Harmony;

impl Format for Harmony {
    fn name(&self) -> &'static str {
        "harmony"
    }

    fn kind(&self) -> Kind {
        Kind::Messages
    }

    fn detect(&self, template: &str) -> bool {
        template.contains(CHANNEL) && template.contains(MESSAGE)
    }

    fn open(&self) -> &'static [&'static str] {
        &[START, CHANNEL]
    }

    fn answer_ends(&self) -> &'static [&'static str] {
        &["<|end|>", "<|return|>", "<|call|>"]
    }

    fn inner_markers(&self) -> Vec<&'static str> {
        vec![MESSAGE, CONSTRAIN, "<|end|>", "<|return|>", "<|call|>"]
    }

    fn block(&self, open: &'static str, tools: &Tools) -> Box<dyn Block> {
        Box::new(Message {
            head: if open == CHANNEL { CHANNEL } else { "" }.into(),
            content: None,
            json: None,
            has_tools: !tools.is_empty(),
        })
    }

    fn opened_by(&self, prompt: &str) -> Option<&'static str> {
        prompt.ends_with(ROLE).then_some(ROLE)
    }

    fn reasoning_close(&self) -> Option<&'static str> {
        Some("<|end|><|start|>assistant<|channel|>final<|message|>")
    }

    fn reasoning_close_before_call(&self) -> Option<&'static str> {
        Some("<|end|><|start|>assistant<|channel|>commentary to=functions.")
    }

    /// One call: the model stops behind it. The recipient stands before the channel or behind it.
    fn calls(&self, rules: &mut Rules<'_>, wanted: &Wanted<'_>) -> Option<Calls> {
        let json = format!(" {CONSTRAIN}json");
        let kind = [json.as_str(), " json", ""].map(|kind| rules.literal(kind));
        let kind = rules.rule(&Symbol::one_of(&kind));
        let message = rules.literal(MESSAGE);
        let calls: Vec<Symbol> = wanted
            .tools
            .iter()
            .map(|&callable| {
                let to = format!(" to=functions.{}", callable.name());
                let heads = [
                    format!("{CHANNEL}commentary{to}"),
                    format!("{to}{CHANNEL}commentary"),
                ];
                let head = Symbol::one_of(&heads.map(|head| rules.literal(&head)));
                let arguments = rules.arguments(callable);
                Symbol::sequence([&head, &kind, &message, &arguments])
            })
            .collect();
        let call = rules.rule(&Symbol::one_of(&calls));
        Some(Calls::bare(Symbol::sequence([&role(rules), &call])))
    }

    fn free(&self, rules: &mut Rules<'_>, wanted: &Wanted<'_>) -> Option<Symbol> {
        let call = self.calls(rules, wanted)?.bare?;
        let text = rules.text(&Pattern::any().without(&MARKERS));
        let last = Symbol::one_of([&call, &self.answer(rules, &text)?]);
        // What the model says before it calls, and what it thinks behind that.
        let before = messages(rules, &["commentary", "analysis"]);
        Some(Symbol::sequence([&before.optional(), &last]))
    }

    fn reasoning(&self, rules: &mut Rules<'_>) -> Option<Symbol> {
        Some(messages(rules, &["analysis"]))
    }

    fn answer(&self, rules: &mut Rules<'_>, answer: &Symbol) -> Option<Symbol> {
        let head = rules.literal(&format!("{CHANNEL}final{MESSAGE}"));
        Some(Symbol::sequence([&role(rules), &head, answer]))
    }
}

/// Messages that are not the last, in any of these channels.
fn messages(rules: &mut Rules<'_>, channels: &[&str]) -> Symbol {
    let heads: Vec<Symbol> = channels
        .iter()
        .map(|channel| rules.literal(&format!("{CHANNEL}{channel}{MESSAGE}")))
        .collect();
    let text = rules.end_with(&Pattern::any().without(&MARKERS), "<|end|>");
    let message = Symbol::sequence([&Symbol::one_of(&heads), &text]);
    let message = rules.rule(&message);
    let next = Symbol::sequence([&rules.literal(ROLE), &message]);
    let next = rules.rule(&next).repeat();
    // The last message begins where the first one did.
    let is_begun = rules.opened() == ROLE;
    let last = rules.literal(if is_begun { ROLE } else { "" });
    Symbol::sequence([&role(rules), &message, &next, &last])
}

/// What a message begins with, as far as the prompt does not have it.
fn role(rules: &Rules<'_>) -> Symbol {
    rules.literal(if rules.opened() == ROLE { "" } else { ROLE })
}

#[derive(Debug)]
struct Message {
    /// What the opening marker was of the head.
    head: String,
    content: Option<Content>,
    /// The end of a call's JSON, while it is open: markers inside its strings end nothing.
    json: Option<ValueEnd>,
    has_tools: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Text,
    /// The final message.
    Answer,
    Reasoning,
    Call,
}

impl Message {
    fn head(&mut self, text: &str, is_last: bool, out: &mut Sink) -> Step {
        let found = text.find(MESSAGE);
        let head = self.head.clone() + &text[..found.unwrap_or(text.len())];
        let Some(at) = found else {
            let is_over = is_last || head.len() > HEAD_LIMIT || head.contains(|c| !is_head(c));
            return if is_over { Step::Text } else { Step::Wait };
        };
        let Some(Head { channel, recipient }) = read_head(&head) else {
            return Step::Text;
        };
        self.content = match recipient {
            Some(_) if !self.has_tools => return Step::Text,
            Some(recipient) => {
                out.start(recipient.strip_prefix("functions.").unwrap_or(recipient));
                self.json = Some(ValueEnd::new(Quotes::Json, ENDS.to_vec()));
                Some(Content::Call)
            }
            None if channel == "analysis" => Some(Content::Reasoning),
            None if channel == "final" => Some(Content::Answer),
            None => Some(Content::Text),
        };
        Step::Took(at + MESSAGE.len())
    }
}

/// What may stand in a head.
fn is_head(c: char) -> bool {
    c.is_alphanumeric() || " _-.:=/<|>".contains(c)
}

struct Head<'a> {
    channel: &'a str,
    recipient: Option<&'a str>,
}

/// A head: role, channel, recipient and content type, in any order that models write. `None`: it
/// has something else.
fn read_head(head: &str) -> Option<Head<'_>> {
    let mut channel = "";
    let mut recipient = None;
    let mut parts = head.split(CHANNEL);
    let before = parts.next().unwrap_or_default();
    let after = parts.next();
    if parts.next().is_some() {
        return None;
    }
    let mut take = |word| match word {
        "assistant" | "json" | "code" | "text" => Some(()),
        word => {
            let name = word.strip_prefix("to=")?;
            let is_name = !name.is_empty() && !name.contains(['<', '|', '>', '=']);
            recipient = is_name.then_some(name);
            recipient.map(drop)
        }
    };
    before
        .split(' ')
        .filter(|word| !word.is_empty())
        .try_for_each(&mut take)?;
    if let Some(after) = after {
        let mut words = after
            .split([' '].as_slice())
            .flat_map(|word| word.split(CONSTRAIN))
            .filter(|word| !word.is_empty());
        channel = words.next()?;
        if !["analysis", "commentary", "final"].contains(&channel) {
            return None;
        }
        words.try_for_each(&mut take)?;
    }
    Some(Head { channel, recipient })
}

impl Block for Message {
    fn read(&mut self, text: &str, is_last: bool, out: &mut Sink) -> Step {
        let Some(content) = self.content else {
            return self.head(text, is_last, out);
        };
        if let Some(json) = &mut self.json {
            let scanned = json.scan(text, is_last);
            out.arguments(&text[..scanned.len]);
            if scanned.end != End::Open {
                self.json = None;
            } else if scanned.len == 0 {
                return Step::Wait;
            }
            return Step::Took(scanned.len);
        }
        let found = first_of(text, &ENDS);
        let len = found.map_or_else(|| certain(text, &ENDS), |(at, _)| at);
        if len > 0 {
            let body = &text[..len];
            match content {
                Content::Text | Content::Answer => out.text(body),
                Content::Reasoning => out.reasoning(body),
                Content::Call => out.arguments(body),
            }
            return Step::Took(len);
        }
        match found {
            None => Step::Wait,
            Some((_, START | CHANNEL)) => {
                out.end();
                Step::Over(0)
            }
            Some((_, end)) => {
                out.end();
                Step::Over(end.len())
            }
        }
    }

    fn in_answer(&self) -> bool {
        self.content == Some(Content::Answer)
    }

    fn in_text(&self) -> bool {
        matches!(self.content, Some(Content::Text | Content::Answer))
    }

    fn in_reasoning(&self) -> bool {
        self.content == Some(Content::Reasoning)
    }
}
