//! LM Studio's own routes.

use std::sync::Arc;

use macmlx_inference::{
    ContentPart, Download, DownloadState, FilesRequest, FinishReason, GenerationEvent,
    InferenceError, ModelFilesError, Prompt, Role, ScriptedBackend, ScriptedModelFiles, Timings,
    Usage,
};
use macmlx_server::Options;
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};

use crate::support::{Served, says, start, start_shared, start_with_files, started, text};

async fn post(url: &str, body: &Value) -> (StatusCode, Value) {
    let response = Client::new().post(url).json(body).send().await.unwrap();
    (response.status(), response.json().await.unwrap())
}

async fn get(url: &str) -> Value {
    reqwest::get(url).await.unwrap().json().await.unwrap()
}

fn written(content: &[ContentPart]) -> String {
    let texts = content.iter().map(|part| match part {
        ContentPart::Text(text) => text.as_str(),
        ContentPart::Image(_) => "an image",
    });
    texts.collect()
}

fn measured() -> Vec<Result<GenerationEvent, InferenceError>> {
    let seconds = std::time::Duration::from_secs;
    vec![
        Ok(started()),
        Ok(text("Paris.")),
        Ok(GenerationEvent::Finished {
            choice: 0,
            reason: FinishReason::Stop,
            stop_sequence: None,
        }),
        Ok(GenerationEvent::Completed {
            usage: Usage {
                prompt_tokens: 3,
                cached_tokens: 0,
                completion_tokens: 8,
                reasoning_tokens: 0,
            },
            timings: Timings {
                load: seconds(7),
                queue: seconds(1),
                prefill: seconds(2),
                decode: seconds(4),
            },
        }),
    ]
}

#[tokio::test]
async fn answers_of_v0_say_how_fast_they_came_and_from_what() {
    let backend = ScriptedBackend::default()
        .then_events(measured())
        .then_events(measured());
    let server = start(backend, Options::default()).await;
    let chat = json!({"model": "small", "messages": [{"role": "user", "content": "Hi"}]});
    let completion = json!({"model": "small", "prompt": "Hi"});
    for (path, body) in [
        ("/api/v0/chat/completions", chat),
        ("/api/v0/completions", completion),
    ] {
        let (status, reply) = post(&server.at(path), &body).await;
        assert_eq!(status, StatusCode::OK, "{reply}");
        assert_eq!(reply["usage"]["completion_tokens"], 8);
        assert_eq!(
            reply["stats"],
            json!({
                "tokens_per_second": 2.0,
                "time_to_first_token": 3.0,
                "generation_time": 4.0,
                "stop_reason": "eosFound",
            })
        );
        assert_eq!(
            reply["model_info"],
            json!({"arch": "llama", "quant": null, "format": "mlx", "context_length": 2048})
        );
        assert_eq!(reply["runtime"]["name"], "macmlx");
        assert_eq!(reply["runtime"]["supported_formats"], json!(["mlx"]));
    }
}

