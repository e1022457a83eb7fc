//! The routes of several areas over a home of their own.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{Request, StatusCode},
    response::Response,
};
use futures::{
    FutureExt,
    future::{BoxFuture, ready},
};
use macmlx_control::{
    Activity, Counted,
    door::{self, ClosedDoor, DoorState, Openness},
    events::{self, Events},
    guard,
    keys::{self, Keys},
    logs,
    models::{self, Models, TraitsCache},
    settings::{self, SettingsSources},
    status::{self, Owner, StatusSources},
};
use macmlx_fit::{Budget, Machine, Precision};
use macmlx_inference::{
    Backend, Catalog, InferenceError, ModelCard, ModelDescription, ModelTask, ScriptedBackend,
    ScriptedModelFiles,
};
use macmlx_settings::{Aliases, ApiKeys, HfToken, Home, LiveSettings, Settings};
use macmlx_store::{
    logs::Logs,
    models::{Encoders, Library},
};
use parking_lot::Mutex;
use serde_json::Value;
use tower::ServiceExt;

pub(crate) const TOKEN: &str = "0123456789abcdef";

/// A door that does what it is told, or says why not.
#[derive(Default)]
pub(crate) struct Door {
    is_open: AtomicBool,
    pub(crate) refusal: Mutex<Option<ClosedDoor>>,
}

impl door::Door for Door {
    fn state(&self) -> DoorState {
        let is_open = self.is_open.load(Ordering::SeqCst);
        DoorState {
            state: if is_open {
                Openness::Open
            } else {
                Openness::Closed
            },
            url: is_open.then(|| "http://127.0.0.1:8000".into()),
            address: is_open.then(|| "127.0.0.1:8000".into()),
            wanted_port: 8000,
            needs_api_key: false,
            error: None,
        }
    }

    fn open(&self) -> BoxFuture<'_, Result<DoorState, ClosedDoor>> {
        let refusal = self.refusal.lock().clone();
        self.is_open.store(refusal.is_none(), Ordering::SeqCst);
        ready(refusal.map_or_else(|| Ok(self.state()), Err)).boxed()
    }

    fn close(&self) -> BoxFuture<'_, DoorState> {
        self.is_open.store(false, Ordering::SeqCst);
        ready(self.state()).boxed()
    }
}

/// A library whose models have no other names. Where none is named, the first answers.
struct Shelf(Arc<Library>);

impl Catalog for Shelf {
    fn choose(
        &self,
        reference: Option<&str>,
        task: ModelTask,
    ) -> Result<Arc<ModelCard>, InferenceError> {
        if let Some(reference) = reference {
            return self.find(reference);
        }
        let mut cards = self.list().into_iter();
        let first = cards.find(|card| card.task == task);
        first.map(Arc::new).ok_or(InferenceError::Cancelled)
    }

    fn find(&self, reference: &str) -> Result<Arc<ModelCard>, InferenceError> {
        self.0.resolve(reference).map(Arc::new)
    }

    fn list(&self) -> Vec<ModelCard> {
        self.0.list()
    }

    fn describe(&self, card: &ModelCard) -> ModelDescription {
        macmlx_store::models::describe(card)
    }
}

/// A home, what runs there, and its routes.
pub(crate) struct Running {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) home: Home,
    pub(crate) router: Router,
    pub(crate) stopped: Arc<AtomicBool>,
    pub(crate) door: Arc<Door>,
    pub(crate) events: Arc<Events>,
    pub(crate) logs: Arc<Logs>,
    pub(crate) files: Arc<ScriptedModelFiles>,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) aliases: Arc<Aliases>,
    pub(crate) keys: Arc<ApiKeys>,
    pub(crate) models: Arc<Models>,
}

impl Running {
    pub(crate) fn new() -> Self {
        Self::with(Arc::new(ScriptedBackend::default()))
    }

