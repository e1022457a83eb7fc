//! How calls in tags are written, parameter by parameter, so that their reader finds in them what
//! the schema of the tool asks for.

use serde_json::json;

use super::tagged_format::{Tagged, Tags};
use crate::grammar::{Alternative, Callable, Calls, Parameter, Pattern, Rules, Symbol, Wanted};

/// Names of parameters that no schema lists.
const NAME: &str = "[A-Za-z_][A-Za-z0-9_-]{0,63}";

/// Text that is read as JSON where a value may be of any type.
const JSON_LIKE: &str = r#"\s*["{\[\-0-9](?s:.*)"#;

const INTEGER: &str = "-?(0|[1-9][0-9]*)";
const NUMBER: &str = r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?";

pub(super) fn calls(format: &Tagged, rules: &mut Rules<'_>, wanted: &Wanted<'_>) -> Calls {
    let tags = &format.tags;
    let line = Rules::line();
    let line = rules.rule(&line);
    let called: Vec<Symbol> = wanted
        .tools
        .iter()
        .map(|callable| call(tags, rules, *callable, &line))
        .collect();
    let called = rules.rule(&Symbol::one_of(&called));
    let [open, close] = [format.open[0], format.close].map(|marker| rules.literal(marker));
    let (first, next, end) = if tags.call.is_none() {
        let next = Symbol::sequence([&line, &open, &called]);
        (called, next, None)
    } else if format.shares_block {
        let end = Symbol::sequence([&line, &close]);
        let called = Symbol::sequence([&line, &called]);
        (called.clone(), called, Some(end))
    } else {
        let block = Symbol::sequence([&line, &called, &line, &close]);
        let next = Symbol::sequence([&line, &open, &block]);
        (block, next, None)
    };
    let more = wanted.may_repeat.then(|| rules.rule(&next).repeat());
    let parts = [Some(first), more, end];
    Calls::with_marker(format.open[0], Symbol::sequence(parts.iter().flatten()))
}

/// One call, up to its closing tag.
fn call(tags: &Tags, rules: &mut Rules<'_>, callable: Callable<'_>, line: &Symbol) -> Symbol {
    let quote = if tags.has_quotes { "\"" } else { "" };
    let name = match tags.call {
        Some(tag) => rules.literal(&format!("{tag}{quote}{}{quote}>", callable.name())),
        None => rules.literal(callable.name()),
    };
    let arguments = parameters(tags, rules, callable, line).unwrap_or_else(|| {
        // The reader takes an object in the place of parameters.
        Symbol::sequence([&rules.arguments(callable), line])
    });
    let close = rules.literal(tags.call_close);
    let call = Symbol::sequence([&name, line, &arguments, &close]);
    rules.rule(&call)
}

/// All parameters, each with the line break behind it. `None`: tags cannot say what the schema
/// asks for.
fn parameters(
    tags: &Tags,
    rules: &mut Rules<'_>,
    callable: Callable<'_>,
    line: &Symbol,
) -> Option<Symbol> {
    let parameters = callable.parameters()?;
    let mut all = Vec::new();
    for parameter in &parameters.listed {
        if !is_name(&parameter.name) {
            return None;
        }
        let name = Pattern::exactly(&parameter.name);
        let tagged = match_parameter(tags, rules, callable, &name, parameter, line)?;
        let tagged = rules.rule(&tagged);
        all.push(if parameter.is_required {
            tagged
        } else {
            tagged.optional()
        });
    }
    if let Some(others) = &parameters.others {
        let listed: Vec<&str> = parameters
            .listed
            .iter()
            .map(|parameter| parameter.name.as_str())
            .collect();
        let name = Pattern::regex(NAME).except_texts(&listed);
        let tagged = match_parameter(tags, rules, callable, &name, others, line)?;
        all.push(rules.rule(&tagged).repeat());
    }
    if all.is_empty() {
        all.push(rules.literal(""));
    }
    Some(rules.rule(&Symbol::sequence(&all)))
}

/// One parameter with its name and the line break behind it.
fn match_parameter(
    tags: &Tags,
    rules: &mut Rules<'_>,
    callable: Callable<'_>,
    name: &Pattern,
    parameter: &Parameter,
    line: &Symbol,
) -> Option<Symbol> {
    let key = rules.literal(tags.key);
    let quote = if tags.has_quotes { "\"" } else { "" };
    let name = Pattern::exactly(quote).then(name);
    let values = values(tags, callable, parameter, rules)?;
    let values: Vec<Symbol> = values
        .into_iter()
        .map(|(is_text, value)| {
            let attribute = match (tags.says_text, is_text) {
                (false, _) => String::new(),
                (true, is_text) => format!(" string=\"{is_text}\""),
            };
            let name = rules.end_with(&name, &format!("{quote}{attribute}{}", tags.key_close));
            let before = if tags.value.is_empty() {
                name
            } else {
                Symbol::sequence([&name, line, &rules.literal(tags.value)])
            };
            Symbol::sequence([&before, &value, line])
        })
        .collect();
    Some(Symbol::sequence([&key, &Symbol::one_of(&values)]))
}

