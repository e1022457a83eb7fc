//! How calls with literals are written: the family's own literals where they can say what the
//! schema asks for, JSON, which their reader takes as well, where they cannot.

use serde_json::{Value, json};

use super::literal_calls::{LiteralFormat, Notation};
use crate::{
    grammar::{
        Alternative, Callable, Calls, Items, Marked, Parameter, Parameters, Pattern, Rules, Symbol,
        Wanted,
    },
    value_end::Quotes,
};

/// Lists and objects deeper than this are JSON.
const DEPTH_LIMIT: usize = 4;

/// A string in single quotes, without what JSON has to escape.
const SINGLE_QUOTED: &str = r#"'([^'\\\x00-\x1F\x7F]|\\['"\\nrt])*'"#;

const DOUBLE_QUOTED: &str = r#""([^"\\\x00-\x1F\x7F]|\\["'\\nrt])*""#;

/// Numbers and constants.
const WORD: &str =
    r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,2})?|True|False|None|true|false|null";

impl LiteralFormat {
    pub(super) fn write_calls(&self, rules: &mut Rules<'_>, wanted: &Wanted<'_>) -> Calls {
        let (mut own, mut json) = (Vec::new(), Vec::new());
        for &callable in wanted.tools {
            let mut writer = Writer {
                format: self,
                callable,
                rules,
            };
            match writer.arguments() {
                Some(arguments) => own.push((callable.name(), arguments)),
                None => json.push(callable),
            }
        }
        let line = Rules::line();
        if self.notation.in_list {
            let list = (!own.is_empty()).then(|| list(rules, &own, wanted.may_repeat));
            let close = rules.literal(self.close.unwrap_or_default());
            let objects = (!json.is_empty()).then(|| json_list(rules, &json, wanted.may_repeat));
            let bodies: Vec<Symbol> = list.iter().cloned().chain(objects).collect();
            return Calls {
                marked: Some(Marked {
                    open: self.open[0].into(),
                    body: Symbol::sequence([&line, &Symbol::one_of(&bodies), &line, &close]),
                }),
                bare: list.filter(|_| self.is_bare),
            };
        }
        // Objects are written alike, but for the quotes around names.
        own.extend(json.into_iter().map(|callable| {
            let arguments = rules.arguments(callable);
            (callable.name(), arguments)
        }));
        let calls: Vec<Symbol> = own
            .iter()
            .map(|(name, arguments)| {
                let name = rules.literal(&format!("{}{name}", self.notation.prefix));
                Symbol::sequence([&name, arguments])
            })
            .collect();
        let calls = rules.rule(&Symbol::one_of(&calls));
        let close = rules.literal(self.close.unwrap_or_default());
        let call = Symbol::sequence([&calls, &close]);
        let next = Symbol::sequence([&line, &rules.literal(self.open[0]), &call]);
        let more = wanted.may_repeat.then(|| rules.rule(&next).repeat());
        let parts = [Some(call), more];
        Calls::with_marker(self.open[0], Symbol::sequence(parts.iter().flatten()))
    }
}

/// Calls in square brackets. Bracket and name are one text, so that it differs from other text
/// that begins with a bracket.
fn list(rules: &mut Rules<'_>, own: &[(&str, Symbol)], may_repeat: bool) -> Symbol {
    let mut calls = |begin: &str| {
        let calls: Vec<Symbol> = own
            .iter()
            .map(|(name, arguments)| {
                let head = rules.end_with(&Pattern::regex(begin), name);
                Symbol::sequence([&head, arguments])
            })
            .collect();
        rules.rule(&Symbol::one_of(&calls))
    };
    let [first, next] = [r"\s*\[\s*", r",\s*"].map(&mut calls);
    let close = rules.literal("]");
    let more = may_repeat.then(|| next.repeat());
    let parts = [Some(first), more, Some(close)];
    Symbol::sequence(parts.iter().flatten())
}

/// Calls as a list of JSON objects.
fn json_list(rules: &mut Rules<'_>, callables: &[Callable<'_>], may_repeat: bool) -> Symbol {
    let calls: Vec<Symbol> = callables
        .iter()
        .map(|&callable| rules.call_object(callable, "name", "arguments"))
        .collect();
    let call = rules.rule(&Symbol::one_of(&calls));
    let [open, comma, close] = ["[", ", ", "]"].map(|text| rules.literal(text));
    let next = Symbol::sequence([&comma, &call]);
    let more = may_repeat.then(|| rules.rule(&next).repeat());
    let parts = [Some(open), Some(call), more, Some(close)];
    Symbol::sequence(parts.iter().flatten())
}

/// Writes the arguments of one tool.
struct Writer<'a, 'r, 't> {
    format: &'a LiteralFormat,
    callable: Callable<'a>,
    rules: &'r mut Rules<'t>,
}

