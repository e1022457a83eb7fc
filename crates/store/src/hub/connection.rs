//! The hub that the settings of the moment name.

use std::fmt;

use parking_lot::Mutex;

use super::{Error, Hub};

/// An endpoint and the token for it.
#[derive(Clone, PartialEq, Eq)]
pub struct Access {
    pub endpoint: String,
    pub token: Option<String>,
}

impl fmt::Debug for Access {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Access")
            .field("endpoint", &self.endpoint)
            .field("token", &self.token.as_ref().map(|_| "set"))
            .finish()
    }
}

/// Asks for endpoint and token each time, so that a token that was just set counts.
pub struct Connection {
    access: Box<dyn Fn() -> Access + Send + Sync>,
    current: Mutex<Option<(Access, Hub)>>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl Connection {
    /// `access` may read files and secrets; it is called on threads that may block.
    pub fn new(access: impl Fn() -> Access + Send + Sync + 'static) -> Self {
        Self {
            access: Box::new(access),
            current: Mutex::default(),
        }
    }

    /// The hub as it is set now; the same one for as long as nothing changes. Blocks.
    pub fn hub(&self) -> Result<Hub, Error> {
        let access = (self.access)();
        let mut current = self.current.lock();
        if let Some((known, hub)) = current.as_ref()
            && *known == access
        {
            return Ok(hub.clone());
        }
        let hub = Hub::new(&access.endpoint, access.token.as_deref())?;
        *current = Some((access, hub.clone()));
        Ok(hub)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    };

    use super::*;

    #[test]
    fn a_token_counts_as_soon_as_it_is_set() {
        let has_token = Arc::new(AtomicBool::new(false));
        let connection = Connection::new({
            let has_token = has_token.clone();
            move || Access {
                endpoint: "http://host".into(),
                token: has_token.load(Ordering::Relaxed).then(|| "hf_x".into()),
            }
        });
        let first = connection.hub().unwrap();
        assert!(first.token.is_none());
        assert!(Arc::ptr_eq(
            &first.recent,
            &connection.hub().unwrap().recent
        ));
        has_token.store(true, Ordering::Relaxed);
        assert_eq!(connection.hub().unwrap().token.as_deref(), Some("hf_x"));
    }

    #[test]
    fn tokens_are_not_printed() {
        let access = Access {
            endpoint: "http://host".into(),
            token: Some("hf_secret".into()),
        };
        assert!(!format!("{access:?}").contains("hf_secret"));
        let hub = Hub::new(&access.endpoint, access.token.as_deref()).unwrap();
        assert!(!format!("{hub:?}").contains("hf_secret"));
    }
}
