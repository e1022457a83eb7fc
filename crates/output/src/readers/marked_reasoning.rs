//! Reasoning between two markers.

use crate::{
    Block, Sink, Step, Tools,
    formats::{Format, Kind},
    grammar::{Rules, Symbol},
    scan::{certain, first_of},
};

/// A format of nothing but markers.
#[derive(Debug)]
pub(crate) struct MarkedReasoning {
    pub(crate) name: &'static str,
    pub(crate) detect: fn(&str) -> bool,
    pub(crate) open: &'static [&'static str],
    pub(crate) close: &'static str,
    /// What makes a model end its reasoning, as it would itself.
    pub(crate) close_early: &'static str,
    /// Markers around the answer.
    pub(crate) silent: &'static [&'static str],
}

impl Format for MarkedReasoning {
    fn name(&self) -> &'static str {
        self.name
    }

    fn kind(&self) -> Kind {
        Kind::Reasoning
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

    fn silent(&self) -> &'static [&'static str] {
        self.silent
    }

    fn reasoning_close(&self) -> Option<&'static str> {
        Some(self.close_early)
    }

    /// Returns the marker, but not where the marker also begins an answer.
    fn reasoning_close_before_call(&self) -> Option<&'static str> {
        let begins_answer = |marker: &&str| self.close_early.ends_with(*marker);
        Some(if self.silent.iter().any(begins_answer) {
            self.close
        } else {
            self.close_early
        })
    }

    fn reasoning(&self, rules: &mut Rules<'_>) -> Option<Symbol> {
        let open: Vec<Symbol> = self.open.iter().map(|open| rules.literal(open)).collect();
        let open = Symbol::one_of(&open);
        Some(Symbol::sequence([&open, &self.rest_of_reasoning(rules)?]))
    }

    fn rest_of_reasoning(&self, rules: &mut Rules<'_>) -> Option<Symbol> {
        Some(Symbol::sequence([&rules.until(self.close), &Rules::gap()]))
    }

    /// Markers around the answer come in pairs, and models may leave them out.
    fn answer(&self, rules: &mut Rules<'_>, answer: &Symbol) -> Option<Symbol> {
        let marked = self.silent.chunks_exact(2).map(|pair| {
            let [open, close] = [rules.literal(pair[0]), rules.literal(pair[1]).optional()];
            Symbol::sequence([&open, &Rules::gap(), answer, &close])
        });
        let marked: Vec<Symbol> = marked.chain([answer.clone()]).collect();
        (marked.len() > 1).then(|| Symbol::one_of(&marked))
    }

    fn block(&self, _open: &'static str, _tools: &Tools) -> Box<dyn Block> {
        let mut markers = vec![self.close];
        markers.extend(self.open);
        Box::new(Reasoning {
            close: self.close,
            markers,
            has_begun: false,
        })
    }
}

#[derive(Debug)]
struct Reasoning {
    close: &'static str,
    /// The closing one and the opening ones.
    markers: Vec<&'static str>,
    /// True once there was more than white space.
    has_begun: bool,
}

impl Block for Reasoning {
    fn read(&mut self, text: &str, _is_last: bool, out: &mut Sink) -> Step {
        let found = first_of(text, &self.markers);
        let len = found.map_or_else(|| certain(text, &self.markers), |(at, _)| at);
        if len > 0 {
            self.has_begun |= !text[..len].trim().is_empty();
            out.reasoning(&text[..len]);
            return Step::Took(len);
        }
        let Some((_, marker)) = found else {
            return Step::Wait;
        };
        if marker == self.close {
            return Step::Over(marker.len());
        }
        // An opening marker is the prompt's once more, or later on a word of the model's.
        if self.has_begun {
            out.reasoning(marker);
        }
        Step::Took(marker.len())
    }

    fn in_reasoning(&self) -> bool {
        true
    }
}
