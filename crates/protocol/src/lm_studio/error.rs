//! Errors in LM Studio's shape: `{"error": {"type", "message", "code", "param"}}`.

use macmlx_inference::{InferenceError, ModelFilesError};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::{Error, Reply, json, openai};

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = lm_studio::Failure)]
pub struct Failure {
    /// `invalid_request`, `model_not_found`, `job_not_found`, `not_implemented` or `internal_error`.
    r#type: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    param: Option<Value>,
}

#[derive(Debug, Serialize)]
struct ErrorBody {
    error: Failure,
}

/// The reply to a request that failed before its first frame.
pub fn reply(error: &Error) -> Reply {
    let reply = openai::error::reply(error);
    let kind = match error {
        Error::Inference(InferenceError::ModelNotFound { .. }) => "model_not_found",
        Error::Unsupported { .. } => "not_implemented",
        _ if reply.status < 500 => "invalid_request",
        _ => "internal_error",
    };
    Reply {
        body: json::value(&ErrorBody {
            error: Failure::of(kind, &reply.body),
        }),
        ..reply
    }
}

/// The reply to a change of models' files that was not made.
pub fn model_files_reply(error: &ModelFilesError) -> Reply {
    Reply {
        body: json::value(&ErrorBody {
            error: of_model_files(error),
        }),
        ..openai::error::model_files_reply(error)
    }
}

/// What is told of a change of models' files that was not made.
pub(super) fn of_model_files(error: &ModelFilesError) -> Failure {
    let reply = openai::error::model_files_reply(error);
    let kind = match error {
        ModelFilesError::Model(InferenceError::ModelNotFound { .. })
        | ModelFilesError::NotOnHub(_) => "model_not_found",
        _ if reply.status < 500 => "invalid_request",
        _ => "internal_error",
    };
    Failure::of(kind, &reply.body)
}

/// The reply to a question about a download that there is not.
pub fn job_not_found(id: &str) -> Reply {
    let error = Failure {
        r#type: "job_not_found",
        message: format!("there is no download `{id}`"),
        code: None,
        param: None,
    };
    Reply {
        status: 404,
        headers: Vec::new(),
        body: json::value(&ErrorBody { error }),
    }
}

/// What a stream that failed says.
pub(super) fn mid_stream(error: &InferenceError) -> Failure {
    let error = Error::Inference(error.clone());
    let kind = match &error {
        Error::Inference(InferenceError::ModelNotFound { .. }) => "model_not_found",
        error if openai::error::reply(error).status < 500 => "invalid_request",
        _ => "internal_error",
    };
    Failure::of(kind, &openai::error::reply(&error).body)
}

impl Failure {
    /// The same as OpenAI's, whose code and parameter are finer than its type.
    fn of(kind: &'static str, openai: &Value) -> Self {
        let field = |name: &str| openai["error"].get(name).filter(|value| !value.is_null());
        Self {
            r#type: kind,
            message: field("message")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
            code: field("code").cloned(),
            param: field("param").cloned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn errors_have_a_type_and_name_the_field() {
        for (error, status, expected) in [
            (
                Error::invalid("input", "input is missing"),
                400,
                json!({"type": "invalid_request", "message": "input is missing", "param": "input"}),
            ),
            (
                Error::unsupported("integrations", "no tools"),
                400,
                json!({
                    "type": "not_implemented",
                    "message": "`integrations` is not supported: no tools",
                    "code": "unsupported_parameter",
                    "param": "integrations",
                }),
            ),
            (
                Error::Internal,
                500,
                json!({
                    "type": "internal_error",
                    "message": "the server failed",
                    "code": "internal_error",
                }),
            ),
        ] {
            let reply = reply(&error);
            assert_eq!(reply.status, status);
            assert_eq!(reply.body, json!({"error": expected}));
        }
    }

    #[test]
    fn a_download_that_does_not_begin_says_why() {
        for (error, status, kind) in [
            (ModelFilesError::Name("bad".into()), 400, "invalid_request"),
            (
                ModelFilesError::NotOnHub("none".into()),
                404,
                "model_not_found",
            ),
            (ModelFilesError::Hub("down".into()), 502, "internal_error"),
            (ModelFilesError::Disk("full".into()), 500, "internal_error"),
            (
                ModelFilesError::Model(InferenceError::ShuttingDown),
                503,
                "internal_error",
            ),
        ] {
            let reply = model_files_reply(&error);
            let (told, message) = (reply.status, &reply.body["error"]["message"]);
            assert_eq!((told, &reply.body["error"]["type"]), (status, &json!(kind)));
            assert_eq!(*message, error.to_string());
        }
        let reply = job_not_found("1");
        assert_eq!(
            (reply.status, &reply.body["error"]["type"]),
            (404, &json!("job_not_found"))
        );
    }
}
