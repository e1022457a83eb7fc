//! Connections of the TCP door: how many there may be, how long each may say nothing, and their end.

use std::{
    convert::Infallible,
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes, HttpBody},
    extract::Request,
};
use futures::FutureExt;
use http::{HeaderValue, header};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto::Builder,
    service::TowerToHyperService,
};
use macmlx_protocol::Error;
use tokio::{
    net::TcpStream,
    sync::{OwnedSemaphorePermit, watch},
    time::{sleep, timeout},
};
use tower::{ServiceExt as _, service_fn};
use tower_http::timeout::TimeoutBody;

use crate::{dialect, route_path::normalize};

/// What connections may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// How many are served at once; one more is told so with 503.
    pub count: usize,
    /// From the opening or the end of an answer to the whole head of the next request. A connection
    /// with an answer under way is not closed, however long it takes.
    pub idle: Duration,
    /// Between two pieces of a request's body.
    pub body: Duration,
    /// The head of a request.
    pub head_bytes: usize,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            count: 1024,
            // Longer than clients keep a connection that they do not use.
            idle: Duration::from_mins(2),
            body: Duration::from_mins(1),
            head_bytes: 64 * 1024,
        }
    }
}

/// How long a connection that is to end may take for it.
const FAREWELL: Duration = Duration::from_secs(1);

/// Serves what comes over one connection until it ends, by itself, by the limits, or after
/// `stopping` with the answer under way.
pub(crate) async fn serve_connection(
    tcp: TcpStream,
    router: Router,
    limits: ConnectionLimits,
    mut stopping: watch::Receiver<bool>,
    _place: OwnedSemaphorePermit,
) {
    let answers = Answers::default();
    let counted = answers.clone();
    let service = router
        .map_request(normalize)
        .map_request(move |request: Request<Incoming>| {
            request.map(|body| {
                // The timed body would hide that there is none.
                if body.is_end_stream() {
                    Body::empty()
                } else {
                    Body::new(TimeoutBody::new(limits.body, body))
                }
            })
        });
    let service = service_fn(move |request: Request<Incoming>| {
        let under_way = counted.begin();
        let answer = service.clone().oneshot(request);
        answer.map(|answer| answer.map(|answer| answer.map(|body| until_end(body, under_way))))
    });
    let builder = builder(limits);
    let mut connection =
        pin!(builder.serve_connection(TokioIo::new(tcp), TowerToHyperService::new(service)));
    let mut silent = pin!(answers.absent_for(limits.idle));
    let mut stopped = pin!(is_set(&mut stopping).fuse());
    loop {
        tokio::select! {
            result = connection.as_mut() => {
                if let Err(error) = result {
                    tracing::debug!(%error, "a connection broke off");
                }
                return;
            }
            () = silent.as_mut() => {
                connection.as_mut().graceful_shutdown();
                // One that has begun a request and says no more does not end by itself.
                let _ = timeout(FAREWELL, connection).await;
                return;
            }
            () = stopped.as_mut() => connection.as_mut().graceful_shutdown(),
        }
    }
}

/// Tells one that there are too many, in the dialect of its first request.
pub(crate) async fn turn_away(
    tcp: TcpStream,
    limits: ConnectionLimits,
    _place: OwnedSemaphorePermit,
) {
    let service = service_fn(|request: Request<Incoming>| async move {
        let request = normalize(request.map(Body::new));
        let mut refusal = dialect::refuse(dialect::words(&request), &Error::TooManyConnections);
        let close = HeaderValue::from_static("close");
        refusal.headers_mut().insert(header::CONNECTION, close);
        Ok::<_, Infallible>(refusal)
    });
    let builder = builder(limits);
    let connection = builder.serve_connection(TokioIo::new(tcp), TowerToHyperService::new(service));
    let _ = timeout(FAREWELL, connection).await;
}

fn builder(limits: ConnectionLimits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().max_buf_size(limits.head_bytes);
    builder
        .http2()
        .max_header_list_size(u32::try_from(limits.head_bytes).unwrap_or(u32::MAX));
    builder
}

async fn is_set(flag: &mut watch::Receiver<bool>) {
    // An error means that nobody can set it any more, which is the end too.
    let _ = flag.wait_for(|is_set| *is_set).await;
}

/// How many answers of a connection are under way.
#[derive(Debug, Clone, Default)]
struct Answers(watch::Sender<usize>);

impl Answers {
    fn begin(&self) -> UnderWay {
        self.0.send_modify(|count| *count += 1);
        UnderWay(self.0.clone())
    }

    /// Resolves when there was none for so long.
    async fn absent_for(&self, limit: Duration) {
        let mut count = self.0.subscribe();
        loop {
            // The sender is `self`, so it is there.
            let _ = count.wait_for(|count| *count == 0).await;
            tokio::select! {
                () = sleep(limit) => return,
                _ = count.wait_for(|count| *count > 0) => {}
            }
        }
    }
}

/// One answer, from the head of its request to the end of its body.
#[derive(Debug)]
struct UnderWay(watch::Sender<usize>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// The body, which holds `under_way` until it is dropped.
fn until_end(body: Body, under_way: UnderWay) -> Body {
    Body::new(Held {
        body,
        _under_way: under_way,
    })
}

#[derive(Debug)]
struct Held {
    body: Body,
    _under_way: UnderWay,
}

impl HttpBody for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
