//! The named keys of the home, as the server asks for them.

use macmlx_server::{ApiKey, ApiKeySource};
use macmlx_settings::ApiKeys;

/// Changes of the keys count from the next request on.
#[derive(Debug)]
pub(crate) struct NamedKeys(pub(crate) ApiKeys);

impl ApiKeySource for NamedKeys {
    fn api_keys(&self) -> Vec<ApiKey> {
        self.0
            .current()
            .iter()
            .map(|key| ApiKey::from_sha256(key.sha256))
            .collect()
    }
}
