//! A running server, asked over HTTP with the control token.

use anyhow::{Context, anyhow, bail};
use futures::{Stream, StreamExt, stream};
use macmlx_host::{App, Host, OpenDoor, Record};
use reqwest::{Method, Response, header};
use serde_json::Value;

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
        Ok(Box::pin(chunks(response)))
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

/// The JSON of each server-sent event until `[DONE]`; an error frame is an error.
fn chunks(response: Response) -> impl Stream<Item = anyhow::Result<Value>> {
    let state = (response.bytes_stream(), Vec::new(), false);
    stream::unfold(state, |(mut bytes, mut buffer, mut is_over)| async move {
        loop {
            if is_over {
                return None;
            }
            if let Some(line) = take_line(&mut buffer) {
                match event(&line) {
                    Event::Nothing => {}
                    Event::Done => return None,
                    Event::Chunk(chunk) => return Some((Ok(chunk), (bytes, buffer, false))),
                    Event::Error(error) => return Some((Err(error), (bytes, buffer, true))),
                }
                continue;
            }
            match bytes.next().await {
                Some(Ok(more)) => buffer.extend_from_slice(&more),
                Some(Err(error)) => {
                    is_over = true;
                    let error = anyhow::Error::new(error).context("the connection broke");
                    return Some((Err(error), (bytes, buffer, is_over)));
                }
                None => {
                    is_over = true;
                    let error = anyhow!("the server ended the answer early");
                    return Some((Err(error), (bytes, buffer, is_over)));
                }
            }
        }
    })
}

#[derive(Debug)]
enum Event {
    Nothing,
    Chunk(Value),
    Error(anyhow::Error),
    Done,
}

fn event(line: &[u8]) -> Event {
    let Some(data) = line.strip_prefix(b"data:") else {
        return Event::Nothing;
    };
    let data = data.trim_ascii();
    if data == b"[DONE]" {
        return Event::Done;
    }
    match serde_json::from_slice::<Value>(data) {
        Ok(chunk) => match chunk["error"]["message"].as_str() {
            Some(message) => Event::Error(anyhow!("{message}")),
            None => Event::Chunk(chunk),
        },
        Err(error) => Event::Error(anyhow!("a damaged event: {error}")),
    }
}

fn take_line(buffer: &mut Vec<u8>) -> Option<Vec<u8>> {
    let end = buffer.iter().position(|&byte| byte == b'\n')?;
    let rest = buffer.split_off(end + 1);
    let line = std::mem::replace(buffer, rest);
    Some(line.trim_ascii_end().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_out_whole() {
        let mut buffer = b"data: {\"a\":1}\r\n\r\nda".to_vec();
        assert!(matches!(
            event(&take_line(&mut buffer).unwrap()),
            Event::Chunk(_)
        ));
        assert!(matches!(
            event(&take_line(&mut buffer).unwrap()),
            Event::Nothing
        ));
        assert_eq!(take_line(&mut buffer), None);
        assert_eq!(buffer, b"da");
    }

    #[test]
    fn comments_errors_and_the_end() {
        assert!(matches!(event(b": keep-alive"), Event::Nothing));
        assert!(matches!(event(b"data: [DONE]"), Event::Done));
        assert!(matches!(
            event(br#"data: {"error": {"message": "out of memory"}}"#),
            Event::Error(error) if error.to_string() == "out of memory"
        ));
    }
}
