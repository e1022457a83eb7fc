//! The pull of one model, from its name to its folder.

use std::{
    collections::HashSet,
    fs::{self, File, TryLockError},
    path::{Path, PathBuf},
};

use futures::TryStreamExt;
use hf_hub::{HFRepository, RepoTypeModel, repository::RepoTreeEntry};
use macmlx_settings::state_file;
use serde_json::{Value, json};

use super::{
    Error, Hub,
    error::{offline, translate},
    file::{Download, Remote, Step},
    parse,
    place::into_place,
    selection::{has_extension, hint_without_weights, is_needed},
};

/// Left free on the disk, whatever is downloaded.
const SPARE_BYTES: u64 = 256 << 20;
const META: &str = ".macmlx-meta.json";
const LOCK: &str = ".lock";

/// What to pull and where to.
#[derive(Debug, Clone)]
pub struct Request {
    /// `owner/name`, a bare name or a link, with `@revision` if wanted.
    pub reference: String,
    /// Folder of all models.
    pub models: PathBuf,
    /// Folder of unfinished downloads.
    pub downloads: PathBuf,
}

/// What happens during a pull.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// It is known what there is to do.
    Started {
        id: String,
        files: usize,
        total_bytes: u64,
        /// Already here from an earlier attempt.
        resumed_bytes: u64,
    },
    /// A file is next; `index` counts from 0.
    File {
        index: usize,
        path: String,
        size_bytes: u64,
        /// Of this file, already here.
        present_bytes: u64,
        /// In hexadecimal, where the hub says it.
        sha256: Option<String>,
    },
    /// Bytes here so far, of the total.
    Progress { done_bytes: u64 },
    /// A file is compared with the hub's digest.
    Verifying { path: String },
}

/// A model that is now there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pulled {
    pub id: String,
    pub path: PathBuf,
    /// The hub's commit the files are from.
    pub commit: String,
    pub size_bytes: u64,
}

/// Downloads a model. Dropping the future ends the pull; what is here stays for the next one.
pub async fn pull(
    hub: &Hub,
    request: &Request,
    report: &mut (dyn FnMut(Event) + Send),
) -> Result<Pulled, Error> {
    let (owner, name, revision) = parse(&request.reference)?;
    let id = format!("{owner}/{name}");
    let destination = request.models.join(&owner).join(&name);
    if destination.exists() {
        return Err(Error::Exists(id));
    }
    let folder = request.downloads.join(format!("{owner}%2F{name}"));
    fs::create_dir_all(&folder).map_err(Error::io(&folder))?;
    let _lock = lock(&folder, &id)?;

    let repo = hub.client.model(&owner, &name);
    let commit = commit(hub, &repo, &id, revision).await?;
    let files = needed_files(hub, &repo, &id, &commit).await?;
    prepare(&folder, &id, &commit)?;
    let download = Download {
        hub,
        repo: &repo,
        id: &id,
        commit: &commit,
        folder: &folder,
    };
    let total_bytes: u64 = files.iter().map(|file| file.size_bytes).sum();
    let mut done_bytes: u64 = files.iter().map(|file| download.present_bytes(file)).sum();
    check_space(&folder, total_bytes - done_bytes)?;
    report(Event::Started {
        id: id.clone(),
        files: files.len(),
        total_bytes,
        resumed_bytes: done_bytes,
    });
    for (index, file) in files.iter().enumerate() {
        report(Event::File {
            index,
            path: file.path.clone(),
            size_bytes: file.size_bytes,
            present_bytes: download.present_bytes(file),
            sha256: file.sha256.clone(),
        });
        download
            .fetch(file, &mut |step| {
                match step {
                    Step::Received(bytes) => done_bytes += bytes,
                    Step::Discarded(bytes) => done_bytes = done_bytes.saturating_sub(bytes),
                    Step::Verifying => report(Event::Verifying {
                        path: file.path.clone(),
                    }),
                }
                report(Event::Progress { done_bytes });
            })
            .await?;
    }
    fs::remove_file(folder.join(LOCK)).map_err(Error::io(folder.join(LOCK)))?;
    let place = (folder.clone(), destination.clone());
    tokio::task::spawn_blocking(move || into_place(&place.0, &place.1))
        .await
        .map_err(|error| Error::Unexpected(error.to_string()))??;
    Ok(Pulled {
        id,
        path: destination,
        commit,
        size_bytes: total_bytes,
    })
}

