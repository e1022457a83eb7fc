//! Parameters of models: what a request that does not say otherwise gets.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State},
};
use macmlx_inference::{ChatPrompt, GenerateRequest, Prompt, ReasoningOptions};
use macmlx_settings::{ModelParameters, ModelParametersError, ModelParametersFolder};
use macmlx_store::models::Library;
use serde_json::{Map, Value};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    Problem,
    body::Body,
    events::{Event, Events},
    reply::ErrorBody,
};

/// What the parameter routes act on.
#[derive(Debug)]
pub struct ParameterSources {
    pub folder: Arc<ModelParametersFolder>,
    pub library: Arc<Library>,
    pub events: Arc<Events>,
}

/// `/x/models/{id}/parameters`.
pub fn routes() -> OpenApiRouter<Arc<ParameterSources>> {
    OpenApiRouter::new().routes(routes!(model_parameters, patch_model_parameters))
}

/// Read a model's parameters; what is absent is not set.
#[utoipa::path(
    get,
    path = "/x/models/{id}/parameters",
    params(("id" = String, Path)),
    responses(
        (status = 200, body = ModelParameters),
        (status = 404, description = "There is no such model", body = ErrorBody)
    )
)]
async fn model_parameters(
    State(sources): State<Arc<ParameterSources>>,
    Path(id): Path<String>,
) -> Result<Json<ModelParameters>, Problem> {
    let parameters = tokio::task::spawn_blocking(move || {
        let id = sources.library.find_whole(&id)?.id;
        sources
            .folder
            .read(&id)
            .map_err(|error| refusal(error.into(), ""))
    })
    .await??;
    Ok(Json(parameters))
}

/// Change a model's parameters; null unsets one.
#[utoipa::path(
    patch,
    path = "/x/models/{id}/parameters",
    params(("id" = String, Path)),
    request_body = ModelParameters,
    responses(
        (status = 200, body = ModelParameters),
        (status = 400, description = "A parameter cannot be like this", body = ErrorBody),
        (status = 404, description = "There is no such model", body = ErrorBody)
    )
)]
async fn patch_model_parameters(
    State(sources): State<Arc<ParameterSources>>,
    Path(id): Path<String>,
    Body(changes): Body<Map<String, Value>>,
) -> Result<Json<ModelParameters>, Problem> {
    let events = sources.events.clone();
    let parameters = tokio::task::spawn_blocking(move || {
        let id = sources.library.find_whole(&id)?.id;
        sources
            .folder
            .patch(&id, &changes)
            .map_err(|error| refusal(error, ""))
    })
    .await??;
    // Its names may have changed.
    events.publish(Event::ModelsChanged);
    Ok(Json(parameters))
}

/// Parameters that cannot be taken; `prefix` is where in the request they stand.
pub(crate) fn refusal(error: ModelParametersError, prefix: &str) -> Problem {
    match error {
        ModelParametersError::Refused { key, reason } => {
            let param = format!("{prefix}{key}");
            let message = format!("`{param}` {reason}");
            Problem::invalid_param(param, message)
        }
        ModelParametersError::File(error) => Problem::failed("failed", error.to_string()),
    }
}

/// Refuses what a single request or conversation cannot have.
pub(crate) fn check(parameters: &ModelParameters, prefix: &str) -> Result<(), Problem> {
    parameters.check().map_err(|error| refusal(error, prefix))?;
    let of_models = [
        ("alias", parameters.alias.is_some()),
        ("ttlSeconds", parameters.ttl_seconds.is_some()),
    ];
    match of_models.iter().find(|(_, is_set)| *is_set) {
        Some((key, _)) => Err(refusal(
            ModelParametersError::Refused {
                key: (*key).into(),
                reason: "is a parameter of the model, not of one conversation".into(),
            },
            prefix,
        )),
        None => Ok(()),
    }
}

/// Gives a request what it left unset. A system prompt is not among it.
pub fn fill_in(request: &mut GenerateRequest, parameters: &ModelParameters) {
    request.sampling.fill_in(&parameters.sampling);
    set(&mut request.stop.max_tokens, parameters.max_tokens);
    if let Prompt::Chat(chat) = &mut request.prompt {
        fill_in_chat(chat, &mut request.reasoning, parameters);
    }
}