/// The JSON of each frame, without the end mark.
fn chunks(stream: &str) -> Vec<Value> {
    let data = stream
        .lines()
        .filter_map(|line| line.strip_prefix("data: "));
    let chunks = data.filter(|data| *data != "[DONE]");
    chunks
        .map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

#[tokio::test]
async fn the_last_chunk_of_a_stream_of_v0_tells_the_figures() {
    let chat = json!({"model": "small", "messages": [{"role": "user", "content": "Hi"}]});
    let completion = json!({"model": "small", "prompt": "Hi"});
    for (path, body) in [
        ("/api/v0/chat/completions", chat),
        ("/api/v0/completions", completion),
    ] {
        for wants_usage in [false, true] {
            let backend = ScriptedBackend::default().then_events(measured());
            let server = start(backend, Options::default()).await;
            let mut body = body.clone();
            body["stream"] = json!(true);
            body["stream_options"] = json!({"include_usage": wants_usage});
            let request = Client::new().post(server.at(path)).json(&body);
            let stream = request.send().await.unwrap().text().await.unwrap();
            let mut chunks = chunks(&stream);
            let last = chunks.pop().unwrap();
            let is_usage = last["choices"] == json!([]);
            assert_eq!(is_usage, wants_usage, "{path}: {last}");
            assert_eq!(last["stats"]["time_to_first_token"], 3.0, "{path}: {last}");
            assert_eq!(last["model_info"]["arch"], "llama", "{path}: {last}");
            assert_eq!(last["runtime"]["name"], "macmlx", "{path}: {last}");
            for chunk in chunks {
                assert_eq!(chunk.get("stats"), None, "{path}: {chunk}");
            }
            assert!(stream.ends_with("data: [DONE]\n\n"), "{path}: {stream}");
        }
    }
}

#[tokio::test]
async fn a_conversation_goes_on_from_each_of_its_responses() {
    let backend = Arc::new(
        ScriptedBackend::default()
            .then_events(says(&["Blue", "!"]))
            .then_events(says(&["Still blue."]))
            .then_events(says(&["Red."])),
    );
    let server = start_shared(
        Arc::clone(&backend) as _,
        Options::default(),
        std::time::Duration::ZERO,
    )
    .await;
    let url = server.at("/api/v1/chat");
    let first = json!({"model": "small", "input": "Which?", "system_prompt": "Be brief."});
    let (_, first) = post(&url, &first).await;
    assert_eq!(first["model_instance_id"], "org/small");
    assert_eq!(
        first["output"],
        json!([{"type": "message", "content": "Blue!"}])
    );
    let id = first["response_id"].as_str().unwrap();
    assert!(id.starts_with("resp_"), "{id}");
    // Twice from the same response, once without being kept.
    let again = json!({"model": "small", "input": "Still?", "previous_response_id": id});
    let (_, second) = post(&url, &again).await;
    assert_ne!(second["response_id"], id);
    let branch = json!({
        "model": "small",
        "input": "And now?",
        "system_prompt": "Be long.",
        "previous_response_id": id,
        "store": false,
    });
    let (_, third) = post(&url, &branch).await;
    assert_eq!(third.get("response_id"), None);
    let turns: Vec<Vec<(Role, String)>> = backend
        .requests()
        .iter()
        .map(|request| match &request.prompt {
            Prompt::Chat(chat) => chat
                .messages
                .iter()
                .map(|message| (message.role, written(&message.content)))
                .collect(),
            other => panic!("{other:?}"),
        })
        .collect();
    let turn = |role, text: &str| (role, text.to_owned());
    assert_eq!(
        turns[1],
        [
            turn(Role::System, "Be brief."),
            turn(Role::User, "Which?"),
            turn(Role::Assistant, "Blue!"),
            turn(Role::User, "Still?"),
        ]
    );
    assert_eq!(turns[2][0], turn(Role::System, "Be long."));
    assert_eq!(turns[2].len(), 4);
    let gone = json!({"model": "small", "input": "x", "previous_response_id": "resp_gone"});
    let (status, error) = post(&url, &gone).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(error["error"]["param"], "previous_response_id");
    assert_eq!(error["error"]["type"], "invalid_request");
}

#[tokio::test]
async fn a_streamed_chat_begins_and_ends_as_it_should() {
    let backend = ScriptedBackend::default().then_events(says(&["Pa", "ris."]));
    let server = start(backend, Options::default()).await;
    let body = json!({"model": "small", "input": "Hi", "stream": true});
    let response = Client::new()
        .post(server.at("/api/v1/chat"))
        .json(&body)
        .send()
        .await
        .unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let stream = response.text().await.unwrap();
    let names: Vec<&str> = stream
        .lines()
        .filter_map(|line| line.strip_prefix("event: "))
        .collect();
    assert_eq!(
        names,
        [
            "chat.start",
            "prompt_processing.start",
            "prompt_processing.end",
            "message.start",
            "message.delta",
            "message.delta",
            "message.end",
            "chat.end",
        ]
    );
}

#[tokio::test]
async fn a_context_that_the_client_bounds_is_honoured() {
    let backend = Arc::new(ScriptedBackend::default().then_events(says(&["a"])));
    let server = start_shared(
        Arc::clone(&backend) as _,
        Options::default(),
        std::time::Duration::ZERO,
    )
    .await;
    let url = server.at("/api/v1/chat");
    let body = json!({"model": "small", "input": "Hi", "context_length": 1000});
    let (status, _) = post(&url, &body).await;
    assert_eq!(status, StatusCode::OK);
    let limit = backend.requests()[0].stop.max_tokens.unwrap();
    assert!((1..=1000).contains(&limit), "{limit}");
    let long = json!({"model": "small", "input": "Hi ".repeat(50), "context_length": 1});
    let (status, error) = post(&url, &long).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(error["error"]["code"], "context_length_exceeded");
}

#[tokio::test]
async fn models_are_listed_loaded_and_unloaded() {
    let server = start(ScriptedBackend::default(), Options::default()).await;
    let list = get(&server.at("/api/v1/models")).await;
    let keys: Vec<_> = list["models"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| model["key"].as_str().unwrap())
        .collect();
    assert_eq!(keys, ["org/small", "flat"]);
    let body = json!({"model": "small", "echo_load_config": true, "flash_attention": true});
    let (status, loaded) = post(&server.at("/api/v1/models/load"), &body).await;
    assert_eq!(status, StatusCode::OK, "{loaded}");
    assert_eq!(loaded["instance_id"], "org/small");
    assert_eq!(loaded["status"], "loaded");
    assert_eq!(loaded["load_config"], json!({"context_length": 2048}));
    for (path, body, status, kind) in [
        ("load", json!({"model": "gpt-4o"}), 404, "model_not_found"),
        ("load", json!({}), 400, "invalid_request"),
        (
            "load",
            json!({"model": "small", "gpu": "max"}),
            400,
            "not_implemented",
        ),
        (
            "unload",
            json!({"instance_id": "gone"}),
            404,
            "model_not_found",
        ),
        (
            "unload",
            json!({"instance_id": "flat"}),
            400,
            "invalid_request",
        ),
        ("unload", json!({"model": "small"}), 400, "not_implemented"),
        ("nowhere", json!({}), 404, "invalid_request"),
    ] {
        let (got, error) = post(&server.at(&format!("/api/v1/models/{path}")), &body).await;
        assert_eq!(got, status, "{path} {body}: {error}");
        assert_eq!(error["error"]["type"], kind, "{path} {body}: {error}");
    }
}

async fn with_files(files: ScriptedModelFiles) -> (Served, Arc<ScriptedModelFiles>) {
    let files = Arc::new(files);
    let backend = Arc::new(ScriptedBackend::default());
    let shared = Arc::clone(&files) as _;
    let grace = std::time::Duration::ZERO;
    let server = start_with_files(backend, shared, Options::default(), grace).await;
    (server, files)
}

#[tokio::test]
async fn a_download_is_begun_and_looked_at() {
    let (server, files) = with_files(ScriptedModelFiles::downloading(Download {
        id: "1-2".into(),
        state: DownloadState::Running,
        total_bytes: Some(100),
        completed_bytes: 0,
        bytes_per_second: 0.0,
        remaining: None,
        started_unix: 1_700_000_000,
        updated_unix: 1_700_000_000,
    }))
    .await;
    let download = server.at("/api/v1/models/download");
    let link = "https://huggingface.co/org/new";
    let (status, begun) = post(&download, &json!({"model": link})).await;
    let expected = json!({
        "job_id": "1-2",
        "status": "downloading",
        "total_size_bytes": 100,
        "downloaded_bytes": 0,
        "bytes_per_second": 0.0,
        "started_at": "2023-11-14T22:13:20Z",
    });
    assert_eq!((status, &begun), (StatusCode::OK, &expected));
    assert_eq!(files.requests(), [FilesRequest::Download(link.into())]);
    let same = get(&server.at("/api/v1/models/download/status/1-2")).await;
    assert_eq!(same, expected);
    let gone = server.at("/api/v1/models/download/status/3");
    let gone = reqwest::get(gone).await.unwrap();
    assert_eq!(gone.status(), StatusCode::NOT_FOUND);
    let error: Value = gone.json().await.unwrap();
    assert_eq!(error["error"]["type"], "job_not_found", "{error}");
    let (status, here) = post(&download, &json!({"model": "org/small"})).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(here, json!({"status": "already_downloaded"}));
    for (body, param) in [
        (
            json!({"model": "org/new", "quantization": "Q4_K_M"}),
            "quantization",
        ),
        (json!({"name": "org/new"}), "name"),
        (json!({}), "model"),
    ] {
        let (status, error) = post(&download, &body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body}: {error}");
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.contains(param), "{body}: {error}");
    }
    assert_eq!(files.requests().len(), 1, "no other download was begun");
}

