//! What an owner decides about the server.

use std::{fmt, sync::Arc, time::Duration};

use axum::response::Response;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::{connections::ConnectionLimits, visitors::Visitors};

/// How the server behaves. The default is open to this machine only, without a key.
#[derive(Debug, Clone)]
pub struct Options {
    /// Client routes take any of these.
    pub api_keys: Vec<ApiKey>,
    /// More keys, which may change while the server runs. With no key here or there none is asked
    /// for; once one has been asked for, the server stays closed until it ends.
    pub more_api_keys: Option<Arc<dyn ApiKeySource>>,
    /// Opens client routes to the owner's own tools, and is no reason to ask others for a key.
    pub owner_key: Option<ApiKey>,
    /// Names of this machine, by which other machines may know it.
    pub own_names: Vec<String>,
    /// Names and pages that are let in beside those of this machine.
    pub visitors: Option<Arc<dyn Visitors>>,
    /// Longest silence of a stream before it gives a sign of life.
    pub keep_alive: Duration,
    /// Larger request bodies get 413.
    pub body_limit_bytes: usize,
    /// How many connections there may be, and for how long.
    pub connections: ConnectionLimits,
    /// What browsers get at `/`, where other clients are told that Ollama is running.
    pub front_page: Option<fn() -> Response>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            api_keys: Vec::new(),
            more_api_keys: None,
            owner_key: None,
            own_names: Vec::new(),
            visitors: None,
            keep_alive: Duration::from_secs(10),
            body_limit_bytes: 64 * 1024 * 1024,
            connections: ConnectionLimits::default(),
            front_page: None,
        }
    }
}

impl Options {
    /// Whether clients must send a key, as things are now.
    pub fn asks_for_key(&self) -> bool {
        !self.api_keys.is_empty()
            || self
                .more_api_keys
                .as_ref()
                .is_some_and(|source| !source.api_keys().is_empty())
    }

    /// Whether a key is the owner's, who may do what no client may.
    pub(crate) fn is_owner_key(&self, presented: &str) -> bool {
        let key = self.owner_key.as_ref();
        key.is_some_and(|key| key.matches(presented))
    }

    /// Whether a key is one of those that open client routes now.
    pub(crate) fn is_known_key(&self, presented: &str) -> bool {
        if let Some(source) = &self.more_api_keys
            && let Some(key) = source.api_keys().iter().find(|key| key.matches(presented))
        {
            source.note_use(key);
            return true;
        }
        self.api_keys
            .iter()
            .chain(&self.owner_key)
            .any(|key| key.matches(presented))
    }
}

/// Where keys come from that may change while the server runs. Asked at every request, so answers
/// come from memory.
pub trait ApiKeySource: fmt::Debug + Send + Sync + 'static {
    /// The keys as they are now.
    fn api_keys(&self) -> Vec<ApiKey>;

    /// One of them has just opened a route.
    fn note_use(&self, _key: &ApiKey) {}
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
