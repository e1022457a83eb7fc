//! Loading, switching and dropping models, and text to tokens and back.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::future::join_all;
use macmlx_engine::{Engine, EngineOptions};
use macmlx_inference::{Backend, InferenceError, KeepAlive, TokenizeInput, TokenizeRequest};
use tokio::sync::watch;

use crate::support::{Home, Named, expected, greedy, idle, ids, run, until_loaded};

#[tokio::test]
async fn requests_for_other_models_wait_and_are_served_in_turn() {
    let names = ["llama", "qwen2", "gemma3_text"];
    let home = Home::new(&names);
    let engine = home.engine(EngineOptions::default());
    let requests = (0..9).map(|index| {
        let name = names[index % 3];
        let prompt = ids(&expected(name)["prompt"]);
        run(&engine, greedy(name, &prompt, 12))
    });
    for (index, answer) in join_all(requests).await.iter().enumerate() {
        let name = names[index % 3];
        assert_eq!(answer.ids(0), ids(&expected(name)["greedy"]), "{name}");
    }
    assert_eq!(engine.loaded().len(), 1);
}

#[tokio::test]
async fn load_says_what_is_there_and_unload_drops_it() {
    let home = Home::new(&["llama-q4"]);
    let engine = home.engine(EngineOptions::default());
    assert!(engine.loaded().is_empty());
    assert!(!engine.unload("llama-q4".into()).await.unwrap());
    engine.load("llama-q4").await.unwrap();
    let loaded = engine.loaded();
    assert_eq!(
        (loaded[0].id.as_str(), loaded[0].active_requests),
        ("llama-q4", 0)
    );
    assert!(loaded[0].memory_bytes > 10_000);
    assert!(!loaded[0].weights.is_empty());
    run(&engine, greedy("llama-q4", &[1, 2], 2)).await;
    assert!(engine.unload("llama-q4".into()).await.unwrap());
    assert!(engine.loaded().is_empty());
    // The next request brings it back.
    run(&engine, greedy("llama-q4", &[1, 2], 2)).await;
    idle(&engine).await;
    assert_eq!(engine.loaded().len(), 1);
}

#[tokio::test]
async fn unload_waits_for_running_requests() {
    let home = Home::new(&["llama"]);
    let engine = home.engine(EngineOptions::default());
    let stream = engine
        .generate(greedy("llama", &[1, 2], 200))
        .await
        .unwrap();
    let (unloaded, answer) =
        futures::future::join(engine.unload("llama".into()), crate::support::read(stream)).await;
    assert!(unloaded.unwrap());
    assert_eq!(answer.error, None);
    assert_eq!(answer.ids(0).len(), 200);
}

#[tokio::test]
async fn a_model_that_cannot_be_loaded_is_an_error_for_its_requests_only() {
    let home = Home::new(&["llama", "qwen2"]);
    std::fs::write(
        home.path("qwen2").join("model.safetensors"),
        b"not a tensor",
    )
    .unwrap();
    let engine = home.engine(EngineOptions::default());
    let requests = [
        greedy("qwen2", &[1], 3),
        greedy("llama", &[1], 3),
        greedy("qwen2", &[2], 3),
    ];
    let started = join_all(requests.into_iter().map(|request| engine.generate(request))).await;
    for (stream, is_fine) in started.into_iter().zip([false, true, false]) {
        let answer = crate::support::read(stream.unwrap()).await;
        assert_eq!(answer.loading, 1);
        assert_eq!(answer.loaded, usize::from(is_fine));
        match answer.error {
            None => {
                assert!(is_fine);
                assert_eq!(answer.ids(0).len(), 3);
            }
            Some(InferenceError::ModelLoad { model, .. }) => {
                assert!(!is_fine);
                assert_eq!(model, "qwen2");
            }
            Some(other) => panic!("{other}"),
        }
    }
}

