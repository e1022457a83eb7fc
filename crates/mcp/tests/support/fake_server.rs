//! A small MCP server in plain JSON lines, with tools that test a client.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    sync::{Mutex as AsyncMutex, oneshot},
};

/// Tools on one page of the list.
const PAGE: usize = 3;

/// What the server does to the world around it.
pub(crate) trait World: Send + Sync + 'static {
    /// Something that a test wants to know of.
    fn note(&self, text: &str);
    /// The tool `crash`. It may return: then the connection is closed.
    fn crash(&self);
    /// The tool `look`: where the server runs and with what.
    fn look(&self) -> Value;
    /// The tool `spawn`: a process that runs on; its id.
    fn spawn(&self) -> Value;
}

type Writer = Arc<AsyncMutex<Box<dyn AsyncWrite + Send + Unpin>>>;

struct Server<W> {
    world: Arc<W>,
    writer: Writer,
    tools: Vec<&'static str>,
    /// Calls that can be cancelled, by the JSON text of their ids.
    running: Arc<Mutex<HashMap<String, oneshot::Sender<()>>>>,
}

/// Serves until the reader ends.
pub(crate) async fn serve(
    reader: impl AsyncRead + Send + Unpin,
    writer: impl AsyncWrite + Send + Unpin + 'static,
    world: Arc<impl World>,
) {
    let mut server = Server {
        world,
        writer: Arc::new(AsyncMutex::new(Box::new(writer))),
        tools: vec![
            "echo", "fail", "wait", "progress", "crash", "look", "spawn", "big", "grow", "picture",
        ],
        running: Arc::default(),
    };
    let mut lines = BufReader::new(reader).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).expect("clients write JSON");
        if !server.take(&message).await {
            return;
        }
    }
    server.world.note("end of input");
}

impl<W: World> Server<W> {
    /// Returns whether to go on.
    async fn take(&mut self, message: &Value) -> bool {
        let (id, params) = (&message["id"], &message["params"]);
        let result = match message["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {"listChanged": true}},
                "serverInfo": {"name": "fake", "version": "1.2.3"},
            }),
            Some("ping") => json!({}),
            Some("tools/list") => self.page(params["cursor"].as_str()),
            Some("tools/call") => match self.call(id, params).await {
                Some(result) => result,
                None => return params["name"] != "crash",
            },
            Some("notifications/cancelled") => {
                let id = params["requestId"].to_string();
                if let Some(running) = self.running.lock().remove(&id) {
                    self.world.note("cancelled");
                    let _ = running.send(());
                }
                return true;
            }
            _ => return true,
        };
        send(
            &self.writer,
            json!({"jsonrpc": "2.0", "id": id, "result": result}),
        )
        .await;
        true
    }

    fn page(&self, cursor: Option<&str>) -> Value {
        let start: usize = cursor.map_or(0, |cursor| cursor.parse().unwrap());
        let end = (start + PAGE).min(self.tools.len());
        let tools: Vec<_> = self.tools[start..end]
            .iter()
            .map(|name| {
                json!({
                    "name": name,
                    "title": format!("Title of {name}"),
                    "description": format!("What {name} does"),
                    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
                    "annotations": {"readOnlyHint": *name == "echo"},
                })
            })
            .collect();
        if end < self.tools.len() {
            json!({"tools": tools, "nextCursor": end.to_string()})
        } else {
            json!({"tools": tools})
        }
    }

    /// None: it is answered later, or never.
    async fn call(&mut self, id: &Value, params: &Value) -> Option<Value> {
        let arguments = &params["arguments"];
        let name = params["name"].as_str().unwrap();
        self.world.note(&format!("call {name}"));
        Some(match name {
            "echo" => text(arguments["text"].as_str().unwrap_or("nothing")),
            "fail" => json!({"content": [{"type": "text", "text": "It is broken."}],
                "isError": true}),
            "wait" => {
                let (sender, receiver) = oneshot::channel();
                self.running.lock().insert(id.to_string(), sender);
                // Nobody answers a call that was cancelled.
                drop(receiver);
                return None;
            }
            "progress" => {
                self.progress(id.clone(), params.clone());
                return None;
            }
            "crash" => {
                self.world.crash();
                return None;
            }
            "look" => text(&self.world.look().to_string()),
            "spawn" => text(&self.world.spawn().to_string()),
            "big" => text(&"x".repeat(arguments["bytes"].as_u64().unwrap() as usize)),
            "grow" => {
                self.tools.push("grown");
                let change = json!({"jsonrpc": "2.0",
                    "method": "notifications/tools/list_changed"});
                send(&self.writer, change).await;
                text("grown")
            }
            "picture" => json!({"content": [
                {"type": "image", "mimeType": "image/png", "data": "AAAA"}]}),
            other => json!({"content": [{"type": "text", "text": format!("no tool {other}")}],
                "isError": true}),
        })
    }

    /// `count` signs of progress, one each `ms`, then the answer.
    fn progress(&self, id: Value, params: Value) {
        let writer = self.writer.clone();
        tokio::spawn(async move {
            let count = params["arguments"]["count"].as_u64().unwrap();
            let pause = Duration::from_millis(params["arguments"]["ms"].as_u64().unwrap());
            for step in 1..=count {
                tokio::time::sleep(pause).await;
                let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress",
                    "params": {"progressToken": params["_meta"]["progressToken"],
                        "progress": step, "total": count}});
                send(&writer, progress).await;
            }
            let result = json!({"jsonrpc": "2.0", "id": id, "result": text("done at last")});
            send(&writer, result).await;
        });
    }
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

async fn send(writer: &Writer, message: Value) {
    let line = format!("{message}\n");
    let mut writer = writer.lock().await;
    // The client may be gone.
    let _ = writer.write_all(line.as_bytes()).await;
    let _ = writer.flush().await;
}
