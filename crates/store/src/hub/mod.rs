//! Models from the Hugging Face Hub or a mirror of it: only the files a model needs, resumed where
//! an earlier attempt ended, checked, and put in place when all are there.

mod error;
mod file;
mod place;
mod pull;
mod selection;

use hf_hub::{HFClient, HFClientBuilder};

pub use error::Error;
pub use pull::{Event, Pulled, Request, pull};

/// Owner of models that are asked for by bare name.
const DEFAULT_OWNER: &str = "mlx-community";

/// A connection to a hub.
#[derive(Clone)]
pub struct Hub {
    client: HFClient,
    endpoint: String,
    has_token: bool,
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Hub")
            .field("endpoint", &self.endpoint)
            .field("has_token", &self.has_token)
            .finish_non_exhaustive()
    }
}

impl Hub {
    /// A hub at an endpoint such as `https://huggingface.co`; nothing is sent yet.
    pub fn new(endpoint: &str, token: Option<&str>) -> Result<Self, Error> {
        let endpoint = endpoint.trim_end_matches('/').to_owned();
        let mut builder = HFClientBuilder::new()
            .endpoint(&endpoint)
            .user_agent(concat!("macmlx/", env!("CARGO_PKG_VERSION")))
            .cache_enabled(false);
        if let Some(token) = token {
            builder = builder.token(token);
        }
        let client = builder.build().map_err(|error| Error::Endpoint {
            endpoint: endpoint.clone(),
            reason: error.to_string(),
        })?;
        Ok(Self {
            client,
            endpoint,
            has_token: token.is_some(),
        })
    }
}

/// The owner and name of a repository, and the revision after an `@`.
fn parse(reference: &str) -> Result<(String, String, Option<String>), Error> {
    let invalid = || Error::Name(reference.to_owned());
    let reference_text = reference
        .trim()
        .trim_start_matches("https://huggingface.co/")
        .trim_end_matches('/');
    let (id, revision) = match reference_text.split_once('@') {
        Some((id, revision)) if !revision.is_empty() => (id, Some(revision.to_owned())),
        Some(_) => return Err(invalid()),
        None => (reference_text, None),
    };
    let (owner, name) = id.split_once('/').unwrap_or((DEFAULT_OWNER, id));
    let is_plain = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
    };
    if is_plain(owner) && is_plain(name) {
        Ok((owner.to_owned(), name.to_owned(), revision))
    } else {
        Err(invalid())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(reference: &str) -> (String, String, Option<String>) {
        parse(reference).unwrap()
    }

    #[test]
    fn ids_revisions_and_bare_names() {
        assert_eq!(
            parsed("Qwen/Qwen3-0.6B@main"),
            ("Qwen".into(), "Qwen3-0.6B".into(), Some("main".into()))
        );
        assert_eq!(
            parsed("Qwen3-0.6B-4bit"),
            ("mlx-community".into(), "Qwen3-0.6B-4bit".into(), None)
        );
        assert_eq!(
            parsed("https://huggingface.co/Qwen/Qwen3-0.6B/"),
            ("Qwen".into(), "Qwen3-0.6B".into(), None)
        );
        for bad in ["", "a/b/c", "../x", "a/..", "a b", "a/b@"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
