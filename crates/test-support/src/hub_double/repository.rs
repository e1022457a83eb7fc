//! What the hub double serves: repositories, their commits, their files.

use std::collections::BTreeMap;

use axum::body::Bytes;
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// A repository of models.
#[derive(Debug, Clone)]
pub struct Repository {
    /// `owner/name`.
    pub id: String,
    /// The newest is the last, and `main`.
    pub commits: Vec<Commit>,
    pub tags: Vec<String>,
    pub downloads: u64,
    pub likes: u64,
    /// RFC 3339.
    pub modified: String,
    /// Its files are for those whose token the double knows.
    pub is_gated: bool,
    /// What the hub says it is for.
    pub pipeline_tag: &'static str,
}

/// The files at one point of a repository's history, by path.
#[derive(Debug, Clone)]
pub struct Commit {
    pub sha: String,
    pub files: BTreeMap<String, File>,
}

/// A file.
#[derive(Debug, Clone)]
pub struct File {
    pub bytes: Bytes,
    /// The digest that the hub gives of a file in large file storage, in hexadecimal.
    pub sha256: Option<String>,
}

impl File {
    /// A file that is kept in git.
    pub fn small(bytes: impl Into<Bytes>) -> Self {
        Self {
            bytes: bytes.into(),
            sha256: None,
        }
    }

    /// A file that is kept in large file storage, to which the hub redirects.
    pub fn large(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self {
            sha256: Some(hex::encode(Sha256::digest(&bytes))),
            bytes,
        }
    }

    /// Git's name of the contents.
    pub(super) fn blob_id(&self) -> String {
        let header = format!("blob {}\0", self.bytes.len());
        hex::encode(
            Sha1::new()
                .chain_update(header)
                .chain_update(&self.bytes)
                .finalize(),
        )
    }

    pub(super) fn etag(&self) -> String {
        self.sha256.clone().unwrap_or_else(|| self.blob_id())
    }
}

impl Commit {
    /// Named by what is in it.
    pub fn new(files: impl IntoIterator<Item = (String, File)>) -> Self {
        let files: BTreeMap<String, File> = files.into_iter().collect();
        let mut hasher = Sha1::new();
        for (path, file) in &files {
            hasher.update(format!("{path} {}\n", file.etag()));
        }
        Self {
            sha: hex::encode(hasher.finalize()),
            files,
        }
    }
}

impl Repository {
    /// A repository of one commit.
    pub fn new<'a>(id: &str, files: impl IntoIterator<Item = (&'a str, File)>) -> Self {
        let files = files
            .into_iter()
            .map(|(path, file)| (path.to_owned(), file));
        Self {
            id: id.to_owned(),
            commits: vec![Commit::new(files)],
            tags: vec!["mlx".into(), "safetensors".into(), "license:mit".into()],
            downloads: 1,
            likes: 1,
            modified: "2026-01-02T03:04:05.000Z".into(),
            is_gated: false,
            pipeline_tag: "text-generation",
        }
    }

    /// The commit that a branch, the name of a pull request or a commit means.
    pub(super) fn at(&self, revision: &str) -> Option<&Commit> {
        match revision {
            "main" => self.commits.last(),
            sha => self.commits.iter().find(|commit| commit.sha == sha),
        }
    }
}
