//! What is known of a setting beyond its type: where a screen shows it, in which words, and what it may
//! hold. [`SETTINGS`] has one row for each that has a row on the screen.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::{Settings, schema::SETTINGS};

/// A setting that people change on the screen of settings.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Setting {
    /// The key in `settings.json`.
    pub key: &'static str,
    pub group: Group,
    pub label: &'static str,
    /// What it does, in sentences.
    pub help: &'static str,
    pub control: Control,
    /// It is read when the application starts, and then no more.
    #[serde(skip)]
    pub(crate) is_read_at_start: bool,
}

/// Part of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    General,
    Models,
    Server,
    Performance,
    Logs,
}

/// How a value is given, and so what it may be.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Control {
    Switch,
    Choice {
        options: &'static [Choice],
    },
    /// One of the models on this machine.
    Model,
    Port,
    Host,
    Url,
    Path,
    /// Texts.
    List,
    Whole {
        least: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        unit: Option<Unit>,
    },
    Decimal {
        /// 0 may be given.
        #[serde(rename = "isZeroAllowed")]
        is_zero_allowed: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        unit: Option<Unit>,
    },
}

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Unit {
    #[serde(rename = "tokens")]
    Tokens,
    #[serde(rename = "days")]
    Days,
    /// Of 1024 × 1024 × 1024 bytes.
    #[serde(rename = "GB")]
    Gigabytes,
}

/// One of the values of a choice.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Choice {
    pub value: ChoiceValue,
    pub label: &'static str,
}

/// A value as JSON has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum ChoiceValue {
    Text(&'static str),
    Number(u32),
    Null,
}

impl Setting {
    pub(crate) const fn at_start(self) -> Self {
        Self {
            is_read_at_start: true,
            ..self
        }
    }
}

/// A row of the table.
pub(crate) const fn setting(
    group: Group,
    key: &'static str,
    control: Control,
    label: &'static str,
    help: &'static str,
) -> Setting {
    Setting {
        key,
        group,
        label,
        help,
        control,
        is_read_at_start: false,
    }
}

pub(crate) const fn text(value: &'static str, label: &'static str) -> Choice {
    Choice {
        value: ChoiceValue::Text(value),
        label,
    }
}

pub(crate) const fn number(value: u32, label: &'static str) -> Choice {
    Choice {
        value: ChoiceValue::Number(value),
        label,
    }
}

pub(crate) const fn null(label: &'static str) -> Choice {
    Choice {
        value: ChoiceValue::Null,
        label,
    }
}

/// The first of the changed keys whose value cannot be honoured, and why.
pub(crate) fn find_broken(
    settings: &Settings,
    changes: &Map<String, Value>,
) -> Option<(String, String)> {
    let Ok(values) = serde_json::to_value(settings) else {
        return None;
    };
    SETTINGS
        .iter()
        .filter(|row| changes.contains_key(row.key))
        .find_map(|row| Some((row.key.to_owned(), row.control.refuse(&values[row.key])?)))
}

impl Control {
    /// Why it cannot hold a value of the right type; `None`: it can.
    fn refuse(self, value: &Value) -> Option<String> {
        match self {
            Self::Host => value
                .as_str()
                .is_some_and(|host| host.trim().is_empty())
                .then(|| "it is a name or an address, such as 127.0.0.1".into()),
            Self::Url => value
                .as_str()
                .is_some_and(|url| !["http://", "https://"].iter().any(|it| url.starts_with(it)))
                .then(|| "it is a URL that begins with https:// or http://".into()),
            Self::Whole { least, .. } => value
                .as_u64()
                .is_some_and(|number| number < least.into())
                .then(|| format!("it is at least {least}")),
            Self::Decimal {
                is_zero_allowed, ..
            } => {
                let number = value.as_f64()?;
                let is_good = number > 0.0 || (is_zero_allowed && number == 0.0);
                let words = if is_zero_allowed {
                    "it is 0 or a number above it"
                } else {
                    "it is a number above 0, or null for none"
                };
                (!is_good).then(|| words.into())
            }
            Self::Choice { options } => {
                // Zero is how some clients write that there is none.
                let is_none = value.is_null() || value == 0;
                let is_known = options.iter().any(|option| match option.value {
                    ChoiceValue::Text(text) => value == text,
                    ChoiceValue::Number(number) => value == number,
                    ChoiceValue::Null => is_none,
                });
                let names = || {
                    let names = options.iter().map(|option| match option.value {
                        ChoiceValue::Text(text) => text.to_owned(),
                        ChoiceValue::Number(number) => number.to_string(),
                        ChoiceValue::Null => "null".to_owned(),
                    });
                    format!("it is one of {}", names.collect::<Vec<_>>().join(", "))
                };
                (!is_known).then(names)
            }
            Self::Switch | Self::Model | Self::Port | Self::Path | Self::List => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    /// Settings that other screens have.
    const ELSEWHERE: [&str; 3] = ["modelAliases", "onboardingComplete", "toolPolicies"];

    #[test]
    fn each_setting_has_one_row() {
        let Ok(Value::Object(all)) = serde_json::to_value(Settings::default()) else {
            panic!("settings are an object");
        };
        let keys: BTreeSet<&str> = all.keys().map(String::as_str).collect();
        let mut rows: Vec<&str> = SETTINGS.iter().map(|row| row.key).collect();
        rows.extend(ELSEWHERE);
        rows.sort_unstable();
        assert_eq!(rows, keys.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn defaults_are_good() {
        let Ok(Value::Object(all)) = serde_json::to_value(Settings::default()) else {
            panic!("settings are an object");
        };
        assert_eq!(find_broken(&Settings::default(), &all), None);
    }

    #[test]
    fn what_a_control_cannot_hold_is_refused() {
        for (key, value, is_good) in [
            ("serverHost", json!(" "), false),
            ("serverHost", json!("::1"), true),
            ("hfEndpoint", json!("hf.example"), false),
            ("hfEndpoint", json!("http://hf.example"), true),
            ("maxBatchSize", json!(0), false),
            ("maxBatchSize", json!(1), true),
            ("maxWaitingRequests", json!(0), true),
            ("prefillChunkTokens", json!(0), false),
            ("dequantizeBudgetGB", json!(0), true),
            ("dequantizeBudgetGB", json!(-1), false),
            ("kvBits", json!(null), true),
            ("kvBits", json!(0), true),
            ("kvBits", json!(8), true),
            ("kvBits", json!(3), false),
            ("kvGroupSize", json!(128), true),
            ("kvGroupSize", json!(48), false),
            ("maxResidentMemoryGB", json!(0), false),
            ("maxResidentMemoryGB", json!(null), true),
            ("maxResidentMemoryGB", json!(0.5), true),
        ] {
            let changes = Map::from_iter([(key.to_owned(), value.clone())]);
            let settings = serde_json::from_value(Value::Object(changes.clone())).unwrap();
            let broken = find_broken(&settings, &changes);
            assert_eq!(broken.is_none(), is_good, "{key}: {value}: {broken:?}");
        }
    }
}
