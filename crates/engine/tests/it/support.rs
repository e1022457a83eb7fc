//! Model folders with a tokenizer of printable ASCII, an engine over them, and what a stream said.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use futures::{StreamExt, future::BoxFuture};
use macmlx_engine::{Engine, EngineOptions};
use macmlx_inference::{
    Backend, Catalog, EmbedRequest, Embeddings, EventStream, FinishReason, GenerateRequest,
    GenerationEvent, InferenceError, Logprobs, ModelCard, ModelTask, Prompt, Relevance,
    RerankRequest, ScriptedCatalog, TimeToLive, Timings, TokenLogprob, TokenizeRequest, Usage,
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Last token of the tiny models.
pub(crate) const EOS: u32 = 95;

pub(crate) fn fixtures() -> PathBuf {
    parity().join("fixtures")
}

pub(crate) fn encoder_fixtures() -> PathBuf {
    parity().join("encoders")
}

fn parity() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/parity")
}

/// Names of all fixtures, in order.
pub(crate) fn fixture_names() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(fixtures())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert!(!names.is_empty());
    names
}

/// What mlx-lm computed with a fixture.
pub(crate) fn expected(name: &str) -> Value {
    let text = std::fs::read_to_string(fixtures().join(name).join("expected.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

pub(crate) fn ids(value: &Value) -> Vec<u32> {
    serde_json::from_value(value.clone()).unwrap()
}

/// A folder of models that an engine can load.
pub(crate) struct Home {
    folder: TempDir,
    cards: Vec<ModelCard>,
}

impl Home {
    /// Copies of these fixtures, each with a tokenizer: token `i` is the character `32 + i`, token
    /// 95 ends a text.
    pub(crate) fn new(names: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let cards = names
            .iter()
            .map(|name| model_folder(folder.path(), &fixtures().join(name)))
            .collect();
        Self { folder, cards }
    }

    /// Adds this encoder, with the same tokenizer, which has no special tokens around a text.
    pub(crate) fn add_encoder(&mut self, name: &str, task: ModelTask) {
        let source = encoder_fixtures().join(name);
        let mut card = model_folder(self.folder.path(), &source);
        card.task = task;
        card.context_length = Some(24);
        let pooling = Path::new("1_Pooling/config.json");
        if source.join(pooling).is_file() {
            std::fs::create_dir(card.path.join("1_Pooling")).unwrap();
            std::fs::copy(source.join(pooling), card.path.join(pooling)).unwrap();
        }
        self.cards.push(card);
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn card(&mut self, name: &str) -> &mut ModelCard {
        self.cards.iter_mut().find(|card| card.id == name).unwrap()
    }

    pub(crate) fn engine(&self, options: EngineOptions) -> Named {
        self.name(Engine::new(options, for_ever()))
    }

    /// The engine, with these models under their names.
    pub(crate) fn name(&self, engine: Engine) -> Named {
        Named {
            engine,
            catalog: ScriptedCatalog(self.cards.clone()),
        }
    }
}

/// Models stay unless a client says otherwise.
pub(crate) fn for_ever() -> TimeToLive {
    Arc::new(|_| None)
}

/// An engine whose requests are for the models they name.
pub(crate) struct Named {
    engine: Engine,
    catalog: ScriptedCatalog,
}

impl std::ops::Deref for Named {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}

impl Named {
    pub(crate) fn card(&self, name: &str) -> Arc<ModelCard> {
        self.catalog.find(name).unwrap()
    }

    pub(crate) fn generate(
        &self,
        request: GenerateRequest,
    ) -> BoxFuture<'_, Result<EventStream, InferenceError>> {
        self.engine.generate(self.card(&request.model), request)
    }

    pub(crate) fn embed(
        &self,
        request: EmbedRequest,
    ) -> BoxFuture<'_, Result<Embeddings, InferenceError>> {
        self.engine.embed(self.card(&request.model), request)
    }

    pub(crate) fn rerank(
        &self,
        request: RerankRequest,
    ) -> BoxFuture<'_, Result<Relevance, InferenceError>> {
        self.engine.rerank(self.card(&request.model), request)
    }

    pub(crate) fn tokenize(
        &self,
        request: TokenizeRequest,
    ) -> BoxFuture<'_, Result<Vec<u32>, InferenceError>> {
        self.engine.tokenize(self.card(&request.model), request)
    }

    pub(crate) fn load(&self, name: &str) -> BoxFuture<'_, Result<(), InferenceError>> {
        self.engine.load(self.card(name))
    }
}

