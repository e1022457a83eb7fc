//! Every route and every kind of failure: the status, the shape of the dialect of the path, the path
//! as it was called, and words that a client knows.
//!
//! The routes are those of the document, which the router itself fills, and what the table of
//! endpoints has beside them.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use axum::Router;
use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use macmlx_inference::{
    Backend, EmbedRequest, Embeddings, EventStream, GenerateRequest, InferenceError, LoadedModel,
    ModelCard, ModelFilesError, ModelTask, ModelTraits, Relevance, RerankRequest,
    ScriptedModelFiles, TokenizeRequest,
};
use macmlx_protocol::{
    Described, Encoding,
    endpoints::{Route, Visitor, visit},
};
use macmlx_server::{ApiKey, Options};
use reqwest::{Client, Method};
use serde_json::{Value, json};

use crate::support::{Served, card, serve_all};

/// Names of our code and words of the crates that read for it.
const WORDS_OF_CODE: [&str; 38] = [
    "u8",
    "u16",
    "u32",
    "u64",
    "u128",
    "usize",
    "i8",
    "i16",
    "i32",
    "i64",
    "i128",
    "isize",
    "f32",
    "f64",
    "bool",
    "str",
    "char",
    "struct",
    "enum",
    "tuple",
    "newtype",
    "Option",
    "Some",
    "None",
    "Vec",
    "HashMap",
    "untagged",
    "variant",
    "serde",
    "serde_json",
    "axum",
    "tokio",
    "hyper",
    "Result",
    "Err",
    "deserialize",
    "Deserialize",
    "UTF8Error",
];

const SENTENCES_OF_CODE: [&str; 9] = [
    "invalid type",
    "invalid value",
    "invalid length",
    "missing field",
    "unknown field",
    "invalid digit",
    "did not match any",
    "a sequence",
    "a map",
];

/// In whose shape an error is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    OpenAi,
    Anthropic,
    Ollama,
    LmStudio,
    Control,
}

/// The shape of a path, by the folders that the APIs have.
pub(crate) fn shape(path: &str) -> Shape {
    let segments: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let inner: Vec<&str> = segments
        .iter()
        .copied()
        .skip_while(|part| *part == "v1")
        .collect();
    match (segments.as_slice(), inner.as_slice()) {
        (["x", ..], _) => Shape::Control,
        (["api", "v0", ..], _) => Shape::OpenAi,
        (["api", "v1", ..], _) => Shape::LmStudio,
        (["api", ..], _) => Shape::Ollama,
        (["anthropic", ..], _) | (_, ["messages", ..]) => Shape::Anthropic,
        _ => Shape::OpenAi,
    }
}

/// One method of a path.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) method: Method,
    /// With ids in place of its parameters.
    pub(crate) path: String,
    /// The fields of the body that it takes; none: it takes no body.
    pub(crate) fields: Vec<String>,
    is_open: bool,
}

/// Paths of the table of endpoints that the document does not show.
#[derive(Default)]
struct Aliases(Vec<(&'static str, &'static str)>);

impl Visitor for Aliases {
    fn generating<E: Described>(&mut self, route: Route) {
        let aliases = route.aliases.iter();
        self.0.extend(aliases.map(|alias| (route.path, *alias)));
    }

    fn encoding<E: Encoding>(&mut self, route: Route) {
        let aliases = route.aliases.iter();
        self.0.extend(aliases.map(|alias| (route.path, *alias)));
    }
}

