//! Contents of files: the hub's own, and its content network's.

use std::time::Duration;

use axum::{
    body::{Body, Bytes},
    extract::{Path, State},
    http::{HeaderMap, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures::{StreamExt, stream};

use super::{
    Address, File, FileRequest, Refusal, Shared, behaviour::End, error, find, refuse, token,
};

/// Slow connections send this often.
const SLICE: Duration = Duration::from_millis(20);
/// Bytes handed to a connection at once.
const PIECE_BYTES: usize = 64 << 10;

/// `GET /owner/name/resolve/revision/path`: small files themselves, for large ones a redirect.
pub(super) async fn resolve(
    State(shared): State<Shared>,
    Path((owner, name, revision, path)): Path<(String, String, String, String)>,
    method: Method,
    headers: HeaderMap,
) -> Response {
    let id = format!("{owner}/{name}");
    let (file, commit) = {
        let mut state = shared.lock();
        let is_open = token(&headers)
            .is_some_and(|token| state.behaviour.tokens.iter().any(|known| known == token));
        let (is_gated, file, commit) = match find(&mut state, &headers, &id, &revision) {
            Ok((repository, commit)) => (
                repository.is_gated,
                commit.files.get(&path).cloned(),
                commit.sha.clone(),
            ),
            Err(response) => return *response,
        };
        if let Some(refusal) = state.behaviour.refuse_files {
            return refuse(&state, refusal);
        }
        if is_gated && !is_open {
            return refuse(&state, Refusal::Gated);
        }
        let Some(file) = file else {
            return error(
                StatusCode::NOT_FOUND,
                Some("EntryNotFound"),
                "Entry not found",
            );
        };
        if method == Method::GET && state.behaviour.failing > 0 {
            state.behaviour.failing -= 1;
            let status = StatusCode::from_u16(state.behaviour.failing_status).unwrap();
            let mut response = error(status, None, "failing on demand");
            if let Some(seconds) = state.behaviour.retry_after_seconds {
                response
                    .headers_mut()
                    .insert(header::RETRY_AFTER, seconds.into());
            }
            return response;
        }
        (file, commit)
    };
    let mut response = if file.sha256.is_some() {
        let mut state = shared.lock();
        state.addresses.push(Address {
            file: file.clone(),
            path: path.clone(),
            uses: 0,
        });
        let location = format!(
            "http://{}/content/{}/{path}",
            state.content.unwrap(),
            state.addresses.len() - 1
        );
        let mut response = (StatusCode::FOUND, [(header::LOCATION, location)]).into_response();
        let mut own = |name: &'static str, value: String| {
            response
                .headers_mut()
                .insert(name, value.try_into().unwrap());
        };
        own("x-linked-size", file.bytes.len().to_string());
        own("x-linked-etag", format!("\"{}\"", file.etag()));
        response
    } else {
        send(&shared, &file, &path, &method, &headers, false)
    };
    response
        .headers_mut()
        .insert("x-repo-commit", commit.try_into().unwrap());
    response
}

/// `GET /content/address/path` on the other port.
pub(super) async fn elsewhere(
    State(shared): State<Shared>,
    Path((address, path)): Path<(usize, String)>,
    method: Method,
    headers: HeaderMap,
) -> Response {
    let file = {
        let mut state = shared.lock();
        let limit = state.behaviour.address_uses;
        let Some(address) = state
            .addresses
            .get_mut(address)
            .filter(|address| address.path == path)
        else {
            return StatusCode::NOT_FOUND.into_response();
        };
        address.uses += 1;
        if limit.is_some_and(|limit| address.uses > limit) {
            return (StatusCode::FORBIDDEN, "Request has expired").into_response();
        }
        address.file.clone()
    };
    send(&shared, &file, &path, &method, &headers, true)
}

/// `bytes=5-9` and `bytes=5-`, as the first byte and the one behind the last.
fn range(headers: &HeaderMap, size: usize) -> Option<(usize, usize)> {
    let text = headers.get(header::RANGE)?.to_str().ok()?;
    let (start, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    let end = match last {
        "" => size,
        last => last.parse::<usize>().ok()? + 1,
    };
    Some((start.parse().ok()?, end.min(size)))
}

fn send(
    shared: &Shared,
    file: &File,
    path: &str,
    method: &Method,
    headers: &HeaderMap,
    is_elsewhere: bool,
) -> Response {
    let size = file.bytes.len();
    let mut state = shared.lock();
    let asked = range(headers, size).filter(|_| !state.behaviour.ignores_ranges);
    if asked.is_some_and(|(start, _)| start >= size) {
        return StatusCode::RANGE_NOT_SATISFIABLE.into_response();
    }
    let (start, end) = asked.unwrap_or((0, size));
    let is_large = file.sha256.is_some() && method == Method::GET;
    let mut bytes = file.bytes.slice(start..end);
    let mut ends = End::Whole;
    let mut bytes_per_second = None;
    let is_wrong = state.behaviour.corrupt_path.as_deref() == Some(path)
        || (is_large && state.behaviour.corrupting > 0);
    if is_wrong && !bytes.is_empty() {
        state.behaviour.corrupting = state.behaviour.corrupting.saturating_sub(1);
        let mut wrong = bytes.to_vec();
        wrong[0] ^= 1;
        bytes = wrong.into();
    }
    if is_large {
        ends = state.behaviour.next_end();
        bytes_per_second = state.behaviour.bytes_per_second;
    }
    let length = bytes.len();
    let body = if method == Method::HEAD {
        Body::empty()
    } else {
        state.open += 1;
        state.most_open = state.most_open.max(state.open);
        state.requests.push(FileRequest {
            path: path.to_owned(),
            start,
            sent: 0,
            is_elsewhere,
            has_token: token(headers).is_some(),
        });
        let index = state.requests.len() - 1;
        body(shared.clone(), index, bytes, ends, bytes_per_second)
    };
    drop(state);
    let mut response = Response::new(body);
    let mut own = |name: header::HeaderName, value: String| {
        response
            .headers_mut()
            .insert(name, value.try_into().unwrap());
    };
    own(header::ETAG, format!("\"{}\"", file.etag()));
    own(header::ACCEPT_RANGES, "bytes".into());
    if !matches!(ends, End::Truncate(_)) {
        own(header::CONTENT_LENGTH, length.to_string());
    }
    if asked.is_some() {
        let text = format!("bytes {start}-{}/{size}", end - 1);
        own(header::CONTENT_RANGE, text);
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    response
}

/// A connection that is counted for as long as it lasts.
struct Open(Shared);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.lock().open -= 1;
    }
}

/// A connection's bytes, as fast and as far as they go; counts what is sent.
fn body(
    shared: Shared,
    request: usize,
    bytes: Bytes,
    ends: End,
    bytes_per_second: Option<u64>,
) -> Body {
    let (bytes, ends) = match ends {
        End::Whole => (bytes, ends),
        End::Drop(count) | End::Truncate(count) | End::Stall(count) => {
            (bytes.slice(..count.min(bytes.len())), ends)
        }
    };
    let piece = match bytes_per_second {
        Some(speed) => ((speed * SLICE.as_millis() as u64 / 1000) as usize).max(1),
        None => PIECE_BYTES,
    };
    let open = Open(shared.clone());
    let pieces = stream::unfold((bytes, false), move |(mut bytes, is_later)| {
        let shared = shared.clone();
        async move {
            if bytes.is_empty() {
                return None;
            }
            if is_later && bytes_per_second.is_some() {
                tokio::time::sleep(SLICE).await;
            }
            let next = bytes.split_to(piece.min(bytes.len()));
            shared.lock().requests[request].sent += next.len();
            Some((Ok(next), (bytes, true)))
        }
    });
    let last = stream::once(async move {
        let _open = open;
        match ends {
            End::Drop(_) => {
                // A pause lets the bytes ahead of a broken connection arrive.
                tokio::time::sleep(Duration::from_millis(50)).await;
                Some(Err(std::io::Error::other("dropped on demand")))
            }
            End::Stall(_) => {
                std::future::pending::<()>().await;
                None
            }
            End::Whole | End::Truncate(_) => None,
        }
    });
    let last = last.filter_map(std::future::ready);
    Body::from_stream(pieces.chain(last))
}
