//! Downloads from a hub double: what arrives, what goes wrong, what people and other processes do.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod arrival;
mod commands;
mod place;
mod refusals;
mod resuming;
mod trouble;
