//! The value of a parameter in a tag, while it is read.

use crate::value_end::{End, Quotes, ValueEnd};

/// A parameter whose value is being read.
#[derive(Debug)]
pub(super) struct Value {
    pub(super) key: String,
    /// Text, given as it comes.
    pub(super) is_text: bool,
    /// It may be of any type, a JSON string among them.
    is_any: bool,
    /// Its first line break has been dealt with.
    pub(super) has_begun: bool,
    /// How far it has been looked through.
    pub(super) seen: usize,
    inside: Inside,
    /// No tag begins before here.
    pub(super) floor: usize,
}

/// Where tags in a value are not what they seem.
#[derive(Debug)]
enum Inside {
    /// Its first character is still to come.
    Unknown,
    /// JSON that is still open.
    Json(ValueEnd),
    /// Nowhere, or no more.
    Nothing,
}

impl Value {
    /// `is_any`: it may be of any type. `has_begun`: nothing before it is left out.
    pub(super) fn new(key: &str, is_text: bool, is_any: bool, has_begun: bool) -> Self {
        Self {
            key: key.into(),
            is_text,
            is_any,
            has_begun,
            seen: 0,
            inside: if is_text {
                Inside::Nothing
            } else {
                Inside::Unknown
            },
            floor: 0,
        }
    }

    /// Passes over JSON, whose strings may hold tags; whether the end of it is known. JSON that is
    /// never closed is none.
    pub(super) fn skip_json(&mut self, text: &str, ends: &[&'static str], is_last: bool) -> bool {
        if let (Inside::Unknown, Some(first)) = (&self.inside, text.trim_start().chars().next()) {
            self.inside = if matches!(first, '{' | '[') || (first == '"' && self.is_any) {
                Inside::Json(ValueEnd::new(Quotes::Json, ends.to_vec()))
            } else {
                Inside::Nothing
            };
        }
        let Inside::Json(end) = &mut self.inside else {
            return true;
        };
        let scanned = end.scan(&text[self.floor..], is_last);
        self.floor += scanned.len;
        if scanned.end == End::Open {
            if !is_last {
                return false;
            }
            self.floor = 0;
        }
        self.inside = Inside::Nothing;
        true
    }
}
