//! The documents of a repository that people and estimates read: README and config.json.

use futures::StreamExt;
use serde_json::Value;

use super::{
    Attempts, Error, Hub, PATIENCE, Repository, Trouble,
    request::{ANSWER_TIMEOUT, TOO_SLOW},
};

/// Longer documents are cut.
const MAX_BYTES: usize = 1 << 20;

/// What a person reads before downloading.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Card {
    /// Markdown, without the metadata at its top.
    pub readme: Option<String>,
    /// `config.json`; gated repositories show it to those with access only.
    pub config: Option<Value>,
}

impl Hub {
    /// Reads the documents; those that are missing or not for our eyes are left out.
    pub async fn card(&self, repository: &Repository) -> Result<Card, Error> {
        let (readme, config) = futures::try_join!(
            self.document(repository, "README.md"),
            self.document(repository, "config.json"),
        )?;
        Ok(Card {
            readme: readme.map(|text| without_front_matter(&text).to_owned()),
            config: config.and_then(|text| macmlx_json::parse_python(text.as_bytes()).ok()),
        })
    }

    async fn document(&self, repository: &Repository, path: &str) -> Result<Option<String>, Error> {
        if !repository.files.iter().any(|file| file.path == path) {
            return Ok(None);
        }
        let mut attempts = Attempts::new(PATIENCE);
        loop {
            let reading = self.document_once(repository, path);
            let trouble = match tokio::time::timeout(ANSWER_TIMEOUT, reading).await {
                Ok(Ok(text)) => return Ok(Some(text)),
                Ok(Err(trouble)) => trouble,
                Err(_) => Trouble::passing(self.offline(TOO_SLOW)),
            };
            match attempts.after(trouble).await {
                Ok(()) => {}
                Err(
                    Error::Gated { .. }
                    | Error::NotVisible { .. }
                    | Error::Token { .. }
                    | Error::NotFound(_),
                ) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    async fn document_once(&self, repository: &Repository, path: &str) -> Result<String, Trouble> {
        let id = &repository.listed.id;
        let url = self.file_url(id, &repository.commit, path);
        let mut body = self.open(&url, None, id).await?.bytes_stream();
        let mut bytes = Vec::new();
        while let Some(chunk) = body.next().await {
            bytes.extend_from_slice(&chunk.map_err(|error| self.lost(&error))?);
            if bytes.len() > MAX_BYTES {
                bytes.truncate(MAX_BYTES);
                break;
            }
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// What follows the metadata between two lines of `---`.
fn without_front_matter(text: &str) -> &str {
    let mut lines = text.split_inclusive('\n');
    if lines.next().map(str::trim_end) != Some("---") {
        return text;
    }
    let mut rest = text.len() - lines.clone().map(str::len).sum::<usize>();
    for line in lines {
        rest += line.len();
        if line.trim_end() == "---" {
            return text[rest..].trim_start_matches(['\r', '\n']);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_left_out() {
        for (text, body) in [
            ("---\nlicense: mit\n---\n\n# Model\n", "# Model\n"),
            ("---\r\nlicense: mit\r\n---\r\n# Model", "# Model"),
            ("---\nnever closed\n", "---\nnever closed\n"),
            ("# Model\n---\nline\n---\n", "# Model\n---\nline\n---\n"),
            ("---\na: b\n---", ""),
            ("", ""),
        ] {
            assert_eq!(without_front_matter(text), body);
        }
    }
}