    pub(crate) fn with(backend: Arc<dyn Backend>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        let library = Library::new(home.models(&Settings::default())).with_encoders(Encoders {
            is_encoder: |model_type| model_type == "bert",
            positions: |_| None,
        });
        let library = Arc::new(library);
        let catalog = Arc::new(Shelf(library.clone()));
        let (events, activity) = (Arc::new(Events::default()), Arc::new(Activity::default()));
        let backend: Arc<dyn Backend> =
            Arc::new(Counted::new(backend, activity.clone(), events.clone()));
        let stopped = Arc::new(AtomicBool::new(false));
        let door = Arc::new(Door::default());
        let logs = Arc::new(Logs::default());
        let files = Arc::new(ScriptedModelFiles::default());
        let live = Arc::new(LiveSettings::new(&home));
        let aliases = Arc::new(Aliases::new(&home));
        let keys = Arc::new(ApiKeys::new(&home));
        let flag = stopped.clone();
        let sources = StatusSources {
            backend: backend.clone(),
            catalog: catalog.clone(),
            activity: activity.clone(),
            door: door.clone(),
            machine: Arc::default(),
            models: library.root().to_path_buf(),
            home: home.root().to_path_buf(),
            owner: Owner::Gui,
            started: Instant::now(),
            shut_down: Arc::new(move || flag.store(true, Ordering::SeqCst)),
        };
        let models = Arc::new(Models {
            backend: backend.clone(),
            catalog: catalog.clone(),
            library,
            files: files.clone(),
            aliases: aliases.clone(),
            settings: live.clone(),
            activity,
            events: events.clone(),
            model_types: vec!["llama"],
            encoder_types: vec!["bert"],
            fit: Machine {
                budget: Budget::of_memory(16 << 30),
                precision: Precision::Float32 {
                    dequantize_budget_bytes: 4 << 30,
                },
                kv_quantization: None,
                prefill_chunk_tokens: 512,
                left_out: macmlx_fit::LeftOut::default(),
            },
            traits: TraitsCache::default(),
        });
        let settings = SettingsSources {
            live,
            hf_token: Arc::new(HfToken::new(&home, None)),
        };
        let key_sources = Keys {
            keys: keys.clone(),
            events: events.clone(),
        };
        let routes = status::routes()
            .with_state(Arc::new(sources))
            .merge(door::routes().with_state(door.clone() as Arc<dyn door::Door>))
            .merge(events::routes().with_state(events.clone()))
            .merge(models::routes().with_state(models.clone()))
            .merge(settings::routes().with_state(Arc::new(settings)))
            .merge(keys::routes().with_state(Arc::new(key_sources)))
            .merge(logs::routes().with_state(logs.clone()));
        Self {
            router: guard(TOKEN.into(), routes),
            folder,
            home,
            stopped,
            door,
            events,
            logs,
            files,
            backend,
            aliases,
            keys,
            models,
        }
    }

    /// Puts a model there that can be described and not loaded.
    pub(crate) fn put_model(&self, id: &str, model_type: &str) {
        let folder = self.folder.path().join("models").join(id);
        fs::create_dir_all(&folder).unwrap();
        let config = serde_json::json!({
            "model_type": model_type,
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "vocab_size": 100,
            "max_position_embeddings": 2048,
        });
        fs::write(folder.join("config.json"), config.to_string()).unwrap();
        fs::write(folder.join("tokenizer.json"), "{}").unwrap();
        let header = r#"{"a.weight":{"dtype":"BF16","shape":[2,2],"data_offsets":[0,8]}}"#;
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.bytes());
        bytes.extend([0; 8]);
        fs::write(folder.join("model.safetensors"), bytes).unwrap();
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Response {
        self.router.clone().oneshot(request).await.unwrap()
    }

    /// Sends a request with the token; an empty text means no body.
    pub(crate) async fn call(&self, method: &str, path: &str, body: &str) -> (StatusCode, Value) {
        let token = [("authorization", "Bearer 0123456789abcdef")];
        let response = self.send(request(method, path, &token, body)).await;
        let status = response.status();
        let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let (status, body) = self.call("GET", path, "").await;
        assert_eq!(status, StatusCode::OK, "{path}: {body}");
        body
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }
}

pub(crate) fn request(
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    if !body.is_empty() {
        request = request.header("content-type", "application/json");
    }
    request.body(Body::from(body.to_owned())).unwrap()
}