/// All calls: those of the document, and under each other path that is the same.
pub(crate) async fn calls(server: &Served) -> Vec<Call> {
    let document: Value = reqwest::get(server.at("/openapi.json"))
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    let mut aliases = Aliases::default();
    visit(&mut aliases);
    let mut calls = Vec::new();
    for (told, methods) in document["paths"].as_object().unwrap() {
        let aliases = aliases.0.iter().filter(|(path, _)| path == told);
        let paths = aliases.map(|(_, alias)| *alias).chain([told.as_str()]);
        for path in paths {
            for (method, operation) in methods.as_object().unwrap() {
                let body = &operation["requestBody"]["content"]["application/json"]["schema"];
                let mut fields = BTreeSet::new();
                collect_fields(&document, body, &mut fields);
                calls.push(Call {
                    method: Method::from_bytes(method.to_uppercase().as_bytes()).unwrap(),
                    path: path.replace("{id}", "gone").replace("{item}", "x"),
                    fields: fields.into_iter().collect(),
                    is_open: operation["security"] == json!([{}]),
                });
            }
        }
    }
    let without: Vec<Call> = calls
        .iter()
        .filter_map(|call| {
            let rest = call.path.strip_prefix("/v1/")?;
            Some(Call {
                path: format!("/{rest}"),
                ..call.clone()
            })
        })
        .collect();
    calls.extend(without);
    assert!(calls.len() > 60, "{}", calls.len());
    calls
}

/// The names of an object's fields, through references and parts.
fn collect_fields(document: &Value, schema: &Value, fields: &mut BTreeSet<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = document.pointer(reference.trim_start_matches('#')).unwrap();
        collect_fields(document, target, fields);
    }
    for parts in ["allOf", "oneOf", "anyOf"] {
        for part in schema[parts].as_array().into_iter().flatten() {
            collect_fields(document, part, fields);
        }
    }
    let properties = schema["properties"].as_object();
    fields.extend(
        properties
            .into_iter()
            .flat_map(|fields| fields.keys().cloned()),
    );
}

/// A body that the route takes.
pub(crate) fn plain(path: &str) -> Value {
    let turns = json!([{"role": "user", "content": "Hi"}]);
    let path = path
        .trim_start_matches("/anthropic")
        .trim_start_matches("/v1");
    let path = path
        .trim_start_matches("/api/v0")
        .trim_start_matches("/api/v1");
    match path {
        "/messages" | "/messages/count_tokens" => {
            json!({"model": "small", "max_tokens": 1, "messages": turns})
        }
        "/chat/completions" | "/chat/completions/chat/completions" | "/apply-template" => {
            json!({"model": "small", "messages": turns})
        }
        // What is begun as a stream would fail in it.
        "/api/chat" => json!({"model": "small", "messages": turns, "stream": false}),
        "/api/generate" => json!({"model": "small", "prompt": "Hi", "stream": false}),
        "/completions" | "/tokenize" => json!({"model": "small", "prompt": "Hi"}),
        "/infill" => json!({"input_prefix": "a", "input_suffix": "b"}),
        "/responses" | "/responses/input_tokens" | "/chat" => {
            json!({"model": "small", "input": "Hi"})
        }
        "/embeddings" | "/api/embed" => json!({"model": "embed", "input": "Hi"}),
        "/api/embeddings" => json!({"model": "embed", "prompt": "Hi"}),
        "/rerank" | "/reranking" | "/v2/rerank" => {
            json!({"model": "rerank", "query": "a", "documents": ["b"]})
        }
        "/detokenize" => json!({"model": "small", "tokens": [1]}),
        "/api/show" | "/api/pull" | "/api/delete" | "/models/load" | "/models/download" => {
            json!({"model": "small"})
        }
        "/api/copy" => json!({"source": "small", "destination": "other"}),
        "/api/create" => json!({"model": "other", "from": "small"}),
        "/models/unload" => json!({"instance_id": "small"}),
        _ => json!({}),
    }
}

/// A backend all of whose methods fail.
struct Fails(Failure);

#[derive(Debug, Clone)]
enum Failure {
    Says(InferenceError),
    Panics,
}

impl Fails {
    fn fail<T: Send + 'static>(&self) -> BoxFuture<'_, Result<T, InferenceError>> {
        let failure = self.0.clone();
        async move {
            match failure {
                Failure::Says(error) => Err(error),
                Failure::Panics => panic!("Option::unwrap on a None value"),
            }
        }
        .boxed()
    }
}

