//! What people type to name a repository.

use super::Error;

/// Owner of models that are asked for by bare name.
const DEFAULT_OWNER: &str = "mlx-community";

/// Where links to repositories lead.
const HOSTS: [&str; 3] = ["huggingface.co/", "www.huggingface.co/", "hf.co/"];

/// A repository, and the revision that is wanted of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    pub owner: String,
    pub name: String,
    /// A branch, a tag or a commit; `None` is the main branch.
    pub revision: Option<String>,
}

impl Reference {
    /// Reads `owner/name`, a bare name of mlx-community or a link, with `@revision` if wanted. A link
    /// to a tree means its revision.
    pub fn parse(reference: &str) -> Result<Self, Error> {
        let invalid = || Error::Name(reference.to_owned());
        let text = reference.trim();
        let without_scheme = text
            .strip_prefix("https://")
            .or_else(|| text.strip_prefix("http://"));
        let address = without_scheme.unwrap_or(text);
        let path = HOSTS.iter().find_map(|host| address.strip_prefix(host));
        let text = path.unwrap_or(text).trim_end_matches('/');
        let tree = path.and_then(|_| text.split_once("/tree/"));
        let text = tree.map_or_else(|| text.to_owned(), |(id, tree)| format!("{id}@{tree}"));
        let (id, revision) = match text.split_once('@') {
            // In an address, dots would mean another path.
            Some((id, revision)) if !matches!(revision, "" | "." | "..") => {
                (id, Some(revision.to_owned()))
            }
            Some(_) => return Err(invalid()),
            None => (text.as_str(), None),
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
            Ok(Self {
                owner: owner.to_owned(),
                name: name.to_owned(),
                revision,
            })
        } else {
            Err(invalid())
        }
    }

    /// `owner/name`.
    pub fn id(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_revisions_and_bare_names() {
        for (text, id, revision) in [
            ("Qwen/Qwen3-0.6B@main", "Qwen/Qwen3-0.6B", Some("main")),
            ("Qwen3-0.6B-4bit", "mlx-community/Qwen3-0.6B-4bit", None),
            (
                "https://huggingface.co/Qwen/Qwen3-0.6B/",
                "Qwen/Qwen3-0.6B",
                None,
            ),
            ("hf.co/Qwen/Qwen3-0.6B", "Qwen/Qwen3-0.6B", None),
            (
                "http://www.huggingface.co/Qwen/Qwen3-0.6B/tree/refs/pr/1",
                "Qwen/Qwen3-0.6B",
                Some("refs/pr/1"),
            ),
        ] {
            let parsed = Reference::parse(text).unwrap();
            assert_eq!(parsed.id(), id);
            assert_eq!(parsed.revision.as_deref(), revision);
        }
        for bad in [
            "",
            "a/b/c",
            "https://example.com/a/b",
            "a/b/tree/main",
            "hf.co/a/b/tree/",
            "../x",
            "a/..",
            "a b",
            "a/b@",
            "a/b@..",
        ] {
            assert!(Reference::parse(bad).is_err(), "{bad}");
        }
    }
}
