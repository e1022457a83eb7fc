//! Errors in Anthropic's shape: `{"type": "error", "error": {"type", "message"}}`.

use macmlx_inference::{InferenceError, longer_context};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{Error, Reply, json};

/// Seconds after which a client may ask again.
const RETRY_AFTER: &str = "1";

/// Tells official SDKs not to ask again where it cannot help and the status would make them try.
const DO_NOT_RETRY: (&str, &str) = ("x-should-retry", "false");

/// The body of a reply that is an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = anthropic::ErrorReply)]
pub struct ErrorReply {
    /// Always `error`.
    pub r#type: &'static str,
    pub error: ErrorDetails,
}

/// What went wrong, in a reply or in the last event of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = anthropic::ErrorDetails)]
pub struct ErrorDetails {
    pub r#type: ErrorType,
    /// Names the field where a field is at fault.
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Refusal>,
}

/// What an official SDK reads to go on without what was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = anthropic::Refusal)]
pub struct Refusal {
    pub error_code: &'static str,
    pub unsupported: [&'static str; 1],
}

/// Tells tool runners of SDKs, which ask for a conversation that the server keeps, to send all of
/// it.
const WITHOUT_THREADS: Refusal = Refusal {
    error_code: "thread_unsupported_request",
    unsupported: ["thread"],
};

/// Anthropic's kinds of errors that can happen here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = anthropic::ErrorType)]
#[serde(rename_all = "snake_case")]
pub enum ErrorType {
    InvalidRequestError,
    AuthenticationError,
    PermissionError,
    NotFoundError,
    RequestTooLarge,
    ApiError,
    OverloadedError,
}

/// The reply to a request that failed before its first frame.
pub fn reply(error: &Error) -> Reply {
    let (status, kind) = classify(error);
    let mut headers = Vec::new();
    match error {
        Error::Unauthorized => headers.push(("www-authenticate", "Bearer".to_owned())),
        Error::UnsupportedEncoding { .. } => {
            headers.push(("accept-encoding", Error::ENCODINGS.to_owned()));
        }
        Error::Inference(InferenceError::ModelLoad { .. } | InferenceError::Cancelled) => {
            headers.push((DO_NOT_RETRY.0, DO_NOT_RETRY.1.to_owned()));
        }
        _ if kind == ErrorType::OverloadedError => {
            headers.push(("retry-after", RETRY_AFTER.to_owned()));
        }
        _ => {}
    }
    let body = ErrorReply {
        r#type: "error",
        error: ErrorDetails {
            r#type: kind,
            message: in_words(error),
            details: match error {
                Error::Unsupported { param, .. } if param == "thread" => Some(WITHOUT_THREADS),
                _ => None,
            },
        },
    };
    Reply {
        status,
        headers,
        body: json::value(&body),
    }
}

/// What the last event of a stream that failed says.
pub(super) fn mid_stream(error: &InferenceError) -> ErrorDetails {
    ErrorDetails {
        r#type: classify_inference(error).1,
        message: inference_in_words(error),
        details: None,
    }
}

fn classify(error: &Error) -> (u16, ErrorType) {
    match error {
        Error::Invalid { .. } | Error::Unsupported { .. } => (400, ErrorType::InvalidRequestError),
        Error::Unauthorized => (401, ErrorType::AuthenticationError),
        Error::Forbidden { .. } => (403, ErrorType::PermissionError),
        Error::NoRoute { .. } | Error::NotKept { .. } => (404, ErrorType::NotFoundError),
        Error::WrongMethod { .. } => (405, ErrorType::InvalidRequestError),
        Error::SlowBody => (408, ErrorType::InvalidRequestError),
        Error::TooLarge { .. } => (413, ErrorType::RequestTooLarge),
        Error::UnsupportedEncoding { .. } => (415, ErrorType::InvalidRequestError),
        Error::Internal => (500, ErrorType::ApiError),
        Error::TooManyConnections => (503, ErrorType::OverloadedError),
        Error::Inference(error) => classify_inference(error),
    }
}

fn classify_inference(error: &InferenceError) -> (u16, ErrorType) {
    match error {
        InferenceError::ModelNotFound { .. } => (404, ErrorType::NotFoundError),
        InferenceError::AmbiguousModel { .. }
        | InferenceError::InvalidRequest { .. }
        | InferenceError::Unsupported { .. }
        | InferenceError::Template { .. }
        | InferenceError::ContextLength { .. } => (400, ErrorType::InvalidRequestError),
        InferenceError::Overloaded
        | InferenceError::OutOfMemory { .. }
        | InferenceError::ShuttingDown => (529, ErrorType::OverloadedError),
        InferenceError::ModelLoad { .. }
        | InferenceError::InvalidOutput { .. }
        | InferenceError::Cancelled
        | InferenceError::Engine { .. } => (500, ErrorType::ApiError),
    }
}

/// The shape has no place for the field's name, so the message must have it.
fn in_words(error: &Error) -> String {
    match error {
        Error::Invalid {
            param: Some(param),
            message,
        } => naming(param, message),
        Error::Inference(error) => inference_in_words(error),
        other => other.to_string(),
    }
}

fn inference_in_words(error: &InferenceError) -> String {
    match error {
        InferenceError::InvalidRequest {
            param: Some(param),
            message,
        } => naming(param, message),
        // Agents look for these words to know that they must shorten the conversation.
        InferenceError::ContextLength {
            prompt_tokens,
            limit,
        } => format!(
            "prompt is too long: {prompt_tokens} tokens > {limit} maximum{}",
            longer_context(*prompt_tokens, *limit)
        ),
        other => other.to_string(),
    }
}

fn naming(param: &str, message: &str) -> String {
    if message.contains(param) {
        message.to_owned()
    } else {
        format!("{param}: {message}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(error: impl Into<Error>) -> (u16, String, String) {
        let reply = reply(&error.into());
        assert_eq!(reply.body["type"], "error");
        let text = |field: &str| reply.body["error"][field].as_str().unwrap().to_owned();
        (reply.status, text("type"), text("message"))
    }

    #[test]
    fn each_error_has_the_status_and_type_that_clients_act_on() {
        let model = || "m".to_owned();
        let message = || "x".to_owned();
        let cases: Vec<(Error, u16, &str)> = vec![
            (Error::invalid("a", "b"), 400, "invalid_request_error"),
            (Error::unsupported("a", "b"), 400, "invalid_request_error"),
            (Error::Unauthorized, 401, "authentication_error"),
            (
                Error::Forbidden { message: message() },
                403,
                "permission_error",
            ),
            (
                Error::NoRoute {
                    method: "GET".into(),
                    path: "/x".into(),
                },
                404,
                "not_found_error",
            ),
            (
                Error::WrongMethod {
                    method: "GET".into(),
                    path: "/x".into(),
                },
                405,
                "invalid_request_error",
            ),
            (Error::TooLarge { limit_bytes: 1 }, 413, "request_too_large"),
            (Error::Internal, 500, "api_error"),
            (
                InferenceError::ModelNotFound {
                    reference: model(),
                    suggestions: Vec::new(),
                }
                .into(),
                404,
                "not_found_error",
            ),
            (
                InferenceError::ModelLoad {
                    model: model(),
                    reason: message(),
                }
                .into(),
                500,
                "api_error",
            ),
            (
                InferenceError::Template { message: message() }.into(),
                400,
                "invalid_request_error",
            ),
            (InferenceError::Overloaded.into(), 529, "overloaded_error"),
            (InferenceError::ShuttingDown.into(), 529, "overloaded_error"),
            (
                InferenceError::Engine { message: message() }.into(),
                500,
                "api_error",
            ),
        ];
        for (error, status, kind) in cases {
            let (told_status, told_kind, _) = told(error.clone());
            assert_eq!((told_status, told_kind.as_str()), (status, kind), "{error}");
        }
    }

    #[test]
    fn a_long_prompt_is_told_in_the_words_agents_look_for() {
        let (status, kind, message) = told(InferenceError::ContextLength {
            prompt_tokens: 9000,
            limit: 8192,
        });
        assert_eq!((status, kind.as_str()), (400, "invalid_request_error"));
        let numbers = "prompt is too long: 9000 tokens > 8192 maximum";
        assert!(message.starts_with(numbers), "{message}");
        assert!(
            message.contains("take a model with a longer context"),
            "{message}"
        );
    }

    #[test]
    fn the_message_names_the_field() {
        let bare = InferenceError::InvalidRequest {
            param: Some("messages[0]".into()),
            message: "is odd".into(),
        };
        assert_eq!(told(bare).2, "messages[0]: is odd");
        assert_eq!(
            told(Error::invalid("top_k", "top_k must be less")).2,
            "top_k must be less"
        );
    }

    #[test]
    fn clients_are_told_whether_to_come_back() {
        let load = InferenceError::ModelLoad {
            model: "m".into(),
            reason: "broken".into(),
        };
        assert_eq!(
            reply(&load.into()).headers,
            [("x-should-retry", "false".to_owned())]
        );
        assert_eq!(
            reply(&InferenceError::Overloaded.into()).headers,
            [("retry-after", "1".to_owned())]
        );
    }
}
