//! How much to think, in the several spellings clients use.
//!
//! `reasoning_effort` is OpenAI's, `enable_thinking` and `thinking_budget` are Qwen's,
//! `chat_template_kwargs` vLLM's, `thinking` DeepSeek's and `reasoning` OpenRouter's.

use macmlx_inference::ReasoningOptions;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::{Error, sentinel::REASONING_TOKENS};

/// OpenAI's efforts, and `max` as other servers have it.
const EFFORTS: &[&str] = &["none", "minimal", "low", "medium", "high", "xhigh", "max"];

#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = openai::Reasoning)]
pub(super) struct Fields {
    reasoning_effort: Option<String>,
    enable_thinking: Option<bool>,
    thinking_budget: Option<i64>,
    thinking: Option<Thinking>,
    reasoning: Option<Reasoning>,
    chat_template_kwargs: Option<Map<String, Value>>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = openai::Thinking)]
struct Thinking {
    r#type: Option<String>,
    budget_tokens: Option<i64>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = openai::ReasoningConfig)]
struct Reasoning {
    enabled: Option<bool>,
    effort: Option<String>,
    max_tokens: Option<i64>,
    exclude: Option<bool>,
}

impl Fields {
    /// The options, and what the chat template is handed beside them.
    pub(super) fn into_options(self) -> Result<(ReasoningOptions, Map<String, Value>), Error> {
        let kwargs = self.chat_template_kwargs.unwrap_or_default();
        let mut enabled = self.enable_thinking;
        let mut effort = check_effort("reasoning_effort", self.reasoning_effort)?;
        let mut budget = REASONING_TOKENS.read("thinking_budget", self.thinking_budget)?;
        if let Some(thinking) = self.thinking {
            enabled = enabled.or(match thinking.r#type.as_deref() {
                None | Some("adaptive" | "auto") => None,
                Some("enabled") => Some(true),
                Some("disabled") => Some(false),
                Some(other) => {
                    return Err(Error::invalid(
                        "thinking.type",
                        format!("thinking.type is enabled, disabled or adaptive, not `{other}`"),
                    ));
                }
            });
            let other = REASONING_TOKENS.read("thinking.budget_tokens", thinking.budget_tokens)?;
            budget = budget.or(other);
        }
        if let Some(reasoning) = self.reasoning {
            if reasoning.exclude == Some(true) {
                return Err(Error::unsupported(
                    "reasoning.exclude",
                    "reasoning is always reported",
                ));
            }
            enabled = enabled.or(reasoning.enabled);
            effort = effort.or(check_effort("reasoning.effort", reasoning.effort)?);
            let other = REASONING_TOKENS.read("reasoning.max_tokens", reasoning.max_tokens)?;
            budget = budget.or(other);
        }
        if let Some(Value::Bool(wanted)) = kwargs.get("enable_thinking") {
            enabled = enabled.or(Some(*wanted));
        }
        // Agents send an effort to whatever model they talk to.
        let is_hint = enabled.is_none() && effort.as_deref().is_some_and(|effort| effort != "none");
        match effort.as_deref() {
            Some("none") => {
                enabled = enabled.or(Some(false));
                effort = None;
            }
            // Least is not none: the template's default stands.
            None | Some("minimal") => {}
            Some(_) => enabled = enabled.or(Some(true)),
        }
        let options = ReasoningOptions {
            enabled,
            is_hint,
            budget_tokens: budget.of(),
            effort,
        };
        Ok((options, kwargs))
    }
}

fn check_effort(name: &str, effort: Option<String>) -> Result<Option<String>, Error> {
    match effort {
        Some(effort) if !EFFORTS.contains(&effort.as_str()) => Err(Error::invalid(
            name,
            format!("{name} is one of {}, not `{effort}`", EFFORTS.join(", ")),
        )),
        effort => Ok(effort),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::json::fields;

    fn options(body: &Value) -> Result<ReasoningOptions, Error> {
        Ok(fields::<Fields>(body)?.into_options()?.0)
    }

    #[test]
    fn every_spelling_switches_thinking_off() {
        for body in [
            json!({"enable_thinking": false}),
            json!({"chat_template_kwargs": {"enable_thinking": false}}),
            json!({"reasoning_effort": "none"}),
            json!({"thinking": {"type": "disabled"}}),
            json!({"reasoning": {"enabled": false}}),
            json!({"reasoning": {"effort": "none"}}),
        ] {
            let expected = ReasoningOptions {
                enabled: Some(false),
                ..ReasoningOptions::default()
            };
            assert_eq!(options(&body).unwrap(), expected, "{body}");
        }
    }

    #[test]
    fn an_effort_switches_thinking_on_and_is_kept() {
        let high = options(&json!({"reasoning_effort": "high"})).unwrap();
        assert_eq!(
            (high.enabled, high.effort.as_deref()),
            (Some(true), Some("high"))
        );
        let both = json!({"reasoning_effort": "high", "enable_thinking": false});
        assert_eq!(options(&both).unwrap().enabled, Some(false));
    }

    #[test]
    fn budgets_are_read_from_each_spelling() {
        for body in [
            json!({"thinking_budget": 64}),
            json!({"thinking": {"budget_tokens": 64}}),
            json!({"reasoning": {"max_tokens": 64}}),
        ] {
            assert_eq!(options(&body).unwrap().budget_tokens, Some(64), "{body}");
        }
    }

    #[test]
    fn an_effort_alone_is_a_wish_and_a_switch_is_an_order() {
        assert!(
            options(&json!({"reasoning_effort": "high"}))
                .unwrap()
                .is_hint
        );
        for body in [
            json!({"enable_thinking": true, "reasoning_effort": "high"}),
            json!({"reasoning_effort": "none"}),
        ] {
            assert!(!options(&body).unwrap().is_hint, "{body}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for body in [
            json!({"reasoning_effort": "lots"}),
            json!({"thinking_budget": -2}),
            json!({"thinking": {"type": "perhaps"}}),
            json!({"reasoning": {"exclude": true}}),
            json!({"chat_template_kwargs": []}),
        ] {
            assert!(options(&body).is_err(), "{body}");
        }
    }
}
