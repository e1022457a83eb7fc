//! The Hugging Face Hub or a mirror of it: finding models, what a repository holds, opening files.

mod card;
mod connection;
mod error;
mod facts;
mod patience;
mod reference;
mod repository;
mod request;
mod search;
mod selection;
mod wire;

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use reqwest::Url;

pub use card::Card;
pub use connection::{Access, Connection};
pub use error::{Code, Error};
pub use facts::Facts;
pub use patience::Patience;
pub(crate) use patience::{Attempts, Trouble};
pub use reference::Reference;
pub use repository::{RemoteFile, Repository};
pub use search::{Listed, Page, Search, Sort};

/// What a person waits for while looking at a screen.
const PATIENCE: Patience = Patience {
    attempts: 3,
    first_pause: Duration::from_millis(300),
    longest_wait: Duration::from_secs(5),
};
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Answers for screens are this young.
const FRESH: Duration = Duration::from_mins(1);
const MAX_REMEMBERED: usize = 64;

/// A hub and whom it takes us for. Copies share connections and what was answered lately.
#[derive(Clone)]
pub struct Hub {
    client: reqwest::Client,
    endpoint: Url,
    token: Option<Arc<str>>,
    recent: Arc<Mutex<HashMap<Url, (Instant, request::Answer)>>>,
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Hub")
            .field("endpoint", &self.endpoint.as_str())
            .field("has_token", &self.token.is_some())
            .finish_non_exhaustive()
    }
}

impl Hub {
    /// A hub at an endpoint such as `https://huggingface.co`; nothing is sent yet.
    pub fn new(endpoint: &str, token: Option<&str>) -> Result<Self, Error> {
        let unusable = |reason: String| Error::Endpoint {
            endpoint: endpoint.to_owned(),
            reason,
        };
        let parsed = Url::parse(endpoint.trim()).map_err(|error| unusable(error.to_string()))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(unusable("it is not an http or https address".into()));
        }
        let client = reqwest::Client::builder()
            .user_agent(concat!("macmlx/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            // Parallel ranges are to be parallel connections.
            .http1_only()
            .build()
            .map_err(|error| unusable(error.to_string()))?;
        Ok(Self {
            client,
            endpoint: parsed,
            token: token
                .map(str::trim)
                .filter(|token| !token.is_empty())
                .map(Into::into),
            recent: Arc::default(),
        })
    }

    /// The endpoint as people write it, without a slash at its end.
    fn endpoint_text(&self) -> String {
        self.endpoint.as_str().trim_end_matches('/').to_owned()
    }

    /// Asks as `answer` does, unless the same answer came within the last minute.
    async fn recent_answer(&self, url: &Url, about: &str) -> Result<request::Answer, Error> {
        let recent = |now: Instant| {
            let mut recent = self.recent.lock();
            recent.retain(|_, (at, _)| now.duration_since(*at) < FRESH);
            recent.get(url).map(|(_, answer)| answer.clone())
        };
        if let Some(answer) = recent(Instant::now()) {
            return Ok(answer);
        }
        let answer = self.answer(url, about).await?;
        let mut recent = self.recent.lock();
        if recent.len() < MAX_REMEMBERED {
            recent.insert(url.clone(), (Instant::now(), answer.clone()));
        }
        Ok(answer)
    }
}
