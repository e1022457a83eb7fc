//! Random walks through grammars, on vocabularies with the markers of a format.

use std::fs;

use macmlx_chat::{ChatModel, ChoiceOutput, Constraint};
use macmlx_inference::{
    ChatPrompt, FinishReason, GenerationEvent, Grammar, ReasoningOptions, StopConditions,
    ToolCallPart,
};
use macmlx_output::formats::Format;
use serde_json::json;

use crate::tokenizers;

pub(crate) const EOS: &str = "<|im_end|>";

/// Where a vocabulary has the markers of a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Markers {
    /// Nowhere: they are spelled.
    Spelled,
    Added,
    Special,
}

pub(crate) const MARKERS: [Markers; 3] = [Markers::Spelled, Markers::Added, Markers::Special];

/// Markers of formats that could be tokens.
pub(crate) fn tokens(formats: &[&dyn Format]) -> Vec<&'static str> {
    let mut tokens: Vec<&str> = formats
        .iter()
        .flat_map(|format| all_markers(*format))
        .filter(|marker| marker.starts_with(['<', '[']) && marker.ends_with(['>', ']', '}']))
        .collect();
    tokens.sort_unstable();
    tokens.dedup();
    tokens
}

fn all_markers(format: &dyn Format) -> impl Iterator<Item = &'static str> {
    let open = format.open().iter().chain(format.silent()).copied();
    open.chain(format.close()).chain(format.inner_markers())
}

/// A model whose formats are set; `end` ends its prompts.
pub(crate) fn model(
    reasoning: Option<&dyn Format>,
    calls: Option<&dyn Format>,
    markers: Markers,
    end: &str,
) -> ChatModel {
    let formats: Vec<&dyn Format> = reasoning.into_iter().chain(calls).collect();
    let tokens = tokens(&formats);
    let (mut special, mut added) = (vec!["<bos>", EOS], Vec::new());
    match markers {
        Markers::Spelled => {}
        Markers::Added => added = tokens,
        Markers::Special => special.extend(tokens),
    }
    let folder = tokenizers::byte_level_with(&special, &added);
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write(
        "chat_template.jinja",
        &format!("{{% for m in messages %}}{{{{ m.content }}}}{{% endfor %}}{{{{ tools }}}}{end}"),
    );
    write(
        "tokenizer_config.json",
        &json!({ "eos_token": EOS }).to_string(),
    );
    let name = |format: Option<&dyn Format>| format.map_or("none", |format| format.name());
    let formats = json!({"tool_format": name(calls), "reasoning_format": name(reasoning)});
    write("macmlx.json", &formats.to_string());
    ChatModel::load(folder.path(), "org/model").unwrap()
}

/// What an output is read as.
#[derive(Debug, Default)]
pub(crate) struct Read {
    pub(crate) text: String,
    pub(crate) calls: Vec<(String, String)>,
}

pub(crate) fn read(
    model: &ChatModel,
    chat: &ChatPrompt,
    answer: Option<&Grammar>,
    ids: &[u32],
) -> Read {
    let rendered = model.render(chat, &ReasoningOptions::default()).unwrap();
    let stream = model.output(&rendered, &StopConditions::default(), answer);
    let mut choice = ChoiceOutput::new(0, stream);
    let mut read = Read::default();
    let mut take = |event| match event {
        GenerationEvent::Text { text, .. } => read.text.push_str(&text),
        GenerationEvent::ToolCall { part, .. } => match part {
            ToolCallPart::Start { name, .. } => read.calls.push((name, String::new())),
            ToolCallPart::Arguments(more) => read.calls.last_mut().unwrap().1.push_str(&more),
            ToolCallPart::End => {}
        },
        _ => {}
    };
    for id in ids {
        choice.push(*id, None, &mut take);
    }
    choice.finish(FinishReason::Stop, &mut take);
    read
}

/// A generator of numbers that is the same on every machine.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }
}

/// Tokens of a walk through a constraint that likes to come to an end. `None`: it did not.
pub(crate) fn walk(
    model: &ChatModel,
    mut constraint: Constraint,
    likes: &[String],
    dice: &mut Dice,
) -> Option<Vec<u32>> {
    const LIMIT: usize = 300;
    let tokenizer = model.tokenizer();
    let eos = tokenizer.token_id(EOS).unwrap();
    let mut coming: Vec<u32> = Vec::new();
    let mut ids = Vec::new();
    while ids.len() < LIMIT {
        if constraint.is_complete() {
            return Some(ids);
        }
        let allowed = constraint.allowed().unwrap();
        let choices: Vec<u32> = (0..allowed.len() as u32)
            .filter(|id| allowed[*id as usize])
            .collect();
        assert!(
            !choices.is_empty(),
            "nothing can follow {:?}",
            tokenizer.detokenize(&ids)
        );
        if allowed[eos as usize] && dice.roll(4) == 0 {
            return Some(ids);
        }
        if coming.is_empty() && dice.roll(3) > 0 {
            let text = &likes[dice.roll(likes.len())];
            coming = tokenizer.encode(text, false).unwrap();
            coming.reverse();
        }
        let next = coming.pop().filter(|id| allowed[*id as usize]);
        let next = next.unwrap_or_else(|| {
            coming.clear();
            let drawn = choices[dice.roll(choices.len())];
            // Exponents make numbers that no program holds.
            let is_exponent = matches!(tokenizer.token_bytes(drawn), b"e" | b"E");
            if is_exponent { choices[0] } else { drawn }
        });
        if next == eos {
            return Some(ids);
        }
        constraint.advance(next).unwrap();
        ids.push(next);
    }
    None
}

/// What brings walks forward in formats.
pub(crate) fn likes(formats: &[&dyn Format]) -> Vec<String> {
    let mut likes = Vec::new();
    for format in formats {
        for marker in all_markers(*format) {
            // Ends are what takes long to find.
            let is_end = marker.contains('/') || Some(marker) == format.close();
            let times = if is_end { 4 } else { 1 };
            likes.extend(std::iter::repeat_n(marker.to_owned(), times));
        }
    }
    let others = [
        "\"", "}", "]", ")", "\n", "'", ", ", "{", "null", "12", "true", "\"]}", "<", "\"}", ">",
        "a", "-1",
    ];
    likes.extend(others.map(str::to_owned));
    likes
}
