//! Errors in OpenAI's shape: `{"error": {"message", "type", "param", "code"}}`.

use macmlx_inference::{InferenceError, ModelFilesError, longer_context};
use serde_json::{Value, json};

use crate::{Error, Reply};

/// Seconds after which a client may ask again.
const RETRY_AFTER: &str = "1";

/// The reply to a request that failed before its first frame.
pub fn reply(error: &Error) -> Reply {
    let described = describe(error);
    let headers = match error {
        Error::TooManyConnections
        | Error::Inference(InferenceError::Overloaded | InferenceError::ShuttingDown) => {
            vec![("retry-after", RETRY_AFTER.to_owned())]
        }
        Error::UnsupportedEncoding { .. } => {
            vec![("accept-encoding", Error::ENCODINGS.to_owned())]
        }
        Error::Unauthorized => vec![("www-authenticate", "Bearer".to_owned())],
        _ => Vec::new(),
    };
    Reply {
        status: described.status,
        headers,
        body: described.into_body(),
    }
}

/// The reply to a deletion of a model that failed.
pub fn model_files_reply(error: &ModelFilesError) -> Reply {
    let status = match error {
        ModelFilesError::Model(error) => return reply(&Error::Inference(error.clone())),
        ModelFilesError::Name(_) => 400,
        ModelFilesError::NotOnHub(_) => 404,
        ModelFilesError::Hub(_) => 502,
        ModelFilesError::Disk(_) => 500,
    };
    Reply {
        status,
        headers: Vec::new(),
        body: Description::new(status, error).into_body(),
    }
}

/// The frame of a stream that failed.
pub(super) fn mid_stream(error: &InferenceError) -> Value {
    describe_inference(error).into_body()
}

struct Description {
    status: u16,
    kind: &'static str,
    code: Option<&'static str>,
    param: Option<String>,
    message: String,
}

impl Description {
    fn new(status: u16, message: &impl ToString) -> Self {
        Self {
            status,
            kind: if status < 500 {
                "invalid_request_error"
            } else {
                "server_error"
            },
            code: None,
            param: None,
            message: message.to_string(),
        }
    }

    fn code(mut self, code: &'static str) -> Self {
        self.code = Some(code);
        self
    }

    fn param(mut self, param: impl Into<Option<String>>) -> Self {
        self.param = param.into();
        self
    }

    fn into_body(self) -> Value {
        json!({
            "error": {
                "message": self.message,
                "type": self.kind,
                "param": self.param,
                "code": self.code,
            }
        })
    }
}

fn describe(error: &Error) -> Description {
    match error {
        Error::Invalid { param, .. } => Description::new(400, error).param(param.clone()),
        Error::Unsupported { param, .. } => Description::new(400, error)
            .code("unsupported_parameter")
            .param(param.clone()),
        Error::Unauthorized => Description::new(401, error).code("invalid_api_key"),
        Error::Forbidden { .. } => Description::new(403, error).code("forbidden"),
        Error::NotKept { param: None, .. } => Description::new(404, error).code("not_found"),
        // Clients try 404 again; this stays as it is.
        Error::NotKept { kind, param, .. } => Description::new(400, error)
            .code(match *kind {
                "response" => "previous_response_not_found",
                "conversation" => "conversation_not_found",
                _ => "item_not_found",
            })
            .param(param.clone()),
        Error::NoRoute { .. } => Description::new(404, error).code("unknown_url"),
        Error::WrongMethod { .. } => Description::new(405, error).code("method_not_supported"),
        Error::SlowBody => Description::new(408, error).code("request_timeout"),
        Error::TooLarge { .. } => Description::new(413, error).code("request_too_large"),
        Error::UnsupportedEncoding { .. } => {
            Description::new(415, error).code("unsupported_content_encoding")
        }
        Error::Internal => Description::new(500, error).code("internal_error"),
        Error::TooManyConnections => Description::new(503, error).code("too_many_connections"),
        Error::Inference(error) => describe_inference(error),
    }
}

fn describe_inference(error: &InferenceError) -> Description {
    match error {
        InferenceError::ModelNotFound { .. } => Description::new(404, error)
            .code("model_not_found")
            .param("model".to_owned()),
        InferenceError::AmbiguousModel { .. } => Description::new(400, error)
            .code("model_ambiguous")
            .param("model".to_owned()),
        InferenceError::ModelLoad { .. } => Description::new(500, error).code("model_load_failed"),
        InferenceError::InvalidRequest { param, .. } => {
            Description::new(400, error).param(param.clone())
        }
        InferenceError::Unsupported { param, .. } => Description::new(400, error)
            .code("unsupported_parameter")
            .param(param.clone()),
        InferenceError::Template { .. } => Description::new(400, error)
            .code("template_error")
            .param("messages".to_owned()),
        // Agents look for these words to know that they must shorten the conversation.
        InferenceError::ContextLength {
            prompt_tokens,
            limit,
        } => Description::new(
            400,
            &format!(
                "this model's maximum context length is {limit} tokens, \
                 but the prompt has {prompt_tokens} tokens{}",
                longer_context(*prompt_tokens, *limit)
            ),
        )
        .code("context_length_exceeded"),
        InferenceError::InvalidOutput { .. } => {
            Description::new(500, error).code("invalid_model_output")
        }
        InferenceError::Overloaded => Description::new(503, error).code("overloaded"),
        InferenceError::OutOfMemory { .. } => Description::new(503, error).code("out_of_memory"),
        InferenceError::Cancelled => Description::new(503, error).code("cancelled"),
        InferenceError::ShuttingDown => Description::new(503, error).code("shutting_down"),
        InferenceError::Engine { .. } => Description::new(500, error).code("engine_error"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_models_are_404_and_name_the_field() {
        let reply = reply(&Error::Inference(InferenceError::ModelNotFound {
            reference: "gone".into(),
            suggestions: vec!["org/gone".into()],
        }));
        assert_eq!(reply.status, 404);
        assert_eq!(
            reply.body,
            json!({"error": {
                "message": "model `gone` is not on this machine; did you mean `org/gone`?",
                "type": "invalid_request_error",
                "param": "model",
                "code": "model_not_found",
            }})
        );
    }

    #[test]
    fn a_busy_server_says_when_to_come_back() {
        let reply = reply(&Error::Inference(InferenceError::Overloaded));
        assert_eq!(reply.status, 503);
        assert_eq!(reply.headers, [("retry-after", "1".to_owned())]);
        assert_eq!(reply.body["error"]["type"], "server_error");
    }

    #[test]
    fn a_long_prompt_is_told_in_the_words_agents_look_for() {
        let body = mid_stream(&InferenceError::ContextLength {
            prompt_tokens: 9,
            limit: 8,
        });
        assert_eq!(body["error"]["code"], "context_length_exceeded");
        let message = body["error"]["message"].as_str().unwrap();
        assert!(
            message.contains("maximum context length is 8 tokens"),
            "{message}"
        );
    }
}
