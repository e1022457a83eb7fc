//! `/api/pull`, `/api/delete` and `/api/copy`.

use macmlx_inference::PullProgress;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::read_model_name;
use crate::{Error, json};

/// The body of a pull or a deletion.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ollama::FilesRequest)]
pub struct FilesRequest {
    model: Option<String>,
    /// Its older name.
    name: Option<String>,
    /// Whether a pull streams its progress; default: true.
    stream: Option<bool>,
}

/// A model to pull or delete.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    /// The name as the client wrote it.
    pub model: String,
    pub wants_stream: bool,
}

impl Request {
    pub fn parse(body: &[u8]) -> Result<Self, Error> {
        let fields: FilesRequest = json::fields(&json::object(body)?)?;
        Ok(Self {
            model: read_model_name(fields.model, fields.name)?,
            wants_stream: fields.stream != Some(false),
        })
    }

    /// Whether the local model `id` is what the name means, and not one that stands in for it. Names
    /// with an owner mean one repository only.
    pub fn means(&self, id: &str) -> bool {
        let name = self.model.trim().to_lowercase();
        let bare = name.split(':').next().unwrap_or(&name);
        let id = id.to_lowercase();
        !bare.is_empty()
            && !bare.contains('/')
            && id.rsplit('/').next().is_some_and(|id| id.starts_with(bare))
    }

    /// The repository to pull, as the hub knows it.
    pub fn repository(&self) -> Result<String, Error> {
        repository(&self.model)
    }
}

/// The body of a copy.
#[derive(Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[schema(as = ollama::CopyRequest)]
pub struct Copy {
    pub source: String,
    pub destination: String,
}

impl Copy {
    pub fn parse(body: &[u8]) -> Result<Self, Error> {
        let copy: Self = json::fields(&json::object(body)?)?;
        for (name, value) in [("source", &copy.source), ("destination", &copy.destination)] {
            if value.trim().is_empty() {
                return Err(Error::invalid(name, format!("{name} is empty")));
            }
        }
        Ok(copy)
    }
}

/// Names of Ollama's own library have no owner; others name a host or mean Hugging Face.
fn repository(name: &str) -> Result<String, Error> {
    let name = name.trim();
    let without_scheme = name
        .strip_prefix("https://")
        .or_else(|| name.strip_prefix("http://"))
        .unwrap_or(name);
    let id = ["hf.co/", "huggingface.co/"]
        .iter()
        .find_map(|host| without_scheme.strip_prefix(host))
        .unwrap_or(without_scheme)
        .trim_end_matches('/');
    let (id, tag) = match id.split_once(':') {
        Some((id, tag)) => (id, Some(tag)),
        None => (id, None),
    };
    let parts: Vec<&str> = id.split('/').collect();
    match (parts.as_slice(), tag) {
        ([""], _) => Err(Error::invalid("model", "model is required")),
        ([_] | ["library", _] | [_, "library", _], _) => Err(Error::invalid(
            "model",
            format!(
                "`{name}` is a name of Ollama's library; models come from Hugging Face here: name \
                 a repository with MLX weights, such as `mlx-community/Qwen3-8B-4bit`"
            ),
        )),
        ([owner, repository], None | Some("latest")) if is_plain(owner) && is_plain(repository) => {
            Ok(format!("{owner}/{repository}"))
        }
        ([_, _], Some(tag)) => Err(Error::unsupported(
            "model",
            format!(
                "`:{tag}` chooses one GGUF file of a repository; here a repository is one model: \
                 name one with the quantization you want"
            ),
        )),
        _ => Err(Error::invalid(
            "model",
            format!("`{name}` is not a repository of Hugging Face; use OWNER/NAME"),
        )),
    }
}

/// Returns whether a part of a name has only plain characters; `@` begins a revision.
fn is_plain(part: &str) -> bool {
    !part.is_empty()
        && !part.starts_with('.')
        && part
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@'))
}

/// A frame of a pull.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ollama::Progress)]
pub struct Progress {
    status: String,
    /// Bytes of the file, where the hub says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    /// Bytes of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    /// Bytes of the file that are here.
    #[serde(skip_serializing_if = "Option::is_none")]
    completed: Option<u64>,
}

