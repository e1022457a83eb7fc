//! How much a model thinks before it answers.

use serde_json::{Value, json};

use super::{
    Api::{Chat, Messages, Responses},
    GENERATING, OLLAMA, OPENAI, TEXT, Word, Wrong,
    value::{is_false, is_not_positive, is_true},
    word,
};

/// Routes that read the words of OpenAI's servers.
const OF_OPENAI: &[super::Api] = &[Chat, Responses];
const NO_TURNS: &str = "a prompt is completed as it stands; use /v1/chat/completions";
const NO_BUDGET: &str = "thinking has no budget in Ollama's dialect; use /v1/chat/completions";
const NO_KWARGS: &str = "Ollama's dialect has no such thing; use /v1/chat/completions";
const REPORTED: &str = "reasoning is always reported apart from the answer";

pub(super) const WORDS: &[Word] = &[
    word(&["think"])
        .read(OLLAMA, &["think"])
        .rewritten(&[Chat, Responses, Messages], think)
        .refused(TEXT, NO_TURNS),
    word(&["enable_thinking"])
        .read(OF_OPENAI, &["enable_thinking"])
        .rewritten(OLLAMA, |enabled| Ok(vec![("think", enabled.clone())]))
        .rewritten(&[Messages], |enabled| match enabled {
            Value::Bool(enabled) => Ok(vec![("thinking.type", switch(*enabled))]),
            _ => Err(Wrong("it is true or false")),
        })
        .refused(TEXT, NO_TURNS),
    word(&["reasoning_effort"])
        .read(OF_OPENAI, &["reasoning_effort"])
        .rewritten(OLLAMA, |effort| match effort.as_str() {
            Some("none") => Ok(vec![("think", false.into())]),
            Some("minimal") => Ok(Vec::new()),
            Some("xhigh") => Ok(vec![("think", "max".into())]),
            _ => Ok(vec![("think", effort.clone())]),
        })
        .rewritten(&[Messages], |effort| match effort.as_str() {
            Some("none") => Ok(vec![("thinking.type", "disabled".into())]),
            Some("minimal") => Ok(vec![("output_config.effort", "low".into())]),
            _ => Ok(vec![
                ("output_config.effort", effort.clone()),
                ("thinking.type", "adaptive".into()),
            ]),
        })
        .refused(TEXT, NO_TURNS)
        .unless(is_none),
    word(&["thinking"])
        .read(&[Chat, Responses, Messages], &["thinking"])
        .rewritten(OLLAMA, |thinking| match thinking["type"].as_str() {
            _ if thinking["budget_tokens"].is_number() => Err(Wrong(NO_BUDGET)),
            Some("enabled") => Ok(vec![("think", true.into())]),
            Some("disabled") => Ok(vec![("think", false.into())]),
            Some("adaptive" | "auto") => Ok(Vec::new()),
            _ => Err(Wrong("use `think`")),
        })
        .refused(TEXT, NO_TURNS)
        .unless(is_disabled),
    word(&["reasoning"])
        .read(OF_OPENAI, &["reasoning"])
        .rewritten(OLLAMA, reasoning)
        .rewritten(&[Messages], reasoning)
        .refused(TEXT, NO_TURNS)
        .unless(is_disabled),
    word(&[
        "thinking_budget",
        "thinking_budget_tokens",
        "thinking_token_budget",
        "reasoning_budget",
        "max_thinking_tokens",
        "reasoning_max_tokens",
    ])
    .read(OF_OPENAI, &["thinking_budget"])
    .rewritten(&[Messages], |budget| {
        Ok(vec![
            ("thinking.budget_tokens", budget.clone()),
            ("thinking.type", "enabled".into()),
        ])
    })
    .refused(OLLAMA, NO_BUDGET)
    .refused(TEXT, NO_TURNS)
    .unless(is_not_positive),
    word(&[
        "chat_template_kwargs",
        "chat_template_args",
        "template_kwargs",
    ])
    .read(&[Chat, Responses, Messages], &["chat_template_kwargs"])
    .refused(OLLAMA, NO_KWARGS)
    .refused(TEXT, NO_TURNS),
    word(&["output_config"])
        .read(&[Messages], &["output_config"])
        .rewritten(OPENAI, output_config)
        .rewritten(OLLAMA, output_config),
    word(&[
        "include_reasoning",
        "separate_reasoning",
        "stream_reasoning",
        "reasoning_split",
    ])
    .refused(GENERATING, REPORTED)
    .unless(is_true),
    word(&["reasoning_format"])
        .refused(GENERATING, REPORTED)
        .unless(|format| {
            ["auto", "deepseek", "parsed"]
                .iter()
                .any(|apart| format == *apart)
        }),
    word(&["thinking_forced_open", "reasoning_in_content"])
        .refused(GENERATING, REPORTED)
        .unless(is_false),
];

fn switch(is_on: bool) -> Value {
    if is_on { "adaptive" } else { "disabled" }.into()
}

/// Ollama's switch, or how much.
fn think(think: &Value) -> Result<Vec<(&'static str, Value)>, Wrong> {
    match think {
        Value::Bool(_) => Ok(vec![("enable_thinking", think.clone())]),
        Value::String(level) if ["low", "medium", "high", "max"].contains(&level.as_str()) => {
            Ok(vec![
                ("enable_thinking", true.into()),
                ("reasoning_effort", think.clone()),
            ])
        }
        _ => Err(Wrong("it is true, false, low, medium, high or max")),
    }
}

/// What responses and `OpenRouter` have, of which a summary is only a wish.
fn reasoning(reasoning: &Value) -> Result<Vec<(&'static str, Value)>, Wrong> {
    if !reasoning.is_object() {
        return Err(Wrong(
            "it is an object with `effort`, `enabled` or `max_tokens`",
        ));
    }
    if reasoning["exclude"] == true {
        return Err(Wrong(REPORTED));
    }
    let words = [
        ("enabled", "enable_thinking"),
        ("effort", "reasoning_effort"),
        ("max_tokens", "thinking_budget"),
    ];
    Ok(words
        .into_iter()
        .filter(|(field, _)| !reasoning[*field].is_null())
        .map(|(field, word)| (word, reasoning[field].clone()))
        .collect())
}

/// Anthropic's place for an effort and a format.
fn output_config(config: &Value) -> Result<Vec<(&'static str, Value)>, Wrong> {
    if !config.is_object() {
        return Err(Wrong("it is an object with `effort` or `format`"));
    }
    if !config["task_budget"].is_null() {
        return Err(Wrong("the model is not told of budgets; use `max_tokens`"));
    }
    let words = [("effort", "reasoning_effort"), ("format", "output_format")];
    Ok(words
        .into_iter()
        .filter(|(field, _)| !config[*field].is_null())
        .map(|(field, word)| (word, config[field].clone()))
        .collect())
}

fn is_none(effort: &Value) -> bool {
    effort == "none"
}

fn is_disabled(thinking: &Value) -> bool {
    thinking["type"] == "disabled"
        || thinking["enabled"] == false
        || thinking["effort"] == "none"
        || *thinking == json!({})
}