/// Does the part of [`fill_in`] that decides what the prompt is.
pub fn fill_in_chat(
    chat: &mut ChatPrompt,
    reasoning: &mut ReasoningOptions,
    parameters: &ModelParameters,
) {
    let is_decided = *reasoning != ReasoningOptions::default()
        || chat.template_kwargs.contains_key(REASONING_SWITCH);
    for (key, value) in parameters.template_kwargs.iter().flatten() {
        // A variable would overrule what the request says in its own words.
        if (key != REASONING_SWITCH || !is_decided) && !chat.template_kwargs.contains_key(key) {
            chat.template_kwargs.insert(key.clone(), value.clone());
        }
    }
    let is_switched = chat.template_kwargs.contains_key(REASONING_SWITCH);
    if let Some(enabled) = parameters.reasoning
        && !is_decided
        && !is_switched
    {
        reasoning.enabled = Some(enabled);
        // The model may be one that cannot be switched.
        reasoning.is_hint = true;
    }
}

/// The variable by which chat templates switch reasoning.
const REASONING_SWITCH: &str = "enable_thinking";

fn set<T>(unset: &mut Option<T>, value: Option<T>) {
    if unset.is_none() {
        *unset = value;
    }
}

#[cfg(test)]
mod tests {
    use macmlx_inference::{SamplingParams, StopConditions};
    use serde_json::json;

    use super::*;

    fn parameters(value: Value) -> ModelParameters {
        serde_json::from_value(value).unwrap()
    }

    fn request(chat: ChatPrompt) -> GenerateRequest {
        GenerateRequest::new("m", Prompt::Chat(chat))
    }

    fn kwargs(request: &GenerateRequest) -> Value {
        match &request.prompt {
            Prompt::Chat(chat) => Value::Object(chat.template_kwargs.clone()),
            _ => Value::Null,
        }
    }

    #[test]
    fn what_is_unset_is_filled_in_and_nothing_else() {
        let all = parameters(json!({
            "temperature": 0.5, "topP": 0.25, "topK": 7, "minP": 0.125, "repetitionPenalty": 1.5,
            "maxTokens": 9, "reasoning": false, "templateKwargs": {"a": 1, "b": 1}, "systemPrompt": "s"
        }));
        let mut empty = request(ChatPrompt::default());
        fill_in(&mut empty, &all);
        let expected = SamplingParams {
            temperature: Some(0.5),
            top_p: Some(0.25),
            top_k: Some(7),
            min_p: Some(0.125),
            repetition_penalty: Some(1.5),
            ..SamplingParams::default()
        };
        assert_eq!(empty.sampling, expected);
        assert_eq!(empty.stop.max_tokens, Some(9));
        assert_eq!(
            (empty.reasoning.enabled, empty.reasoning.is_hint),
            (Some(false), true)
        );
        assert_eq!(kwargs(&empty), json!({"a": 1, "b": 1}));
        let mut own = request(ChatPrompt {
            template_kwargs: json!({"a": 2}).as_object().unwrap().clone(),
            ..ChatPrompt::default()
        });
        own.sampling.temperature = Some(0.0);
        own.stop = StopConditions {
            max_tokens: Some(1),
            ..StopConditions::default()
        };
        own.reasoning.enabled = Some(true);
        fill_in(&mut own, &all);
        assert_eq!(own.sampling.temperature, Some(0.0));
        assert_eq!(own.stop.max_tokens, Some(1));
        assert_eq!(
            (own.reasoning.enabled, own.reasoning.is_hint),
            (Some(true), false)
        );
        assert_eq!(kwargs(&own), json!({"a": 2, "b": 1}));
    }

    #[test]
    fn a_variable_does_not_overrule_the_requests_own_words() {
        let switched = parameters(json!({
            "templateKwargs": {"enable_thinking": false}, "reasoning": true
        }));
        let mut asked = request(ChatPrompt::default());
        asked.reasoning.enabled = Some(true);
        fill_in(&mut asked, &switched);
        assert_eq!(kwargs(&asked), json!({}));
        let mut open = request(ChatPrompt::default());
        fill_in(&mut open, &switched);
        assert_eq!(kwargs(&open), json!({"enable_thinking": false}));
        assert_eq!(open.reasoning, ReasoningOptions::default());
    }
}
