//! Notations that several formats share, each a description that is itself a format.

pub(super) mod json_calls;
pub(super) mod json_format;
pub(super) mod literal_calls;
mod literal_grammar;
pub(super) mod marked_reasoning;
pub(super) mod named_json;
pub(super) mod tagged;
pub(super) mod tagged_format;
mod tagged_grammar;
mod tagged_value;

use super::{Block, Sink, Step};

/// A block in one of two notations, told apart by how it begins.
#[derive(Debug)]
pub(super) enum Either {
    Open {
        json: Box<dyn Block>,
        other: Box<dyn Block>,
    },
    Chosen(Box<dyn Block>),
}

impl Either {
    /// `json` is for an object, a list of objects and fenced JSON, `other` for all else.
    pub(super) fn new(json: impl Block + 'static, other: impl Block + 'static) -> Self {
        Self::Open {
            json: Box::new(json),
            other: Box::new(other),
        }
    }
}

impl Block for Either {
    fn read(&mut self, text: &str, is_last: bool, out: &mut Sink) -> Step {
        if let Self::Open { json, other } = self {
            let mut dense = text.chars().filter(|c| !c.is_whitespace());
            let is_json = match dense.next() {
                None => return Step::Wait,
                Some('[') => match dense.next() {
                    None if !is_last => return Step::Wait,
                    second => second == Some('{'),
                },
                first => matches!(first, Some('{' | '`')),
            };
            let chosen = if is_json { json } else { other };
            // Any block serves as the one left behind.
            let chosen = std::mem::replace(chosen, Box::new(Never));
            *self = Self::Chosen(chosen);
        }
        match self {
            Self::Chosen(block) => block.read(text, is_last, out),
            Self::Open { .. } => Step::Wait,
        }
    }
}

#[derive(Debug)]
struct Never;

impl Block for Never {
    fn read(&mut self, _text: &str, _is_last: bool, _out: &mut Sink) -> Step {
        Step::Text
    }
}