impl Backend for Fails {
    fn generate(
        &self,
        _: Arc<ModelCard>,
        _: GenerateRequest,
    ) -> BoxFuture<'_, Result<EventStream, InferenceError>> {
        let failing = self.fail::<()>();
        async move {
            failing.await?;
            Ok(stream::empty().boxed())
        }
        .boxed()
    }

    fn embed(
        &self,
        _: Arc<ModelCard>,
        _: EmbedRequest,
    ) -> BoxFuture<'_, Result<Embeddings, InferenceError>> {
        self.fail()
    }

    fn rerank(
        &self,
        _: Arc<ModelCard>,
        _: RerankRequest,
    ) -> BoxFuture<'_, Result<Relevance, InferenceError>> {
        self.fail()
    }

    fn tokenize(
        &self,
        _: Arc<ModelCard>,
        _: TokenizeRequest,
    ) -> BoxFuture<'_, Result<Vec<u32>, InferenceError>> {
        self.fail()
    }

    fn detokenize(
        &self,
        _: Arc<ModelCard>,
        _: Vec<u32>,
    ) -> BoxFuture<'_, Result<String, InferenceError>> {
        self.fail()
    }

    fn traits(&self, _: Arc<ModelCard>) -> BoxFuture<'_, Result<ModelTraits, InferenceError>> {
        async { Ok(ModelTraits::default()) }.boxed()
    }

    fn load(&self, _: Arc<ModelCard>) -> BoxFuture<'_, Result<(), InferenceError>> {
        self.fail()
    }

    fn unload(&self, _: String) -> BoxFuture<'_, Result<bool, InferenceError>> {
        self.fail()
    }

    fn loaded(&self) -> Vec<LoadedModel> {
        Vec::new()
    }
}

fn broken() -> Failure {
    Failure::Says(InferenceError::Engine {
        message: "it broke".into(),
    })
}

async fn failing(failure: Failure, options: Options) -> Served {
    let models = [
        ("org/small", ModelTask::Generate),
        ("org/embed", ModelTask::Embed),
        ("org/rerank", ModelTask::Rerank),
    ];
    let models = models.map(|(id, task)| ModelCard { task, ..card(id) });
    let files = ScriptedModelFiles::refusing(ModelFilesError::Disk("the disk is full".into()));
    serve_all(
        Arc::new(Fails(failure)),
        models.into(),
        Arc::new(files),
        Router::new(),
        options,
        Duration::ZERO,
    )
    .await
}

/// An answer, and what to say where it is not as it should be.
pub(crate) struct Answer {
    status: u16,
    content_type: String,
    text: String,
    context: String,
}

impl Answer {
    pub(crate) async fn of(request: reqwest::RequestBuilder, context: String) -> Self {
        let response = request.send().await.unwrap();
        let content_type = response.headers().get("content-type");
        let content_type = content_type.map(|value| value.to_str().unwrap().to_owned());
        Self {
            status: response.status().as_u16(),
            content_type: content_type.unwrap_or_default(),
            text: response.text().await.unwrap(),
            context,
        }
    }

    /// The message of an error in this shape.
    fn message(&self, shape: Shape) -> String {
        let context = format!("{} {}: {}", self.context, self.status, self.text);
        assert_eq!(self.content_type, "application/json", "{context}");
        let body: Value = serde_json::from_str(&self.text).unwrap();
        let fields = |value: &Value| -> BTreeSet<String> {
            value.as_object().unwrap().keys().cloned().collect()
        };
        let names = |names: &[&str]| -> BTreeSet<String> {
            names.iter().map(|name| (*name).to_owned()).collect()
        };
        let error = &body["error"];
        let message = match shape {
            Shape::OpenAi => {
                let expected = names(&["message", "type", "param", "code"]);
                assert_eq!(fields(error), expected, "{context}");
                assert!(error["type"].is_string(), "{context}");
                &error["message"]
            }
            Shape::Anthropic => {
                assert_eq!(body["type"], "error", "{context}");
                assert!(error["type"].is_string(), "{context}");
                assert!(error.get("code").is_none(), "{context}");
                &error["message"]
            }
            Shape::Ollama => {
                assert_eq!(fields(&body), names(&["error"]), "{context}");
                error
            }
            Shape::Control => {
                assert_eq!(fields(error), names(&["message", "code"]), "{context}");
                &error["message"]
            }
            Shape::LmStudio => {
                let known = names(&["message", "type", "param", "code"]);
                assert!(fields(error).is_subset(&known), "{context}");
                assert!(error["type"].is_string(), "{context}");
                &error["message"]
            }
        };
        let message = message.as_str().unwrap_or_default().to_owned();
        assert!(!message.is_empty(), "{context}");
        let words = message.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        for word in words {
            assert!(!WORDS_OF_CODE.contains(&word), "{context}");
        }
        for sentence in SENTENCES_OF_CODE {
            assert!(!message.contains(sentence), "{context}");
        }
        assert!(!message.contains("::"), "{context}");
        message
    }