/// The values of a parameter with their closing tag, and whether they are text.
fn values(
    tags: &Tags,
    callable: Callable<'_>,
    parameter: &Parameter,
    rules: &mut Rules<'_>,
) -> Option<Vec<(bool, Symbol)>> {
    let may_be = |name: &str| parameter.types.contains(name);
    let alternatives = parameter.alternatives();
    let close = tags.value_close;
    if !may_be("string") {
        let mut values = vec![rules.value(callable, &parameter.schema)];
        for alternative in alternatives.iter().flatten() {
            // What the reader takes for them as well.
            match alternative {
                Alternative::Boolean => {
                    values.extend(["True", "False"].map(|word| rules.literal(word)));
                }
                Alternative::Null => values.push(rules.literal("None")),
                _ => {}
            }
        }
        let json = in_lines(tags, rules, &Symbol::one_of(&values));
        let mut values = vec![(false, json)];
        if parameter.is_anything() {
            let text = Pattern::any().without(&tags.value_ends());
            let text = if tags.says_text {
                text
            } else {
                text.except(JSON_LIKE)
            };
            values.push((true, rules.end_with(&text, close)));
        }
        return Some(values);
    }
    let (mut texts, mut scalars, mut whole) = (Vec::new(), Vec::new(), Vec::new());
    let mut is_free = false;
    for alternative in &alternatives? {
        match alternative {
            Alternative::Strings(pattern, _) => {
                is_free |= *pattern == Pattern::any();
                texts.push(pattern.clone());
            }
            Alternative::Listed(listed) => {
                let is_lost = |text: &String| {
                    let has_end = tags.value_ends().iter().any(|end| text.contains(end));
                    has_end || tags.has_lines && (text.starts_with('\n') || text.ends_with('\n'))
                };
                if listed.iter().any(is_lost) {
                    return None;
                }
                texts.extend(listed.iter().map(|text| Pattern::exactly(text)));
            }
            Alternative::Integer if !tags.says_text => scalars.push(Pattern::regex(INTEGER)),
            Alternative::Number if !tags.says_text => scalars.push(Pattern::regex(NUMBER)),
            Alternative::Boolean if !tags.says_text => {
                scalars.push(Pattern::regex("true|false|True|False"));
            }
            Alternative::Null if !tags.says_text => scalars.push(Pattern::regex("null|None")),
            Alternative::Value(value)
                if !tags.says_text && !value.is_array() && !value.is_object() =>
            {
                scalars.push(Pattern::exactly(&value.to_string()));
            }
            // The beginning of a limited number could become text as well.
            Alternative::Other(schema) if !tags.says_text && !is_bracketed(schema) => return None,
            other => whole.push(other.schema(&parameter.schema)),
        }
    }
    let (mut values, mut free) = (Vec::new(), Vec::new());
    if let Some(mut text) = Pattern::one_of(texts) {
        if !tags.says_text {
            for misread in misread(parameter) {
                text = text.except(misread);
            }
        }
        if is_free || !tags.has_lines {
            free.push(text);
        } else {
            // Line breaks at its ends are not the value's.
            scalars.push(text.except(r"\n(?s:.*)").except(r"(?s:.*)\n"));
        }
    }
    let line = Pattern::exactly("\n").optional();
    free.extend(Pattern::one_of(scalars).map(|text| {
        if tags.has_lines {
            line.then(&text).then(&line)
        } else {
            text
        }
    }));
    if let Some(text) = Pattern::one_of(free) {
        let text = text.without(&tags.value_ends());
        values.push((true, rules.end_with(&text, close)));
    }
    if !whole.is_empty() {
        let json = rules.value(callable, &json!({ "anyOf": whole }));
        values.push((false, in_lines(tags, rules, &json)));
    }
    (!values.is_empty()).then_some(values)
}

/// A value that is no text, with its closing tag.
fn in_lines(tags: &Tags, rules: &mut Rules<'_>, value: &Symbol) -> Symbol {
    let close = rules.literal(tags.value_close);
    if tags.has_lines {
        let line = Rules::line();
        return Symbol::sequence([&line, value, &line, &close]);
    }
    Symbol::sequence([value, &close])
}

/// Texts that the reader takes for something else, by the types of a parameter.
fn misread(parameter: &Parameter) -> impl Iterator<Item = &'static str> {
    let forms = [
        ("null", r"\s*(null|None)\s*"),
        ("boolean", r"\s*(true|false|True|False)\s*"),
        (
            "number",
            r"\s*-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?\s*",
        ),
        (
            "integer",
            r"\s*-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?\s*",
        ),
        ("array", r"\s*\[(?s:.*)"),
        ("object", r"\s*\{(?s:.*)"),
    ];
    forms
        .into_iter()
        .filter(|(name, _)| parameter.types.contains(*name))
        .map(|(_, form)| form)
}

fn is_bracketed(schema: &serde_json::Value) -> bool {
    matches!(schema["type"].as_str(), Some("array" | "object"))
}

/// Whether a name can stand in a tag.
fn is_name(name: &str) -> bool {
    (1..=128).contains(&name.len())
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || "_-.$:@/".contains(c))
}
