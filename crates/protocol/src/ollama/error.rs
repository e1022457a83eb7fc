//! Errors in Ollama's shape: `{"error": "…"}`.

use macmlx_inference::{InferenceError, ModelFilesError, longer_context};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::{Error, Reply, json, openai};

/// The body of an error, and the frame of a stream that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ollama::Failure)]
pub struct Failure {
    pub error: String,
}

/// The reply to a request that failed before its first frame.
pub fn reply(error: &Error) -> Reply {
    let message = match error {
        Error::Inference(error) => in_words(error),
        error => error.to_string(),
    };
    Reply {
        body: body(message),
        ..openai::error::reply(error)
    }
}

/// The reply to a download, deletion or copy that failed before its first frame.
pub fn model_files_reply(error: &ModelFilesError) -> Reply {
    if let ModelFilesError::Model(error) = error {
        return reply(&Error::Inference(error.clone()));
    }
    Reply {
        body: body(error.to_string()),
        ..openai::error::model_files_reply(error)
    }
}

/// The last frame of a stream that failed.
pub(super) fn mid_stream(error: &InferenceError) -> Value {
    body(in_words(error))
}

/// The last frame of a download that failed.
pub fn model_files_frame(error: &ModelFilesError) -> Value {
    model_files_reply(error).body
}

fn body(error: String) -> Value {
    json::value(&Failure { error })
}

/// Clients look for Ollama's own words to know what to do next.
fn in_words(error: &InferenceError) -> String {
    match error {
        InferenceError::ModelNotFound {
            reference,
            suggestions,
        } => {
            let suggestions: Vec<String> =
                suggestions.iter().map(|name| format!("'{name}'")).collect();
            match suggestions.as_slice() {
                [] => format!("model '{reference}' not found, try pulling it first"),
                names => format!(
                    "model '{reference}' not found; did you mean {}?",
                    names.join(" or ")
                ),
            }
        }
        InferenceError::Unsupported { param, reason } if param == "reasoning" => {
            format!("the model does not support thinking (`think`): {reason}")
        }
        InferenceError::Unsupported { param, reason } if param == "tools" => {
            format!("the model does not support tools (`tools`): {reason}")
        }
        InferenceError::ContextLength {
            prompt_tokens,
            limit,
        } => format!(
            "the input length of {prompt_tokens} tokens exceeds the context length of {limit} \
             tokens{}",
            longer_context(*prompt_tokens, *limit)
        ),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_models_are_told_in_the_words_clients_look_for() {
        let gone = |suggestions: &[&str]| {
            reply(&Error::Inference(InferenceError::ModelNotFound {
                reference: "gone".into(),
                suggestions: suggestions.iter().map(|name| (*name).to_owned()).collect(),
            }))
        };
        let reply = gone(&[]);
        assert_eq!(reply.status, 404);
        assert_eq!(
            reply.body,
            json!({"error": "model 'gone' not found, try pulling it first"})
        );
        assert_eq!(
            gone(&["a/gone", "b/gone"]).body["error"],
            "model 'gone' not found; did you mean 'a/gone' or 'b/gone'?"
        );
    }

    #[test]
    fn what_a_model_cannot_do_is_named_as_ollama_does() {
        for (param, words) in [
            ("reasoning", "does not support thinking"),
            ("tools", "does not support tools"),
        ] {
            let reply = reply(&Error::Inference(InferenceError::Unsupported {
                param: param.into(),
                reason: "x".into(),
            }));
            assert_eq!(reply.status, 400);
            assert!(reply.body["error"].as_str().unwrap().contains(words));
        }
    }

    #[test]
    fn each_failure_of_files_has_its_status() {
        for (error, status) in [
            (ModelFilesError::Name("a".into()), 400),
            (ModelFilesError::NotOnHub("a".into()), 404),
            (ModelFilesError::Hub("a".into()), 502),
            (ModelFilesError::Disk("a".into()), 500),
            (
                ModelFilesError::Model(InferenceError::ModelNotFound {
                    reference: "a".into(),
                    suggestions: Vec::new(),
                }),
                404,
            ),
        ] {
            assert_eq!(model_files_reply(&error).status, status);
            assert!(model_files_frame(&error)["error"].is_string());
        }
    }
}
