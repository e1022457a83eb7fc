//! GBNF, llama.cpp's notation of grammars, as Lark.
//!
//! Rules that refer to no others, or only to such, become terminals: llguidance's lexer runs them as
//! one automaton instead of letting its parser count characters.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

/// The rule that a grammar begins with.
const ROOT: &str = "root";

/// Whether a grammar is in this notation.
pub(super) fn is_gbnf(text: &str) -> bool {
    text.contains("::=")
}

/// The same language in Lark.
pub(super) fn to_lark(text: &str) -> Result<String, String> {
    let rules = rules(&tokens(text)?)?;
    let names: HashMap<&str, usize> = rules
        .iter()
        .enumerate()
        .map(|(index, rule)| (rule.name.as_str(), index))
        .collect();
    for rule in &rules {
        for name in rule.references() {
            if !names.contains_key(name) {
                return Err(format!(
                    "`{}` refers to `{name}`, which is not there",
                    rule.name
                ));
            }
        }
    }
    let Some(root) = names.get(ROOT) else {
        return Err(format!("the grammar has no rule `{ROOT}`"));
    };
    let terminals = terminals(&rules);
    let name = |name: &str| {
        let index = names.get(name).copied().unwrap_or_default();
        let kind = if terminals.contains(name) { 'T' } else { 'r' };
        format!("{kind}{index}")
    };
    let mut lark = format!("start: {}\n", name(&rules[*root].name));
    for rule in &rules {
        let _ = write!(lark, "{}:", name(&rule.name));
        for token in &rule.body {
            lark.push(' ');
            match token {
                Token::Name(reference) => lark.push_str(&name(reference)),
                Token::Literal(text) => {
                    lark.push_str(&serde_json::Value::from(&**text).to_string());
                }
                Token::Class(class) => {
                    let _ = write!(lark, "/{}/", class.replace('/', r"\/"));
                }
                Token::Any => lark.push_str("/(?s:.)/"),
                Token::Special(token) => lark.push_str(token),
                Token::Operator(text) => lark.push_str(text),
                Token::Defines => {}
            }
        }
        lark.push('\n');
    }
    Ok(lark)
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Name(String),
    /// `::=`
    Defines,
    Literal(String),
    /// `[a-z]`, in the syntax of regular expressions.
    Class(String),
    Any,
    /// `<think>` or `<[123]>`: a token of the model's.
    Special(String),
    /// `|`, `(`, `)`, `*`, `+`, `?`, `{2,3}`: the same in Lark.
    Operator(String),
}

struct Rule {
    name: String,
    body: Vec<Token>,
}

impl Rule {
    fn references(&self) -> impl Iterator<Item = &str> {
        self.body.iter().filter_map(|token| match token {
            Token::Name(name) => Some(name.as_str()),
            _ => None,
        })
    }
}

/// Names of the rules that are regular expressions.
fn terminals(rules: &[Rule]) -> HashSet<&str> {
    let mut terminals: HashSet<&str> = HashSet::new();
    loop {
        let before = terminals.len();
        for rule in rules {
            let has_tokens = rule
                .body
                .iter()
                .any(|token| matches!(token, Token::Special(_)));
            if !has_tokens && rule.references().all(|name| terminals.contains(name)) {
                terminals.insert(&rule.name);
            }
        }
        if terminals.len() == before {
            return terminals;
        }
    }
}

fn rules(tokens: &[Token]) -> Result<Vec<Rule>, String> {
    let mut rules: Vec<Rule> = Vec::new();
    let mut rest = tokens.iter().peekable();
    while let Some(token) = rest.next() {
        match (token, rest.peek()) {
            (Token::Name(name), Some(Token::Defines)) => {
                rest.next();
                if rules.iter().any(|rule| rule.name == *name) {
                    return Err(format!("the rule `{name}` is there twice"));
                }
                rules.push(Rule {
                    name: name.clone(),
                    body: Vec::new(),
                });
            }
            (Token::Defines, _) => return Err("`::=` must follow the name of a rule".into()),
            (token, _) => match rules.last_mut() {
                Some(rule) => rule.body.push(token.clone()),
                None => return Err("the grammar must begin with `name ::=`".into()),
            },
        }
    }
    Ok(rules)
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let len = match first {
            c if c.is_whitespace() => c.len_utf8(),
            '#' => rest.find('\n').unwrap_or(rest.len()),
            ':' if rest.starts_with("::=") => {
                tokens.push(Token::Defines);
                3
            }
            '"' => {
                let (literal, len) = literal(rest)?;
                tokens.push(Token::Literal(literal));
                len
            }
            '[' => {
                let len = class_end(rest)?;
                tokens.push(Token::Class(class(&rest[..len])?));
                len
            }
            '<' => {
                let len = 1 + rest.find('>').ok_or("`<` without `>`")?;
                tokens.push(Token::Special(rest[..len].into()));
                len
            }
            '{' => {
                let len = 1 + rest.find('}').ok_or("`{` without `}`")?;
                tokens.push(Token::Operator(rest[..len].replace(' ', "")));
                len
            }
            '|' | '(' | ')' | '*' | '+' | '?' => {
                tokens.push(Token::Operator(first.into()));
                1
            }
            '.' => {
                tokens.push(Token::Any);
                1
            }
            c if c.is_ascii_alphanumeric() || c == '_' || c == '-' => {
                let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
                let len = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
                tokens.push(Token::Name(rest[..len].into()));
                len
            }
            c => return Err(format!("`{c}` has no meaning in a grammar")),
        };
        rest = &rest[len..];
    }
    Ok(tokens)
}