#[tokio::test]
async fn a_download_that_does_not_begin_says_why() {
    for (refusal, status, kind) in [
        (
            ModelFilesError::NotOnHub("there is none".into()),
            404,
            "model_not_found",
        ),
        (
            ModelFilesError::Hub("it is down".into()),
            502,
            "internal_error",
        ),
    ] {
        let (server, _) = with_files(ScriptedModelFiles::refusing(refusal.clone())).await;
        let download = server.at("/api/v1/models/download");
        let (told, error) = post(&download, &json!({"model": "org/new"})).await;
        assert_eq!(told, status, "{error}");
        assert_eq!(error["error"]["type"], kind);
        assert_eq!(error["error"]["message"], refusal.to_string());
    }
    let (server, _) = with_files(ScriptedModelFiles::default()).await;
    let download = server.at("/api/v1/models/download");
    let (_, here) = post(&download, &json!({"model": "org/new"})).await;
    assert_eq!(here, json!({"status": "already_downloaded"}));
}

#[tokio::test]
async fn only_codex_reads_a_list_without_models() {
    let server = start(ScriptedBackend::default(), Options::default()).await;
    // Clients read whichever of both is there.
    for path in [
        "/v1/models",
        "/models",
        "/api/v0/models",
        "/api/tags",
        "/api/v1/models",
    ] {
        let list = get(&server.at(path)).await;
        for name in ["data", "models"] {
            if let Some(models) = list.get(name) {
                assert_eq!(models.as_array().unwrap().len(), 2, "{path} {name}");
            }
        }
    }
    let list = get(&server.at("/v1/models?client_version=0.99.0")).await;
    assert_eq!(list["models"], json!([]));
}
