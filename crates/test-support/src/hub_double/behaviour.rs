//! How the hub double misbehaves.

use serde::{Deserialize, Serialize};

/// Failures on demand. The default is a hub that works. Lists and counts are used up by requests
/// for the contents of large files, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Behaviour {
    /// What every request is answered.
    pub refuse: Option<Refusal>,
    /// What requests for files are answered.
    pub refuse_files: Option<Refusal>,
    /// So many requests for files are answered `failing_status`.
    pub failing: u32,
    pub failing_status: u16,
    /// Sent beside 429 and failures.
    pub retry_after_seconds: Option<u64>,
    /// Speed limit of each connection.
    pub bytes_per_second: Option<u64>,
    /// Connections break after so many bytes.
    pub drop_after: Vec<usize>,
    /// Connections end after so many bytes as if that were all.
    pub truncate_after: Vec<usize>,
    /// Connections fall silent after so many bytes.
    pub stall_after: Vec<usize>,
    /// So many connections carry a wrong byte.
    pub corrupting: u32,
    /// Every connection for this file carries a wrong byte, large or not.
    pub corrupt_path: Option<String>,
    /// Whatever range is asked for, the whole file is sent.
    pub ignores_ranges: bool,
    /// Requests that an address of the content network is good for; none: any number.
    pub address_uses: Option<u32>,
    /// Tokens that open gated repositories.
    pub tokens: Vec<String>,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            refuse: None,
            refuse_files: None,
            failing: 0,
            failing_status: 503,
            retry_after_seconds: None,
            bytes_per_second: None,
            drop_after: Vec::new(),
            truncate_after: Vec::new(),
            stall_after: Vec::new(),
            corrupting: 0,
            corrupt_path: None,
            ignores_ranges: false,
            address_uses: None,
            tokens: Vec::new(),
        }
    }
}

/// A refusal as the hub words it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    Gated,
    Unauthorized,
    NotFound,
    RateLimited,
    Unavailable,
}

/// What becomes of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Whole,
    Drop(usize),
    Truncate(usize),
    Stall(usize),
}

impl Behaviour {
    /// Uses up the next failure of a connection.
    pub(super) fn next_end(&mut self) -> End {
        let next = |list: &mut Vec<usize>| (!list.is_empty()).then(|| list.remove(0));
        if let Some(bytes) = next(&mut self.drop_after) {
            End::Drop(bytes)
        } else if let Some(bytes) = next(&mut self.truncate_after) {
            End::Truncate(bytes)
        } else if let Some(bytes) = next(&mut self.stall_after) {
            End::Stall(bytes)
        } else {
            End::Whole
        }
    }
}
