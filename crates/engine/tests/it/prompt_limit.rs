//! Prompts of which only the end is read.

use macmlx_engine::EngineOptions;
use macmlx_inference::InferenceError;

use crate::support::{Home, greedy, run};

const PROMPT: [u32; 6] = [40, 41, 42, 43, 44, 45];

#[tokio::test]
async fn the_last_tokens_alone_are_answered() {
    let home = Home::new(&["llama"]);
    let engine = home.engine(EngineOptions::default());
    let mut limited = greedy("llama", &PROMPT, 8);
    limited.prompt_limit = Some(3);
    let of_the_end = run(&engine, greedy("llama", &PROMPT[3..], 8)).await;
    assert_eq!(
        run(&engine, limited.clone()).await.ids(0),
        of_the_end.ids(0)
    );
    limited.prompt_limit = Some(100);
    let of_all = run(&engine, greedy("llama", &PROMPT, 8)).await;
    assert_eq!(run(&engine, limited).await.ids(0), of_all.ids(0));
}

#[tokio::test]
async fn the_models_own_limit_leaves_room_for_the_answer() {
    let mut home = Home::new(&["llama"]);
    home.card("llama").context_length = Some(5);
    let engine = home.engine(EngineOptions::default());
    let mut request = greedy("llama", &PROMPT, 2);
    let refused = engine.generate(request.clone()).await;
    assert!(matches!(
        refused.err(),
        Some(InferenceError::ContextLength {
            prompt_tokens: 6,
            limit: 5
        })
    ));
    request.prompt_limit = Some(u32::MAX);
    let of_the_end = run(&engine, greedy("llama", &PROMPT[3..], 2)).await;
    assert_eq!(run(&engine, request).await.ids(0), of_the_end.ids(0));
}
