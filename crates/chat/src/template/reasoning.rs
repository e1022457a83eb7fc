//! How a template is told whether and how hard to think.

use std::collections::HashSet;

use macmlx_inference::ReasoningOptions;
use serde_json::{Map, Value, json};

/// Words for on and off of each variable that switches reasoning. A template knows one pair.
const SWITCHES: [(&str, Words); 7] = [
    ("enable_thinking", Words::Bools),
    ("thinking", Words::Bools),
    ("reasoning", Words::Bools),
    ("thinking_option", Words::Text("on", "off")),
    ("thinking_mode", Words::Text("on", "off")),
    ("thinking_mode", Words::Text("enabled", "disabled")),
    (BUDGET, Words::Budget),
];

/// Tokens of reasoning, none of which switches it off (Seed-OSS).
const BUDGET: &str = "thinking_budget";

/// Variables that take an effort.
const EFFORT_VARIABLES: [&str; 2] = ["reasoning_effort", "reasoning_strength"];

/// Variables that, when true, ask for an effort lower than the usual one (Nemotron).
const EFFORT_FLAGS: [(&str, &str); 2] = [("low_effort", "low"), ("medium_effort", "medium")];

/// All efforts that clients name, from least to most.
const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// What a template that names no efforts is taken to know (gpt-oss).
const USUAL_EFFORTS: [&str; 3] = ["low", "medium", "high"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Words {
    Bools,
    Text(&'static str, &'static str),
    Budget,
}

impl Words {
    /// `None`: what the template does anyway.
    fn say(self, enabled: bool) -> Option<Value> {
        match (self, enabled) {
            (Self::Bools, enabled) => Some(enabled.into()),
            (Self::Text(on, _), true) => Some(on.into()),
            (Self::Text(_, off), false) => Some(off.into()),
            (Self::Budget, true) => None,
            (Self::Budget, false) => Some(0.into()),
        }
    }
}

/// The variables of a template that steer reasoning.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Reasoning {
    switches: Vec<(&'static str, Words)>,
    takes_budget: bool,
    /// The variable and the efforts it knows.
    effort: Option<(&'static str, Vec<&'static str>)>,
    /// Variables and the effort up to which they are true.
    flags: Vec<(&'static str, &'static str)>,
}

impl Reasoning {
    /// Tries which variables make a difference. `render` gives a prompt with some variables, `None`
    /// when it fails; a template that fails without any is taken to read those of `names`.
    pub(super) fn probe(
        source: &str,
        names: &HashSet<String>,
        render: impl Fn(&Map<String, Value>) -> Option<String>,
    ) -> Self {
        let with = |name: &str, value: Option<Value>| {
            let variable = value.map(|value| (name.to_owned(), value));
            render(&variable.into_iter().collect())
        };
        let can_be_tried = with("", None).is_some();
        // The names are not all: a template that gives a variable its default assigns to it.
        let differs = |name: &str, one: Option<Value>, other: Option<Value>| {
            if !can_be_tried {
                return names.contains(name);
            }
            mentions(source, name) && {
                let (one, other) = (with(name, one), with(name, other));
                one.is_some() && other.is_some() && one != other
            }
        };
        let switches: Vec<_> = SWITCHES
            .into_iter()
            .filter(|(_, words)| can_be_tried || !matches!(words, Words::Text(..)))
            .filter(|(name, words)| differs(name, words.say(true), words.say(false)))
            .collect();
        let effort = EFFORT_VARIABLES
            .into_iter()
            .map(|name| (name, find_efforts(source)))
            .map(|(name, mut known)| {
                known.retain(|effort| !can_be_tried || with(name, Some(json!(effort))).is_some());
                (name, known)
            })
            .find(|(name, known)| {
                let effort = |effort: Option<&&str>| effort.map(|effort| json!(effort));
                differs(name, effort(known.first()), effort(known.last()))
            });
        Self {
            takes_budget: switches.iter().any(|(name, _)| *name == BUDGET),
            switches,
            effort,
            flags: EFFORT_FLAGS
                .into_iter()
                .filter(|(name, _)| differs(name, Some(true.into()), Some(false.into())))
                .collect(),
        }
    }

    /// Whether reasoning can be switched on and off.
    pub(super) fn has_switch(&self) -> bool {
        !self.switches.is_empty() || self.knows_effort("none")
    }

    /// What the template is given for these options.
    pub(super) fn variables(&self, options: &ReasoningOptions) -> Map<String, Value> {
        let mut variables = Map::new();
        if let (true, Some(tokens)) = (self.takes_budget, options.budget_tokens) {
            variables.insert(BUDGET.into(), tokens.into());
        }
        if let Some(enabled) = options.enabled {
            for (name, words) in &self.switches {
                if let Some(value) = words.say(enabled) {
                    variables.insert((*name).into(), value);
                }
            }
        }
        let off = options.enabled == Some(false) && self.knows_effort("none");
        let Some(effort) = (if off {
            Some("none")
        } else {
            options.effort.as_deref()
        }) else {
            return variables;
        };
        if let Some((name, known)) = &self.effort {
            variables.insert((*name).into(), nearest(effort, known).into());
        }
        for (name, limit) in &self.flags {
            if let (Some(effort), Some(limit)) = (rank(effort), rank(limit)) {
                variables.insert((*name).into(), (effort <= limit).into());
            }
        }
        variables
    }

    fn knows_effort(&self, effort: &str) -> bool {
        self.effort
            .as_ref()
            .is_some_and(|(_, known)| known.contains(&effort))
    }
}

/// Whether a name stands in a template as a whole word.
fn mentions(source: &str, name: &str) -> bool {
    source
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .any(|word| word == name)
}

/// Efforts that a template has as words of its own; a single one is only its default.
fn find_efforts(source: &str) -> Vec<&'static str> {
    let named: Vec<_> = EFFORTS
        .into_iter()
        .filter(|effort| {
            ['\'', '"']
                .iter()
                .any(|quote| source.contains(&format!("{quote}{effort}{quote}")))
        })
        .collect();
    if named.len() > 1 {
        named
    } else {
        USUAL_EFFORTS.into()
    }
}