fn model_folder(home: &Path, source: &Path) -> ModelCard {
    let name = source.file_name().unwrap().to_str().unwrap();
    let path = home.join(name);
    std::fs::create_dir(&path).unwrap();
    for file in std::fs::read_dir(source).unwrap() {
        let file = file.unwrap();
        let is_expected = file.file_name().to_string_lossy().starts_with("expected");
        if !is_expected && file.path().is_file() {
            std::fs::copy(file.path(), path.join(file.file_name())).unwrap();
        }
    }
    let write = |file: &str, value: &Value| {
        std::fs::write(path.join(file), value.to_string()).unwrap();
    };
    let mut vocab: serde_json::Map<String, Value> = (0..EOS)
        .map(|id| (char::from_u32(32 + id).unwrap(), id))
        .map(|(character, id)| {
            (
                if id == 0 {
                    "Ġ".into()
                } else {
                    character.to_string()
                },
                id.into(),
            )
        })
        .collect();
    vocab.insert("<eos>".into(), EOS.into());
    write(
        "tokenizer.json",
        &json!({
            "version": "1.0",
            "truncation": null,
            "padding": null,
            "added_tokens": [{
                "id": EOS, "content": "<eos>", "single_word": false, "lstrip": false,
                "rstrip": false, "normalized": false, "special": true
            }],
            "normalizer": null,
            "pre_tokenizer": {
                "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
                "use_regex": false
            },
            "post_processor": null,
            "decoder": {
                "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
                "use_regex": false
            },
            "model": {
                "type": "BPE", "dropout": null, "unk_token": null,
                "continuing_subword_prefix": null, "end_of_word_suffix": null,
                "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
                "vocab": vocab, "merges": []
            }
        }),
    );
    write("tokenizer_config.json", &json!({"eos_token": "<eos>"}));
    write("generation_config.json", &json!({"eos_token_id": EOS}));
    ModelCard {
        id: name.into(),
        path,
        model_type: "tiny".into(),
        task: ModelTask::Generate,
        context_length: Some(512),
        size_bytes: 0,
        quantization: None,
        parameters: None,
        modified_unix: 0,
        digest: "0".repeat(64),
        modelfile: None,
    }
}

/// A greedy request for token ids that only `max_tokens` ends, with the log probabilities that
/// carry the ids back.
pub(crate) fn greedy(model: &str, prompt: &[u32], max_tokens: u32) -> GenerateRequest {
    let mut request = GenerateRequest::new(model, Prompt::Tokens(prompt.to_vec()));
    request.sampling.temperature = Some(0.0);
    request.stop.max_tokens = Some(max_tokens);
    request.stop.ignore_eos = true;
    request.logprobs = Some(Logprobs {
        top: 0,
        prompt: false,
    });
    request
}

/// Everything a stream said, sorted by choice.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) loading: usize,
    pub(crate) loaded: usize,
    pub(crate) started: usize,
    pub(crate) prefill: Vec<(u32, u32)>,
    pub(crate) prompt_logprobs: Vec<TokenLogprob>,
    pub(crate) text: Vec<String>,
    pub(crate) tokens: Vec<Vec<TokenLogprob>>,
    pub(crate) finished: Vec<Option<(FinishReason, Option<String>)>>,
    pub(crate) completed: Option<(Usage, Timings)>,
    pub(crate) error: Option<InferenceError>,
}

impl Answer {
    pub(crate) fn ids(&self, choice: usize) -> Vec<u32> {
        self.tokens[choice].iter().map(|token| token.id).collect()
    }

    fn choice(&mut self, choice: u32) -> usize {
        let needed = choice as usize + 1;
        if self.text.len() < needed {
            self.text.resize_with(needed, String::new);
            self.tokens.resize_with(needed, Vec::new);
            self.finished.resize_with(needed, || None);
        }
        choice as usize
    }

    fn take(&mut self, event: GenerationEvent) {
        assert!(
            self.completed.is_none(),
            "an event after the last one: {event:?}"
        );
        match event {
            GenerationEvent::Loading { .. } => self.loading += 1,
            GenerationEvent::Loaded { .. } => {
                self.loaded += 1;
                assert_eq!((self.loaded, self.started), (self.loading, 0));
            }
            GenerationEvent::Started { .. } => self.started += 1,
            GenerationEvent::Prefill { processed, total } => self.prefill.push((processed, total)),
            GenerationEvent::PromptLogprobs { tokens } => self.prompt_logprobs = tokens,
            GenerationEvent::Text {
                choice,
                text,
                tokens,
            } => {
                let choice = self.choice(choice);
                assert!(self.finished[choice].is_none());
                self.text[choice] += &text;
                self.tokens[choice].extend(tokens);
            }
            GenerationEvent::Reasoning { .. }
            | GenerationEvent::ToolCall { .. }
            | GenerationEvent::ToolRun { .. } => {
                panic!("tiny models do not reason or call: {event:?}")
            }
            GenerationEvent::Finished {
                choice,
                reason,
                stop_sequence,
            } => {
                let choice = self.choice(choice);
                self.finished[choice] = Some((reason, stop_sequence));
            }
            GenerationEvent::Completed { usage, timings } => {
                self.completed = Some((usage, timings));
            }
        }
    }
}

/// Reads a stream to its end.
pub(crate) async fn read(mut stream: EventStream) -> Answer {
    let mut answer = Answer::default();
    while let Some(event) = stream.next().await {
        match event {
            Ok(event) => answer.take(event),
            Err(error) => answer.error = Some(error),
        }
    }
    answer
}

/// Reads the events of a stream up to the one that says that the model is there.
pub(crate) async fn until_loaded(stream: &mut EventStream) {
    while let Some(event) = stream.next().await {
        if let GenerationEvent::Loaded { .. } = event.unwrap() {
            return;
        }
    }
    panic!("the model was there");
}

/// Runs a request to its end.
pub(crate) async fn run(engine: &Named, request: GenerateRequest) -> Answer {
    let answer = read(engine.generate(request).await.unwrap()).await;
    assert_eq!(answer.error, None);
    assert_eq!(answer.started, 1);
    assert!(answer.completed.is_some());
    answer
}

/// Waits until the engine has no request left.
pub(crate) async fn idle(engine: &Named) {
    while engine
        .loaded()
        .iter()
        .any(|model| model.active_requests > 0)
    {
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
}
