//! The keys of clients, as the server asks for them.

use std::sync::Arc;

use macmlx_server::{ApiKey, ApiKeySource};
use macmlx_settings::{ApiKeys, LiveSettings};

/// The named keys and the settings' own. Changes of either count from the next request on.
#[derive(Debug)]
pub(crate) struct LiveKeys {
    pub(crate) named: Arc<ApiKeys>,
    /// `None`: this run has a key of its own in place of the settings'.
    pub(crate) settings: Option<Arc<LiveSettings>>,
}

impl ApiKeySource for LiveKeys {
    fn api_keys(&self) -> Vec<ApiKey> {
        let named = self.named.current();
        let mut keys: Vec<ApiKey> = named
            .iter()
            .map(|key| ApiKey::from_sha256(key.sha256))
            .collect();
        let settings = self.settings.as_ref().map(|settings| settings.get());
        keys.extend(
            settings
                .as_ref()
                .and_then(|now| now.api_key())
                .map(ApiKey::new),
        );
        keys
    }

    fn note_use(&self, key: &ApiKey) {
        self.named.note_use(&key.sha256());
    }
}
