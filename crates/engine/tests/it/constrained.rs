//! Outputs held to a grammar: drawn from random weights, so only the grammar makes them right.

use futures::future::join_all;
use macmlx_engine::EngineOptions;
use macmlx_inference::{FinishReason, GenerateRequest, Grammar, InferenceError, Language, Prompt};
use serde_json::{Value, json};

use crate::support::{Home, greedy, run};

const MODEL: &str = "llama";

fn grammar(language: Language) -> Grammar {
    Grammar {
        language,
        param: "response_format".into(),
    }
}

fn drawn(language: Language, seed: u64) -> GenerateRequest {
    let mut request = GenerateRequest::new(MODEL, Prompt::Text("Go:".into()));
    request.sampling.temperature = Some(1.5);
    request.sampling.seed = Some(seed);
    request.stop.max_tokens = Some(400);
    request.grammar = Some(grammar(language));
    request
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 12},
            "size": {"type": "integer", "minimum": -5, "maximum": 250},
            "tags": {"type": "array", "items": {"enum": ["a", "b", null]}, "maxItems": 3},
            "next": {"anyOf": [{"type": "null"}, {"type": "boolean"}]},
        },
        "required": ["name", "size", "tags"],
        "additionalProperties": false,
    })
}

fn is_valid(schema: &Value, text: &str) -> bool {
    let value: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    jsonschema::is_valid(schema, &value)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_draw_satisfies_the_schema_alone_and_in_company() {
    let home = Home::new(&[MODEL]);
    let engine = home.engine(EngineOptions::default());
    let request = |seed| drawn(Language::JsonSchema(schema()), seed);
    let together = join_all((0..24).map(|seed| run(&engine, request(seed)))).await;
    let mut texts: Vec<String> = Vec::new();
    for (seed, answer) in (0..).zip(together) {
        assert_eq!(answer.finished[0], Some((FinishReason::Stop, None)));
        assert!(is_valid(&schema(), &answer.text[0]), "{}", answer.text[0]);
        if seed % 6 == 0 {
            let alone = run(&engine, request(seed)).await;
            assert_eq!(alone.text, answer.text, "seed {seed}");
        }
        texts.extend(answer.text);
    }
    texts.sort();
    texts.dedup();
    assert!(texts.len() > 12, "{texts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn languages_and_choices() {
    let home = Home::new(&[MODEL]);
    let engine = home.engine(EngineOptions::default());
    let words = ["red", "green", "greenish"].map(String::from).to_vec();
    let mut request = drawn(Language::Choice(words.clone()), 1);
    request.choices = 6;
    let answer = run(&engine, request).await;
    assert_eq!(answer.text.len(), 6);
    assert!(
        answer.text.iter().all(|text| words.contains(text)),
        "{:?}",
        answer.text
    );

    let regex = run(&engine, drawn(Language::Regex(r"[a-f]{3}-\d\d".into()), 2)).await;
    let (letters, digits) = regex.text[0].split_once('-').unwrap();
    assert_eq!((letters.len(), digits.len()), (3, 2));

    let gbnf = "root ::= \"<\" [xy]{1,4} \">\"";
    let rules = run(&engine, drawn(Language::Rules(gbnf.into()), 3)).await;
    let inner = rules.text[0]
        .strip_prefix('<')
        .unwrap()
        .strip_suffix('>')
        .unwrap();
    assert!((1..=4).contains(&inner.len()) && inner.chars().all(|c| "xy".contains(c)));

    let object = run(&engine, {
        let mut request = drawn(Language::JsonObject, 4);
        request.sampling.temperature = Some(0.0);
        request
    })
    .await;
    // Greedy random weights need not come to an end.
    if object.finished[0] == Some((FinishReason::Stop, None)) {
        assert!(
            serde_json::from_str::<Value>(&object.text[0])
                .unwrap()
                .is_object()
        );
    } else {
        assert!(object.text[0].starts_with('{'));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn free_company_is_not_touched() {
    let home = Home::new(&[MODEL]);
    let engine = home.engine(EngineOptions::default());
    let prompt = [5, 9, 33, 60];
    let free = || greedy(MODEL, &prompt, 60);
    let alone = run(&engine, free()).await;
    let (company, constrained) = tokio::join!(
        run(&engine, free()),
        run(&engine, drawn(Language::JsonSchema(schema()), 8)),
    );
    assert_eq!(company.ids(0), alone.ids(0));
    assert!(is_valid(&schema(), &constrained.text[0]));
}

#[tokio::test(flavor = "multi_thread")]
async fn logprobs_are_of_the_model_and_not_of_the_grammar() {
    let home = Home::new(&[MODEL]);
    let engine = home.engine(EngineOptions::default());
    let mut free = greedy(MODEL, &[7, 8, 9], 1);
    free.logprobs = Some(macmlx_inference::Logprobs {
        top: 5,
        prompt: false,
    });
    let mut held = free.clone();
    held.grammar = Some(grammar(Language::Choice(vec!["~".into(), "}".into()])));
    let (free, held) = (run(&engine, free).await, run(&engine, held).await);
    let token = &held.tokens[0][0];
    assert_eq!(token.top, free.tokens[0][0].top);
    assert!(["~", "}"].contains(&held.text[0].as_str()));
    assert!(token.logprob.unwrap() <= free.tokens[0][0].logprob.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn ends() {
    let home = Home::new(&[MODEL]);
    let engine = home.engine(EngineOptions::default());
    let number = || Language::Regex("7{40}".into());
    // The grammar's end is an end whatever else is asked for.
    let mut request = drawn(number(), 1);
    request.stop.ignore_eos = true;
    request.stop.min_tokens = 300;
    let whole = run(&engine, request).await;
    assert_eq!(whole.text[0], "7".repeat(40));
    assert_eq!(whole.finished[0], Some((FinishReason::Stop, None)));

    let mut request = drawn(number(), 1);
    request.stop.max_tokens = Some(12);
    let cut = run(&engine, request).await;
    assert_eq!(cut.text[0], "7".repeat(12));
    assert_eq!(cut.finished[0], Some((FinishReason::Length, None)));

    let mut request = drawn(number(), 1);
    request.stop.sequences = vec!["777".into()];
    let stopped = run(&engine, request).await;
    assert_eq!(stopped.text[0], "");
    assert_eq!(
        stopped.finished[0],
        Some((FinishReason::Stop, Some("777".into())))
    );

    // Where it may end, the model decides.
    let mut lengths = Vec::new();
    for seed in 0..12 {
        let answer = run(&engine, drawn(Language::Regex("a+".into()), seed)).await;
        assert!(
            answer.text[0].chars().all(|c| c == 'a'),
            "{}",
            answer.text[0]
        );
        lengths.push(answer.text[0].len());
    }
    lengths.sort_unstable();
    assert!(lengths[0] >= 1 && lengths[11] > lengths[0], "{lengths:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_enforced_is_refused_before_the_stream() {
    let home = Home::new(&[MODEL]);
    let engine = home.engine(EngineOptions::default());
    let language = Language::JsonSchema(json!({"properties": {"a": {"not": {}}}}));
    let Err(refusal) = engine.generate(drawn(language, 0)).await else {
        panic!("it was taken");
    };
    match refusal {
        InferenceError::Unsupported { param, reason } => {
            assert_eq!(param, "response_format");
            assert!(
                reason.contains("`not`") && reason.contains("/properties/a"),
                "{reason}"
            );
        }
        other => panic!("{other}"),
    }
}
