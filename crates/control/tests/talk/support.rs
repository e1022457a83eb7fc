//! The routes over a home of their own, and a backend that waits for what the test says.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{Request, StatusCode},
    response::Response,
};
use futures::{FutureExt, StreamExt, channel::mpsc, future::BoxFuture};
use macmlx_control::{
    chat::{self, Chat},
    conversations::{self, ConversationSources},
    events::Events,
    guard,
    parameters::{self, ParameterSources},
};
use macmlx_inference::{
    Backend, EventStream, FinishReason, GenerateRequest, GenerationEvent, InferenceError, Layer,
    ModelCard, ScriptedBackend, ScriptedCatalog, Timings, Usage,
};
use macmlx_mcp::{Approvals, LoginShell, Pool, PoolSetup};
use macmlx_settings::{
    Aliases, Environment, Home, McpServers, ModelParametersFolder, ToolPolicies,
};
use macmlx_store::{conversations::Conversations, models::Library};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tower::ServiceExt;

pub(crate) const MODEL: &str = "org/small";

pub(crate) type Said = Result<GenerationEvent, InferenceError>;

/// What runs in a home, and its routes.
pub(crate) struct Running {
    folder: tempfile::TempDir,
    router: Router,
    pub(crate) events: Arc<Events>,
    pub(crate) aliases: Arc<Aliases>,
}

impl Running {
    pub(crate) fn new(backend: Arc<dyn Backend>) -> Self {
        Self::with_models(backend, &[MODEL, "org/large"])
    }

