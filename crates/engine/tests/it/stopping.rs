//! When generations end and what is said about it.

use macmlx_engine::EngineOptions;
use macmlx_inference::{
    FinishReason, GenerateRequest, InferenceError, InfillPrompt, Logprobs, Prompt,
};
use serde_json::Value;

use crate::support::{EOS, Home, Named, expected, greedy, ids, run};

/// `llama` and what it says greedily after the fixture's prompt, as ids.
fn llama() -> (Home, Named, Vec<u32>, Vec<u32>) {
    let home = Home::new(&["llama"]);
    let engine = home.engine(EngineOptions::default());
    let expected = expected("llama");
    (
        home,
        engine,
        ids(&expected["prompt"]),
        ids(&expected["greedy"]),
    )
}

fn character(id: u32) -> char {
    char::from_u32(32 + id).unwrap()
}

fn text(ids: &[u32]) -> String {
    ids.iter().copied().map(character).collect()
}

async fn refusal(engine: &Named, request: GenerateRequest) -> InferenceError {
    engine.generate(request).await.err().unwrap()
}

/// The first place where the fixture's greedy answer changes its token.
fn change(ids: &[u32]) -> usize {
    1 + ids.windows(2).position(|pair| pair[0] != pair[1]).unwrap()
}

#[tokio::test]
async fn stop_tokens_end_and_are_not_said() {
    let (_home, engine, prompt, said) = llama();
    let at = change(&said);
    let mut request = greedy("llama", &prompt, 12);
    request.stop.token_ids = vec![said[at]];
    let answer = run(&engine, request).await;
    assert_eq!(answer.text[0], text(&said[..at]));
    assert_eq!(answer.finished[0], Some((FinishReason::Stop, None)));
    let (usage, _) = answer.completed.unwrap();
    assert_eq!(usage.completion_tokens as usize, at + 1);
    assert_eq!(usage.prompt_tokens as usize, prompt.len());
}

/// Has the fixture's tokenizer spell these tokens so.
fn spell(home: &Home, spellings: &[(u32, &str)]) {
    let path = home.path("llama").join("tokenizer.json");
    let mut tokenizer: Value =
        serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let vocab = tokenizer["model"]["vocab"].as_object_mut().unwrap();
    for (id, spelling) in spellings {
        vocab.retain(|_, known| *known != *id);
        vocab.insert((*spelling).into(), (*id).into());
    }
    std::fs::write(path, tokenizer.to_string()).unwrap();
}

const FILLS_IN: [(u32, &str); 3] = [
    (1, "<|fim_prefix|>"),
    (2, "<|fim_suffix|>"),
    (3, "<|fim_middle|>"),
];

#[tokio::test]
async fn a_gap_is_filled_until_a_token_of_its_kind() {
    let prefix: Vec<u32> = (40..48).collect();
    let suffix: Vec<u32> = (60..63).collect();
    let mut request = greedy("llama", &[], 12);
    request.prompt = Prompt::Infill(InfillPrompt {
        prefix: text(&prefix),
        suffix: text(&suffix),
        param: "suffix".into(),
        ..InfillPrompt::default()
    });
    request.stop.ignore_eos = false;
    let home = Home::new(&["llama"]);
    spell(&home, &FILLS_IN);
    let engine = home.engine(EngineOptions::default());
    let answer = run(&engine, request.clone()).await;
    // As the same tokens are answered.
    let order = [&[1], &*prefix, &[2], &suffix, &[3]].concat();
    let said = run(&engine, greedy("llama", &order, 12)).await.ids(0);
    assert_eq!(answer.ids(0), said);
    assert_eq!(answer.completed.unwrap().0.prompt_tokens, 14);

    let at = change(&said);
    let home = Home::new(&["llama"]);
    spell(&home, &FILLS_IN);
    spell(&home, &[(said[at], "<|fim_pad|>")]);
    let engine = home.engine(EngineOptions::default());
    let answer = run(&engine, request).await;
    assert_eq!(answer.ids(0), said[..at]);
    assert_eq!(answer.finished[0], Some((FinishReason::Stop, None)));
}