    pub(crate) fn expect_success(&self) {
        assert_eq!(self.status, 200, "{}: {}", self.context, self.text);
    }

    pub(crate) fn expect(&self, status: u16, shape: Shape) -> String {
        let message = self.message(shape);
        assert_eq!(self.status, status, "{}: {message}", self.context);
        message
    }
}

pub(crate) fn request(server: &Served, call: &Call) -> reqwest::RequestBuilder {
    Client::new().request(call.method.clone(), server.at(&call.path))
}

#[tokio::test]
async fn what_stands_before_handlers_speaks_the_dialect_of_the_path() {
    let keyed = failing(
        broken(),
        Options {
            api_keys: vec![ApiKey::new("key")],
            body_limit_bytes: 512,
            ..Options::default()
        },
    )
    .await;
    for call in calls(&keyed).await {
        let shape = shape(&call.path);
        let answer = async |kind: &str, request: reqwest::RequestBuilder| {
            let context = format!("{kind} {} {}", call.method, call.path);
            Answer::of(request, context).await
        };
        let named = request(&keyed, &call).header("host", "evil.example");
        let told = answer("host", named).await.expect(403, shape);
        assert!(told.contains("allowedHosts"), "{told}");
        let foreign = request(&keyed, &call).header("origin", "https://evil.example");
        let told = answer("origin", foreign).await.expect(403, shape);
        assert!(told.contains("allowedOrigins"), "{told}");
        let unlike = Client::new().patch(keyed.at(&call.path)).bearer_auth("key");
        let told = answer("method", unlike).await.expect(405, shape);
        assert!(
            told.contains(&format!("{} does not take PATCH", call.path)),
            "{told}"
        );
        let doubled = format!("/{}/", call.path);
        let unlike = Client::new().patch(keyed.at(&doubled)).bearer_auth("key");
        let told = answer("slashes", unlike).await.expect(405, shape);
        assert!(told.contains(&doubled), "{told}");
        if call.path.contains("gone") {
            let path = call.path.replace("gone", "%ff");
            let unreadable = Client::new()
                .request(call.method.clone(), keyed.at(&path))
                .bearer_auth("key");
            let told = answer("path", unreadable).await.expect(400, shape);
            assert!(told.contains(&path), "{told}");
        }
        if call.is_open {
            continue;
        }
        answer("key", request(&keyed, &call))
            .await
            .expect(401, shape);
        if call.fields.is_empty() {
            continue;
        }
        let packed = request(&keyed, &call)
            .bearer_auth("key")
            .header("content-encoding", "compress")
            .body("{}");
        let told = answer("encoding", packed).await.expect(415, shape);
        assert!(told.contains("`compress`"), "{told}");
        let large = request(&keyed, &call)
            .bearer_auth("key")
            .body(vec![b' '; 600]);
        let told = answer("size", large).await.expect(413, shape);
        assert!(told.contains("512"), "{told}");
    }
}

