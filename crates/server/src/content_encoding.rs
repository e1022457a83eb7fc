//! Compressed request bodies, read as if they had come plain.
//!
//! Nothing is decoded before a handler reads the body, and no more than it reads: the limit for
//! bodies counts what comes out, and each step of a body that was compressed several times, too.

use std::{io, sync::Arc};

use async_compression::{
    tokio::bufread::{BrotliDecoder, DeflateDecoder, GzipDecoder, ZlibDecoder, ZstdDecoder},
    zstd::DParameter,
};
use axum::{
    body::{Body, Bytes},
    extract::{Request, State},
    http::{HeaderMap, header},
    middleware::Next,
    response::Response,
};
use futures::{
    StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};
use macmlx_protocol::Error;
use tokio::io::{AsyncBufReadExt, AsyncRead};
use tokio_util::io::{ReaderStream, StreamReader};
use tower_http::timeout::TimeoutError;

use crate::{dialect, router::App};

/// How many times one body may be compressed.
const MAX_STEPS: usize = 4;

/// RFC 9659: the window of a Zstandard body is at most 8 MiB.
const ZSTD_WINDOW_LOG: u32 = 23;

/// What one read of a decoder gives at most. It takes well under a millisecond, after which others
/// have their turn.
const CHUNK_BYTES: usize = 64 * 1024;

type Chunks = BoxStream<'static, io::Result<Bytes>>;

/// How a body was compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Gzip,
    /// The zlib format, or bare DEFLATE, which some clients send by that name.
    Deflate,
    Brotli,
    Zstd,
}

impl Encoding {
    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
        }
    }
}

/// Why a compressed body cannot be read.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("a step of decoding the request body is larger than the limit")]
    TooLarge,
    #[error("the request body is not valid {encoding}: {source}")]
    Broken {
        encoding: &'static str,
        source: io::Error,
    },
}

/// Puts the plain body in place of a compressed one, for all routes.
pub(crate) async fn decode(
    State(app): State<Arc<App>>,
    mut request: Request,
    next: Next,
) -> Response {
    let limit_bytes = app.options.body_limit_bytes;
    let is_empty = axum::body::HttpBody::is_end_stream(request.body());
    // A body that is announced to be too large is refused by its reader without a look into it.
    if !is_empty && announced_bytes(request.headers()).is_none_or(|bytes| bytes <= limit_bytes) {
        match read_encodings(request.headers()) {
            Ok(encodings) if encodings.is_empty() => {}
            Ok(encodings) => request = decode_body(request, &encodings, limit_bytes),
            Err(error) => return dialect::refuse(dialect::words(&request), &error),
        }
    }
    next.run(request).await
}

/// The size of the body as it is sent.
pub(crate) fn announced_bytes(headers: &HeaderMap) -> Option<usize> {
    headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse().ok())
}