fn rank(effort: &str) -> Option<usize> {
    EFFORTS.iter().position(|known| *known == effort)
}

/// The closest effort that is known, of two the higher one.
fn nearest<'a>(effort: &'a str, known: &[&'static str]) -> &'a str {
    let Some(wanted) = rank(effort) else {
        return effort;
    };
    known
        .iter()
        .filter_map(|known| Some((rank(known)?, *known)))
        .min_by_key(|(rank, _)| (rank.abs_diff(wanted), usize::MAX - rank))
        .map_or(effort, |(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reasoning(source: &str, mentioned: &[&str]) -> Reasoning {
        let names = mentioned.iter().map(|name| (*name).to_owned()).collect();
        let source = format!("{source} {}", mentioned.join(" "));
        Reasoning::probe(&source, &names, |variables| Some(format!("{variables:?}")))
    }

    fn read_variables(reasoning: &Reasoning, enabled: Option<bool>, effort: Option<&str>) -> Value {
        let options = ReasoningOptions {
            enabled,
            effort: effort.map(str::to_owned),
            ..ReasoningOptions::default()
        };
        reasoning.variables(&options).into()
    }

    #[test]
    fn efforts_become_the_nearest_that_is_known() {
        let gpt_oss = reasoning("'medium'", &["reasoning_effort"]);
        for (asked, told) in [
            ("minimal", "low"),
            ("none", "low"),
            ("medium", "medium"),
            ("xhigh", "high"),
            ("max", "high"),
        ] {
            let told = json!({"reasoning_effort": told});
            assert_eq!(
                read_variables(&gpt_oss, Some(true), Some(asked)),
                told,
                "{asked}"
            );
        }
        let qwen = reasoning("in ('xhigh', 'medium', 'low')", &["reasoning_effort"]);
        let told = json!({"reasoning_effort": "xhigh"});
        assert_eq!(read_variables(&qwen, None, Some("high")), told);
        assert!(!qwen.has_switch());
    }

    #[test]
    fn a_known_effort_of_none_is_a_switch() {
        let mistral = reasoning("in ['none', 'high']", &["reasoning_effort"]);
        assert!(mistral.has_switch());
        let told = json!({"reasoning_effort": "none"});
        assert_eq!(read_variables(&mistral, Some(false), Some("high")), told);
    }

    #[test]
    fn each_switch_gets_its_own_words() {
        let qwen = reasoning("", &["enable_thinking", "messages"]);
        assert_eq!(
            read_variables(&qwen, Some(false), Some("low")),
            json!({"enable_thinking": false})
        );
        assert_eq!(read_variables(&qwen, None, None), json!({}));
        let seed = reasoning("", &["thinking_budget"]);
        assert_eq!(read_variables(&seed, Some(true), None), json!({}));
        assert_eq!(
            read_variables(&seed, Some(false), None),
            json!({"thinking_budget": 0})
        );
        let budget = ReasoningOptions {
            budget_tokens: Some(512),
            ..ReasoningOptions::default()
        };
        assert_eq!(
            Value::from(seed.variables(&budget)),
            json!({"thinking_budget": 512})
        );
    }

    #[test]
    fn only_what_makes_a_difference_is_a_switch() {
        let names = HashSet::from(["thinking_mode".to_owned(), "thinking".to_owned()]);
        let minimax = Reasoning::probe("thinking_mode thinking", &names, |variables| {
            let mode = variables.get("thinking_mode").and_then(Value::as_str);
            Some(format!("{}", mode == Some("disabled")))
        });
        let told = json!({"thinking_mode": "disabled"});
        assert_eq!(read_variables(&minimax, Some(false), None), told);
    }

    #[test]
    fn flags_hold_up_to_their_effort() {
        let nemotron = reasoning("", &["low_effort"]);
        assert_eq!(
            read_variables(&nemotron, None, Some("minimal")),
            json!({"low_effort": true})
        );
        assert_eq!(
            read_variables(&nemotron, None, Some("medium")),
            json!({"low_effort": false})
        );
    }
}
