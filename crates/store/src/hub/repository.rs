//! What one repository holds at one commit.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Error, Hub, Listed, Reference,
    search::Wire,
    selection::{has_extension, hint_without_weights, is_needed},
    wire,
};

/// A repository at a commit.
#[derive(Debug, Clone, PartialEq)]
pub struct Repository {
    pub listed: Listed,
    /// The commit that the revision means.
    pub commit: String,
    pub license: Option<String>,
    /// All files, in the order of their names.
    pub files: Vec<RemoteFile>,
}

/// A file as the hub lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteFile {
    pub path: String,
    pub size_bytes: u64,
    /// The digest in hexadecimal, for files in large file storage.
    pub sha256: Option<String>,
    /// Git's name for the contents, SHA-1 in hexadecimal, of all other files.
    pub blob_id: Option<String>,
    /// A model of this repository needs it.
    pub is_needed: bool,
}

#[derive(Debug, Deserialize)]
struct RepositoryWire {
    #[serde(flatten)]
    model: Wire,
    #[serde(default, deserialize_with = "wire::text")]
    sha: Option<String>,
    #[serde(default, rename = "cardData")]
    card_data: Value,
    #[serde(default, deserialize_with = "wire::list")]
    siblings: Vec<Sibling>,
}

#[derive(Debug, Deserialize)]
struct Sibling {
    rfilename: String,
    #[serde(default, deserialize_with = "wire::size")]
    size: Option<u64>,
    #[serde(default, rename = "blobId", deserialize_with = "wire::text")]
    blob_id: Option<String>,
    #[serde(default, deserialize_with = "wire::maybe")]
    lfs: Option<LargeFile>,
}

#[derive(Debug, Deserialize)]
struct LargeFile {
    #[serde(default, deserialize_with = "wire::text")]
    sha256: Option<String>,
    #[serde(default, deserialize_with = "wire::size")]
    size: Option<u64>,
}

impl Hub {
    /// A repository as it is now, or within the last minute if `may_be_recent`.
    pub async fn repository(
        &self,
        reference: &Reference,
        may_be_recent: bool,
    ) -> Result<Repository, Error> {
        let id = reference.id();
        let mut segments = vec!["api", "models", &reference.owner, &reference.name];
        if let Some(revision) = &reference.revision {
            segments.extend(["revision", revision]);
        }
        let mut url = self.url(&segments);
        // With sizes and digests.
        url.query_pairs_mut().append_pair("blobs", "true");
        let answer = if may_be_recent {
            self.recent_answer(&url, &id).await?
        } else {
            self.answer(&url, &id).await?
        };
        Repository::read(&id, &answer.text)
    }
}

impl Repository {
    /// What the hub's answer about `id` says.
    fn read(id: &str, answer: &str) -> Result<Self, Error> {
        let unexpected = |reason: String| Error::Unexpected(format!("`{id}`: {reason}"));
        let wire: RepositoryWire = macmlx_json::read_document(answer.as_bytes())
            .map_err(|error| unexpected(error.to_string()))?;
        let names: Vec<&str> = wire
            .siblings
            .iter()
            .map(|file| file.rfilename.as_str())
            .collect();
        let needed: Vec<bool> = names.iter().map(|name| is_needed(name, &names)).collect();
        let mut files = Vec::with_capacity(needed.len());
        for (file, is_needed) in wire.siblings.into_iter().zip(needed) {
            let large = file.lfs.as_ref();
            let size_bytes = match file.size.or_else(|| large?.size) {
                Some(size_bytes) => size_bytes,
                None if is_needed => {
                    return Err(unexpected(format!("no size of {}", file.rfilename)));
                }
                None => 0,
            };
            files.push(RemoteFile {
                path: file.rfilename,
                size_bytes,
                // Of a large file it names the pointer.
                blob_id: file.blob_id.filter(|_| large.is_none()),
                sha256: file.lfs.and_then(|file| file.sha256),
                is_needed,
            });
        }
        files.sort_by(|left, right| left.path.cmp(&right.path));
        let commit = wire
            .sha
            .ok_or_else(|| unexpected("a model without a commit".into()))?;
        let listed = wire.model.into_listed();
        let listed = listed.ok_or_else(|| unexpected("a model without a name".into()))?;
        Ok(Self {
            license: license(&wire.card_data, &listed.tags),
            listed,
            commit,
            files,
        })
    }

