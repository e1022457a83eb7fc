//! The text of a Lark grammar, built rule by rule.

use std::fmt::Write;

use macmlx_inference::ToolDefinition;
use serde_json::Value;

use super::schema;
use crate::Tokenizer;

/// Any text that has no special token in it.
const TEXT: &str = "/(?s:.*)/";

/// Rules of one grammar. Formats add to it how their blocks are written.
#[derive(Debug)]
pub struct Rules<'a> {
    tokenizer: &'a Tokenizer,
    text: String,
    count: usize,
}

/// An expression of a grammar that can stand in a rule: a rule's name, a literal, a regex, or
/// several of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol(String);

/// How a format writes calls: a block or several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Calls {
    /// What begins the first call wherever it stands. Empty: calls are the whole output, and text
    /// that begins otherwise is none.
    pub open: String,
    /// All that follows `open`, up to the end of the last call.
    pub body: Symbol,
}

/// A tool that may be called.
#[derive(Debug, Clone, Copy)]
pub struct Callable<'a> {
    pub tool: &'a ToolDefinition,
}

impl Callable<'_> {
    /// JSON Schema of the arguments object.
    pub fn schema(&self) -> &Value {
        &self.tool.parameters
    }
}

impl std::fmt::Display for Symbol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Symbol {
    /// One after the other.
    pub fn sequence<'a>(symbols: impl IntoIterator<Item = &'a Symbol>) -> Self {
        Self(join(symbols, " "))
    }

    /// Any one of them.
    pub fn one_of<'a>(symbols: impl IntoIterator<Item = &'a Symbol>) -> Self {
        Self(format!("({})", join(symbols, " | ")))
    }

    #[must_use]
    pub fn optional(&self) -> Self {
        Self(format!("({self})?"))
    }

    /// Any number of times, none included.
    #[must_use]
    pub fn repeated(&self) -> Self {
        Self(format!("({self})*"))
    }
}

fn join<'a>(symbols: impl IntoIterator<Item = &'a Symbol>, separator: &str) -> String {
    let symbols: Vec<&str> = symbols.into_iter().map(|symbol| &*symbol.0).collect();
    symbols.join(separator)
}

impl<'a> Rules<'a> {
    pub(super) fn new(tokenizer: &'a Tokenizer) -> Self {
        Self {
            tokenizer,
            text: String::new(),
            count: 0,
        }
    }

    /// The grammar, which begins with `start`.
    pub(super) fn finish(mut self, start: &Symbol) -> String {
        let _ = writeln!(self.text, "start: {start}");
        self.text
    }

    /// Gives an expression a name.
    pub fn rule(&mut self, symbol: &Symbol) -> Symbol {
        self.named("", &symbol.0)
    }

    /// Exactly this text. Special tokens in it are meant as such.
    pub fn literal(&self, text: &str) -> Symbol {
        let mut parts = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let special = self.first_special(rest);
            let (start, end) =
                special.map_or((rest.len(), rest.len()), |(at, len, _)| (at, at + len));
            if start > 0 {
                parts.push(quoted(&rest[..start]));
            }
            parts.extend(special.map(|(.., id)| format!("<[{id}]>")));
            rest = &rest[end..];
        }
        if parts.is_empty() {
            parts.push(quoted(""));
        }
        Symbol(parts.join(" "))
    }

    /// Text that matches a regular expression in the syntax of Rust's `regex`.
    pub fn regex(&self, pattern: &str) -> Symbol {
        Symbol(format!("/{}/", llguidance::regex_to_lark(pattern, "")))
    }

    /// Any text, special tokens aside.
    pub fn text(&self) -> Symbol {
        Symbol(TEXT.into())
    }

    /// Text up to the first `close`, and that.
    pub fn until(&mut self, close: &str) -> Symbol {
        match self.first_special(close) {
            Some((0, ..)) => {
                let close = self.literal(close);
                Symbol::sequence([&self.text(), &close])
            }
            // A special token behind text cannot be part of what a lexeme ends with.
            Some((at, ..)) => {
                let head = self.until(&close[..at]);
                Symbol::sequence([&head, &self.literal(&close[at..])])
            }
            None => self.named(&format!("[suffix={}]", quoted(close)), TEXT),
        }
    }

    /// JSON text that a schema accepts.
    pub fn json(&mut self, schema: &Value) -> Symbol {
        let schema = schema::with_options(schema, false);
        self.named("", &format!("%json {schema}"))
    }

    /// The arguments object of a call: what the schema accepts when the tool is strict. Otherwise
    /// the schema is followed as far as it can be, since agents send schemas that nobody enforces.
    pub fn arguments(&mut self, callable: &Callable<'_>) -> Symbol {
        let schema = schema::of_arguments(callable.tool);
        self.named("", &format!("%json {schema}"))
    }

    /// What a whole Lark grammar of its own accepts.
    pub(super) fn grammar(&mut self, lark: &str) -> Symbol {
        self.named("", &format!("%lark {{\n{lark}\n}}"))
    }

    fn named(&mut self, attributes: &str, body: &str) -> Symbol {
        self.count += 1;
        let name = format!("rule_{}", self.count);
        let _ = writeln!(self.text, "{name}{attributes}: {body}");
        Symbol(name)
    }

    /// The first special token in a text: where, how long, and its id.
    fn first_special(&self, text: &str) -> Option<(usize, usize, u32)> {
        self.tokenizer
            .special_ids()
            .filter_map(|id| {
                let token = std::str::from_utf8(self.tokenizer.token_bytes(id)).ok()?;
                let at = text.find(token).filter(|_| !token.is_empty())?;
                Some((at, token.len(), id))
            })
            .min_by_key(|(at, len, id)| (*at, std::cmp::Reverse(*len), *id))
    }
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
