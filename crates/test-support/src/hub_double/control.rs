//! The double's own routes, for tests in other languages.

use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde::Deserialize;

use super::{Behaviour, Commit, File, FileRequest, Shared};

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/double/behaviour", get(behaviour).put(behave))
        .route("/double/requests", get(requests))
        .route("/double/commits", post(commit))
}

async fn behaviour(State(shared): State<Shared>) -> Json<Behaviour> {
    Json(shared.lock().behaviour.clone())
}

/// Fields that are left out are as in a hub that works.
async fn behave(State(shared): State<Shared>, Json(behaviour): Json<Behaviour>) -> Json<Behaviour> {
    shared.lock().behaviour = behaviour.clone();
    Json(behaviour)
}

async fn requests(State(shared): State<Shared>) -> Json<Vec<FileRequest>> {
    Json(shared.lock().requests.clone())
}

/// A change to make: one small file.
#[derive(Debug, Deserialize)]
struct Change {
    repository: String,
    path: String,
    text: String,
}

/// Adds a commit, which is `main` from then on; answers with its name.
async fn commit(State(shared): State<Shared>, Json(change): Json<Change>) -> Response {
    let mut state = shared.lock();
    let Some(repository) = state.repositories.get_mut(&change.repository) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let mut files = repository
        .commits
        .last()
        .map(|commit| commit.files.clone())
        .unwrap_or_default();
    files.insert(change.path, File::small(change.text));
    let commit = Commit::new(files);
    let sha = commit.sha.clone();
    repository.commits.push(commit);
    Json(sha).into_response()
}
