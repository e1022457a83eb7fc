//! The application with all its parts, in a home of its own, through both doors.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod doors;
mod downloads;
mod errors;
mod security;
mod support;
mod ui;
