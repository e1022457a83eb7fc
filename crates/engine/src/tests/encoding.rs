//! The engine around an encoder whose rows say what it read, beside the model that counts.

use std::sync::Arc;

use futures::future::{join, join_all};
use macmlx_inference::{
    Backend, EmbedRequest, EncoderInput, InferenceError, ModelTask, Overflow, RerankRequest,
    TokenizeInput, TokenizeRequest,
};
use macmlx_models::{Encoder, EncoderText};
use mlx_rs::Array;

use super::{Control, Fault, Setup, VOCAB, counted, loaders, reached, start, weights};
use crate::{
    Engine, EngineOptions,
    pool::Weights,
    profile::Profile,
    support::{Home, Named, for_ever, greedy, idle, read, run},
};

/// First token, tokens, 1, place in the batch; a reranker says its first token divided by 100.
struct Reading {
    control: Arc<Control>,
    is_reranker: bool,
}

const FEATURES: u32 = 4;

impl Encoder for Reading {
    fn forward(&self, texts: &[EncoderText<'_>]) -> macmlx_models::Result<Array> {
        self.control
            .enter(texts.iter().map(|text| text.tokens.len()).collect())?;
        let rows: Vec<f32> = texts
            .iter()
            .enumerate()
            .flat_map(|(place, text)| {
                let first = text.tokens[0] as f32;
                if self.is_reranker {
                    vec![first / 100.0]
                } else {
                    vec![first, text.tokens.len() as f32, 1.0, place as f32]
                }
            })
            .collect();
        Ok(Array::from_slice(
            &rows,
            &[texts.len() as i32, self.features() as i32],
        ))
    }

    fn pads(&self) -> bool {
        true
    }

    fn features(&self) -> u32 {
        if self.is_reranker { 1 } else { FEATURES }
    }

    fn vocab_size(&self) -> u32 {
        VOCAB as u32
    }
}

pub(super) fn load(profile: &Profile, control: &Arc<Control>) -> Weights<dyn Encoder> {
    assert!(profile.card.id != "phi3-q4", "loading panicked");
    let encoder = Reading {
        control: control.clone(),
        is_reranker: profile.card.task == ModelTask::Rerank,
    };
    weights::<dyn Encoder>(Box::new(encoder))
}

/// `llama` generates, `qwen2` reranks, the others embed. Texts have at most 60 tokens.
fn setup(options: EngineOptions) -> Setup {
    let embedders = ["qwen3", "phi3", "gemma3_text", "mistral-q4", "phi3-q4"];
    let mut home = Home::new(&[&["llama", "qwen2"][..], &embedders].concat());
    for name in embedders {
        home.card(name).task = ModelTask::Embed;
        home.card(name).context_length = Some(60);
    }
    home.card("qwen2").task = ModelTask::Rerank;
    home.card("qwen2").context_length = Some(60);
    let control = Arc::new(Control::default());
    Setup {
        engine: home.name(Engine::with_loaders(
            options,
            for_ever(),
            loaders(control.clone()),
        )),
        control,
        home,
    }
}

/// Texts of these lengths, each of its length as its first token.
fn request(model: &str, lengths: &[usize]) -> EmbedRequest {
    EmbedRequest {
        model: model.into(),
        inputs: lengths
            .iter()
            .map(|&length| EncoderInput::Tokens(vec![length as u32; length]))
            .collect(),
        token_limit: None,
        overflow: Overflow::Refuse,
        dimensions: None,
    }
}

async fn lengths_read(engine: &Named, model: &str, lengths: &[usize]) -> Vec<usize> {
    let embeddings = engine.embed(request(model, lengths)).await.unwrap();
    assert_eq!(embeddings.model, model);
    assert_eq!(
        embeddings.prompt_tokens as usize,
        lengths.iter().sum::<usize>()
    );
    let both = |row: &Vec<f32>| {
        assert_eq!(row[0].to_bits(), row[1].to_bits());
        row[0] as usize
    };
    embeddings.vectors.iter().map(both).collect()
}

fn ids(engine: &Named) -> Vec<String> {
    engine.loaded().into_iter().map(|model| model.id).collect()
}

fn refusal<T: std::fmt::Debug>(result: Result<T, InferenceError>) -> (String, String) {
    match result.unwrap_err() {
        InferenceError::InvalidRequest { param, message } => (param.unwrap(), message),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn rows_come_in_the_order_of_the_texts() {
    let setup = setup(EngineOptions {
        prefill_chunk: 100,
        ..EngineOptions::default()
    });
    let lengths = [7, 60, 1, 33, 60, 2, 59, 40, 8, 7];
    assert_eq!(
        lengths_read(&setup.engine, "qwen3", &lengths).await,
        lengths
    );
    let batches = setup.control.forwards.lock().clone();
    assert_eq!(
        batches,
        [
            vec![60],
            vec![60],
            vec![59],
            vec![40, 33],
            vec![8, 7, 7, 2, 1]
        ]
    );
}

#[tokio::test]
async fn long_texts_are_refused_with_both_numbers_or_cut() {
    let setup = setup(EngineOptions::default());
    let mut long = request("qwen3", &[3, 61]);
    let (param, message) = refusal(setup.engine.embed(long.clone()).await);
    assert_eq!(param, "input[1]");
    assert!(
        message.contains("61") && message.contains("60"),
        "{message}"
    );
    assert!(ids(&setup.engine).is_empty(), "nothing is loaded to refuse");
    long.overflow = Overflow::Truncate;
    let embeddings = setup.engine.embed(long).await.unwrap();
    assert_eq!(embeddings.prompt_tokens, 63);
    assert_eq!(embeddings.vectors[1][..2], [61.0, 60.0]);
}

#[tokio::test]
async fn what_cannot_be_embedded_is_named() {
    let setup = setup(EngineOptions::default());
    let engine = &setup.engine;
    assert_eq!(
        refusal(engine.embed(request("qwen3", &[])).await).0,
        "input"
    );
    let mut strange = request("qwen3", &[3]);
    strange.inputs.push(EncoderInput::Tokens(vec![5, 96]));
    let (param, message) = refusal(engine.embed(strange).await);
    assert_eq!(param, "input[1]");
    assert!(
        message.contains("96") && message.contains("95"),
        "{message}"
    );
    let (param, message) = refusal(engine.embed(request("llama", &[3])).await);
    assert_eq!(param, "model");
    assert!(message.contains("`llama` generates text"), "{message}");
    let (_, message) = refusal(engine.embed(request("qwen2", &[3])).await);
    assert!(message.contains("`qwen2` reranks"), "{message}");
    let (param, message) = refusal(engine.generate(greedy("qwen3", &[1], 1)).await.map(|_| ()));
    assert_eq!(param, "model");
    assert!(message.contains("`qwen3` makes embeddings"), "{message}");
    let rerank = RerankRequest {
        model: "qwen2".into(),
        query: "q".into(),
        documents: Vec::new(),
        document_tokens: None,
        token_limit: None,
        overflow: Overflow::Refuse,
    };
    assert_eq!(refusal(engine.rerank(rerank).await).0, "documents");
    assert!(ids(engine).is_empty());
}

#[tokio::test]
async fn fewer_dimensions_are_scaled_to_length_one() {
    let setup = setup(EngineOptions::default());
    let mut wanted = request("qwen3", &[3, 5]);
    wanted.dimensions = Some(2);
    let vectors = setup.engine.embed(wanted.clone()).await.unwrap().vectors;
    for vector in &vectors {
        assert_eq!(vector.len(), 2);
        for feature in vector {
            assert!((feature - 0.5_f32.sqrt()).abs() < 1e-6, "{vectors:?}");
        }
    }
    wanted.dimensions = Some(FEATURES);
    assert_eq!(
        setup.engine.embed(wanted.clone()).await.unwrap().vectors[0].len(),
        4
    );
    wanted.dimensions = Some(5);
    let (param, message) = refusal(setup.engine.embed(wanted.clone()).await);
    assert_eq!(param, "dimensions");
    assert!(message.contains('5') && message.contains('4'), "{message}");
    wanted.dimensions = Some(0);
    assert_eq!(refusal(setup.engine.embed(wanted).await).0, "dimensions");
}

#[tokio::test]
async fn rankings_come_in_the_order_of_the_documents() {
    let setup = setup(EngineOptions::default());
    // No special tokens and nothing around the query: pairs begin with it.
    let rerank = |query: &str, documents: &[&str]| RerankRequest {
        model: "qwen2".into(),
        query: query.into(),
        documents: documents.iter().map(|text| (*text).to_owned()).collect(),
        document_tokens: None,
        token_limit: None,
        overflow: Overflow::Refuse,
    };
    let relevance = setup
        .engine
        .rerank(rerank("A", &["bb", "", "c"]))
        .await
        .unwrap();
    assert_eq!(relevance.scores, [0.33, 0.33, 0.33]);
    assert_eq!(relevance.prompt_tokens, 6);
    let long = "x".repeat(60);
    let (param, message) = refusal(setup.engine.rerank(rerank("A", &["b", &long])).await);
    assert_eq!(param, "documents[1]");
    assert!(
        message.contains("61") && message.contains("60"),
        "{message}"
    );
    assert_eq!(
        refusal(setup.engine.rerank(rerank(&long, &["b"])).await).0,
        "query"
    );
}

#[tokio::test]
async fn encoders_sit_beside_the_model_that_generates() {
    let setup = setup(EngineOptions::default());
    let engine = &setup.engine;
    run(engine, greedy("llama", &[1], 2)).await;
    lengths_read(engine, "qwen3", &[4]).await;
    engine.load("qwen2").await.unwrap();
    assert_eq!(ids(engine), ["llama", "qwen3", "qwen2"]);
    lengths_read(engine, "phi3", &[4]).await;
    lengths_read(engine, "qwen3", &[4]).await;
    // One too many: what was used longest ago goes, and never the one that generates.
    lengths_read(engine, "gemma3_text", &[4]).await;
    assert_eq!(ids(engine), ["llama", "qwen3", "phi3", "gemma3_text"]);
    assert!(engine.unload("phi3".into()).await.unwrap());
    assert!(!engine.unload("phi3".into()).await.unwrap());
    assert!(engine.unload("llama".into()).await.unwrap());
    assert_eq!(ids(engine), ["qwen3", "gemma3_text"]);
}

#[tokio::test]
async fn more_models_than_fit_are_served_in_turn() {
    let setup = setup(EngineOptions::default());
    let models = ["qwen3", "phi3", "gemma3_text", "mistral-q4"];
    let requests = (0..12).map(|index| lengths_read(&setup.engine, models[index % 4], &[4, 9]));
    for lengths in join_all(requests).await {
        assert_eq!(lengths, [4, 9]);
    }
    assert_eq!(setup.engine.loaded().len(), 3);
}

#[tokio::test]
async fn a_chat_and_a_library_take_turns() {
    let setup = setup(EngineOptions {
        prefill_chunk: 60,
        ..EngineOptions::default()
    });
    let (is_there, go) = setup.control.pause_at(3);
    let running = start(&setup.engine, &[10], 60).await;
    reached(is_there).await;
    let release = async {
        while setup.engine.active_requests("qwen3") == 0 {
            tokio::task::yield_now().await;
        }
        go.send(()).unwrap();
    };
    let library = [60; 20];
    let (lengths, answer, ()) = futures::future::join3(
        lengths_read(&setup.engine, "qwen3", &library),
        read(running),
        release,
    )
    .await;
    assert_eq!(lengths, library);
    assert_eq!(answer.ids(0), counted(10, 60));
    let forwards = setup.control.forwards.lock().clone();
    let first = forwards
        .iter()
        .position(|lengths| *lengths == [60])
        .unwrap();
    let expected: Vec<Vec<usize>> = (0..39).map(|step| vec![[60, 1][step % 2]]).collect();
    assert_eq!(forwards[first..first + 39], expected);
}

#[tokio::test]
async fn a_query_overtakes_a_library_and_shares_its_batches() {
    let setup = setup(EngineOptions {
        prefill_chunk: 60,
        ..EngineOptions::default()
    });
    let (is_there, go) = setup.control.pause_at(0);
    let queries = async {
        reached(is_there).await;
        let posted = async {
            while setup.engine.active_requests("qwen3") < 3 {
                tokio::task::yield_now().await;
            }
            go.send(()).unwrap();
        };
        futures::future::join3(
            lengths_read(&setup.engine, "qwen3", &[20]),
            lengths_read(&setup.engine, "qwen3", &[20]),
            posted,
        )
        .await
    };
    let library = [50; 9];
    join(lengths_read(&setup.engine, "qwen3", &library), queries).await;
    let forwards = setup.control.forwards.lock().clone();
    assert_eq!(forwards[1], [20, 20], "{forwards:?}");
}

#[tokio::test]
async fn dropping_the_future_cancels() {
    let setup = setup(EngineOptions {
        prefill_chunk: 10,
        ..EngineOptions::default()
    });
    let (is_there, go) = setup.control.pause_at(2);
    let library = Box::pin(setup.engine.embed(request("qwen3", &[10; 50])));
    let reached = Box::pin(reached(is_there));
    let futures::future::Either::Right(((), library)) =
        futures::future::select(library, reached).await
    else {
        panic!("the encoder pauses")
    };
    drop(library);
    go.send(()).unwrap();
    idle(&setup.engine).await;
    assert_eq!(setup.control.count(), 3);
    assert_eq!(lengths_read(&setup.engine, "qwen3", &[4]).await, [4]);
}

#[tokio::test]
async fn a_full_queue_refuses() {
    let setup = setup(EngineOptions {
        queue_limit: 1,
        ..EngineOptions::default()
    });
    let (is_there, go) = setup.control.pause_at(0);
    let rest = async {
        reached(is_there).await;
        let refused = setup.engine.embed(request("qwen3", &[1])).await;
        go.send(()).unwrap();
        refused
    };
    let (served, refused) = join(lengths_read(&setup.engine, "qwen3", &[3]), rest).await;
    assert_eq!(served, [3]);
    assert_eq!(refused, Err(InferenceError::Overloaded));
    assert_eq!(lengths_read(&setup.engine, "qwen3", &[4]).await, [4]);
}

#[tokio::test]
async fn out_of_memory_halves_the_batch() {
    let setup = setup(EngineOptions::default());
    *setup.control.faults.lock() = vec![(0, Fault::OutOfMemory), (1, Fault::OutOfMemory)];
    assert_eq!(
        lengths_read(&setup.engine, "qwen3", &[10; 9]).await,
        [10; 9]
    );
    let batches: Vec<usize> = setup.control.forwards.lock().iter().map(Vec::len).collect();
    assert_eq!(batches, [9, 4, 2, 2, 2, 2, 1]);
    // Later requests try anew, and a text that does not fit alone is an error.
    setup.control.faults.lock().push((7, Fault::OutOfMemory));
    let alone = setup.engine.embed(request("qwen3", &[10])).await;
    assert!(
        matches!(alone, Err(InferenceError::OutOfMemory { .. })),
        "{alone:?}"
    );
    assert_eq!(
        lengths_read(&setup.engine, "qwen3", &[10; 9]).await,
        [10; 9]
    );
    assert_eq!(setup.control.count(), 9);
}

#[tokio::test]
async fn a_failing_encoder_leaves_the_chat_alone() {
    for (fault, words) in [(Fault::Panic, "panicked"), (Fault::Other, "broken")] {
        let setup = setup(EngineOptions::default());
        setup.engine.load("qwen3").await.unwrap();
        let (is_there, go) = setup.control.pause_at(3);
        let running = start(&setup.engine, &[10], 20).await;
        reached(is_there).await;
        *setup.control.faults.lock() = vec![(4, fault)];
        let release = async {
            while setup.engine.active_requests("qwen3") == 0 {
                tokio::task::yield_now().await;
            }
            go.send(()).unwrap();
        };
        let (failed, ()) = join(setup.engine.embed(request("qwen3", &[3])), release).await;
        let Err(InferenceError::Engine { message }) = failed else {
            panic!("{failed:?}")
        };
        assert!(message.contains(words), "{message}");
        assert_eq!(read(running).await.ids(0), counted(10, 20));
    }
}

#[tokio::test]
async fn a_panic_while_loading_an_encoder_is_its_requests_error() {
    let setup = setup(EngineOptions::default());
    let engine = &setup.engine;
    let (failed, loaded, served) = futures::future::join3(
        engine.embed(request("phi3-q4", &[3])),
        engine.load("phi3-q4"),
        lengths_read(engine, "qwen3", &[3]),
    )
    .await;
    assert!(
        matches!(failed, Err(InferenceError::Engine { .. })),
        "{failed:?}"
    );
    assert!(
        matches!(loaded, Err(InferenceError::Engine { .. })),
        "{loaded:?}"
    );
    assert_eq!(served, [3]);
    assert_eq!(ids(engine), ["qwen3"]);
}

#[tokio::test]
async fn unload_waits_for_what_is_started_and_later_requests_load_again() {
    let setup = setup(EngineOptions {
        prefill_chunk: 10,
        ..EngineOptions::default()
    });
    let engine = &setup.engine;
    let (is_there, go) = setup.control.pause_at(2);
    let rest = async {
        reached(is_there).await;
        let posted = async {
            while engine.active_requests("qwen3") < 2 {
                tokio::task::yield_now().await;
            }
            go.send(()).unwrap();
        };
        futures::future::join3(
            engine.unload("qwen3".into()),
            engine.embed(request("qwen3", &[10])),
            posted,
        )
        .await
    };
    let (started, (unloaded, later, ())) =
        join(engine.embed(request("qwen3", &[10; 5])), rest).await;
    assert_eq!(started.unwrap().vectors.len(), 5);
    assert!(unloaded.unwrap());
    let later = later.unwrap();
    assert!(later.timings.load > std::time::Duration::ZERO);
    assert!(later.timings.total >= later.timings.load);
    assert_eq!(ids(engine), ["qwen3"]);
    let again = engine.embed(request("qwen3", &[10])).await.unwrap();
    assert_eq!(again.timings.load, std::time::Duration::ZERO);
}

#[tokio::test]
async fn dropping_the_engine_ends_encoding() {
    let setup = setup(EngineOptions {
        prefill_chunk: 10,
        ..EngineOptions::default()
    });
    let (is_there, go) = setup.control.pause_at(1);
    let engine = Arc::new(setup.engine);
    let waiting = {
        let engine = Arc::downgrade(&engine);
        let request = request("qwen3", &[10; 5]);
        tokio::spawn(async move { engine.upgrade().unwrap().embed(request).await })
    };
    reached(is_there).await;
    // The task holds the engine as long as it waits.
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    let drops = tokio::task::spawn_blocking(move || drop(engine));
    go.send(()).unwrap();
    drops.await.unwrap();
    assert!(setup.control.count() <= 3);
    drop(setup.home);
}

#[tokio::test]
async fn encoders_tokenize_and_do_not_chat() {
    let setup = setup(EngineOptions::default());
    let template = "{{ messages[0].content }}<think></think>";
    let path = setup.home.path("qwen3").join("chat_template.jinja");
    std::fs::write(path, template).unwrap();
    let tokenize = |input| {
        setup.engine.tokenize(TokenizeRequest {
            model: "qwen3".into(),
            input,
        })
    };
    let text = TokenizeInput::Text {
        text: "a b".into(),
        add_special_tokens: true,
    };
    assert_eq!(tokenize(text).await.unwrap(), [65, 0, 66]);
    let chat = TokenizeInput::Chat {
        prompt: macmlx_inference::ChatPrompt::default(),
        reasoning: macmlx_inference::ReasoningOptions::default(),
    };
    assert_eq!(refusal(tokenize(chat).await).0, "model");
    let traits = setup
        .engine
        .traits(setup.engine.card("qwen3"))
        .await
        .unwrap();
    assert_eq!(traits, macmlx_inference::ModelTraits::default());
}
