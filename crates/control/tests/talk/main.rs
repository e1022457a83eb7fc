//! Conversations, chat and parameters of models by their routes.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking"
)]

mod chat;
mod conversations;
mod parameters;
mod rounds;
mod support;