    /// Bytes of the files that are needed.
    pub fn download_bytes(&self) -> u64 {
        self.files
            .iter()
            .filter(|file| file.is_needed)
            .map(|file| file.size_bytes)
            .fold(0, u64::saturating_add)
    }

    /// Bytes of the weights among them.
    pub fn weights_bytes(&self) -> u64 {
        self.files
            .iter()
            .filter(|file| file.is_needed && has_extension(&file.path, "safetensors"))
            .map(|file| file.size_bytes)
            .fold(0, u64::saturating_add)
    }

    /// The files to download, small ones first: what is wrong with a model shows before gigabytes
    /// are here.
    pub fn into_needed(self) -> Result<Vec<RemoteFile>, Error> {
        let is_weights = |file: &RemoteFile| has_extension(&file.path, "safetensors");
        if !self
            .files
            .iter()
            .any(|file| file.is_needed && is_weights(file))
        {
            let names: Vec<&str> = self.files.iter().map(|file| file.path.as_str()).collect();
            return Err(Error::NoWeights {
                repo: self.listed.id,
                hint: hint_without_weights(&names),
            });
        }
        let mut files: Vec<RemoteFile> = self
            .files
            .into_iter()
            .filter(|file| file.is_needed)
            .collect();
        files.sort_by(|left, right| {
            (left.size_bytes, &left.path).cmp(&(right.size_bytes, &right.path))
        });
        Ok(files)
    }
}

/// The card's licence by its name if it has one, else what the tags say.
fn license(card: &Value, tags: &[String]) -> Option<String> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(all) => all.first()?.as_str().map(str::to_owned),
        _ => None,
    };
    match text(&card["license"]) {
        Some(license) if license == "other" => text(&card["license_name"]).or(Some(license)),
        Some(license) => Some(license),
        None => tags
            .iter()
            .find_map(|tag| tag.strip_prefix("license:").map(str::to_owned)),
    }
}

#[cfg(test)]
mod tests {
    use macmlx_test_support::{Source, ways_of_writing};
    use serde_json::json;

    use super::*;

    fn answer() -> Value {
        json!({
            "id": "a/b", "sha": "c0", "downloads": 1, "cardData": {"license": "mit"},
            "siblings": [
                {"rfilename": "config.json", "size": 20, "blobId": "b0"},
                {"rfilename": "model.safetensors", "size": 1000,
                    "lfs": {"sha256": "s0", "size": 1000, "pointerSize": 134}},
                {"rfilename": "notes.txt"},
            ],
        })
    }

    #[test]
    fn an_answer_is_read_however_it_is_written() {
        let plain = Repository::read("a/b", &answer().to_string()).unwrap();
        assert_eq!(
            (plain.download_bytes(), plain.weights_bytes()),
            (1020, 1000)
        );
        for (way, bytes) in ways_of_writing(&answer(), Source::Message) {
            let text = String::from_utf8_lossy(&bytes);
            assert_eq!(Repository::read("a/b", &text).unwrap(), plain, "{way}");
        }
        for (place, value) in [
            ("/siblings/0/size", json!("20")),
            ("/siblings/0/size", json!(20.0)),
            ("/siblings/1/size", json!(null)),
            ("/siblings/1/size", json!(-1)),
            ("/siblings/1/lfs/size", json!("many")),
            ("/siblings/1/lfs/pointerSize", json!("134")),
            ("/downloads", json!("1")),
        ] {
            let mut odd = answer();
            *odd.pointer_mut(place).unwrap() = value.clone();
            let read = Repository::read("a/b", &odd.to_string()).unwrap();
            assert_eq!(read, plain, "{place}: {value}");
        }
        let mut odd = answer();
        odd["siblings"][0]["size"] = json!(null);
        let error = Repository::read("a/b", &odd.to_string()).unwrap_err();
        assert!(
            error.to_string().contains("no size of config.json"),
            "{error}"
        );
    }

    #[test]
    fn licences_where_they_are() {
        let tags = ["license:mit".to_owned()];
        assert_eq!(license(&Value::Null, &tags).as_deref(), Some("mit"));
        assert_eq!(
            license(&json!({"license": "apache-2.0"}), &tags).as_deref(),
            Some("apache-2.0")
        );
        let named = json!({"license": "other", "license_name": "llama3"});
        assert_eq!(license(&named, &[]).as_deref(), Some("llama3"));
        assert_eq!(license(&Value::Null, &[]), None);
    }
}
