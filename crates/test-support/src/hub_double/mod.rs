//! A stand-in for the Hugging Face Hub on loopback: listings, files with redirects and ranges, and
//! failures on demand.
//!
//! Large files are served from a second port, as the hub's content network is another host. It is
//! checked against Hugging Face's own client in `tests/downloads`.

#![expect(clippy::unwrap_used, reason = "a double fails tests by panicking")]

mod api;
mod behaviour;
mod content;
mod control;
mod folder;
mod repository;

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc};

use axum::{
    Router,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::json;
use tokio::{net::TcpListener, task::AbortHandle};

pub use behaviour::{Behaviour, Refusal};
pub use repository::{Commit, File, Repository};

/// A running double. It ends when it is dropped.
#[derive(Debug)]
pub struct HubDouble {
    address: SocketAddr,
    shared: Shared,
    tasks: Vec<AbortHandle>,
}

/// A request for a file's contents, wherever it came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileRequest {
    pub path: String,
    pub start: usize,
    /// Bytes that were handed to the connection.
    pub sent: usize,
    /// Sent to the content network, which no token concerns.
    pub is_elsewhere: bool,
    pub has_token: bool,
}

#[derive(Debug, Default)]
struct State {
    repositories: BTreeMap<String, Repository>,
    behaviour: Behaviour,
    requests: Vec<FileRequest>,
    /// Contents that are being sent now, and how many were at once at most.
    open: usize,
    most_open: usize,
    authorization: Option<String>,
    /// Address of the content network.
    content: Option<SocketAddr>,
    /// Addresses that were given out, and how often they were used.
    addresses: Vec<Address>,
}

#[derive(Debug)]
struct Address {
    file: File,
    path: String,
    uses: u32,
}

type Shared = Arc<Mutex<State>>;

impl HubDouble {
    /// Serves repositories on free ports.
    pub async fn start(repositories: impl IntoIterator<Item = Repository>) -> Self {
        let shared = Shared::default();
        shared.lock().repositories = repositories
            .into_iter()
            .map(|repository| (repository.id.clone(), repository))
            .collect();
        let hub = Router::new()
            .route("/api/models", get(api::list))
            .route("/api/models/{owner}/{name}", get(api::info))
            .route(
                "/api/models/{owner}/{name}/revision/{revision}",
                get(api::info_at),
            )
            .route("/api/models/{owner}/{name}/tree/{revision}", get(api::tree))
            .route(
                "/{owner}/{name}/resolve/{revision}/{*path}",
                get(content::resolve),
            )
            .merge(control::routes())
            .with_state(shared.clone());
        let content = Router::new()
            .route("/content/{address}/{*path}", get(content::elsewhere))
            .with_state(shared.clone());
        let (address, hub) = serve(hub).await;
        let (elsewhere, content) = serve(content).await;
        shared.lock().content = Some(elsewhere);
        Self {
            address,
            shared,
            tasks: vec![hub, content],
        }
    }

    /// Serves each folder `owner/name` below a folder as a repository.
    pub async fn of_folder(folder: &std::path::Path) -> std::io::Result<Self> {
        Ok(Self::start(folder::repositories(folder)?).await)
    }

    /// The endpoint.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Makes it misbehave like this from now on.
    pub fn behave(&self, behaviour: Behaviour) {
        self.shared.lock().behaviour = behaviour;
    }

    /// Adds a commit, which is `main` from now on.
    pub fn commit(&self, id: &str, commit: Commit) {
        let mut state = self.shared.lock();
        state.repositories.get_mut(id).unwrap().commits.push(commit);
    }

    /// Leaves only the newest commit of a repository.
    pub fn rewrite_history(&self, id: &str) {
        let mut state = self.shared.lock();
        let commits = &mut state.repositories.get_mut(id).unwrap().commits;
        commits.drain(..commits.len() - 1);
    }

    /// The commit that `main` is.
    pub fn head(&self, id: &str) -> String {
        let state = self.shared.lock();
        state.repositories[id].at("main").unwrap().sha.clone()
    }

    /// Requests for contents so far, in order.
    pub fn requests(&self) -> Vec<FileRequest> {
        self.shared.lock().requests.clone()
    }

    /// How many contents were sent at the same time.
    pub fn most_connections(&self) -> usize {
        self.shared.lock().most_open
    }

    /// The `Authorization` header of the last request to the hub itself.
    pub fn authorization(&self) -> Option<String> {
        self.shared.lock().authorization.clone()
    }
}

impl Drop for HubDouble {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

async fn serve(router: Router) -> (SocketAddr, AbortHandle) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(async move { axum::serve(listener, router).await });
    (address, task.abort_handle())
}

/// The token of a request.
fn token(headers: &HeaderMap) -> Option<&str> {
    headers
        .get(header::AUTHORIZATION)?
        .to_str()
        .ok()?
        .strip_prefix("Bearer ")
}

/// An error in the hub's form: a code in a header, a sentence in the body.
fn error(status: StatusCode, code: Option<&'static str>, message: &str) -> Response {
    let mut response = (status, axum::Json(json!({"error": message}))).into_response();
    if let Some(code) = code {
        let code = header::HeaderValue::from_static(code);
        response.headers_mut().insert("x-error-code", code);
    }
    if let Ok(message) = message.try_into() {
        response.headers_mut().insert("x-error-message", message);
    }
    response
}

fn refuse(state: &State, refusal: Refusal) -> Response {
    let mut response = match refusal {
        Refusal::Gated => error(
            StatusCode::FORBIDDEN,
            Some("GatedRepo"),
            "Access to this model is restricted.",
        ),
        Refusal::Unauthorized => error(
            StatusCode::UNAUTHORIZED,
            Some("RepoNotFound"),
            "Invalid username or password.",
        ),
        Refusal::NotFound => error(
            StatusCode::NOT_FOUND,
            Some("RepoNotFound"),
            "Repository not found",
        ),
        Refusal::RateLimited => error(
            StatusCode::TOO_MANY_REQUESTS,
            None,
            "We had to rate limit you.",
        ),
        Refusal::Unavailable => error(StatusCode::SERVICE_UNAVAILABLE, None, "Try later."),
    };
    if let Some(seconds) = state.behaviour.retry_after_seconds {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// The repository and commit that a request means, if it may see them; remembers the token.
fn find<'a>(
    state: &'a mut State,
    headers: &HeaderMap,
    id: &str,
    revision: &str,
) -> Result<(&'a Repository, &'a Commit), Box<Response>> {
    state.authorization = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned);
    if let Some(refusal) = state.behaviour.refuse {
        return Err(Box::new(refuse(state, refusal)));
    }
    let Some(repository) = state.repositories.get(id) else {
        // Without a token it may as well be private.
        let refusal = match token(headers) {
            Some(_) => Refusal::NotFound,
            None => Refusal::Unauthorized,
        };
        return Err(Box::new(refuse(state, refusal)));
    };
    match repository.at(revision) {
        Some(commit) => Ok((repository, commit)),
        None => Err(Box::new(error(
            StatusCode::NOT_FOUND,
            Some("RevisionNotFound"),
            &format!("Invalid rev id: {revision}"),
        ))),
    }
}