    pub(crate) fn with_models(backend: Arc<dyn Backend>, models: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        let events = Arc::new(Events::default());
        let aliases = Arc::new(Aliases::new(&home));
        let parameters = Arc::new(ModelParametersFolder::new(&home, aliases.clone()));
        let conversations = Arc::new(ConversationSources::new(
            Arc::new(Conversations::new(home.conversations())),
            events.clone(),
        ));
        let policies = Arc::new(ToolPolicies::new(&home));
        let environment = Environment::default();
        let chat = Chat {
            conversations: conversations.clone(),
            backend,
            catalog: Arc::new(ScriptedCatalog(
                models.iter().map(|id| ModelCard::scripted(id)).collect(),
            )),
            parameters: parameters.clone(),
            pool: Arc::new(Pool::start(PoolSetup {
                servers: Arc::new(McpServers::new(&home, &environment)),
                policies: policies.clone(),
                shell: Arc::new(LoginShell::new(&environment)),
            })),
            approvals: Arc::new(Approvals::new(policies)),
        };
        let library = folder.path().join("models");
        for model in models {
            let path = library.join(model);
            std::fs::create_dir_all(&path).unwrap();
            std::fs::write(path.join("config.json"), r#"{"model_type": "llama"}"#).unwrap();
        }
        let routes = conversations::routes()
            .with_state(conversations)
            .merge(chat::routes().with_state(Arc::new(chat)))
            .merge(parameters::routes().with_state(Arc::new(ParameterSources {
                folder: parameters,
                library: Arc::new(Library::new(library)),
                events: events.clone(),
            })));
        Self {
            router: guard("secret".into(), routes),
            folder,
            events,
            aliases,
        }
    }

    pub(crate) async fn send(&self, method: &str, path: &str, body: &Value) -> Response {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", "Bearer secret")
            .header("content-type", "application/json");
        let body = if body.is_null() {
            Body::empty()
        } else {
            Body::from(body.to_string())
        };
        let request = request.body(body).unwrap();
        self.router.clone().oneshot(request).await.unwrap()
    }

    pub(crate) async fn call(&self, method: &str, path: &str, body: &Value) -> (StatusCode, Value) {
        let response = self.send(method, path, body).await;
        let status = response.status();
        let bytes = to_bytes(response.into_body(), 1 << 20).await.unwrap();
        (status, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    /// A call that must succeed.
    pub(crate) async fn good(&self, method: &str, path: &str, body: &Value) -> Value {
        let (status, body) = self.call(method, path, body).await;
        assert!(status.is_success(), "{method} {path}: {status} {body}");
        body
    }

    /// A call that must fail: its status, code and parameter.
    pub(crate) async fn bad(
        &self,
        method: &str,
        path: &str,
        body: &Value,
    ) -> (u16, String, Option<String>) {
        let (status, body) = self.call(method, path, body).await;
        assert!(!status.is_success(), "{method} {path}: {status} {body}");
        let error = &body["error"];
        assert!(!error["message"].as_str().unwrap().is_empty());
        (
            status.as_u16(),
            error["code"].as_str().unwrap().into(),
            error["param"].as_str().map(str::to_owned),
        )
    }

    /// A new conversation's id.
    pub(crate) async fn begin(&self, body: &Value) -> String {
        let made = self.good("POST", "/x/conversations", body).await;
        made["id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn conversation(&self, id: &str) -> Value {
        self.good("GET", &format!("/x/conversations/{id}"), &Value::Null)
            .await
    }

    /// Asks and reads the answer to its end.
    pub(crate) async fn ask(&self, body: &Value) -> Vec<Value> {
        let response = self.send("POST", "/x/chat", body).await;
        assert_eq!(response.status(), StatusCode::OK);
        let bytes = to_bytes(response.into_body(), 1 << 20).await.unwrap();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        text.lines()
            .filter_map(|line| line.strip_prefix("data:"))
            .map(|data| serde_json::from_str(data).unwrap())
            .collect()
    }

    /// The file of a conversation.
    pub(crate) fn file(&self, id: &str) -> Value {
        let path = self.folder.path().join(format!("conversations/{id}.json"));
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    }

    pub(crate) fn put_file(&self, id: &str, contents: &Value) {
        let folder = self.folder.path().join("conversations");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("{id}.json")), contents.to_string()).unwrap();
    }
}

/// Types of events, in order; several of the same in a row count once.
pub(crate) fn types(events: &[Value]) -> Vec<&str> {
    let mut types: Vec<&str> = events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    types.dedup();
    types
}

pub(crate) fn started() -> GenerationEvent {
    GenerationEvent::Started {
        model: MODEL.into(),
        prompt_tokens: 12,
        cached_tokens: 4,
    }
}

pub(crate) fn text(text: &str) -> GenerationEvent {
    GenerationEvent::Text {
        choice: 0,
        text: text.into(),
        tokens: Vec::new(),
    }
}

pub(crate) fn reasoning(text: &str) -> GenerationEvent {
    GenerationEvent::Reasoning {
        choice: 0,
        text: text.into(),
        tokens: Vec::new(),
    }
}

/// The end of an answer of eleven tokens that took a second.
pub(crate) fn ended(reason: FinishReason) -> Vec<GenerationEvent> {
    vec![
        GenerationEvent::Finished {
            choice: 0,
            reason,
            stop_sequence: None,
        },
        GenerationEvent::Completed {
            usage: Usage {
                prompt_tokens: 12,
                cached_tokens: 4,
                completion_tokens: 11,
                reasoning_tokens: 2,
            },
            timings: Timings {
                decode: Duration::from_secs(1),
                ..Timings::default()
            },
        },
    ]
}

/// A whole answer.
pub(crate) fn answer(words: &str) -> Vec<GenerationEvent> {
    let mut events = vec![started(), text(words)];
    events.extend(ended(FinishReason::Stop));
    events
}

/// What goes well.
pub(crate) fn good(events: Vec<GenerationEvent>) -> Vec<Said> {
    events.into_iter().map(Ok).collect()
}

/// A backend whose one answer says what the test sends, when it sends it.
pub(crate) struct Held {
    rest: ScriptedBackend,
    events: Mutex<Option<mpsc::UnboundedReceiver<Said>>>,
}

impl Held {
    pub(crate) fn new() -> (Arc<Self>, mpsc::UnboundedSender<Said>) {
        let (sender, receiver) = mpsc::unbounded();
        let held = Self {
            rest: ScriptedBackend::default().then_events(good(answer("later"))),
            events: Mutex::new(Some(receiver)),
        };
        (Arc::new(held), sender)
    }
}

impl Layer for Held {
    fn inner(&self) -> &dyn Backend {
        &self.rest
    }

    fn generate(
        &self,
        model: Arc<ModelCard>,
        request: GenerateRequest,
    ) -> BoxFuture<'_, Result<EventStream, InferenceError>> {
        let held = self.events.lock().take();
        match held {
            Some(events) => async move { Ok(events.boxed()) }.boxed(),
            None => self.rest.generate(model, request),
        }
    }
}

pub(crate) fn nothing() -> Value {
    json!({})
}