#[tokio::test]
async fn a_gap_needs_the_tokens_and_room() {
    let gap = |prefix: String| {
        let gap = InfillPrompt {
            prefix,
            suffix: "a".into(),
            param: "suffix".into(),
            ..InfillPrompt::default()
        };
        GenerateRequest::new("llama", Prompt::Infill(gap))
    };
    let (home, engine, _, _) = llama();
    match refusal(&engine, gap("a".into())).await {
        InferenceError::Unsupported { param, .. } => assert_eq!(param, "suffix"),
        error => panic!("{error}"),
    }
    spell(&home, &FILLS_IN);
    let engine = home.engine(EngineOptions::default());
    let error = refusal(&engine, gap("a".repeat(600))).await;
    assert!(
        matches!(error, InferenceError::ContextLength { .. }),
        "{error}"
    );
}

#[tokio::test]
async fn stop_sequences_reach_over_tokens_and_are_cut() {
    let (_home, engine, prompt, said) = llama();
    let at = change(&said);
    let stop = text(&said[at - 1..=at]);
    let mut request = greedy("llama", &prompt, 12);
    request.stop.sequences = vec![stop.clone()];
    let answer = run(&engine, request).await;
    assert_eq!(answer.text[0], text(&said[..at - 1]));
    assert_eq!(answer.ids(0), said[..at - 1]);
    assert_eq!(answer.finished[0], Some((FinishReason::Stop, Some(stop))));
}

#[tokio::test]
async fn eos_ends_unless_ignored_or_too_early() {
    let (_home, engine, prompt, said) = llama();
    let at = change(&said);
    // Makes EOS likelier than anything.
    let biased = |max_tokens| {
        let mut request = greedy("llama", &prompt, max_tokens);
        request.sampling.logit_bias = [(EOS, 100.0)].into();
        request
    };
    let mut request = biased(5);
    request.stop.ignore_eos = false;
    let answer = run(&engine, request.clone()).await;
    assert_eq!(answer.finished[0], Some((FinishReason::Stop, None)));
    assert_eq!(answer.completed.unwrap().0.completion_tokens, 1);
    assert!(answer.text[0].is_empty());

    request.stop.min_tokens = at as u32;
    request.stop.max_tokens = Some(12);
    let answer = run(&engine, request).await;
    assert_eq!(answer.text[0], text(&said[..at]));
    assert_eq!(answer.finished[0], Some((FinishReason::Stop, None)));

    let answer = run(&engine, biased(5)).await;
    assert_eq!(answer.ids(0), [EOS; 5]);
    assert_eq!(answer.finished[0], Some((FinishReason::Length, None)));
}

#[tokio::test]
async fn the_context_ends_what_nothing_else_ends() {
    let mut home = Home::new(&["llama"]);
    home.card("llama").context_length = Some(30);
    let engine = home.engine(EngineOptions::default());
    let prompt: Vec<u32> = (0..24).collect();
    let mut request = greedy("llama", &prompt, 0);
    request.stop.max_tokens = None;
    let answer = run(&engine, request.clone()).await;
    assert_eq!(answer.ids(0).len(), 6);
    assert_eq!(answer.finished[0], Some((FinishReason::Length, None)));
    request.prompt = Prompt::Tokens((0..31).collect());
    let refused = InferenceError::ContextLength {
        prompt_tokens: 31,
        limit: 30,
    };
    assert_eq!(refusal(&engine, request.clone()).await, refused);
    request.prompt = Prompt::Tokens((0..30).collect());
    let answer = run(&engine, request).await;
    assert_eq!(answer.completed.unwrap().0.completion_tokens, 0);
    assert_eq!(answer.finished[0], Some((FinishReason::Length, None)));
}

#[tokio::test]
async fn the_config_says_the_context_where_the_card_does_not() {
    let mut home = Home::new(&["llama"]);
    home.card("llama").context_length = None;
    let engine = home.engine(EngineOptions::default());
    let prompt: Vec<u32> = (0..513).map(|index| index % 90).collect();
    let refused = InferenceError::ContextLength {
        prompt_tokens: 513,
        limit: 512,
    };
    assert_eq!(refusal(&engine, greedy("llama", &prompt, 1)).await, refused);
}

