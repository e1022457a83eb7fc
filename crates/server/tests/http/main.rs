//! The server over a real TCP connection, with backends that say what they are told to say.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, its helpers too"
)]

mod anthropic;
mod connections;
mod content_encoding;
mod encoding;
mod errors;
mod guards;
mod limits;
mod lm_studio;
mod model_field;
mod names;
mod ollama;
mod openapi;
mod replay;
mod responses;
mod routes;
mod shutdown;
mod stay;
mod streams;
mod support;
