//! What a sequence says does not depend on who runs beside it.

use futures::future::join_all;
use macmlx_engine::{EngineOptions, KvQuantization};
use macmlx_inference::GenerateRequest;

use crate::support::{Home, Named, expected, greedy, ids, run};

/// A sampled request with everything that may draw.
fn sampled(model: &str, prompt: &[u32], seed: u64) -> GenerateRequest {
    let mut request = greedy(model, prompt, 24);
    request.sampling.temperature = Some(1.0);
    request.sampling.top_p = Some(0.95);
    request.sampling.repetition_penalty = Some(1.2);
    request.sampling.seed = Some(seed);
    request
}

async fn all(engine: &Named, requests: Vec<GenerateRequest>) -> Vec<Vec<u32>> {
    let answers = join_all(requests.into_iter().map(|request| run(engine, request))).await;
    answers.iter().map(|answer| answer.ids(0)).collect()
}

#[tokio::test]
async fn seeds_reproduce_alone_and_in_company() {
    let home = Home::new(&["qwen3"]);
    let engine = home.engine(EngineOptions::default());
    let prompts: Vec<Vec<u32>> = (0..5)
        .map(|start| (start * 7..start * 11 + 9).collect())
        .collect();
    let request = |index: usize| sampled("qwen3", &prompts[index], index as u64);
    let mut alone = Vec::new();
    for index in 0..prompts.len() {
        alone.extend(all(&engine, vec![request(index)]).await);
    }
    let together = all(&engine, (0..prompts.len()).map(request).collect()).await;
    assert_eq!(together, alone);
    let other_seed = all(&engine, vec![sampled("qwen3", &prompts[0], 77)]).await;
    assert_ne!(other_seed[0], alone[0]);
}

#[tokio::test]
async fn choices_are_the_generations_of_following_seeds() {
    let home = Home::new(&["llama"]);
    let engine = home.engine(EngineOptions::default());
    let prompt: Vec<u32> = (3..20).collect();
    let mut request = sampled("llama", &prompt, 40);
    request.choices = 3;
    let choices = run(&engine, request).await;
    for choice in 0..3 {
        let alone = run(&engine, sampled("llama", &prompt, 40 + choice as u64)).await;
        assert_eq!(choices.ids(choice), alone.ids(0), "choice {choice}");
    }
    assert_ne!(choices.ids(0), choices.ids(1));
}

#[tokio::test]
async fn more_requests_than_the_batch_has_places_all_end() {
    let home = Home::new(&["llama"]);
    let options = EngineOptions {
        max_batch: 3,
        ..EngineOptions::default()
    };
    let engine = home.engine(options);
    let expected = expected("llama");
    let batch = expected["batch"].as_array().unwrap();
    let requests = (0..12)
        .map(|index| greedy("llama", &ids(&batch[index % batch.len()]["prompt"]), 12))
        .collect();
    for (index, answer) in all(&engine, requests).await.iter().enumerate() {
        assert_eq!(
            *answer,
            ids(&batch[index % batch.len()]["greedy"]),
            "request {index}"
        );
    }
}

#[tokio::test]
async fn quantized_keys_and_values_are_used() {
    let home = Home::new(&["llama"]);
    let quantization = |start| EngineOptions {
        kv_quantization: Some(KvQuantization {
            bits: 8,
            group_size: 32,
            start,
        }),
        ..EngineOptions::default()
    };
    let prompt: Vec<u32> = (0..60).map(|index| index * 37 % 95).collect();
    let mut request = greedy("llama", &prompt, 1);
    request.logprobs = Some(macmlx_inference::Logprobs {
        top: 20,
        prompt: false,
    });
    let mut scores = Vec::new();
    for options in [
        EngineOptions::default(),
        quantization(0),
        quantization(4096),
    ] {
        // Two tokens, so that the second comes from attention over the cache as it is kept.
        request.stop.max_tokens = Some(2);
        let answer = run(&home.engine(options), request.clone()).await;
        scores.push(answer.tokens[0][1].logprob.unwrap());
    }
    assert!(scores[0].to_bits() != scores[1].to_bits(), "{scores:?}");
    assert!((scores[0] - scores[1]).abs() < 0.05, "{scores:?}");
    assert_eq!(
        scores[0].to_bits(),
        scores[2].to_bits(),
        "not before its start: {scores:?}"
    );
}