/// Held for as long as this process downloads.
fn lock(folder: &Path, id: &str) -> Result<File, Error> {
    let path = folder.join(LOCK);
    let file = File::create(&path).map_err(Error::io(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::Busy(id.to_owned())),
        Err(TryLockError::Error(error)) => Err(Error::io(path)(error)),
    }
}

/// The commit a revision is now: files of two commits are never mixed.
async fn commit(
    hub: &Hub,
    repo: &HFRepository<RepoTypeModel>,
    id: &str,
    revision: Option<String>,
) -> Result<String, Error> {
    let info = repo
        .info()
        .maybe_revision(revision)
        .send()
        .await
        .map_err(|error| translate(&error, id, hub).unwrap_or_else(|| offline(&error, hub)))?;
    info.sha
        .ok_or_else(|| Error::Unexpected("a model without a commit".into()))
}

async fn needed_files(
    hub: &Hub,
    repo: &HFRepository<RepoTypeModel>,
    id: &str,
    commit: &str,
) -> Result<Vec<Remote>, Error> {
    let failed =
        |error: hf_hub::HFError| translate(&error, id, hub).unwrap_or_else(|| offline(&error, hub));
    let entries: Vec<RepoTreeEntry> = repo
        .list_tree()
        .revision(commit)
        .send()
        .map_err(failed)?
        .try_collect()
        .await
        .map_err(failed)?;
    let mut large = HashSet::new();
    let mut files: Vec<Remote> = entries
        .into_iter()
        .filter_map(|entry| match entry {
            RepoTreeEntry::File {
                path, size, lfs, ..
            } => {
                if lfs.is_some() {
                    large.insert(path.clone());
                }
                Some(Remote {
                    path,
                    size_bytes: size,
                    sha256: None,
                })
            }
            RepoTreeEntry::Directory { .. } => None,
        })
        .collect();
    let all: Vec<String> = files.iter().map(|file| file.path.clone()).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    files.retain(|file| is_needed(&file.path, &all));
    if !files
        .iter()
        .any(|file| has_extension(&file.path, "safetensors"))
    {
        return Err(Error::NoWeights {
            repo: id.to_owned(),
            hint: hint_without_weights(&all),
        });
    }
    for file in &mut files {
        if large.contains(&file.path) {
            file.sha256 = digest(repo, &file.path, commit).await.map_err(failed)?;
        }
    }
    // Small files first: what is wrong with a model shows before gigabytes are here.
    files.sort_by(|left, right| {
        left.size_bytes
            .cmp(&right.size_bytes)
            .then_with(|| left.path.cmp(&right.path))
    });
    Ok(files)
}

/// The hub's entity tag of a large file is its SHA-256; its listing does not carry that.
async fn digest(
    repo: &HFRepository<RepoTypeModel>,
    path: &str,
    commit: &str,
) -> Result<Option<String>, hf_hub::HFError> {
    let metadata = match repo
        .get_file_metadata()
        .filepath(path)
        .revision(commit)
        .send()
        .await
    {
        Ok(metadata) => metadata,
        // A mirror that leaves the tag out; the size is still checked.
        Err(hf_hub::HFError::MalformedResponse { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let is_sha256 =
        metadata.etag.len() == 64 && metadata.etag.bytes().all(|c| c.is_ascii_hexdigit());
    Ok(is_sha256.then_some(metadata.etag))
}

/// Keeps what is there when it is of the same commit, else starts anew.
fn prepare(folder: &Path, id: &str, commit: &str) -> Result<(), Error> {
    let meta = folder.join(META);
    let known = fs::read(&meta)
        .ok()
        .and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    if known.is_some_and(|known| known["commitSHA"] == commit) {
        return Ok(());
    }
    for entry in fs::read_dir(folder).map_err(Error::io(folder))? {
        let path = entry.map_err(Error::io(folder))?.path();
        if path.is_file() && path.file_name() != Some(LOCK.as_ref()) {
            fs::remove_file(&path).map_err(Error::io(&path))?;
        }
    }
    let text = json!({"modelID": id, "commitSHA": commit}).to_string();
    state_file::write(&meta, text.as_bytes()).map_err(Error::io(meta))
}

fn check_space(folder: &Path, needed_bytes: u64) -> Result<(), Error> {
    let status = rustix::fs::statvfs(folder).map_err(|errno| Error::io(folder)(errno.into()))?;
    let available_bytes = status.f_bavail.saturating_mul(status.f_frsize);
    if available_bytes < needed_bytes.saturating_add(SPARE_BYTES) {
        return Err(Error::DiskFull {
            path: folder.into(),
            needed_bytes,
            available_bytes,
        });
    }
    Ok(())
}
