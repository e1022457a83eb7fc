//! How long a model stays in memory after its last request.

use std::time::Duration;

/// As a client asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepAlive {
    /// Zero: until the answer has been given.
    For(Duration),
    Forever,
}
