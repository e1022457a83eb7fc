//! The in-process door: the page's requests go to the router, and what comes back goes to the page
//! piece by piece.
//!
//! A request ends when its answer has, when the page cancels it, or when the page is gone. In each
//! case the body of the answer is dropped, which stops a generation behind it.

mod message;
mod requests;

use futures::future::{AbortHandle, Abortable};
use http_body_util::BodyExt as _;
use macmlx_host::Body;
use serde::Deserialize;
use tauri::{AppHandle, Manager as _, State, Webview, async_runtime, ipc::Channel};

use self::message::{Message, Text};
pub(crate) use self::requests::Requests;
use crate::router::Router;

/// A request as the page makes it.
#[derive(Debug, Deserialize)]
pub(crate) struct Request {
    method: String,
    /// With its query.
    path: String,
    headers: Vec<(String, String)>,
    body: Option<String>,
}

/// Answers through `on_event`: a head, pieces of the body, and an end or a failure.
#[tauri::command]
#[expect(
    clippy::needless_pass_by_value,
    reason = "arguments of commands are owned"
)]
pub(crate) fn door_request(
    app: AppHandle,
    webview: Webview,
    requests: State<'_, Requests>,
    id: String,
    request: Request,
    on_event: Channel<Message>,
) {
    let send = move |message| on_event.send(message).is_ok();
    let (Some(router), Ok(request)) = (app.try_state::<Router>(), request.into_http()) else {
        send(Message::Failed {
            message: "this request cannot be sent".to_owned(),
        });
        return;
    };
    let router = router.inner().clone();
    let (handle, registration) = AbortHandle::new_pair();
    let ticket = requests.begin(webview.label(), &id, handle);
    let answer = Abortable::new(
        async move {
            let response = router.call(request).await;
            relay(response, send).await;
        },
        registration,
    );
    async_runtime::spawn(async move {
        // Aborted is what the page asked for.
        let _ = answer.await;
        app.state::<Requests>().end(&ticket);
    });
}

/// Ends a request whose answer is of no use any more.
#[tauri::command]
#[expect(
    clippy::needless_pass_by_value,
    reason = "arguments of commands are owned"
)]
pub(crate) fn door_cancel(webview: Webview, requests: State<'_, Requests>, id: String) {
    requests.cancel(webview.label(), &id);
}

impl Request {
    fn into_http(self) -> Result<http::Request<Body>, http::Error> {
        let mut builder = http::Request::builder()
            .method(self.method.as_str())
            .uri(self.path);
        for (name, value) in self.headers {
            builder = builder.header(name, value);
        }
        builder.body(self.body.map_or_else(Body::empty, Body::from))
    }
}

/// Passes an answer on as it comes, for as long as the window takes it.
async fn relay(response: http::Response<Body>, mut send: impl FnMut(Message) -> bool) {
    let (head, mut body) = response.into_parts();
    let mut text = Text::default();
    let mut is_wanted = send(Message::head(&head));
    while is_wanted {
        let message = match body.frame().await {
            Some(Ok(frame)) => match frame.data_ref() {
                Some(data) => text.push(data),
                None => continue,
            },
            Some(Err(error)) => {
                send(Message::Failed {
                    message: error.to_string(),
                });
                return;
            }
            None => break,
        };
        if let Some(message) = message {
            is_wanted = send(message);
        }
    }
    if !is_wanted {
        return;
    }
    if let Some(rest) = text.finish() {
        send(rest);
    }
    send(Message::End);
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
    };

    use futures::{StreamExt as _, stream};

    use super::*;

    async fn relayed(body: Body) -> Vec<Message> {
        let mut messages = Vec::new();
        let response = http::Response::builder()
            .status(201)
            .header("content-type", "text/event-stream")
            .body(body)
            .unwrap();
        relay(response, |message| {
            messages.push(message);
            true
        })
        .await;
        messages
    }

    fn chunk(text: &str) -> Message {
        Message::Chunk { text: text.into() }
    }

    fn head() -> Message {
        Message::Head {
            status: 201,
            headers: vec![("content-type".into(), "text/event-stream".into())],
        }
    }

    #[tokio::test]
    async fn frames_arrive_one_by_one() {
        let frames = ["data: 1\n\n", "data: 2\n\n"];
        let body = Body::from_stream(stream::iter(frames.map(Ok::<_, Infallible>)));
        assert_eq!(
            relayed(body).await,
            [head(), chunk(frames[0]), chunk(frames[1]), Message::End]
        );
    }

    #[tokio::test]
    async fn a_body_that_breaks_off_is_a_failure() {
        let frames = [Ok("data: 1\n\n"), Err(std::io::Error::other("torn"))];
        let messages = relayed(Body::from_stream(stream::iter(frames))).await;
        assert_eq!(messages[..2], [head(), chunk("data: 1\n\n")]);
        assert!(
            matches!(&messages[2..], [Message::Failed { message }] if message.contains("torn")),
            "{messages:?}"
        );
    }

    #[tokio::test]
    async fn nothing_is_read_for_a_page_that_is_gone() {
        let reads = Arc::new(AtomicUsize::new(0));
        let counted = reads.clone();
        let endless = stream::repeat_with(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            Ok::<_, Infallible>("x")
        });
        let mut taken = 0;
        relay(http::Response::new(Body::from_stream(endless)), |_| {
            taken += 1;
            taken < 3
        })
        .await;
        // A head and two pieces.
        assert_eq!((taken, reads.load(Ordering::Relaxed)), (3, 2));
    }

    #[tokio::test]
    async fn an_abort_drops_the_body() {
        let count = Arc::new(());
        let guard = count.clone();
        let body = Body::from_stream(stream::pending::<Result<&str, Infallible>>().inspect(
            move |_| {
                let _ = &guard;
            },
        ));
        let (handle, registration) = AbortHandle::new_pair();
        let (head_sent, head) = tokio::sync::oneshot::channel();
        let mut head_sent = Some(head_sent);
        let relaying = tokio::spawn(async move {
            let relaying = relay(http::Response::new(body), move |_| {
                head_sent
                    .take()
                    .is_some_and(|sender| sender.send(()).is_ok())
            });
            Abortable::new(relaying, registration).await
        });
        head.await.unwrap();
        assert_eq!(Arc::strong_count(&count), 2);
        handle.abort();
        assert!(relaying.await.unwrap().is_err());
        assert_eq!(Arc::strong_count(&count), 1);
    }

    #[test]
    fn requests_that_are_none_are_refused() {
        let request = |method: &str, path: &str| Request {
            method: method.into(),
            path: path.into(),
            headers: vec![("accept".into(), "text/event-stream".into())],
            body: Some("{}".into()),
        };
        let sent = request("POST", "/x/chat?a=%2F").into_http().unwrap();
        assert_eq!(sent.uri(), "/x/chat?a=%2F");
        assert_eq!(sent.headers()["accept"], "text/event-stream");
        assert!(request("PO ST", "/x").into_http().is_err());
        assert!(request("GET", "x y").into_http().is_err());
    }
}
