//! The engine's greedy tokens are mlx-lm's, for every fixture, alone and in company.

use futures::future::join_all;
use macmlx_engine::EngineOptions;

use crate::support::{Home, expected, fixture_names, greedy, ids, run};

#[tokio::test]
async fn greedy_tokens_agree_with_mlx_lm() {
    let names = fixture_names();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let home = Home::new(&names);
    let engine = home.engine(EngineOptions::default());
    for name in names {
        let expected = expected(name);
        let wanted = ids(&expected["greedy"]);
        let prompt = ids(&expected["prompt"]);
        let answer = run(&engine, greedy(name, &prompt, wanted.len() as u32)).await;
        assert_eq!(answer.ids(0), wanted, "{name}");

        let batch = expected["batch"].as_array().unwrap();
        let answers = join_all(batch.iter().map(|one| {
            let prompt = ids(&one["prompt"]);
            run(
                &engine,
                greedy(name, &prompt, ids(&one["greedy"]).len() as u32),
            )
        }))
        .await;
        for (one, answer) in batch.iter().zip(answers) {
            assert_eq!(answer.ids(0), ids(&one["greedy"]), "{name} in company");
        }
    }
}

#[tokio::test]
async fn chunked_prefill_equals_whole() {
    let home = Home::new(&["llama", "gemma3_text"]);
    for chunk in [1, 5, 7] {
        let options = EngineOptions {
            prefill_chunk: chunk,
            ..EngineOptions::default()
        };
        let engine = home.engine(options);
        for name in ["llama", "gemma3_text"] {
            let expected = expected(name);
            let prompt = ids(&expected["prompt"]);
            let wanted = ids(&expected["greedy"]);
            let answer = run(&engine, greedy(name, &prompt, wanted.len() as u32)).await;
            assert_eq!(answer.ids(0), wanted, "{name} in chunks of {chunk}");
            let total = prompt.len() as u32;
            let progress: Vec<(u32, u32)> = (1..=total.div_ceil(chunk as u32))
                .map(|count| ((count * chunk as u32).min(total), total))
                .collect();
            assert_eq!(answer.prefill, progress);
        }
    }
}
