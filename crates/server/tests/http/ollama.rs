//! Ollama's routes: models, files, lifetimes, and streams of lines.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{FutureExt, StreamExt, future::BoxFuture};
use macmlx_inference::{
    Backend, EventStream, FilesRequest, GenerateRequest, GenerationEvent, InferenceError,
    KeepAlive, LoadedModel, ModelCard, ModelFilesError, ModelTraits, Prompt, PullProgress, Role,
    ScriptedBackend, ScriptedModelFiles, TokenizeRequest,
};
use macmlx_server::{ApiKey, Options};
use parking_lot::Mutex;
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Served, led, says, start, start_shared, start_with_files, started, text};

async fn send(server: &Served, method: Method, path: &str, body: Value) -> reqwest::Response {
    Client::new()
        .request(method, server.at(path))
        .json(&body)
        .send()
        .await
        .unwrap()
}

async fn post(server: &Served, path: &str, body: Value) -> (u16, Value) {
    let response = send(server, Method::POST, path, body).await;
    (response.status().as_u16(), response.json().await.unwrap())
}

async fn get(server: &Served, path: &str) -> Value {
    let response = Client::new().get(server.at(path)).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK, "{path}");
    response.json().await.unwrap()
}

async fn lines(response: reqwest::Response) -> Vec<Value> {
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["content-type"], "application/x-ndjson");
    let text = response.text().await.unwrap();
    assert!(text.ends_with('\n'), "{text}");
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn chat(more: &Value) -> Value {
    let mut body = json!({
        "model": "org/small",
        "messages": [{"role": "user", "content": "Hi"}],
    });
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

#[tokio::test]
async fn answers_are_streamed_unless_that_is_declined() {
    let backend = ScriptedBackend::default()
        .then_events(says(&["Pa", "ris."]))
        .then_events(says(&["Paris."]))
        .then_events(says(&["Paris."]));
    let server = start(backend, Options::default()).await;
    let streamed = lines(send(&server, Method::POST, "/api/chat", chat(&json!({}))).await).await;
    assert_eq!(streamed.len(), 3);
    assert_eq!(streamed[0]["message"]["content"], "Pa");
    assert_eq!(streamed[0]["done"], false);
    assert_eq!(streamed[2]["done_reason"], "stop");
    assert_eq!(streamed[2]["eval_count"], 2);
    let (status, whole) = post(&server, "/api/chat", chat(&json!({"stream": false}))).await;
    assert_eq!(
        (status, &whole["message"]["content"]),
        (200, &json!("Paris."))
    );
    let generated = json!({"model": "org/small", "prompt": "Hi", "stream": false});
    let (status, whole) = post(&server, "/api/generate", generated).await;
    assert_eq!((status, &whole["response"]), (200, &json!("Paris.")));
    assert!(whole["context"].is_array());
}

#[tokio::test]
async fn a_context_is_a_memory_the_client_keeps() {
    let backend = Arc::new(
        ScriptedBackend::default()
            .then_events(says(&["Paris."]))
            .then_events(says(&["Madrid."])),
    );
    let server = start_shared(
        Arc::clone(&backend) as Arc<dyn Backend>,
        Options::default(),
        Duration::ZERO,
    )
    .await;
    let ask = json!({"model": "org/small", "prompt": "France?", "system": "Be brief."});
    let streamed = lines(send(&server, Method::POST, "/api/generate", ask).await).await;
    let context = &streamed.last().unwrap()["context"];
    let again = json!({
        "model": "org/small", "prompt": "Spain?", "system": "Be brief.", "context": context,
    });
    lines(send(&server, Method::POST, "/api/generate", again).await).await;
    let Prompt::Chat(prompt) = &backend.requests()[1].prompt else {
        panic!("a conversation");
    };
    let turns: Vec<_> = prompt
        .messages
        .iter()
        .map(|message| (message.role, message.joined_text()))
        .collect();
    assert_eq!(
        turns,
        [
            (Role::System, "Be brief.".to_owned()),
            (Role::User, "France?".to_owned()),
            (Role::Assistant, "Paris.".to_owned()),
            (Role::User, "Spain?".to_owned()),
        ]
    );
}

#[tokio::test]
async fn failures_are_objects_with_an_error_before_and_within_a_stream() {
    let failure = InferenceError::Engine {
        message: "lost".into(),
    };
    let backend = ScriptedBackend::default()
        .then_events(vec![Ok(started()), Ok(text("a")), Err(failure)])
        .then_error(InferenceError::ModelNotFound {
            reference: "gone".into(),
            suggestions: Vec::new(),
        });
    let server = start(backend, Options::default()).await;
    let streamed = lines(send(&server, Method::POST, "/api/chat", chat(&json!({}))).await).await;
    assert_eq!(
        streamed.last().unwrap(),
        &json!({"error": "the engine failed: lost"})
    );
    let (status, body) = post(&server, "/api/chat", chat(&json!({}))).await;
    assert_eq!(status, 404);
    assert_eq!(
        body,
        json!({"error": "model 'gone' not found, try pulling it first"})
    );
    for (path, body, named) in [
        ("/api/chat", json!({"messages": []}), "model"),
        ("/api/chat", chat(&json!({"format": "yaml"})), "format"),
        (
            "/api/chat",
            chat(&json!({"options": {"tfs_z": 0.5}})),
            "tfs_z",
        ),
        (
            "/api/generate",
            json!({"model": "org/small", "prompt": "a", "suffix": "b", "system": "c"}),
            "system",
        ),
        ("/api/show", json!({}), "model"),
        (
            "/api/pull",
            json!({"stream": "no", "model": "a/b"}),
            "stream",
        ),
        ("/api/copy", json!({"source": "a"}), "destination"),
    ] {
        let (status, answer) = post(&server, path, body).await;
        assert_eq!(status, 400, "{path}");
        let message = answer["error"].as_str().unwrap();
        assert!(message.contains(named), "{path}: {message}");
    }
}

#[tokio::test]
async fn a_long_silence_is_filled_with_lines_that_add_nothing() {
    let (backend, mut hand) = led();
    let options = Options {
        keep_alive: Duration::from_millis(50),
        ..Options::default()
    };
    let server = start(backend, options).await;
    let response = send(&server, Method::POST, "/api/chat", chat(&json!({}))).await;
    let mut chunks = response.bytes_stream();
    let first = chunks.next().await.unwrap().unwrap();
    let line: Value = serde_json::from_slice(&first).unwrap();
    assert_eq!(
        (&line["message"]["content"], &line["done"]),
        (&json!(""), &json!(false))
    );
    hand.admit();
    hand.say(started());
    drop(chunks);
    hand.dropped().await;
}

#[tokio::test]
async fn models_are_listed_and_shown() {
    let server = start(ScriptedBackend::default(), Options::default()).await;
    let tags = get(&server, "/api/tags").await;
    let names: Vec<_> = tags["models"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| model["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["org/small", "flat"]);
    assert_eq!(tags["models"][0]["details"]["format"], "safetensors");
    for field in ["model", "name"] {
        let (status, shown) = post(&server, "/api/show", json!({field: "org/small"})).await;
        assert_eq!(status, 200);
        assert_eq!(
            shown["capabilities"],
            json!(["completion", "tools", "thinking", "insert"])
        );
        assert_eq!(shown["model_info"]["llama.context_length"], 2048);
        assert_eq!(shown["template"], "{{ messages }}");
    }
    let (status, body) = post(&server, "/api/show", json!({"name": "gone"})).await;
    assert_eq!(status, 404);
    assert!(body["error"].as_str().unwrap().contains("not found"));
    let version = get(&server, "/api/version").await;
    let parts: Vec<_> = version["version"].as_str().unwrap().split('.').collect();
    assert_eq!(parts.len(), 3);
}

#[tokio::test]
async fn clients_find_ollama_at_the_root() {
    let server = start(ScriptedBackend::default(), Options::default()).await;
    for path in ["/", "/api/hello", "/api/version", "/api/tags"] {
        for method in [Method::GET, Method::HEAD] {
            let response = Client::new()
                .request(method, server.at(path))
                .send()
                .await
                .unwrap();
            assert_eq!(response.status(), StatusCode::OK, "{path}");
        }
    }
    let root = reqwest::get(server.at("/")).await.unwrap();
    assert_eq!(root.text().await.unwrap(), "Ollama is running");
}

#[tokio::test]
async fn what_is_not_offered_says_so() {
    let server = start(ScriptedBackend::default(), Options::default()).await;
    for (path, words) in [
        ("/api/push", "not uploaded"),
        ("/api/blobs/sha256:ab", "uploaded files"),
    ] {
        let (status, body) = post(&server, path, json!({"model": "x"})).await;
        assert_eq!(status, 400, "{path}");
        let message = body["error"].as_str().unwrap();
        assert!(message.contains(words), "{path}: {message}");
    }
    let unknown = reqwest::get(server.at("/api/nothing")).await.unwrap();
    assert_eq!(unknown.status(), StatusCode::NOT_FOUND);
    let body: Value = unknown.json().await.unwrap();
    assert!(body["error"].is_string());
}

async fn with_files(files: ScriptedModelFiles) -> (Served, Arc<ScriptedModelFiles>) {
    let files = Arc::new(files);
    let server = start_with_files(
        Arc::new(ScriptedBackend::default()),
        files.clone(),
        Options::default(),
        Duration::ZERO,
    )
    .await;
    (server, files)
}

#[tokio::test]
async fn only_the_owner_deletes_a_model_on_openais_route() {
    let files = Arc::new(ScriptedModelFiles::default());
    let options = Options {
        api_keys: vec![ApiKey::new("laptop")],
        owner_key: Some(ApiKey::new("owner")),
        ..Options::default()
    };
    let backend = Arc::new(ScriptedBackend::default());
    let server = start_with_files(backend, files.clone(), options, Duration::ZERO).await;
    let delete = async |key: Option<&str>| {
        let mut request = Client::new().delete(server.at("/v1/models/owner/model"));
        if let Some(key) = key {
            request = request.bearer_auth(key);
        }
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        (status, response.json::<Value>().await.unwrap())
    };
    assert_eq!(delete(None).await.0, 401);
    let (status, refused) = delete(Some("laptop")).await;
    assert_eq!(
        (status, &refused["error"]["code"]),
        (403, &json!("forbidden"))
    );
    assert_eq!(files.requests(), []);
    let (status, deleted) = delete(Some("owner")).await;
    assert_eq!(status, 200);
    let expected = json!({"id": "owner/model", "object": "model", "deleted": true});
    assert_eq!(deleted, expected);
    assert_eq!(
        files.requests(),
        [FilesRequest::Delete("owner/model".into())]
    );
}

#[tokio::test]
async fn what_cannot_be_deleted_is_told_in_openais_words() {
    let refusal = ModelFilesError::Model(InferenceError::ModelNotFound {
        reference: "gone".into(),
        suggestions: Vec::new(),
    });
    let options = Options {
        owner_key: Some(ApiKey::new("owner")),
        ..Options::default()
    };
    let files = Arc::new(ScriptedModelFiles::refusing(refusal));
    let backend = Arc::new(ScriptedBackend::default());
    let server = start_with_files(backend, files, options, Duration::ZERO).await;
    // Without any key for clients the owner's is still asked for.
    let url = server.at("/models/gone");
    let response = Client::new().delete(&url).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    let response = Client::new().delete(&url).bearer_auth("owner").send().await;
    let response = response.unwrap();
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["error"]["code"], "model_not_found");
}

#[tokio::test]
async fn a_pull_tells_each_file_and_ends_with_success() {
    let file = |completed_bytes| {
        Ok(PullProgress::File {
            path: "model.safetensors".into(),
            sha256: Some("ab".repeat(32)),
            total_bytes: 10,
            completed_bytes,
        })
    };
    let (server, files) = with_files(ScriptedModelFiles::pulling(vec![
        Ok(PullProgress::Listing),
        file(0),
        file(10),
        Ok(PullProgress::Verifying {
            path: "model.safetensors".into(),
        }),
        Ok(PullProgress::Done {
            id: "owner/model".into(),
        }),
    ]))
    .await;
    let body = json!({"model": "hf.co/owner/model:latest"});
    let told = lines(send(&server, Method::POST, "/api/pull", body).await).await;
    let statuses: Vec<_> = told
        .iter()
        .map(|line| line["status"].as_str().unwrap())
        .collect();
    assert_eq!(
        statuses,
        [
            "pulling manifest",
            "pulling model.safetensors",
            "pulling model.safetensors",
            "verifying model.safetensors",
            "success"
        ]
    );
    assert_eq!(
        told[2],
        json!({
            "status": "pulling model.safetensors",
            "digest": format!("sha256:{}", "ab".repeat(32)),
            "total": 10,
            "completed": 10,
        })
    );
    let (status, one) = post(
        &server,
        "/api/pull",
        json!({"name": "owner/model", "stream": false}),
    )
    .await;
    assert_eq!((status, one), (200, json!({"status": "success"})));
    let asked = FilesRequest::Pull("owner/model".into());
    assert_eq!(files.requests(), [asked.clone(), asked]);
}

#[tokio::test]
async fn a_pull_that_fails_says_why() {
    let error = ModelFilesError::NotOnHub("`owner/model` is not on the hub".into());
    let (server, files) = with_files(ScriptedModelFiles::pulling(vec![
        Ok(PullProgress::Listing),
        Err(error),
    ]))
    .await;
    let body = json!({"model": "owner/model"});
    let told = lines(send(&server, Method::POST, "/api/pull", body).await).await;
    assert_eq!(told[1], json!({"error": "`owner/model` is not on the hub"}));
    assert_eq!(told.len(), 2);
    let whole = json!({"model": "owner/model", "stream": false});
    assert_eq!(post(&server, "/api/pull", whole).await.0, 404);
    let asked = files.requests().len();
    let (status, body) = post(&server, "/api/pull", json!({"model": "qwen3:8b"})).await;
    assert_eq!(status, 400);
    assert!(body["error"].as_str().unwrap().contains("Hugging Face"));
    let here = json!({"model": "flat", "stream": false});
    let (status, body) = post(&server, "/api/pull", here).await;
    assert_eq!((status, body), (200, json!({"status": "success"})));
    assert_eq!(files.requests().len(), asked, "nothing was downloaded");
}

#[tokio::test]
async fn a_model_is_made_of_a_local_one() {
    let (server, files) = with_files(ScriptedModelFiles::default()).await;
    let body = json!({"model": "mario", "from": "small", "system": "You are Mario."});
    let told = lines(send(&server, Method::POST, "/api/create", body.clone()).await).await;
    let told: Vec<_> = told.iter().map(|line| line["status"].clone()).collect();
    assert_eq!(
        told,
        ["reading model metadata", "writing manifest", "success"]
    );
    let [FilesRequest::Create(made)] = &files.requests()[..] else {
        panic!("{:?}", files.requests());
    };
    assert_eq!(made.name, "mario");
    assert_eq!(made.modelfile.from, "org/small", "the model's whole id");
    assert_eq!(made.modelfile.system.as_deref(), Some("You are Mario."));
    let mut whole = body;
    whole["stream"] = false.into();
    let (status, reply) = post(&server, "/api/create", whole).await;
    assert_eq!((status, reply), (200, json!({"status": "success"})));

    let gone = json!({"model": "mario", "from": "gone"});
    let (status, reply) = post(&server, "/api/create", gone).await;
    assert_eq!(status, 404);
    assert!(reply["error"].as_str().unwrap().contains("gone"), "{reply}");
    let quantized = json!({"model": "mario", "from": "small", "quantize": "q4_K_M"});
    let (status, reply) = post(&server, "/api/create", quantized).await;
    assert_eq!(status, 400);
    assert!(
        reply["error"].as_str().unwrap().contains("quantize"),
        "{reply}"
    );
    let taken = ScriptedModelFiles::refusing(ModelFilesError::Name("taken".into()));
    let (server, _) = with_files(taken).await;
    let body = json!({"model": "flat", "from": "small"});
    let (status, reply) = post(&server, "/api/create", body).await;
    assert_eq!((status, reply), (400, json!({"error": "taken"})));
}

#[tokio::test]
async fn deletions_and_copies_are_handed_on() {
    let (server, files) = with_files(ScriptedModelFiles::default()).await;
    let deleted = send(
        &server,
        Method::DELETE,
        "/api/delete",
        json!({"model": "org/small"}),
    )
    .await;
    assert_eq!(deleted.status(), StatusCode::OK);
    let copied = send(
        &server,
        Method::POST,
        "/api/copy",
        json!({"source": "flat", "destination": "mine"}),
    )
    .await;
    assert_eq!(copied.status(), StatusCode::OK);
    assert_eq!(
        files.requests(),
        [
            FilesRequest::Delete("org/small".into()),
            FilesRequest::Copy("flat".into(), "mine".into())
        ]
    );
    let unknown = ModelFilesError::Model(InferenceError::ModelNotFound {
        reference: "x".into(),
        suggestions: vec!["org/x-4bit".into()],
    });
    let (server, _) = with_files(ScriptedModelFiles::refusing(unknown)).await;
    let refused = send(&server, Method::DELETE, "/api/delete", json!({"name": "x"})).await;
    assert_eq!(refused.status(), StatusCode::NOT_FOUND);
    let body: Value = refused.json().await.unwrap();
    assert_eq!(
        body,
        json!({"error": "model 'x' not found; did you mean 'org/x-4bit'?"})
    );
}

/// One model that comes and goes; answers at once.
#[derive(Default)]
struct OneModel(Mutex<Option<Instant>>, Mutex<Option<KeepAlive>>);

impl OneModel {
    fn touch(&self) {
        *self.0.lock() = Some(Instant::now());
    }

    fn is_loaded(&self) -> bool {
        self.0.lock().is_some()
    }

    /// What was wished for this stay.
    fn kept(&self) -> Option<KeepAlive> {
        *self.1.lock()
    }
}

impl Backend for OneModel {
    fn generate(
        &self,
        _: Arc<ModelCard>,
        _: GenerateRequest,
    ) -> BoxFuture<'_, Result<EventStream, InferenceError>> {
        self.touch();
        async { Ok(futures::stream::iter(says(&["Hi."])).boxed()) }.boxed()
    }

    fn tokenize(
        &self,
        _: Arc<ModelCard>,
        _: TokenizeRequest,
    ) -> BoxFuture<'_, Result<Vec<u32>, InferenceError>> {
        async { Ok(Vec::new()) }.boxed()
    }

    fn detokenize(
        &self,
        _: Arc<ModelCard>,
        _: Vec<u32>,
    ) -> BoxFuture<'_, Result<String, InferenceError>> {
        async { Ok(String::new()) }.boxed()
    }

    fn traits(&self, _: Arc<ModelCard>) -> BoxFuture<'_, Result<ModelTraits, InferenceError>> {
        async { Ok(ModelTraits::default()) }.boxed()
    }

    fn load(&self, _: Arc<ModelCard>) -> BoxFuture<'_, Result<(), InferenceError>> {
        self.touch();
        async { Ok(()) }.boxed()
    }

    fn unload(&self, _: String) -> BoxFuture<'_, Result<bool, InferenceError>> {
        let was_loaded = self.0.lock().take().is_some();
        async move { Ok(was_loaded) }.boxed()
    }

    fn keep(&self, id: &str, keep_alive: KeepAlive) {
        assert_eq!(id, "org/small");
        *self.1.lock() = Some(keep_alive);
    }

    fn loaded(&self) -> Vec<LoadedModel> {
        self.0
            .lock()
            .iter()
            .map(|used| LoadedModel {
                id: "org/small".into(),
                memory_bytes: 9,
                active_requests: 0,
                idle: used.elapsed(),
                expires_in: KeepAlive::after_use(self.kept(), None),
                weights: String::new(),
            })
            .collect()
    }
}

