//! Regular languages of bare text, as terminals of a Lark grammar.

use serde_json::Value;

/// Any text that has no special token in it.
const ANY: &str = "/(?s:.*)/";

/// A set of texts. A lexer reads one as a whole, so texts that may stand at the same place must be
/// one pattern, or differ from their first character on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(String);

impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Pattern {
    /// Any text.
    pub fn any() -> Self {
        Self(ANY.into())
    }

    /// This text only.
    pub fn exactly(text: &str) -> Self {
        Self(quote(text))
    }

    /// What a regular expression matches as a whole, in the syntax of Rust's `regex`.
    pub fn regex(regex: &str) -> Self {
        Self(format!("/{}/", llguidance::regex_to_lark(regex, "")))
    }

    /// The same in the syntax of JSON Schema, where classes of letters and digits are ASCII's.
    pub(super) fn json_regex(regex: &str) -> Self {
        Self(format!("/{}/", llguidance::regex_to_lark(regex, "dw")))
    }

    /// Any of them; none of none.
    pub fn one_of(patterns: impl IntoIterator<Item = Self>) -> Option<Self> {
        let patterns: Vec<String> = patterns.into_iter().map(|pattern| pattern.0).collect();
        (!patterns.is_empty()).then(|| Self(format!("({})", patterns.join(" | "))))
    }

    /// This and the other behind it.
    #[must_use]
    pub fn then(&self, next: &Self) -> Self {
        Self(format!("({self} {next})"))
    }

    /// This, or nothing.
    #[must_use]
    pub fn optional(&self) -> Self {
        Self(format!("({self})?"))
    }

    /// What is in both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self(format!("({self} & {other})"))
    }

    /// What a regular expression does not match as a whole.
    #[must_use]
    pub fn except(&self, regex: &str) -> Self {
        let regex = Self::regex(regex);
        Self(format!("({self} & ~{regex})"))
    }

    /// Returns the pattern without these texts.
    #[must_use]
    pub fn except_texts(&self, texts: &[&str]) -> Self {
        if texts.is_empty() {
            return self.clone();
        }
        let texts: Vec<String> = texts.iter().map(|text| escape(text)).collect();
        self.except(&texts.join("|"))
    }

    /// Returns the pattern without all texts that contain one of these.
    #[must_use]
    pub fn without(&self, markers: &[&str]) -> Self {
        let markers: Vec<String> = markers
            .iter()
            .filter(|marker| !marker.is_empty())
            .map(|marker| escape(marker))
            .collect();
        if markers.is_empty() {
            return self.clone();
        }
        self.except(&format!("(?s:.*)({})(?s:.*)", markers.join("|")))
    }
}

/// A string literal of Lark's.
pub(super) fn quote(text: &str) -> String {
    Value::from(text).to_string()
}

/// A regular expression for exactly this text.
pub(super) fn escape(text: &str) -> String {
    let mut regex = String::with_capacity(text.len());
    for character in text.chars() {
        if r"\.+*?()|[]{}^$#&-~".contains(character) {
            regex.push('\\');
        }
        regex.push(character);
    }
    regex
}
