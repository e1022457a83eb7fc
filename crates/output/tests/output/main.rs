//! What is read of texts that models write, whole and cut anywhere.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail the test"
)]

mod cases;
mod cut;
mod detection;
mod properties;