/// A text in quotes, and how long it is with them.
fn literal(text: &str) -> Result<(String, usize), String> {
    let mut literal = String::new();
    let mut at = 1;
    loop {
        let rest = &text[at..];
        match rest.chars().next() {
            None => return Err("a text is not closed".into()),
            Some('"') => return Ok((literal, at + 1)),
            Some('\\') => {
                let (c, len) = escape(rest)?;
                literal.push(c);
                at += len;
            }
            Some(c) => {
                literal.push(c);
                at += c.len_utf8();
            }
        }
    }
}

fn class_end(text: &str) -> Result<usize, String> {
    let mut is_escaped = false;
    for (at, c) in text[1..].char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            ']' => return Ok(at + 2),
            _ => {}
        }
    }
    Err("a class of characters is not closed".into())
}

/// `[…]` with characters that regular expressions give a meaning escaped.
fn class(text: &str) -> Result<String, String> {
    let inner = &text[1..text.len() - 1];
    let (is_negated, mut rest) = match inner.strip_prefix('^') {
        Some(rest) => (true, rest),
        None => (false, inner),
    };
    if rest.is_empty() {
        return Err(format!("the class `{text}` has no characters"));
    }
    let mut class = String::from(if is_negated { "[^" } else { "[" });
    while let Some(c) = rest.chars().next() {
        let (c, len, is_range) = match c {
            '\\' => {
                let (c, len) = escape(rest)?;
                (c, len, false)
            }
            '-' => (
                '-',
                1,
                class.len() > 2 - usize::from(!is_negated) && rest.len() > 1,
            ),
            c => (c, c.len_utf8(), false),
        };
        if is_range {
            class.push('-');
        } else {
            let _ = write!(class, r"\x{{{:X}}}", u32::from(c));
        }
        rest = &rest[len..];
    }
    class.push(']');
    Ok(class)
}

/// The character an escape stands for, and the escape's length.
fn escape(text: &str) -> Result<(char, usize), String> {
    let code = |digits: usize| {
        let hex = text.get(2..2 + digits);
        hex.and_then(|hex| u32::from_str_radix(hex, 16).ok())
            .and_then(char::from_u32)
            .map(|c| (c, 2 + digits))
            .ok_or_else(|| {
                format!(
                    "`{}` is no character",
                    text.get(..2 + digits).unwrap_or(text)
                )
            })
    };
    match text.chars().nth(1) {
        Some('n') => Ok(('\n', 2)),
        Some('r') => Ok(('\r', 2)),
        Some('t') => Ok(('\t', 2)),
        Some('x') => code(2),
        Some('u') => code(4),
        Some('U') => code(8),
        Some(c) if c.is_ascii_punctuation() => Ok((c, 2)),
        _ => Err(format!("`{}` is no escape", text.get(..2).unwrap_or(text))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_become_rules_and_terminals() {
        let lark = to_lark(
            r#"# a list
root ::= item ("," item)*
item ::= "[" root "]" | num
num ::= [0-9]{1, 3} ("." digits)?
digits ::= [0-9]+
"#,
        );
        let digit = r"/[\x{30}-\x{39}]/";
        assert_eq!(
            lark.as_deref(),
            Ok(&*format!(
                "start: r0\nr0: r1 ( \",\" r1 ) *\nr1: \"[\" r0 \"]\" | T2\nT2: {digit} {{1,3}} ( \".\" T3 ) ?\nT3: {digit} +\n"
            ))
        );
    }

    #[test]
    fn escapes_and_classes() {
        assert_eq!(literal(r#""a\"\x41\u00e4\n""#), Ok(("a\"Aä\n".into(), 17)));
        assert_eq!(class("[^-a]").as_deref(), Ok(r"[^\x{2D}\x{61}]"));
        assert_eq!(class("[a-c-]").as_deref(), Ok(r"[\x{61}-\x{63}\x{2D}]"));
        assert_eq!(class(r"[\]\-]").as_deref(), Ok(r"[\x{5D}\x{2D}]"));
        assert_eq!(class("[/]").as_deref(), Ok(r"[\x{2F}]"));
    }

    #[test]
    fn mistakes_are_told() {
        for (text, named) in [
            ("root ::= a", "`a`"),
            ("a ::= \"x\"", "`root`"),
            ("root ::= \"x", "not closed"),
            ("root ::= [a", "not closed"),
            ("root ::= \"a\"\nroot ::= \"b\"", "twice"),
            ("::= x", "must follow"),
            ("root ::= %", "`%`"),
            (r#"root ::= "\q""#, r"`\q`"),
        ] {
            let error = to_lark(text).unwrap_err();
            assert!(error.contains(named), "{text}: {error}");
        }
    }
}