#[tokio::test]
async fn an_unknown_path_is_told_as_it_was_called_in_the_words_of_its_folder() {
    let server = failing(broken(), Options::default()).await;
    for path in [
        "/nope",
        "/v1/nope",
        "/v1/v1/nope",
        "//v1//nope/",
        "/v1/nope%20here",
        "/v1/messages/nope",
        "/messages/nope",
        "/v1/responses/compact",
        "/responses/compact",
        "/v1/v1/responses/compact",
        "/anthropic",
        "/anthropic/nope",
        "/anthropic/v1/nope",
        "/api/nope",
        "/api//nope/",
        "/api/v0/nope",
        "/api/v1/nope",
        "/x/nope",
    ] {
        let request = Client::new().post(server.at(path)).body("{}");
        let answer = Answer::of(request, path.to_owned()).await;
        let told = answer.expect(404, shape(path));
        assert_eq!(told, format!("there is no route POST {path}"));
    }
    let request = Client::new()
        .get(server.at("/v1/nope"))
        .header("anthropic-version", "2023-06-01");
    Answer::of(request, "by its header".into())
        .await
        .expect(404, Shape::Anthropic);
}

#[tokio::test]
async fn a_body_that_is_wrong_is_told_in_words_of_json() {
    let server = failing(broken(), Options::default()).await;
    let wrong = [
        json!(true),
        json!(-7),
        json!(0.5),
        json!("x"),
        json!([]),
        json!([[]]),
        json!([{"a": 1}]),
        json!({}),
        json!({"type": 1}),
    ];
    let client = Client::new();
    let mut refused = 0;
    for call in calls(&server).await {
        if call.fields.is_empty() {
            continue;
        }
        let shape = shape(&call.path);
        for text in [
            "{\"model\": ",
            "[]",
            "{\"model\": NaN}",
            "\"x\"",
            "{'a': 1}",
        ] {
            let context = format!("{} {} {text}", call.method, call.path);
            let request = request(&server, &call).body(text);
            let told = Answer::of(request, context).await.expect(400, shape);
            assert!(told.contains("JSON"), "{told}");
        }
        for field in &call.fields {
            for value in &wrong {
                let mut body = plain(&call.path);
                body[field] = value.clone();
                let context = format!("{} {} {body}", call.method, call.path);
                let request = client
                    .request(call.method.clone(), server.at(&call.path))
                    .json(&body);
                let answer = Answer::of(request, context).await;
                if answer.status < 400 {
                    continue;
                }
                answer.message(shape);
                match answer.status {
                    400 => refused += 1,
                    // It is a name that nothing has, or was taken, and then the backend failed.
                    404 | 500 => {}
                    status => panic!("{} {status}", answer.context),
                }
            }
        }
    }
    assert!(refused > 1000, "{refused}");
}

#[tokio::test]
async fn a_backend_that_fails_is_told_in_every_dialect() {
    for (failure, status, overloaded) in [
        (broken(), 500, 500),
        (Failure::Panics, 500, 500),
        (Failure::Says(InferenceError::Overloaded), 503, 529),
        (Failure::Says(InferenceError::ShuttingDown), 503, 529),
        (
            Failure::Says(InferenceError::OutOfMemory {
                message: "no room".into(),
            }),
            503,
            529,
        ),
        (
            Failure::Says(InferenceError::ModelNotFound {
                reference: "small".into(),
                suggestions: Vec::new(),
            }),
            404,
            404,
        ),
        (
            Failure::Says(InferenceError::ContextLength {
                prompt_tokens: 9,
                limit: 8,
            }),
            400,
            400,
        ),
    ] {
        let server = failing(failure.clone(), Options::default()).await;
        let mut failed = 0;
        for call in calls(&server).await {
            let body = plain(&call.path);
            if call.method != Method::POST || body == json!({}) {
                continue;
            }
            let context = format!("{failure:?} {} {body}", call.path);
            let request = request(&server, &call).json(&body);
            let answer = Answer::of(request, context.clone()).await;
            // Models' files and facts are not the backend's.
            let is_of_files = ["/show", "/pull", "/copy", "/create", "/download"]
                .iter()
                .any(|end| call.path.ends_with(end));
            if is_of_files {
                if answer.status >= 400 {
                    answer.message(shape(&call.path));
                }
                continue;
            }
            let expected = match shape(&call.path) {
                Shape::Anthropic => overloaded,
                _ => status,
            };
            let told = answer.expect(expected, shape(&call.path));
            if matches!(failure, Failure::Panics) {
                assert_eq!(told, "the server failed", "{context}");
            }
            failed += 1;
        }
        assert!(failed > 20, "{failure:?}: {failed}");
    }
}