impl Progress {
    /// A step without numbers.
    pub fn status(status: impl Into<String>) -> Self {
        Self {
            status: status.into(),
            digest: None,
            total: None,
            completed: None,
        }
    }

    /// The last frame, and the whole reply to a pull that is not streamed.
    pub fn success() -> Self {
        Self::status("success")
    }
}

impl From<PullProgress> for Progress {
    fn from(progress: PullProgress) -> Self {
        match progress {
            PullProgress::Listing => Self::status("pulling manifest"),
            PullProgress::File {
                path,
                sha256,
                total_bytes,
                completed_bytes,
            } => Self {
                status: format!("pulling {path}"),
                digest: sha256.map(|sha256| format!("sha256:{sha256}")),
                total: Some(total_bytes),
                completed: Some(completed_bytes),
            },
            PullProgress::Verifying { path } => Self::status(format!("verifying {path}")),
            PullProgress::Done { .. } => Self::success(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn repositories_in_every_spelling() {
        for name in [
            "owner/Model-4bit",
            "hf.co/owner/Model-4bit",
            "huggingface.co/owner/Model-4bit:latest",
            "https://huggingface.co/owner/Model-4bit/",
            " owner/Model-4bit ",
        ] {
            assert_eq!(repository(name).unwrap(), "owner/Model-4bit", "{name}");
        }
        assert_eq!(repository("owner/m@main").unwrap(), "owner/m@main");
    }

    #[test]
    fn a_local_model_may_be_what_a_bare_name_means() {
        let means = |name: &str| {
            Request {
                model: name.into(),
                wants_stream: true,
            }
            .means("mlx-community/Qwen3-8B-4bit")
        };
        for name in ["qwen3:8b", "Qwen3-8B-4bit", "qwen3-8b-4bit:latest"] {
            assert!(means(name), "{name}");
        }
        for name in ["llama3.2", "mlx-community/Qwen3-8B", "", ":8b"] {
            assert!(!means(name), "{name}");
        }
    }

    #[test]
    fn names_of_other_registries_are_told_what_to_name() {
        for name in [
            "qwen3:8b",
            "llama3.2",
            "library/qwen3",
            "registry.ollama.ai/library/qwen3:8b",
        ] {
            let message = repository(name).unwrap_err().to_string();
            assert!(message.contains("Hugging Face"), "{name}: {message}");
        }
        assert!(matches!(
            repository("hf.co/owner/model-GGUF:Q4_K_M"),
            Err(Error::Unsupported { .. })
        ));
        for name in ["", "a/b/c", "../x", "a/", "/a", "a b/c", "a/b?c"] {
            assert!(repository(name).is_err(), "{name}");
        }
    }

    #[test]
    fn bodies_are_read_and_wrong_ones_named() {
        assert_eq!(
            Request::parse(br#"{"name": "a/b", "stream": false, "insecure": true}"#).unwrap(),
            Request {
                model: "a/b".into(),
                wants_stream: false
            }
        );
        assert!(
            Request::parse(b"{\"model\": \"a/b\"}")
                .unwrap()
                .wants_stream
        );
        assert!(Copy::parse(br#"{"source": "a", "destination": "b"}"#).is_ok());
        for (body, named) in [
            ("{}", "source"),
            (r#"{"source": "a"}"#, "destination"),
            (r#"{"source": "a", "destination": " "}"#, "destination"),
            (r#"{"source": 1, "destination": "b"}"#, "source"),
        ] {
            let error = Copy::parse(body.as_bytes()).unwrap_err();
            assert!(
                matches!(&error, Error::Invalid { param: Some(param), .. } if param == named),
                "{body}: {error:?}"
            );
        }
    }

    #[test]
    fn progress_has_numbers_where_there_are_some() {
        let file = PullProgress::File {
            path: "model.safetensors".into(),
            sha256: Some("ab".into()),
            total_bytes: 10,
            completed_bytes: 0,
        };
        assert_eq!(
            json!(Progress::from(file)),
            json!({
                "status": "pulling model.safetensors",
                "digest": "sha256:ab",
                "total": 10,
                "completed": 0,
            })
        );
        assert_eq!(
            json!(Progress::from(PullProgress::Listing)),
            json!({"status": "pulling manifest"})
        );
    }
}