#[tokio::test]
async fn loading_is_told_and_timed_where_there_is_any() {
    let home = Home::new(&["llama", "qwen2"]);
    let engine = home.engine(EngineOptions::default());
    for (name, loads) in [("llama", true), ("llama", false), ("qwen2", true)] {
        let answer = run(&engine, greedy(name, &[1, 2], 2)).await;
        assert_eq!(answer.loading, usize::from(loads), "{name}");
        assert_eq!(answer.loaded, usize::from(loads), "{name}");
        let (_, timings) = answer.completed.unwrap();
        assert_eq!(timings.load.is_zero(), !loads, "{name}: {timings:?}");
        assert!(!timings.queue.is_zero(), "{name}: {timings:?}");
        idle(&engine).await;
    }
    engine.load("llama").await.unwrap();
    let answer = run(&engine, greedy("llama", &[1, 2], 2)).await;
    assert_eq!(answer.loading, 0, "it was loaded ahead");
}

#[tokio::test]
async fn text_to_tokens_and_back() {
    let home = Home::new(&["llama"]);
    let engine = home.engine(EngineOptions::default());
    let request = TokenizeRequest {
        model: "llama".into(),
        input: TokenizeInput::Text {
            text: "a b!".into(),
            add_special_tokens: false,
        },
    };
    let tokens = engine.tokenize(request).await.unwrap();
    assert_eq!(tokens, [65, 0, 66, 1]);
    assert_eq!(
        engine
            .detokenize(engine.card("llama"), tokens)
            .await
            .unwrap(),
        "a b!"
    );
    assert!(engine.loaded().is_empty(), "tokenizing needs no weights");
}

/// Counts how often models came or went, and says so.
fn watch(engine: &Named) -> Arc<watch::Sender<u32>> {
    let changes = Arc::new(watch::Sender::new(0));
    let told = changes.clone();
    engine.watch_loaded(Box::new(move || told.send_modify(|count| *count += 1)));
    changes
}

#[tokio::test]
async fn a_model_leaves_when_its_time_is_over() {
    let home = Home::new(&["llama-q4"]);
    for time_to_live in [None, Some(Duration::ZERO)] {
        let engine = Engine::new(EngineOptions::default(), Arc::new(move |_| time_to_live));
        let engine = home.name(engine);
        let changes = watch(&engine);
        let request = greedy("llama-q4", &[1, 2], 20);
        let mut stream = engine.generate(request).await.unwrap();
        until_loaded(&mut stream).await;
        if time_to_live.is_none() {
            engine.keep("llama-q4", KeepAlive::For(Duration::ZERO));
        }
        let answer = crate::support::read(stream).await;
        assert_eq!(answer.error, None, "the answer is given first");
        let mut changes = changes.subscribe();
        changes.wait_for(|count| *count == 2).await.unwrap();
        assert!(engine.loaded().is_empty());
    }
}

#[tokio::test]
async fn a_clients_wish_holds_a_model_beyond_its_own_time() {
    let home = Home::new(&["llama-q4"]);
    // No time of its own until the client has spoken: the answer may end before that.
    let is_short = Arc::new(AtomicBool::new(false));
    let own_time = {
        let is_short = is_short.clone();
        move |_: &str| is_short.load(Ordering::SeqCst).then_some(Duration::ZERO)
    };
    let engine = Engine::new(EngineOptions::default(), Arc::new(own_time));
    let engine = home.name(engine);
    let changes = watch(&engine);
    let mut stream = engine
        .generate(greedy("llama-q4", &[1, 2], 20))
        .await
        .unwrap();
    until_loaded(&mut stream).await;
    engine.keep("llama-q4", KeepAlive::Forever);
    is_short.store(true, Ordering::SeqCst);
    crate::support::read(stream).await;
    idle(&engine).await;
    // The thread has looked at it again before it answers.
    assert!(!engine.unload("other".into()).await.unwrap());
    assert!(!engine.unload("other".into()).await.unwrap());
    assert_eq!(*changes.borrow(), 1);
    let loaded = engine.loaded();
    assert_eq!((loaded.len(), loaded[0].expires_in), (1, None));
}

#[tokio::test]
async fn a_model_beyond_the_memory_limit_is_refused_with_words() {
    let mut home = Home::new(&["llama-q4"]);
    // Its files may tell, or only its weights once they are loaded.
    for size_bytes in [1 << 30, 0] {
        home.card("llama-q4").size_bytes = size_bytes;
        let engine = home.engine(EngineOptions {
            memory_limit_bytes: Some(1000),
            ..EngineOptions::default()
        });
        let error = engine.load("llama-q4").await.unwrap_err().to_string();
        assert!(error.contains("maxResidentMemoryGB"), "{error}");
        assert!(engine.loaded().is_empty());
    }
}
