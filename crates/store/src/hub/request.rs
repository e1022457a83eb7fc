//! Requests to the hub, and what their failures mean.

use std::{
    ops::Range,
    time::{Duration, SystemTime},
};

use reqwest::{
    Response, StatusCode, Url,
    header::{self, HeaderMap},
};

use super::{
    Error, Hub, PATIENCE,
    patience::{Attempts, Trouble},
};

/// How long a whole answer of the API, or a document, may take.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// What a person is told of an answer that takes longer.
pub(super) const TOO_SLOW: &str = "it takes too long to answer";
/// Longest text of an error that is read.
const MAX_ERROR_BYTES: usize = 2000;

/// An answer of the API.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub text: String,
    /// Where the next page is, from the `Link` header.
    pub next: Option<Url>,
}

impl Hub {
    /// The address of an API or file path below the endpoint; a segment may hold a `/`.
    pub(crate) fn url(&self, segments: &[&str]) -> Url {
        let mut url = self.endpoint.clone();
        // Endpoints are checked to be `http` or `https`, which have paths.
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        url
    }

    /// Where a file of a commit is; the answer is the file or a redirect to it.
    pub(crate) fn file_url(&self, id: &str, commit: &str, path: &str) -> Url {
        let mut segments: Vec<&str> = id.split('/').collect();
        segments.extend(["resolve", commit]);
        segments.extend(path.split('/'));
        self.url(&segments)
    }

    /// Reads an answer of the API, trying again for a little while.
    pub(super) async fn answer(&self, url: &Url, about: &str) -> Result<Answer, Error> {
        let mut attempts = Attempts::new(PATIENCE);
        loop {
            let trouble =
                match tokio::time::timeout(ANSWER_TIMEOUT, self.answer_once(url, about)).await {
                    Ok(Ok(answer)) => return Ok(answer),
                    Ok(Err(trouble)) => trouble,
                    Err(_) => Trouble::passing(self.offline(TOO_SLOW)),
                };
            attempts.after(trouble).await?;
        }
    }

    async fn answer_once(&self, url: &Url, about: &str) -> Result<Answer, Trouble> {
        let response = self.open(url, None, about).await?;
        let next = next_page(response.headers(), url);
        let text = response.text().await.map_err(|error| self.lost(&error))?;
        Ok(Answer { text, next })
    }

