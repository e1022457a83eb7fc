//! What tests of several crates share: golden files, readers of streams and a double of the hub.

pub mod golden;
pub mod hub_double;
pub mod sse;

mod ways_of_writing;

pub use ways_of_writing::{Source, ways_of_writing};
