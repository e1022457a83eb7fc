//! Conversations, chat and parameters of models by their routes.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod chat;
mod conversations;
mod parameters;
mod rounds;
mod support;