impl Writer<'_, '_, '_> {
    fn notation(&self) -> Notation {
        self.format.notation
    }

    fn is_gemma(&self) -> bool {
        self.notation().quotes == Quotes::Gemma
    }

    /// Brackets and all between them. `None`: the schema asks for what only JSON can say.
    fn arguments(&mut self) -> Option<Symbol> {
        let parameters = self.callable.parameters()?;
        let notation = self.notation();
        let assign = notation.assign.to_string();
        let others = match &parameters.others {
            Some(_) if !parameters.listed.is_empty() => return None,
            Some(others) => {
                let name = self
                    .rules
                    .text(&Pattern::regex("[A-Za-z_][A-Za-z0-9_]{0,63}"));
                let assign = self.rules.literal(&assign);
                let value = self.value(others, DEPTH_LIMIT);
                Some(Symbol::sequence([&name, &assign, &value]))
            }
            None => None,
        };
        let is_part =
            |c: char| c.is_alphanumeric() || c == '_' || (self.is_gemma() && "-.$".contains(c));
        let is_name = |name: &str| !name.is_empty() && name.chars().all(is_part);
        if !parameters.listed.iter().all(|one| is_name(&one.name)) {
            return None;
        }
        let members = self.members(parameters.listed, DEPTH_LIMIT, &|rules, name| {
            rules.literal(&format!("{name}{assign}"))
        });
        let members = match others {
            Some(other) => {
                let next = Symbol::sequence([&self.comma(), &other]);
                let more = self.rules.rule(&next).repeat();
                Symbol::sequence([&other, &more]).optional()
            }
            None => members,
        };
        let close = if notation.bracket == '(' { ")" } else { "}" };
        let [open, close] =
            [&*notation.bracket.to_string(), close].map(|text| self.rules.literal(text));
        let arguments = Symbol::sequence([&open, &members, &close]);
        Some(self.rules.rule(&arguments))
    }

    fn comma(&self) -> Symbol {
        let comma = self.rules.literal(",");
        Symbol::sequence([&comma, &self.rules.literal(" ").optional()])
    }

    /// Members of an object with commas between them.
    fn members(
        &mut self,
        mut members: Vec<Parameter>,
        depth: usize,
        key: &dyn Fn(&mut Rules<'_>, &str) -> Symbol,
    ) -> Symbol {
        if self.is_gemma() {
            // As its templates sort them.
            members.sort_by_key(|member| member.name.to_lowercase());
        }
        let comma = self.comma();
        // What may follow where something stands before it, and where nothing does.
        let mut behind = self.rules.literal("");
        let mut first = behind.clone();
        for member in members.iter().rev() {
            let key = key(self.rules, &member.name);
            let value = self.value(member, depth);
            let pair = self.rules.rule(&Symbol::sequence([&key, &value]));
            let begins = Symbol::sequence([&pair, &behind]);
            let next = Symbol::sequence([&comma, &pair]);
            let next = if member.is_required {
                next
            } else {
                next.optional()
            };
            first = if member.is_required {
                self.rules.rule(&begins)
            } else {
                self.rules.rule(&Symbol::one_of([&begins, &first]))
            };
            behind = self.rules.rule(&Symbol::sequence([&next, &behind]));
        }
        first
    }

    fn value(&mut self, parameter: &Parameter, depth: usize) -> Symbol {
        if parameter.is_anything() {
            return self.anything();
        }
        let alternatives = parameter.alternatives().filter(|_| depth > 0);
        let Some(alternatives) = alternatives.filter(|alternatives| !alternatives.is_empty())
        else {
            return self.rules.value(self.callable, &parameter.schema);
        };
        let (mut own, mut json) = (Vec::new(), Vec::new());
        for alternative in &alternatives {
            match alternative {
                Alternative::Strings(pattern, schema) => {
                    if self.is_gemma() {
                        own.push(self.match_marked(pattern));
                        continue;
                    }
                    if *pattern == Pattern::any() {
                        own.push(self.rules.text(&Pattern::regex(SINGLE_QUOTED)));
                    }
                    json.push(schema.clone());
                }
                Alternative::Listed(texts) => {
                    let is_plain = |text: &&String| {
                        !text.contains(|c: char| c.is_control() || "'\\".contains(c))
                            && !text.contains(self.format.string_mark)
                    };
                    let (plain, others): (Vec<&String>, Vec<&String>) =
                        texts.iter().partition(is_plain);
                    if self.is_gemma() {
                        let texts = plain.iter().map(|text| Pattern::exactly(text));
                        own.extend(Pattern::one_of(texts).map(|texts| self.match_marked(&texts)));
                        json.extend((!others.is_empty()).then(|| json!({ "enum": others })));
                    } else {
                        own.extend(
                            plain
                                .iter()
                                .map(|text| self.rules.literal(&format!("'{text}'"))),
                        );
                        json.push(json!({ "enum": texts }));
                    }
                }
                Alternative::Other(_) => {
                    let schema = alternative.schema(&parameter.schema);
                    match self.match_nested(&schema, depth - 1, parameter.is_strict()) {
                        Some(nested) => own.push(nested),
                        None => json.push(schema),
                    }
                }
                Alternative::Boolean => {
                    if !self.is_gemma() {
                        own.extend(["True", "False"].map(|word| self.rules.literal(word)));
                    }
                    json.push(json!({"type": "boolean"}));
                }
                Alternative::Null => {
                    own.push(self.rules.literal("None"));
                    json.push(json!({"type": "null"}));
                }
                Alternative::Integer | Alternative::Number | Alternative::Value(_) => {
                    json.push(alternative.schema(&parameter.schema));
                }
            }
        }
        if !json.is_empty() {
            let schema = json!({ "anyOf": json });
            let schema = parameter.with_definitions(schema);
            own.push(self.rules.value(self.callable, &schema));
        }
        self.rules.rule(&Symbol::one_of(&own))
    }

    /// Any value.
    fn anything(&mut self) -> Symbol {
        let text = if self.is_gemma() {
            self.match_marked(&Pattern::any())
        } else {
            let [single, double] =
                [SINGLE_QUOTED, DOUBLE_QUOTED].map(|text| self.rules.text(&Pattern::regex(text)));
            Symbol::one_of([&single, &double])
        };
        let word = self.rules.text(&Pattern::regex(WORD));
        let name = self
            .rules
            .text(&Pattern::regex("[A-Za-z_][A-Za-z0-9_]{0,63}"));
        let key = if self.is_gemma() { name } else { text.clone() };
        let space = self.rules.literal(" ").optional();
        let space = if self.is_gemma() {
            self.rules.literal("")
        } else {
            space
        };
        let comma = self.comma();
        let [list, list_end, object, object_end, colon] =
            ["[", "]", "{", "}", ":"].map(|part| self.rules.literal(part));
        self.rules.recursive(|_, value| {
            let pair = Symbol::sequence([&key, &colon, &space, value]);
            let several = |one: &Symbol| {
                let next = Symbol::sequence([&comma, one]).repeat();
                Symbol::sequence([one, &next]).optional()
            };
            let list = Symbol::sequence([&list, &several(value), &list_end]);
            let object = Symbol::sequence([&object, &several(&pair), &object_end]);
            Symbol::one_of([&text, &word, &list, &object])
        })
    }

    /// A string between Gemma's marks, which knows no escapes.
    fn match_marked(&mut self, pattern: &Pattern) -> Symbol {
        let mark = self.format.string_mark;
        let open = self.rules.literal(mark);
        let rest = self.rules.end_with(&pattern.without(&[mark]), mark);
        Symbol::sequence([&open, &rest])
    }

    /// A list or an object. `None`: only JSON can say what it must be.
    fn match_nested(&mut self, schema: &Value, depth: usize, is_strict: bool) -> Option<Symbol> {
        if schema["type"] == "array" {
            let Items { item, range } = Items::of(schema, is_strict)?;
            let item = self.value(&item, depth);
            let next = Symbol::sequence([&self.comma(), &item]);
            let next = self.rules.rule(&next);
            let items = match range {
                (_, Some(0)) => self.rules.literal(""),
                (0, max) => {
                    let more = next.times(0, max.map(|max| max - 1));
                    Symbol::sequence([&item, &more]).optional()
                }
                (min, max) => {
                    let more = next.times(min - 1, max.map(|max| max - 1));
                    Symbol::sequence([&item, &more])
                }
            };
            let [open, close] = ["[", "]"].map(|bracket| self.rules.literal(bracket));
            return Some(Symbol::sequence([&open, &items, &close]));
        }
        if schema["type"] != "object" {
            return None;
        }
        let parameters = Parameters::of(schema, schema, is_strict)?;
        if parameters.others.is_some() {
            return None;
        }
        let is_gemma = self.is_gemma();
        let is_word = |name: &str| {
            !name.is_empty()
                && name
                    .chars()
                    .all(|c| c.is_alphanumeric() || "_-.$".contains(c))
        };
        if !parameters.listed.iter().all(|member| is_word(&member.name)) {
            return None;
        }
        let members = self.members(parameters.listed, depth, &|rules, name| {
            if is_gemma {
                return rules.literal(&format!("{name}:"));
            }
            let quoted = ["'", "\""].map(|quote| rules.literal(&format!("{quote}{name}{quote}:")));
            let space = rules.literal(" ").optional();
            Symbol::sequence([&Symbol::one_of(&quoted), &space])
        });
        let [open, close] = ["{", "}"].map(|bracket| self.rules.literal(bracket));
        Some(Symbol::sequence([&open, &members, &close]))
    }
}
