//! How long a model stays, as each endpoint is told it.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use macmlx_inference::{
    Backend, EmbedRequest, Embeddings, EventStream, GenerateRequest, InferenceError, KeepAlive,
    LoadedModel, ModelCard, ModelTask, ModelTraits, Relevance, RerankRequest, ScriptedBackend,
    TokenizeRequest,
};
use macmlx_protocol::{
    Described, Encoding,
    endpoints::{Route, Visitor, visit},
};
use parking_lot::Mutex;
use reqwest::Client;
use serde_json::{Value, json};

use crate::support::{Served, card, says, start_with_models};

/// Answers anything, and notes which model is to stay for how long.
#[derive(Default)]
struct Keeping {
    wishes: Mutex<Vec<(String, KeepAlive)>>,
    encoders: ScriptedBackend,
}

impl Backend for Keeping {
    fn generate(
        &self,
        model: Arc<ModelCard>,
        request: GenerateRequest,
    ) -> BoxFuture<'_, Result<EventStream, InferenceError>> {
        Box::pin(async move {
            let once = ScriptedBackend::default().then_events(says(&["Hi."]));
            once.generate(model, request).await
        })
    }

    fn embed(
        &self,
        model: Arc<ModelCard>,
        request: EmbedRequest,
    ) -> BoxFuture<'_, Result<Embeddings, InferenceError>> {
        self.encoders.embed(model, request)
    }

    fn rerank(
        &self,
        model: Arc<ModelCard>,
        request: RerankRequest,
    ) -> BoxFuture<'_, Result<Relevance, InferenceError>> {
        self.encoders.rerank(model, request)
    }

    fn tokenize(
        &self,
        model: Arc<ModelCard>,
        request: TokenizeRequest,
    ) -> BoxFuture<'_, Result<Vec<u32>, InferenceError>> {
        self.encoders.tokenize(model, request)
    }

    fn detokenize(
        &self,
        model: Arc<ModelCard>,
        tokens: Vec<u32>,
    ) -> BoxFuture<'_, Result<String, InferenceError>> {
        self.encoders.detokenize(model, tokens)
    }

    fn traits(&self, model: Arc<ModelCard>) -> BoxFuture<'_, Result<ModelTraits, InferenceError>> {
        self.encoders.traits(model)
    }

    fn load(&self, _: Arc<ModelCard>) -> BoxFuture<'_, Result<(), InferenceError>> {
        Box::pin(async { Ok(()) })
    }

    fn unload(&self, _: String) -> BoxFuture<'_, Result<bool, InferenceError>> {
        Box::pin(async { Ok(false) })
    }

    fn keep(&self, id: &str, keep_alive: KeepAlive) {
        self.wishes.lock().push((id.to_owned(), keep_alive));
    }

    fn loaded(&self) -> Vec<LoadedModel> {
        Vec::new()
    }
}

async fn keeping() -> (Served, Arc<Keeping>) {
    let backend = Arc::new(Keeping::default());
    let of = |id: &str, task| ModelCard { task, ..card(id) };
    let models = vec![
        card("org/small"),
        of("org/embed", ModelTask::Embed),
        of("org/rank", ModelTask::Rerank),
    ];
    let server = start_with_models(Arc::clone(&backend) as _, models).await;
    (server, backend)
}

/// A body for each endpoint, with the model that answers it.
fn bodies() -> Vec<(&'static str, &'static str, Value)> {
    let messages = json!([{"role": "user", "content": "Hi"}]);
    let chat = json!({"messages": messages, "stream": false});
    let completion = json!({"prompt": "Hi", "stream": false});
    let embedding = json!({"input": "Hi"});
    vec![
        ("/v1/chat/completions", "org/small", chat.clone()),
        ("/v1/completions", "org/small", completion.clone()),
        (
            "/v1/infill",
            "org/small",
            json!({"input_prefix": "a", "input_suffix": "b"}),
        ),
        ("/v1/responses", "org/small", json!({"input": "Hi"})),
        ("/v1/embeddings", "org/embed", embedding.clone()),
        (
            "/v1/rerank",
            "org/rank",
            json!({"query": "a", "documents": ["b"]}),
        ),
        (
            "/v1/messages",
            "org/small",
            json!({"messages": messages, "max_tokens": 5}),
        ),
        ("/api/chat", "org/small", chat.clone()),
        ("/api/generate", "org/small", completion.clone()),
        ("/api/embed", "org/embed", embedding.clone()),
        ("/api/embeddings", "org/embed", json!({"prompt": "Hi"})),
        ("/api/v0/chat/completions", "org/small", chat),
        ("/api/v0/completions", "org/small", completion),
        ("/api/v0/embeddings", "org/embed", embedding),
        ("/api/v1/chat", "org/small", json!({"input": "Hi"})),
        // It is not in the table, since it answers nothing.
        ("/api/v1/models/load", "org/small", json!({})),
    ]
}

#[derive(Default)]
struct Paths(BTreeSet<&'static str>);

impl Visitor for Paths {
    fn generating<E: Described>(&mut self, route: Route) {
        self.0.insert(route.path);
    }

    fn encoding<E: Encoding>(&mut self, route: Route) {
        self.0.insert(route.path);
    }
}

#[tokio::test]
async fn a_model_stays_as_the_request_to_any_endpoint_says() {
    let mut paths = Paths::default();
    visit(&mut paths);
    let bodies = bodies();
    for path in paths.0 {
        assert!(bodies.iter().any(|(told, ..)| *told == path), "{path}");
    }
    let (server, backend) = keeping().await;
    for (path, model, body) in bodies {
        let send = async |name: &str, value: Value| {
            let mut body = body.clone();
            body["model"] = json!(model);
            body[name] = value;
            let request = Client::new().post(server.at(path)).json(&body);
            let reply = request.send().await.unwrap();
            (reply.status().as_u16(), reply.text().await.unwrap())
        };
        for (name, value, wish) in [
            ("ttl", json!(3600), Duration::from_hours(1)),
            ("keep_alive", json!("90m"), Duration::from_mins(90)),
        ] {
            let (status, reply) = send(name, value).await;
            assert_eq!(status, 200, "{path}: {reply}");
            let wishes = std::mem::take(&mut *backend.wishes.lock());
            let expected = (model.to_owned(), KeepAlive::For(wish));
            assert_eq!(wishes, [expected], "{path}: {name}");
            let (status, reply) = send(name, json!("soon")).await;
            assert_eq!(status, 400, "{path}: {reply}");
            assert!(reply.contains(name), "{path}: {reply}");
            let (status, reply) = send(name, Value::Null).await;
            assert_eq!(status, 200, "{path}: {reply}");
            assert_eq!(*backend.wishes.lock(), [], "{path}: {name}");
        }
    }
}
