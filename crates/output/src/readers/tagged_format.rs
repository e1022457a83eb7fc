//! Formats of calls in tags, as data.

use super::{Either, json_calls::JsonCalls, tagged::TaggedCalls, tagged_grammar};
use crate::{
    Block, Tools,
    formats::{Format, Kind},
    grammar::{Calls, Rules, Wanted},
};

/// A format of tags.
#[derive(Debug)]
pub(crate) struct Tagged {
    pub(crate) name: &'static str,
    pub(crate) detect: fn(&str) -> bool,
    /// Begins a block. One that is also `call` needs the tool to be offered.
    pub(crate) open: &'static [&'static str],
    pub(crate) close: &'static str,
    pub(crate) tags: Tags,
    /// Several calls are written in one block, rather than in a block each.
    pub(crate) shares_block: bool,
}

/// How calls and parameters are written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tags {
    /// Stands before a call's name, which ends with `>`. `None`: the name comes first in the block
    /// and ends with its line or the first key.
    pub(crate) call: Option<&'static str>,
    pub(crate) call_close: &'static str,
    /// Stands before a parameter's name.
    pub(crate) key: &'static str,
    pub(crate) key_close: &'static str,
    /// The marker between name and value, apart from white space; empty: there is none.
    pub(crate) value: &'static str,
    pub(crate) value_close: &'static str,
    /// Values stand on lines of their own: one line break at each end is not theirs.
    pub(crate) has_lines: bool,
    /// Names in tags stand in quotes.
    pub(crate) has_quotes: bool,
    /// The tag before a value says whether it is text.
    pub(crate) says_text: bool,
}

impl Tags {
    /// What ends a value. Where tags repeat names, models leave the closing one out now and then,
    /// and the next parameter or the call's end will do.
    pub(super) fn value_ends(&self) -> Vec<&'static str> {
        match self.call {
            Some(_) => vec![self.value_close, self.call_close, self.key],
            None => vec![self.value_close],
        }
    }
}

impl Format for Tagged {
    fn name(&self) -> &'static str {
        self.name
    }

    fn kind(&self) -> Kind {
        Kind::ToolCalls
    }

    fn detect(&self, template: &str) -> bool {
        (self.detect)(template)
    }

    fn open(&self) -> &'static [&'static str] {
        self.open
    }

    fn close(&self) -> Option<&'static str> {
        Some(self.close)
    }

    fn inner_markers(&self) -> Vec<&'static str> {
        let tags = &self.tags;
        let inner = [
            tags.call_close,
            tags.key,
            tags.key_close,
            tags.value,
            tags.value_close,
        ];
        let inner = inner.into_iter().chain(tags.call);
        // A bare bracket is no marker.
        inner.filter(|marker| marker.len() > 1).collect()
    }

    fn block(&self, open: &'static str, tools: &Tools) -> Box<dyn Block> {
        let reader = TaggedCalls::new(self.tags, self.close, open, tools);
        if self.tags.call == Some(open) {
            return Box::new(reader);
        }
        // Models taught several formats fall back to JSON.
        let json = JsonCalls::new(Some(self.close), self.open, None);
        Box::new(Either::new(json, reader))
    }

    fn calls(&self, rules: &mut Rules<'_>, wanted: &Wanted<'_>) -> Option<Calls> {
        Some(tagged_grammar::calls(self, rules, wanted))
    }
}
