//! Sampling parameters reach the sampler through the whole engine.

use macmlx_engine::EngineOptions;
use macmlx_inference::{Dry, GenerateRequest, Prompt};

use crate::support::{Home, greedy, run};

const PROMPT: [u32; 6] = [40, 41, 42, 40, 41, 42];

fn creative(seed: u64) -> GenerateRequest {
    let mut request = greedy("llama", &PROMPT, 30);
    request.sampling.temperature = None;
    request.sampling.seed = Some(seed);
    request
}

#[tokio::test]
async fn the_models_own_defaults_fill_what_is_not_given() {
    let home = Home::new(&["llama"]);
    let config = r#"{"eos_token_id": 95, "temperature": 0.0}"#;
    std::fs::write(home.path("llama").join("generation_config.json"), config).unwrap();
    let engine = home.engine(EngineOptions::default());
    let by_default = run(&engine, creative(1)).await;
    let greedily = run(&engine, greedy("llama", &PROMPT, 30)).await;
    assert_eq!(by_default.ids(0), greedily.ids(0));
    let mut given = creative(1);
    given.sampling.temperature = Some(1.5);
    assert_ne!(run(&engine, given).await.ids(0), greedily.ids(0));
}

#[tokio::test]
async fn without_a_seed_every_answer_is_another() {
    let home = Home::new(&["llama"]);
    let engine = home.engine(EngineOptions::default());
    let mut request = creative(0);
    request.sampling.seed = None;
    // Hot enough that two answers are never the same by chance.
    request.sampling.temperature = Some(20.0);
    let first = run(&engine, request.clone()).await;
    assert_ne!(run(&engine, request).await.ids(0), first.ids(0));
}

#[tokio::test]
async fn a_strong_repetition_penalty_never_repeats() {
    let home = Home::new(&["llama"]);
    let engine = home.engine(EngineOptions::default());
    let mut request = greedy("llama", &PROMPT, 40);
    request.sampling.presence_penalty = Some(1000.0);
    let mut ids = run(&engine, request).await.ids(0);
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 40);
}

#[tokio::test]
async fn dry_breaks_a_loop() {
    let home = Home::new(&["llama"]);
    let engine = home.engine(EngineOptions::default());
    let mut request = greedy("llama", &PROMPT, 60);
    let longest_run = |ids: &[u32]| ids.chunk_by(|a, b| a == b).map(<[u32]>::len).max().unwrap();
    let plain = run(&engine, request.clone()).await;
    assert!(longest_run(&plain.ids(0)) > 6, "{:?}", plain.ids(0));
    request.sampling.dry = Some(Dry {
        multiplier: 50.0,
        base: 2.0,
        allowed_length: 2,
        window: None,
        sequence_breakers: vec!["\n".into()],
    });
    let dry = run(&engine, request).await;
    assert!(longest_run(&dry.ids(0)) <= 3, "{:?}", dry.ids(0));
}

#[tokio::test]
async fn text_prompts_are_tokenized() {
    let home = Home::new(&["llama"]);
    let engine = home.engine(EngineOptions::default());
    let by_ids = run(&engine, greedy("llama", &PROMPT, 8)).await;
    let mut request = greedy("llama", &[], 8);
    request.prompt = Prompt::Text(
        PROMPT
            .iter()
            .filter_map(|id| char::from_u32(32 + id))
            .collect(),
    );
    assert_eq!(run(&engine, request).await.ids(0), by_ids.ids(0));
}
