//! What is on disk and how it gets there: local models, downloads from the hub, conversations, logs.

pub mod conversations;
pub mod disk;
pub mod downloads;
pub mod hub;
pub mod logs;
pub mod models;