async fn one_model() -> (Served, Arc<OneModel>) {
    let backend = Arc::new(OneModel::default());
    let server = start_shared(
        Arc::clone(&backend) as Arc<dyn Backend>,
        Options::default(),
        Duration::ZERO,
    )
    .await;
    (server, backend)
}

#[tokio::test]
async fn empty_requests_load_and_unload() {
    let (server, backend) = one_model().await;
    for (path, content) in [("/api/chat", "messages"), ("/api/generate", "prompt")] {
        let (status, loaded) = post(&server, path, json!({"model": "org/small"})).await;
        assert_eq!(
            (status, &loaded["done"], &loaded["done_reason"]),
            (200, &json!(true), &json!("load"))
        );
        assert!(backend.is_loaded());
        let empty = if content == "messages" {
            json!([])
        } else {
            json!("")
        };
        let body = json!({"model": "org/small", content: empty, "keep_alive": 0});
        let (status, gone) = post(&server, path, body).await;
        assert_eq!((status, &gone["done_reason"]), (200, &json!("unload")));
        assert!(!backend.is_loaded());
    }
}

#[tokio::test]
async fn a_model_stays_for_as_long_as_it_is_asked_to() {
    let (server, backend) = one_model().await;
    lines(send(&server, Method::POST, "/api/chat", chat(&json!({}))).await).await;
    let ps = get(&server, "/api/ps").await;
    assert_eq!(ps["models"][0]["name"], "org/small");
    assert_eq!(ps["models"][0]["context_length"], 2048);
    let expiry = ps["models"][0]["expires_at"].as_str().unwrap();
    assert!(expiry > "2300", "nobody set a limit: {expiry}");
    assert_eq!(backend.kept(), None);
    for (path, body) in [
        (
            "/api/chat",
            chat(&json!({"keep_alive": "1h", "stream": false})),
        ),
        (
            "/api/generate",
            json!({"model": "org/small", "prompt": "a", "keep_alive": 3600, "stream": false}),
        ),
        (
            "/api/chat",
            json!({"model": "org/small", "keep_alive": "60m"}),
        ),
    ] {
        backend.keep("org/small", KeepAlive::Forever);
        post(&server, path, body).await;
        let hour = Duration::from_hours(1);
        assert_eq!(backend.kept(), Some(KeepAlive::For(hour)), "{path}");
        let ps = get(&server, "/api/ps").await;
        let expiry = ps["models"][0]["expires_at"].as_str().unwrap();
        assert!(expiry < "2300", "an hour: {expiry}");
    }
    for (keep_alive, kept) in [
        (json!(0), KeepAlive::For(Duration::ZERO)),
        (json!(-1), KeepAlive::Forever),
    ] {
        let asked = chat(&json!({"keep_alive": keep_alive}));
        lines(send(&server, Method::POST, "/api/chat", asked).await).await;
        assert_eq!(backend.kept(), Some(kept));
        assert!(backend.is_loaded(), "the backend drops it after the answer");
    }
}

#[tokio::test]
async fn unloading_an_unknown_model_is_404() {
    let (server, _) = one_model().await;
    let body = json!({"model": "gone", "keep_alive": "0s"});
    let (status, body) = post(&server, "/api/generate", body).await;
    assert_eq!(status, 404);
    assert!(body["error"].as_str().unwrap().contains("gone"));
}

#[tokio::test]
async fn a_reader_who_leaves_cancels_the_stream() {
    let (backend, mut hand) = led();
    let server = start(backend, Options::default()).await;
    hand.admit();
    hand.say(started());
    hand.say(GenerationEvent::Prefill {
        processed: 1,
        total: 2,
    });
    hand.say(text("a"));
    let response = send(&server, Method::POST, "/api/chat", chat(&json!({}))).await;
    drop(response);
    hand.dropped().await;
}
