//! Control routes: closed without the token, and what they do with it.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod access;
mod door;
mod events;
mod hub;
mod keys;
mod logs;
mod models;
mod settings;
mod status;
mod support;
