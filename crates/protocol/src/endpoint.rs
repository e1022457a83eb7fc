//! The seam between one generic HTTP handler and every generating endpoint of every dialect.

use macmlx_inference::{GenerateRequest, GenerationEvent, InferenceError, KeepAlive};
use serde_json::Value;

use crate::{Body, Dialect, Error, Vocabulary};

/// One route that generates text, streamed or whole.
pub trait Endpoint: 'static {
    /// The body as the client wrote it, types checked.
    type Request: Send + 'static;
    type Encoder: StreamEncoder;

    /// Whose shape errors have.
    const DIALECT: Dialect;
    /// What may stand in the body.
    const VOCABULARY: Vocabulary;

    /// Reads the body. Errors name the field.
    fn parse(body: Body<'_>) -> Result<Self::Request, Error>;

    /// Whether the client wants frames as they come rather than one reply at the end.
    fn wants_stream(request: &Self::Request) -> bool;

    /// How long the model that answers is to stay in memory, where the client says it.
    fn keep_alive(request: &Self::Request) -> Option<KeepAlive>;

    /// What the backend is to do, and the encoder for what it will say.
    fn translate(
        request: Self::Request,
        context: Context,
    ) -> Result<Translation<Self::Encoder>, Error>;
}

/// A request in neutral terms.
#[derive(Debug)]
pub struct Translation<E> {
    /// One for each prompt, at least one. Most endpoints take a single prompt.
    pub requests: Vec<GenerateRequest>,
    pub encoder: E,
}

/// Turns one request's events into frames or into the reply that is not streamed.
///
/// The same encoder serves both: which one it builds was decided when it was made, and both are
/// built from the same pieces. A streaming encoder keeps no text; a whole reply has no frames.
pub trait StreamEncoder: Send + 'static {
    const FRAMING: Framing;

    /// Frames for an event, possibly none. `prompt` is the index of its request among those
    /// translated; endpoints with a single prompt ignore it.
    fn encode(&mut self, prompt: usize, event: GenerationEvent) -> Vec<Frame>;

    /// The last frames of a stream that failed after its head was sent.
    fn encode_error(&mut self, error: &InferenceError) -> Vec<Frame>;

    /// A sign of life while nothing is to be said.
    fn heartbeat(&mut self) -> Vec<Frame> {
        vec![Frame::Comment("keep-alive")]
    }

    /// The reply to a request that is not streamed, once all events are in.
    fn into_body(self) -> Value;
}

/// What an encoder needs to know of the request that its body does not say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// Unique for each request; ids in replies are made of it.
    pub id: String,
    /// Seconds since the Unix epoch.
    pub created_unix: u64,
    /// The answering program and version, for fields such as `system_fingerprint`.
    pub fingerprint: String,
}

/// How frames are written on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// Server-sent events, as WHATWG HTML defines them.
    Sse,
    /// One JSON value a line.
    NdJson,
}

impl Framing {
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Sse => "text/event-stream",
            Self::NdJson => "application/x-ndjson",
        }
    }

    /// Appends a frame as bytes on the wire.
    pub fn write(self, frame: &Frame, out: &mut String) {
        match (self, frame) {
            (Self::Sse, Frame::Comment(text)) => out.extend([": ", text, "\n\n"]),
            (Self::Sse, Frame::Data { event, data }) => {
                if let Some(event) = event {
                    out.extend(["event: ", event, "\n"]);
                }
                out.extend(["data: ", data, "\n\n"]);
            }
            // NDJSON has nothing a reader would skip.
            (Self::NdJson, Frame::Comment(_)) => {}
            (Self::NdJson, Frame::Data { data, .. }) => out.extend([data, "\n"]),
        }
    }
}

/// One record of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    Data {
        /// Name of a server-sent event.
        event: Option<&'static str>,
        /// One line, usually JSON.
        data: String,
    },
    /// Skipped by readers.
    Comment(&'static str),
}

impl Frame {
    /// A frame without a name.
    pub fn data(data: impl Into<String>) -> Self {
        Self::Data {
            event: None,
            data: data.into(),
        }
    }
}

/// A whole answer: status, headers beside the content type, and JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// HTTP status code.
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: Value,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(framing: Framing, frame: &Frame) -> String {
        let mut out = String::new();
        framing.write(frame, &mut out);
        out
    }

    #[test]
    fn frames_as_server_sent_events() {
        let named = Frame::Data {
            event: Some("ping"),
            data: "{}".into(),
        };
        assert_eq!(written(Framing::Sse, &named), "event: ping\ndata: {}\n\n");
        assert_eq!(written(Framing::Sse, &Frame::data("1")), "data: 1\n\n");
        assert_eq!(written(Framing::Sse, &Frame::Comment("x")), ": x\n\n");
    }

    #[test]
    fn frames_as_lines_have_no_comments() {
        assert_eq!(written(Framing::NdJson, &Frame::data("{}")), "{}\n");
        assert_eq!(written(Framing::NdJson, &Frame::Comment("x")), "");
    }
}