#[tokio::test]
async fn what_cannot_be_honoured_is_refused_by_name() {
    let (_home, engine, prompt, _) = llama();
    let param = |error: InferenceError| match error {
        InferenceError::InvalidRequest { param, .. } => param,
        other => panic!("{other}"),
    };
    let request = greedy("llama", &[3, 96], 1);
    assert_eq!(
        param(refusal(&engine, request).await).as_deref(),
        Some("prompt")
    );
    let mut request = greedy("llama", &prompt, 1);
    request.sampling.logit_bias = [(96, 1.0)].into();
    assert_eq!(
        param(refusal(&engine, request).await).as_deref(),
        Some("logit_bias")
    );
    let mut request = greedy("llama", &prompt, 1);
    request.stop.token_ids = vec![200];
    assert_eq!(
        param(refusal(&engine, request).await).as_deref(),
        Some("stop_token_ids")
    );
    let request = greedy("llama", &[], 1);
    assert_eq!(
        param(refusal(&engine, request).await).as_deref(),
        Some("prompt")
    );
    let mut request = greedy("llama", &prompt, 1);
    request.choices = 0;
    assert_eq!(param(refusal(&engine, request).await).as_deref(), Some("n"));
}

#[tokio::test]
async fn log_probabilities_of_prompt_and_output() {
    let home = Home::new(&["llama"]);
    let prompt: Vec<u32> = (0..24).map(|index| index * 41 % 95).collect();
    let mut reference: Option<Vec<f32>> = None;
    for chunk in [512, 7] {
        let options = EngineOptions {
            prefill_chunk: chunk,
            ..EngineOptions::default()
        };
        let engine = home.engine(options);
        let mut request = greedy("llama", &prompt, 3);
        request.logprobs = Some(Logprobs {
            top: 4,
            prompt: true,
        });
        let answer = run(&engine, request).await;
        let tokens = &answer.prompt_logprobs;
        let ids: Vec<u32> = tokens.iter().map(|token| token.id).collect();
        assert_eq!(ids, prompt);
        assert_eq!((tokens[0].logprob, tokens[0].top.len()), (None, 0));
        assert_eq!(
            tokens[3].bytes,
            character(prompt[3]).to_string().into_bytes()
        );
        let scores: Vec<f32> = tokens[1..]
            .iter()
            .map(|token| token.logprob.unwrap())
            .collect();
        assert!(tokens[1..].iter().all(|token| token.top.len() == 4));
        match &reference {
            None => reference = Some(scores),
            Some(whole) => {
                for (chunked, whole) in scores.iter().zip(whole) {
                    assert!((chunked - whole).abs() < 1e-4, "chunks of {chunk}");
                }
            }
        }
        // Greedy: the drawn token is the likeliest.
        for token in &answer.tokens[0] {
            assert_eq!(token.top[0].id, token.id);
            assert!((token.top[0].logprob - token.logprob.unwrap()).abs() < 1e-6);
            assert!(
                token
                    .top
                    .windows(2)
                    .all(|pair| pair[0].logprob >= pair[1].logprob)
            );
        }
    }
    // The score of each prompt token is what a generation gives it that stands just before.
    let engine = home.engine(EngineOptions::default());
    let mut request = greedy("llama", &prompt[..10], 1);
    request.sampling.logit_bias = [(prompt[10], 100.0)].into();
    let forced = run(&engine, request).await;
    assert_eq!(forced.ids(0), [prompt[10]]);
    let score = forced.tokens[0][0].logprob.unwrap();
    assert!((score - reference.unwrap()[9]).abs() < 1e-4);
}

#[tokio::test]
async fn only_the_prompt_is_scored_when_no_token_is_wanted() {
    let (_home, engine, prompt, _) = llama();
    let mut request = greedy("llama", &prompt, 0);
    request.logprobs = Some(Logprobs {
        top: 0,
        prompt: true,
    });
    let answer = run(&engine, request).await;
    assert_eq!(answer.prompt_logprobs.len(), prompt.len());
    assert_eq!(answer.finished[0], Some((FinishReason::Length, None)));
    assert_eq!(answer.completed.unwrap().0.completion_tokens, 0);
}