/// What went wrong with a body while it was read.
pub(crate) fn read_error(error: &axum::Error, limit_bytes: usize) -> Error {
    let causes =
        std::iter::successors(Some(error as &(dyn std::error::Error + 'static)), |error| {
            error.source()
        });
    if causes
        .clone()
        .any(<dyn std::error::Error>::is::<TimeoutError>)
    {
        return Error::SlowBody;
    }
    let mut failures = causes.filter_map(|cause| failure(cause.downcast_ref()?));
    match failures.next() {
        Some(Failure::TooLarge) => Error::TooLarge { limit_bytes },
        Some(broken @ Failure::Broken { .. }) => Error::Invalid {
            param: None,
            message: broken.to_string(),
        },
        None => Error::Invalid {
            param: None,
            message: format!("the request body broke off: {error}"),
        },
    }
}

fn failure(error: &io::Error) -> Option<&Failure> {
    error.get_ref()?.downcast_ref()
}

/// The encodings that the headers name, in the order in which they were applied.
fn read_encodings(headers: &HeaderMap) -> Result<Vec<Encoding>, Error> {
    let mut encodings = Vec::new();
    for value in headers.get_all(header::CONTENT_ENCODING) {
        for name in String::from_utf8_lossy(value.as_bytes()).split(',') {
            encodings.push(match name.trim().to_ascii_lowercase().as_str() {
                "" | "identity" => continue,
                "gzip" | "x-gzip" => Encoding::Gzip,
                "deflate" => Encoding::Deflate,
                "br" => Encoding::Brotli,
                "zstd" => Encoding::Zstd,
                other => {
                    return Err(Error::UnsupportedEncoding {
                        encoding: other.to_owned(),
                    });
                }
            });
        }
    }
    if encodings.len() > MAX_STEPS {
        return Err(Error::Invalid {
            param: None,
            message: format!("the request body was compressed more than {MAX_STEPS} times"),
        });
    }
    Ok(encodings)
}

fn decode_body(request: Request, encodings: &[Encoding], limit_bytes: usize) -> Request {
    let (mut parts, body) = request.into_parts();
    parts.headers.remove(header::CONTENT_ENCODING);
    parts.headers.remove(header::CONTENT_LENGTH);
    let mut chunks: Chunks = body.into_data_stream().map_err(io::Error::other).boxed();
    for encoding in encodings.iter().rev() {
        chunks = step(*encoding, limit(chunks, limit_bytes));
    }
    Request::from_parts(parts, Body::from_stream(chunks))
}

/// Takes off one encoding.
fn step(encoding: Encoding, chunks: Chunks) -> Chunks {
    let decode = async move {
        let mut reader = StreamReader::new(chunks);
        let Some(first) = reader.fill_buf().await?.first().copied() else {
            // A client that names an encoding and sends no body.
            return Ok(stream::empty().boxed());
        };
        let decoder: Box<dyn AsyncRead + Send + Unpin> = match encoding {
            Encoding::Gzip => {
                let mut decoder = GzipDecoder::new(reader);
                decoder.multiple_members(true);
                Box::new(decoder)
            }
            Encoding::Deflate if is_zlib(first) => Box::new(ZlibDecoder::new(reader)),
            Encoding::Deflate => Box::new(DeflateDecoder::new(reader)),
            Encoding::Brotli => Box::new(BrotliDecoder::new(reader)),
            Encoding::Zstd => {
                let window = DParameter::window_log_max(ZSTD_WINDOW_LOG);
                let mut decoder = ZstdDecoder::with_params(reader, &[window]);
                decoder.multiple_members(true);
                Box::new(decoder)
            }
        };
        let chunks = ReaderStream::with_capacity(decoder, CHUNK_BYTES)
            .map_err(move |error| name_failure(encoding, error))
            .then(async |chunk| {
                // A decoder that has all its input never waits by itself.
                tokio::task::yield_now().await;
                chunk
            });
        Ok::<_, io::Error>(chunks.boxed())
    };
    stream::once(decode).try_flatten().boxed()
}

/// Errors of the connection and of the step before stay as they are.
fn name_failure(encoding: Encoding, error: io::Error) -> io::Error {
    if error.get_ref().is_some_and(|inner| {
        inner.downcast_ref::<Failure>().is_some() || inner.downcast_ref::<axum::Error>().is_some()
    }) {
        return error;
    }
    io::Error::other(Failure::Broken {
        encoding: encoding.name(),
        source: error,
    })
}

/// A zlib stream begins with the number of its method, 8. A block of bare DEFLATE never begins so.
fn is_zlib(first: u8) -> bool {
    first & 0x0f == 8
}

/// The chunks, and an error in place of what is over the limit.
fn limit(chunks: Chunks, limit_bytes: usize) -> Chunks {
    let mut seen = 0_usize;
    chunks
        .and_then(move |chunk| {
            seen = seen.saturating_add(chunk.len());
            std::future::ready(if seen > limit_bytes {
                Err(io::Error::other(Failure::TooLarge))
            } else {
                Ok(chunk)
            })
        })
        .boxed()
}