    /// Opens a file or an API path; errors are those of the status, too. `about` is the repository
    /// that messages name. The token goes to the endpoint only.
    pub(crate) async fn open(
        &self,
        url: &Url,
        range: Option<&Range<u64>>,
        about: &str,
    ) -> Result<Response, Trouble> {
        let mut request = self
            .client
            .get(url.clone())
            // Digests and ranges are of the bytes as they are.
            .header(header::ACCEPT_ENCODING, "identity");
        if let Some(token) = self
            .token
            .as_deref()
            .filter(|_| url.origin() == self.endpoint.origin())
        {
            request = request.bearer_auth(token);
        }
        if let Some(range) = range {
            let last = range.end.saturating_sub(1);
            request = request.header(header::RANGE, format!("bytes={}-{last}", range.start));
        }
        let response = request.send().await.map_err(|error| self.lost(&error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(self.trouble(url, response, about).await)
    }

    /// What a status other than success means.
    async fn trouble(&self, asked: &Url, response: Response, about: &str) -> Trouble {
        let status = response.status();
        let headers = response.headers().clone();
        let is_elsewhere = response.url() != asked;
        if status == StatusCode::TOO_MANY_REQUESTS {
            let retry_after = retry_after(&headers);
            return Trouble {
                error: Error::RateLimited {
                    retry_after,
                    has_token: self.token.is_some(),
                },
                is_final: false,
                retry_after,
            };
        }
        let text = |name: &str| {
            headers
                .get(name)
                .and_then(|value| value.to_str().ok())
                .map(str::to_owned)
        };
        let code = text("x-error-code");
        // Where files are kept, addresses expire: the hub gives another one.
        if status.is_server_error() || (is_elsewhere && code.is_none()) {
            return Trouble {
                retry_after: retry_after(&headers),
                ..Trouble::passing(self.offline(&format!("it answers {status}")))
            };
        }
        let message = match text("x-error-message") {
            Some(message) => message,
            None => response.text().await.unwrap_or_default(),
        };
        let message: String = message.chars().take(MAX_ERROR_BYTES).collect();
        Trouble::last(self.refusal(status, code.as_deref(), &message, asked, about))
    }

    fn refusal(
        &self,
        status: StatusCode,
        code: Option<&str>,
        message: &str,
        asked: &Url,
        about: &str,
    ) -> Error {
        let repo = about.to_owned();
        let endpoint = self.endpoint_text();
        let is_gated = code == Some("GatedRepo")
            || (code.is_none() && (message.contains("gated") || message.contains("restricted")));
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN if is_gated => {
                Error::Gated { repo, endpoint }
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN if self.token.is_none() => {
                Error::NotVisible { repo }
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Error::Token { repo, endpoint },
            StatusCode::NOT_FOUND => match code {
                Some("RevisionNotFound") => Error::Revision {
                    repo,
                    revision: revision_of(asked).unwrap_or_default(),
                },
                Some("EntryNotFound") => {
                    let file = asked.path().rsplit('/').next().unwrap_or_default();
                    Error::NotFound(format!("{repo}/{file}"))
                }
                _ => Error::NotFound(repo),
            },
            _ => Error::Unexpected(format!("{status} for {asked}: {message}")),
        }
    }

    /// A connection that was lost or never was.
    pub(crate) fn lost(&self, error: &reqwest::Error) -> Trouble {
        let mut cause: &dyn std::error::Error = error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        Trouble::passing(self.offline(&cause.to_string()))
    }

    pub(crate) fn offline(&self, reason: &str) -> Error {
        Error::Offline {
            endpoint: self.endpoint_text(),
            reason: reason.to_owned(),
        }
    }
}

/// The revision in an address of the API or of a file.
fn revision_of(url: &Url) -> Option<String> {
    let mut segments = url.path_segments()?;
    segments.find(|segment| matches!(*segment, "revision" | "resolve"))?;
    Some(segments.next()?.replace("%2F", "/"))
}

/// The wait an answer asks for: `Retry-After`, else what is left of the hub's window.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(wait) = text("retry-after") {
        return match wait.parse() {
            Ok(seconds) => Some(Duration::from_secs(seconds)),
            Err(_) => httpdate::parse_http_date(wait)
                .ok()
                .map(|at| at.duration_since(SystemTime::now()).unwrap_or_default()),
        };
    }
    // `RateLimit: "api";r=0;t=55`
    text("ratelimit")?
        .split(';')
        .find_map(|part| part.trim().strip_prefix("t=")?.parse().ok())
        .map(Duration::from_secs)
}

/// The target of `rel="next"`.
fn next_page(headers: &HeaderMap, base: &Url) -> Option<Url> {
    headers
        .get_all(header::LINK)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .find_map(|link| {
            let (target, parameters) = link.split_once(';')?;
            let is_next = parameters
                .split(';')
                .any(|parameter| matches!(parameter.trim(), "rel=\"next\"" | "rel=next"));
            let target = target.trim().strip_prefix('<')?.strip_suffix('>')?;
            if is_next {
                base.join(target).ok()
            } else {
                None
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                (
                    header::HeaderName::from_static(name),
                    header::HeaderValue::from_static(value),
                )
            })
            .collect()
    }

    #[test]
    fn waits_in_each_spelling() {
        let wait = |pairs: &[_]| retry_after(&headers(pairs)).map(|wait| wait.as_secs());
        assert_eq!(wait(&[("retry-after", "7")]), Some(7));
        assert_eq!(
            wait(&[("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")]),
            Some(0)
        );
        assert_eq!(wait(&[("ratelimit", "\"api\";r=0;t=55")]), Some(55));
        assert_eq!(wait(&[("retry-after", "soon")]), None);
        assert_eq!(wait(&[]), None);
    }

    #[test]
    fn pages_and_addresses() {
        let hub = Hub::new("http://host/mirror/", None).unwrap();
        let url = hub.url(&["api", "models", "o", "n", "revision", "refs/pr/1"]);
        assert_eq!(
            url.as_str(),
            "http://host/mirror/api/models/o/n/revision/refs%2Fpr%2F1"
        );
        assert_eq!(revision_of(&url).as_deref(), Some("refs/pr/1"));
        assert_eq!(
            hub.file_url("o/n", "abc", "a b.json").as_str(),
            "http://host/mirror/o/n/resolve/abc/a%20b.json"
        );
        let next = next_page(
            &headers(&[("link", "</api/models?cursor=x%3D>; rel=\"next\"")]),
            &url,
        );
        assert_eq!(next.unwrap().as_str(), "http://host/api/models?cursor=x%3D");
        assert_eq!(
            next_page(&headers(&[("link", "<x>; rel=\"prev\"")]), &url),
            None
        );
    }
}
