//! How much to think, and how much of it to show.

use macmlx_inference::ReasoningOptions;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::{Error, sentinel::REASONING_TOKENS};

/// Whether to think before the answer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[schema(as = anthropic::ThinkingConfig)]
pub(super) struct ThinkingConfig {
    /// `enabled`, `adaptive`, `disabled` or `between_tools`.
    r#type: String,
    /// Tokens of thinking after which the answer begins.
    budget_tokens: Option<i64>,
    /// `summarized`, `updates` or `omitted`: thinking is never shortened, but may be left out.
    display: Option<String>,
}

/// What of the model's thinking a client gets to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Display {
    /// No blocks at all, also of a model that thinks all the same.
    None,
    /// Blocks without text, whose signature carries it.
    Omitted,
    Shown,
}

const EFFORTS: &[&str] = &["low", "medium", "high", "xhigh", "max"];

/// Agents send these fields to whatever model they talk to, so they are wishes. `is_enabled` is what
/// is said elsewhere, for those that do not have `thinking`.
pub(super) fn options(
    thinking: Option<&ThinkingConfig>,
    is_enabled: Option<bool>,
    effort: Option<String>,
) -> Result<(ReasoningOptions, Display), Error> {
    let (is_enabled, budget) = match thinking {
        None => (is_enabled == Some(true), None),
        Some(thinking) => {
            let budget = REASONING_TOKENS.read("thinking.budget_tokens", thinking.budget_tokens)?;
            (thinking.is_enabled()?, budget.of())
        }
    };
    let display = match thinking.and_then(|thinking| thinking.display.as_deref()) {
        _ if !is_enabled => Display::None,
        None | Some("summarized" | "updates") => Display::Shown,
        Some("omitted") => Display::Omitted,
        Some(other) => {
            return Err(Error::invalid(
                "thinking.display",
                format!("thinking.display is summarized, updates or omitted, not `{other}`"),
            ));
        }
    };
    let options = ReasoningOptions {
        enabled: Some(is_enabled),
        is_hint: true,
        budget_tokens: budget.filter(|_| is_enabled),
        effort,
    };
    Ok((options, display))
}

impl ThinkingConfig {
    fn is_enabled(&self) -> Result<bool, Error> {
        match self.r#type.as_str() {
            "enabled" | "adaptive" => Ok(true),
            "disabled" | "between_tools" => Ok(false),
            other => Err(Error::invalid(
                "thinking.type",
                format!(
                    "thinking.type is enabled, adaptive, disabled or between_tools, not `{other}`"
                ),
            )),
        }
    }
}

/// An effort found at `param`.
pub(super) fn check_effort(param: &str, effort: Option<String>) -> Result<Option<String>, Error> {
    match effort {
        Some(effort) if !EFFORTS.contains(&effort.as_str()) => Err(Error::invalid(
            param,
            format!("{param} is one of {}, not `{effort}`", EFFORTS.join(", ")),
        )),
        effort => Ok(effort),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::json::fields_at;

    fn read(thinking: &Value) -> Result<(ReasoningOptions, Display), Error> {
        let thinking: Option<ThinkingConfig> = fields_at(thinking, "thinking")?;
        options(thinking.as_ref(), None, None)
    }

    #[test]
    fn thinking_is_off_unless_asked_for() {
        for thinking in [
            json!(null),
            json!({"type": "disabled"}),
            json!({"type": "between_tools"}),
        ] {
            let (options, display) = read(&thinking).unwrap();
            assert_eq!(options.enabled, Some(false), "{thinking}");
            assert!(options.is_hint);
            assert_eq!(display, Display::None);
        }
    }

    #[test]
    fn thinking_may_be_shown_or_left_out() {
        for (thinking, budget, expected) in [
            (json!({"type": "adaptive"}), None, Display::Shown),
            (
                json!({"type": "adaptive", "display": "omitted"}),
                None,
                Display::Omitted,
            ),
            (
                json!({"type": "adaptive", "display": "updates"}),
                None,
                Display::Shown,
            ),
            (
                json!({"type": "enabled", "budget_tokens": 3072, "display": "summarized"}),
                Some(3072),
                Display::Shown,
            ),
            (
                json!({"type": "enabled", "budget_tokens": i64::MAX}),
                Some(u32::MAX),
                Display::Shown,
            ),
        ] {
            let (options, display) = read(&thinking).unwrap();
            assert_eq!(options.enabled, Some(true));
            assert!(options.is_hint);
            assert_eq!((options.budget_tokens, display), (budget, expected));
        }
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        for (thinking, param) in [
            (json!({"type": "perhaps"}), "thinking.type"),
            (json!({}), "thinking.type"),
            (
                json!({"type": "enabled", "budget_tokens": -2}),
                "thinking.budget_tokens",
            ),
            (
                json!({"type": "adaptive", "display": "loud"}),
                "thinking.display",
            ),
        ] {
            let error = read(&thinking).unwrap_err();
            assert!(
                matches!(&error, Error::Invalid { param: Some(named), .. } if named == param),
                "{error:?}"
            );
        }
        assert!(check_effort("output_config.effort", Some("lots".into())).is_err());
    }
}
