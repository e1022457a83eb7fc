//! Listings: models, one model, its files.

use axum::{
    Json,
    extract::{Path, Query, RawQuery, State},
    http::{HeaderMap, header},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use super::{Commit, Repository, Shared, find, refuse};

type Pairs = Query<Vec<(String, String)>>;

fn get<'a>(query: &'a [(String, String)], name: &str) -> Option<&'a str> {
    query
        .iter()
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.as_str())
}

/// `GET /api/models`: by name, owner and tag, in order, a page at a time.
pub(super) async fn list(
    State(shared): State<Shared>,
    Query(query): Pairs,
    RawQuery(raw): RawQuery,
    headers: HeaderMap,
) -> Response {
    let state = shared.lock();
    if let Some(refusal) = state.behaviour.refuse {
        return refuse(&state, refusal);
    }
    let mut found: Vec<&Repository> = state
        .repositories
        .values()
        .filter(|repository| {
            let id = repository.id.to_lowercase();
            get(&query, "search").is_none_or(|text| id.contains(&text.to_lowercase()))
                && get(&query, "author")
                    .is_none_or(|author| id.starts_with(&format!("{}/", author.to_lowercase())))
                && query
                    .iter()
                    .filter(|(key, _)| key == "filter")
                    .all(|(_, tag)| repository.tags.contains(tag))
        })
        .collect();
    match get(&query, "sort") {
        Some("likes") => found.sort_by_key(|repository| std::cmp::Reverse(repository.likes)),
        Some("lastModified" | "last_modified") => {
            found.sort_by(|left, right| right.modified.cmp(&left.modified));
        }
        _ => found.sort_by_key(|repository| std::cmp::Reverse(repository.downloads)),
    }
    let number = |name: &str| get(&query, name).and_then(|text| text.parse::<usize>().ok());
    let start = number("cursor").unwrap_or(0).min(found.len());
    let limit = number("limit").unwrap_or(1000).max(1);
    let page = found[start..].iter().take(limit);
    let models: Vec<Value> = page
        .map(|repository| description(repository, repository.commits.last(), false))
        .collect();
    let mut response = Json(&models).into_response();
    let next = start + models.len();
    if next < found.len() {
        let host = headers
            .get(header::HOST)
            .and_then(|host| host.to_str().ok())
            .unwrap_or_default();
        let others = raw.unwrap_or_default();
        let others = others
            .split('&')
            .filter(|pair| !pair.is_empty() && !pair.starts_with("cursor="));
        let mut link = format!("<http://{host}/api/models?cursor={next}");
        for pair in others {
            link.push('&');
            link.push_str(pair);
        }
        link.push_str(">; rel=\"next\"");
        response
            .headers_mut()
            .insert(header::LINK, link.try_into().unwrap());
    }
    response
}

/// `GET /api/models/owner/name`
pub(super) async fn info(
    State(shared): State<Shared>,
    Path((owner, name)): Path<(String, String)>,
    query: Pairs,
    headers: HeaderMap,
) -> Response {
    describe(
        &shared,
        &format!("{owner}/{name}"),
        "main",
        &query.0,
        &headers,
    )
}

/// `GET /api/models/owner/name/revision/revision`
pub(super) async fn info_at(
    State(shared): State<Shared>,
    Path((owner, name, revision)): Path<(String, String, String)>,
    query: Pairs,
    headers: HeaderMap,
) -> Response {
    describe(
        &shared,
        &format!("{owner}/{name}"),
        &revision,
        &query.0,
        &headers,
    )
}

fn describe(
    shared: &Shared,
    id: &str,
    revision: &str,
    query: &[(String, String)],
    headers: &HeaderMap,
) -> Response {
    let mut state = shared.lock();
    let has_blobs = get(query, "blobs").is_some();
    match find(&mut state, headers, id, revision) {
        Ok((repository, commit)) => {
            Json(description(repository, Some(commit), has_blobs)).into_response()
        }
        Err(response) => *response,
    }
}

/// A model as the hub describes it, its files with sizes and digests if wanted.
fn description(repository: &Repository, commit: Option<&Commit>, has_blobs: bool) -> Value {
    let files = commit.map(|commit| &commit.files);
    let config: Value = files
        .and_then(|files| serde_json::from_slice(&files.get("config.json")?.bytes).ok())
        .unwrap_or(json!({}));
    let siblings: Vec<Value> = files
        .into_iter()
        .flatten()
        .map(|(path, file)| {
            let mut sibling = json!({"rfilename": path});
            if has_blobs {
                sibling["size"] = file.bytes.len().into();
                sibling["blobId"] = file.blob_id().into();
                if let Some(sha256) = &file.sha256 {
                    sibling["lfs"] = json!({
                        "sha256": sha256, "size": file.bytes.len(), "pointerSize": 134
                    });
                }
            }
            sibling
        })
        .collect();
    let license = repository
        .tags
        .iter()
        .find_map(|tag| tag.strip_prefix("license:"));
    json!({
        "_id": "0123456789abcdef01234567",
        "id": repository.id,
        "modelId": repository.id,
        "author": repository.id.split('/').next(),
        "sha": commit.map(|commit| &commit.sha),
        "lastModified": repository.modified,
        "createdAt": repository.modified,
        "private": false,
        "disabled": false,
        "gated": if repository.is_gated { json!("auto") } else { json!(false) },
        "downloads": repository.downloads,
        "likes": repository.likes,
        "tags": repository.tags,
        "pipeline_tag": repository.pipeline_tag,
        "library_name": "mlx",
        "config": config,
        "cardData": {"license": license},
        "siblings": siblings,
    })
}

/// `GET /api/models/owner/name/tree/revision`
pub(super) async fn tree(
    State(shared): State<Shared>,
    Path((owner, name, revision)): Path<(String, String, String)>,
    headers: HeaderMap,
) -> Response {
    let mut state = shared.lock();
    let commit = match find(&mut state, &headers, &format!("{owner}/{name}"), &revision) {
        Ok((_, commit)) => commit,
        Err(response) => return *response,
    };
    let entries: Vec<Value> = commit
        .files
        .iter()
        .map(|(path, file)| {
            let mut entry = json!({
                "type": "file", "path": path, "size": file.bytes.len(), "oid": file.blob_id()
            });
            if let Some(sha256) = &file.sha256 {
                entry["lfs"] = json!({"oid": sha256, "size": file.bytes.len(), "pointerSize": 134});
            }
            entry
        })
        .collect();
    Json(entries).into_response()
}
