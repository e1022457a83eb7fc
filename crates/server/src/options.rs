//! What an owner decides about the server.

use std::{fmt, time::Duration};

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// How the server behaves. The default is open to this machine only, without a key.
#[derive(Debug, Clone)]
pub struct Options {
    /// Client routes take any of these; none: no key is asked for.
    pub api_keys: Vec<ApiKey>,
    /// Names under which the server may be reached beside `localhost` and addresses, without port.
    pub allowed_hosts: Vec<String>,
    /// Web origins that may call client routes beside those of this machine, such as
    /// `https://chat.example.org`; `*` is any.
    pub cors_origins: Vec<String>,
    /// Longest silence of a stream before it gives a sign of life.
    pub keep_alive: Duration,
    /// Larger request bodies get 413.
    pub body_limit_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            api_keys: Vec::new(),
            allowed_hosts: Vec::new(),
            cors_origins: Vec::new(),
            keep_alive: Duration::from_secs(10),
            body_limit_bytes: 64 * 1024 * 1024,
        }
    }
}

/// A key of which only the SHA-256 is kept.
#[derive(Clone)]
pub struct ApiKey([u8; 32]);

impl ApiKey {
    pub fn new(plain: &str) -> Self {
        Self(Sha256::digest(plain).into())
    }

    /// A key as it is stored.
    pub fn from_sha256(digest: [u8; 32]) -> Self {
        Self(digest)
    }

    /// What to store.
    pub fn sha256(&self) -> [u8; 32] {
        self.0
    }

    /// Takes the same time whatever is presented.
    pub(crate) fn matches(&self, presented: &str) -> bool {
        self.0.ct_eq(&Self::new(presented).0).into()
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ApiKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_key_matches_its_plain_text_only() {
        let key = ApiKey::from_sha256(ApiKey::new("secret").sha256());
        assert!(key.matches("secret"));
        assert!(!key.matches("secret "));
        assert!(!key.matches(""));
        assert_eq!(format!("{key:?}"), "ApiKey(…)");
    }
}
