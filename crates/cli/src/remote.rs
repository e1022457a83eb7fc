//! A running server, asked over HTTP with the control token.

use anyhow::{Context, anyhow, bail};
use futures::{Stream, StreamExt, stream};
use macmlx_host::{App, Host, OpenDoor, Record};
use reqwest::{Method, Response, header};
use serde_json::Value;
use sse_stream::{Sse, SseByteStream};

/// How to reach a server.
#[derive(Debug, Clone)]
pub(crate) struct Remote {
    base: String,
    token: String,
    client: reqwest::Client,
}

impl Remote {
    /// The server that a pid file names.
    pub(crate) fn of_record(host: &Host, record: &Record) -> anyhow::Result<Self> {
        let token =
            macmlx_settings::control_token(&host.home).context("cannot read the control token")?;
        Self::new(format!("http://{}", record.address()), token)
    }

    /// An application of this process.
    pub(crate) fn of_app(app: &App, door: &OpenDoor) -> anyhow::Result<Self> {
        Self::new(door.url(), app.control_token().to_owned())
    }

    fn new(base: String, token: String) -> anyhow::Result<Self> {
        // Addresses of this machine are never reached through a proxy.
        let client = reqwest::Client::builder().no_proxy().build()?;
        Ok(Self {
            base,
            token,
            client,
        })
    }

    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    pub(crate) async fn status(&self) -> anyhow::Result<Value> {
        let response = self.send(Method::GET, "/x/status", None).await?;
        response
            .json()
            .await
            .context("the server's answer is not JSON")
    }

    pub(crate) async fn shut_down(&self) -> anyhow::Result<()> {
        self.send(Method::POST, "/x/shutdown", None).await?;
        Ok(())
    }

    /// Asks for a streamed chat completion; yields its chunks.
    pub(crate) async fn chat(
        &self,
        request: &Value,
    ) -> anyhow::Result<impl Stream<Item = anyhow::Result<Value>> + Unpin + use<>> {
        let response = self
            .send(Method::POST, "/v1/chat/completions", Some(request))
            .await?;
        let events = SseByteStream::new(response.bytes_stream());
        Ok(Box::pin(chunks(events)))
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<Response> {
        let mut request = self
            .client
            .request(method, format!("{}{path}", self.base))
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token));
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request
            .send()
            .await
            .with_context(|| format!("the server at {} does not answer", self.base))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body: Value = response.json().await.unwrap_or_default();
        match body["error"]["message"].as_str() {
            Some(message) => bail!("{message}"),
            None => bail!("the server at {} answered {status}", self.base),
        }
    }
}

/// The JSON of each server-sent event until `[DONE]`; an error frame is an error, and the last item.
fn chunks(
    events: impl Stream<Item = Result<Sse, sse_stream::Error>>,
) -> impl Stream<Item = anyhow::Result<Value>> {
    stream::unfold(Some(Box::pin(events)), |events| async move {
        let mut events = events?;
        let chunk = loop {
            match events.next().await {
                Some(Ok(event)) => match event.data.as_deref() {
                    Some("[DONE]") => return None,
                    Some(data) => break chunk(data),
                    None => {}
                },
                Some(Err(sse_stream::Error::Body(source))) => {
                    break Err(anyhow::Error::from_boxed(source).context("the connection broke"));
                }
                Some(Err(error)) => break Err(anyhow::Error::new(error).context("a damaged event")),
                None => break Err(anyhow!("the server ended the answer early")),
            }
        };
        let rest = chunk.is_ok().then_some(events);
        Some((chunk, rest))
    })
}

fn chunk(data: &str) -> anyhow::Result<Value> {
    let chunk: Value = serde_json::from_str(data).context("a damaged event")?;
    match chunk["error"]["message"].as_str() {
        Some(message) => bail!("{message}"),
        None => Ok(chunk),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    async fn read(parts: Vec<io::Result<&'static [u8]>>) -> Vec<String> {
        chunks(SseByteStream::new(stream::iter(parts)))
            .map(|chunk| chunk.map_or_else(|error| format!("{error:#}"), |chunk| chunk.to_string()))
            .collect()
            .await
    }

    #[tokio::test]
    async fn chunks_come_out_whole_at_every_split() {
        let text: &[u8] =
            b": hi\n\ndata: {\"a\":1}\r\n\r\ndata:{\"b\":2}\n\ndata: [DONE]\n\ndata: 3\n\n";
        for split in 0..text.len() {
            let (head, tail) = text.split_at(split);
            assert_eq!(
                read(vec![Ok(head), Ok(tail)]).await,
                [r#"{"a":1}"#, r#"{"b":2}"#],
                "{split}"
            );
        }
    }

    #[tokio::test]
    async fn an_error_is_the_last_that_comes() {
        let first: &[u8] = b"data: 1\n\n";
        let broken = || Err(io::Error::other("reset"));
        for (rest, expected) in [
            (vec![], "the server ended the answer early"),
            (
                vec![Ok(&b"data: 2\n"[..])],
                "the server ended the answer early",
            ),
            (vec![broken()], "the connection broke: reset"),
            (
                vec![Ok(&b"data: {\n\n"[..])],
                "a damaged event: EOF while parsing an object at line 1 column 1",
            ),
            (
                vec![Ok(
                    &b"data: {\"error\": {\"message\": \"out of memory\"}}\n\ndata: 2\n\n"[..],
                )],
                "out of memory",
            ),
        ] {
            let mut parts = vec![Ok(first)];
            parts.extend(rest);
            assert_eq!(read(parts).await, ["1", expected]);
        }
    }
}
