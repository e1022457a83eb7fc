//! What tests of several crates share: golden files and readers of streams.

pub mod golden;
pub mod sse;
