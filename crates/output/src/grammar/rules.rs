//! The text of a Lark grammar, built rule by rule.

use std::fmt::Write;

use serde_json::{Value, json};

use super::{
    calls::Callable,
    pattern::{Pattern, quote},
    schema,
    vocabulary::Vocabulary,
};

/// Rules of one grammar. Formats add to it how their blocks are written.
#[derive(Debug)]
pub struct Rules<'a> {
    vocabulary: &'a dyn Vocabulary,
    /// The ids of its special tokens.
    special: Vec<u32>,
    opened: &'a str,
    text: String,
    count: usize,
}

/// An expression of a grammar that can stand in a rule: a rule's name, a literal, a regex, or
/// several of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol(String);

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

    /// Repeats a symbol at least and at most so many times.
    #[must_use]
    pub fn times(&self, min: u64, max: Option<u64>) -> Self {
        match max {
            Some(0) => Self("\"\"".into()),
            Some(max) => Self(format!("({self}){{{min},{max}}}")),
            None => Self(format!("({self}){{{min},}}")),
        }
    }

    /// Any number of times, none included.
    #[must_use]
    pub fn repeat(&self) -> Self {
        Self(format!("({self})*"))
    }
}

fn join<'a>(symbols: impl IntoIterator<Item = &'a Symbol>, separator: &str) -> String {
    let symbols: Vec<&str> = symbols.into_iter().map(|symbol| &*symbol.0).collect();
    symbols.join(separator)
}

impl<'a> Rules<'a> {
    pub(super) fn new(vocabulary: &'a dyn Vocabulary, opened: &'a str) -> Self {
        Self {
            vocabulary,
            special: vocabulary.special_ids(),
            opened,
            text: String::new(),
            count: 0,
        }
    }

    /// The grammar, which begins with `start`.
    pub(super) fn finish(mut self, start: &Symbol) -> String {
        let _ = writeln!(self.text, "start: {start}");
        self.text
    }

    /// The end of the prompt that the output goes on from: what it opens for the model.
    pub fn opened(&self) -> &str {
        self.opened
    }

    /// Gives an expression a name. What is used more than once should have one.
    pub fn rule(&mut self, symbol: &Symbol) -> Symbol {
        self.add_rule("", &symbol.0)
    }

    /// A rule that may stand in its own definition.
    pub fn recursive(&mut self, define: impl FnOnce(&mut Self, &Symbol) -> Symbol) -> Symbol {
        self.count += 1;
        let name = format!("rule_{}", self.count);
        let body = define(self, &Symbol(name.clone()));
        let _ = writeln!(self.text, "{name}: {body}");
        Symbol(name)
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
                parts.push(quote(&rest[..start]));
            }
            parts.extend(special.map(|(.., id)| format!("<[{id}]>")));
            rest = &rest[end..];
        }
        if parts.is_empty() {
            parts.push(quote(""));
        }
        Symbol(parts.join(" "))
    }

    /// A text of the pattern, and nothing that would make it longer behind it.
    pub fn text(&mut self, pattern: &Pattern) -> Symbol {
        self.terminal(pattern)
    }

    /// White space that models put behind reasoning and before calls, or none; the output does not
    /// have it.
    pub fn gap() -> Symbol {
        Symbol(r"/[ \t\r\n]{0,8}/".into())
    }

    /// A line break, or none.
    pub fn line() -> Symbol {
        Symbol("/\\n?/".into())
    }

    /// Any text up to the first `close`, and that.
    pub fn until(&mut self, close: &str) -> Symbol {
        self.end_with(&Pattern::any().without(&[close]), close)
    }

    /// A text of the pattern and `close` behind it, where this stands first.
    pub fn end_with(&mut self, pattern: &Pattern, close: &str) -> Symbol {
        let special = self.first_special(close);
        let (head, tail) = close.split_at(special.map_or(close.len(), |(at, ..)| at));
        let text = if head.is_empty() {
            pattern.clone()
        } else {
            pattern.then(&Pattern::exactly(head))
        };
        let text = self.terminal(&text);
        if tail.is_empty() {
            return self.add_rule("[lazy]", &text.0);
        }
        // A special token ends any text before it.
        Symbol::sequence([&text, &self.literal(tail)])
    }

    /// Whether a text is written with special tokens only.
    pub fn is_special(&self, text: &str) -> bool {
        !self.literal(text).0.contains('"')
    }

    /// JSON text that a schema accepts.
    pub fn json(&mut self, schema: &Value) -> Symbol {
        let schema = schema::with_options(schema, false);
        self.add_rule("", &format!("%json {schema}"))
    }

    /// JSON text that a schema accepts as far as it can be enforced.
    pub fn loose_json(&mut self, schema: &Value) -> Symbol {
        let schema = schema::enforceable(schema, false, &json!({}));
        self.add_rule("", &format!("%json {schema}"))
    }

    /// Returns the rule for the JSON text of one of a tool's parameters: what `schema` accepts when
    /// the tool is strict. Otherwise the schema is followed as far as it can be, since agents send
    /// schemas that are not meant to be enforced.
    pub fn value(&mut self, callable: Callable<'_>, schema: &Value) -> Symbol {
        let schema = schema::enforceable(schema, callable.tool.strict, &json!({}));
        self.add_rule("", &format!("%json {schema}"))
    }

    /// The arguments object of a call as JSON, enforced as [`Self::value`] says.
    pub fn arguments(&mut self, callable: Callable<'_>) -> Symbol {
        let schema = schema::of_arguments(callable.tool);
        self.add_rule("", &format!("%json {schema}"))
    }

    /// A call as one JSON object of a name and the arguments.
    pub fn call_object(
        &mut self,
        callable: Callable<'_>,
        name_key: &str,
        arguments_key: &str,
    ) -> Symbol {
        let schema = schema::of_call(callable.tool, name_key, arguments_key);
        self.add_rule("", &format!("%json {schema}"))
    }

    /// What a whole Lark grammar of its own accepts.
    pub(super) fn grammar(&mut self, lark: &str) -> Symbol {
        self.add_rule("", &format!("%lark {{\n{lark}\n}}"))
    }

    fn add_rule(&mut self, attributes: &str, body: &str) -> Symbol {
        self.count += 1;
        let name = format!("rule_{}", self.count);
        let _ = writeln!(self.text, "{name}{attributes}: {body}");
        Symbol(name)
    }

    fn terminal(&mut self, pattern: &Pattern) -> Symbol {
        self.count += 1;
        let name = format!("TEXT_{}", self.count);
        let _ = writeln!(self.text, "{name}: {pattern}");
        Symbol(name)
    }

    /// The first special token in a text: where, how long, and its id.
    fn first_special(&self, text: &str) -> Option<(usize, usize, u32)> {
        self.special
            .iter()
            .filter_map(|&id| {
                let token = std::str::from_utf8(self.vocabulary.token_bytes(id)).ok()?;
                let at = text.find(token).filter(|_| !token.is_empty())?;
                Some((at, token.len(), id))
            })
            .min_by_key(|(at, len, id)| (*at, std::cmp::Reverse(*len), *id))
    }
}
