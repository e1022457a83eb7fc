//! A script played through a small real tokenizer, template and output parser.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail the test"
)]

use std::{
    fs,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::StreamExt;
use macmlx_inference::{
    Backend, ChatPrompt, FinishReason, GenerateRequest, GenerationEvent, InferenceError, KeepAlive,
    Logprobs, Message, ModelCard, Prompt, Role, TokenizeInput, TokenizeRequest, ToolCallPart,
    ToolDefinition, ToolSupport, Usage,
};
use macmlx_playback::{Playback, Script};
use serde_json::json;
use tempfile::TempDir;

#[path = "../../chat/tests/chat/tokenizers.rs"]
#[expect(dead_code, reason = "more tokenizers than are needed here")]
mod tokenizers;

const TEMPLATE: &str = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n\
    {% endfor %}{% if tools %}<tool_call>{{ tools | tojson }}</tool_call>{% endif %}\
    {% if add_generation_prompt %}<|im_start|>assistant\n\
    {% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% endif %}\
    {% endif %}";

struct Stage {
    playback: Playback,
    card: Arc<ModelCard>,
    _folder: TempDir,
}

fn stage(script: &serde_json::Value) -> Stage {
    let folder = tokenizers::byte_level();
    fs::write(folder.path().join("chat_template.jinja"), TEMPLATE).unwrap();
    tokenizers::write(
        folder.path(),
        "tokenizer_config.json",
        &json!({"eos_token": "<|im_end|>"}),
    );
    let card = ModelCard {
        path: folder.path().to_path_buf(),
        context_length: Some(1000),
        size_bytes: 7,
        ..ModelCard::scripted("org/model")
    };
    let script = Script::parse(&script.to_string()).unwrap();
    Stage {
        playback: Playback::new(script, Arc::new(|_| None)),
        card: Arc::new(card),
        _folder: folder,
    }
}

fn saying(text: &str) -> Stage {
    stage(&json!({"turns": [{"say": text}]}))
}

fn chat(messages: Vec<Message>) -> GenerateRequest {
    let prompt = ChatPrompt {
        messages,
        ..ChatPrompt::default()
    };
    GenerateRequest::new("org/model", Prompt::Chat(prompt))
}

fn ask(text: &str) -> GenerateRequest {
    chat(vec![Message::text(Role::User, text)])
}

fn with_tool(mut request: GenerateRequest) -> GenerateRequest {
    if let Prompt::Chat(chat) = &mut request.prompt {
        chat.tools.push(ToolDefinition {
            name: "f".into(),
            description: None,
            parameters: json!({}),
            strict: false,
        });
    }
    request
}

/// What a request was answered.
#[derive(Debug, Default)]
struct Answer {
    events: Vec<GenerationEvent>,
    error: Option<InferenceError>,
}

impl Answer {
    fn text(&self, wanted: u32) -> String {
        self.events
            .iter()
            .filter_map(|event| match event {
                GenerationEvent::Text { choice, text, .. } if *choice == wanted => Some(&**text),
                _ => None,
            })
            .collect()
    }

    fn reasoning(&self) -> String {
        self.events
            .iter()
            .filter_map(|event| match event {
                GenerationEvent::Reasoning { text, .. } => Some(&**text),
                _ => None,
            })
            .collect()
    }

    fn finish(&self) -> FinishReason {
        let reason = self.events.iter().find_map(|event| match event {
            GenerationEvent::Finished { reason, .. } => Some(*reason),
            _ => None,
        });
        reason.unwrap()
    }

    fn usage(&self) -> Usage {
        match self.events.last() {
            Some(GenerationEvent::Completed { usage, .. }) => *usage,
            other => panic!("{other:?}"),
        }
    }
}

async fn play(stage: &Stage, request: GenerateRequest) -> Answer {
    let mut stream = stage
        .playback
        .generate(stage.card.clone(), request)
        .await
        .unwrap();
    let mut answer = Answer::default();
    while let Some(event) = stream.next().await {
        assert!(answer.error.is_none(), "nothing follows an error");
        match event {
            Ok(event) => answer.events.push(event),
            Err(error) => answer.error = Some(error),
        }
    }
    answer
}

async fn refused(stage: &Stage, request: GenerateRequest) -> InferenceError {
    match stage.playback.generate(stage.card.clone(), request).await {
        Ok(_) => panic!("it was admitted"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn text_comes_token_by_token_with_true_counts() {
    let stage = saying("Hello, wörld");
    let answer = play(&stage, ask("Hi")).await;
    assert_eq!(answer.text(0), "Hello, wörld");
    assert_eq!(answer.finish(), FinishReason::Stop);
    let prompt = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n";
    let tokens = |text: &str| TokenizeRequest {
        model: "org/model".into(),
        input: TokenizeInput::Text {
            text: text.into(),
            add_special_tokens: false,
        },
    };
    let prompt = stage
        .playback
        .tokenize(stage.card.clone(), tokens(prompt))
        .await
        .unwrap()
        .len() as u32;
    let said = stage
        .playback
        .tokenize(stage.card.clone(), tokens("Hello, wörld"))
        .await
        .unwrap()
        .len() as u32;
    assert!(matches!(
        &answer.events[0],
        GenerationEvent::Started { model, prompt_tokens, cached_tokens: 0 }
            if model == "org/model" && *prompt_tokens == prompt
    ));
    let usage = answer.usage();
    // The end token counts, as it does in the engine.
    assert_eq!(
        (usage.prompt_tokens, usage.completion_tokens),
        (prompt, said + 1)
    );
}

#[tokio::test]
async fn reasoning_and_calls_pass_the_real_parser() {
    let stage = saying(
        "<think>\nhm\n</think>\n\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>",
    );
    let answer = play(&stage, with_tool(ask("Go"))).await;
    assert_eq!(answer.reasoning().trim(), "hm");
    assert_eq!(answer.text(0).trim(), "");
    assert_eq!(answer.finish(), FinishReason::ToolCalls);
    assert!(answer.usage().reasoning_tokens > 0);
    let parts: Vec<&ToolCallPart> = answer
        .events
        .iter()
        .filter_map(|event| match event {
            GenerationEvent::ToolCall { part, .. } => Some(part),
            _ => None,
        })
        .collect();
    assert!(matches!(parts[0], ToolCallPart::Start { name, .. } if name == "f"));
    assert_eq!(parts.last(), Some(&&ToolCallPart::End));
    let arguments: String = parts
        .iter()
        .filter_map(|part| match part {
            ToolCallPart::Arguments(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(arguments, "{\"a\": 1}");
}

#[tokio::test]
async fn the_reasoning_budget_closes_the_block() {
    let stage = saying("<think>\none two three four five\n</think>\n\nSix.");
    let mut request = ask("Count");
    request.reasoning.budget_tokens = Some(6);
    let answer = play(&stage, request).await;
    // Six tokens: a line break, a word, a space and a letter.
    assert_eq!(answer.reasoning().trim(), "one t");
    assert_eq!(answer.text(0).trim(), "Six.");
}

#[tokio::test]
async fn what_the_prompt_has_begun_is_not_said_twice() {
    let stage = stage(&json!({"turns": [{"say": "<think>\n\n</think>\n\nYes."}]}));
    let mut request = ask("Really?");
    request.reasoning.enabled = Some(false);
    let answer = play(&stage, request).await;
    assert_eq!(
        (answer.text(0).as_str(), answer.reasoning().as_str()),
        ("Yes.", "")
    );
}

#[tokio::test]
async fn limits_and_stop_sequences_end_it() {
    let stage = saying("one two three");
    for (max_tokens, said) in [(0, ""), (3, "one")] {
        let mut request = ask("Count");
        request.stop.max_tokens = Some(max_tokens);
        let answer = play(&stage, request).await;
        assert_eq!(answer.text(0), said);
        assert_eq!(answer.finish(), FinishReason::Length);
        assert_eq!(answer.usage().completion_tokens, max_tokens);
    }
    let mut request = ask("Count");
    request.stop.sequences = vec!["o th".into()];
    let answer = play(&stage, request).await;
    assert_eq!(answer.text(0), "one tw");
    assert_eq!(answer.finish(), FinishReason::Stop);
}

#[tokio::test]
async fn choices_are_played_side_by_side() {
    let stage = stage(&json!({"turns": [{"say": ["red", "blue"]}]}));
    let mut request = ask("A colour?");
    request.choices = 3;
    let answer = play(&stage, request).await;
    let said: Vec<String> = (0..3).map(|choice| answer.text(choice)).collect();
    assert_eq!(said, ["red", "blue", "red"]);
    // Three letters, four and three, and an end token each.
    assert_eq!(answer.usage().completion_tokens, 13);
}

#[tokio::test]
async fn log_probabilities_are_those_of_one_distribution() {
    let stage = saying("abc");
    let mut request = ask("Say it");
    request.logprobs = Some(Logprobs {
        top: 3,
        prompt: true,
    });
    let answer = play(&stage, request).await;
    let prompt = answer.events.iter().find_map(|event| match event {
        GenerationEvent::PromptLogprobs { tokens } => Some(tokens),
        _ => None,
    });
    let prompt = prompt.unwrap();
    assert_eq!(prompt.len() as u32, answer.usage().prompt_tokens);
    assert_eq!(prompt[0].logprob, None);
    let tokens: Vec<_> = answer
        .events
        .iter()
        .filter_map(|event| match event {
            GenerationEvent::Text { tokens, .. } => Some(tokens),
            _ => None,
        })
        .flatten()
        .collect();
    let bytes: Vec<u8> = tokens
        .iter()
        .flat_map(|token| token.bytes.clone())
        .collect();
    assert_eq!(bytes, b"abc");
    for token in tokens {
        assert_eq!(token.top[0].id, token.id);
        assert_eq!(Some(token.top[0].logprob), token.logprob);
        let sum: f32 = token.top.iter().map(|top| top.logprob.exp()).sum();
        assert!((sum - 0.875).abs() < 1e-5, "{sum}");
    }
}

#[tokio::test]
async fn the_first_turn_that_fits_is_played() {
    let stage = stage(&json!({"turns": [
        {"when": {"last_role": "user"}, "once": true, "say": "first"},
        {"when": {"tool_offered": "f"}, "say": "with a tool"},
        {"when": {"turn": 1}, "say": "later"},
        {"when": {"last_message_contains": "no"}, "refuse": "Overloaded"},
    ]}));
    assert_eq!(play(&stage, with_tool(ask("a"))).await.text(0), "first");
    assert_eq!(
        play(&stage, with_tool(ask("b"))).await.text(0),
        "with a tool"
    );
    let later = chat(vec![
        Message::text(Role::User, "c"),
        Message::text(Role::Assistant, "d"),
        Message::text(Role::User, "e"),
    ]);
    assert_eq!(play(&stage, later).await.text(0), "later");
    assert_eq!(
        refused(&stage, ask("oh no")).await,
        InferenceError::Overloaded
    );
    let error = refused(&stage, ask("anything else")).await;
    assert!(
        matches!(&error, InferenceError::InvalidRequest { message, .. }
            if message.contains("anything else")),
        "{error}"
    );
}

#[tokio::test]
async fn prompts_that_do_not_fit_are_refused() {
    let script = json!({"max_context": 40, "turns": [
        {"when": {"last_message_contains": "short"}, "max_context": 3, "say": "x"},
        {"say": "x"},
    ]});
    let stage = stage(&script);
    for (text, expected) in [("short", 3), ("much longer than forty tokens", 40)] {
        match refused(&stage, ask(text)).await {
            InferenceError::ContextLength {
                prompt_tokens,
                limit,
            } => assert!(limit == expected && prompt_tokens > limit),
            other => panic!("{other}"),
        }
    }
    // The rest of the context is a limit like any other.
    let room = saying(&"long ".repeat(300));
    let answer = play(&room, ask("Go")).await;
    assert_eq!(answer.finish(), FinishReason::Length);
    let usage = answer.usage();
    assert_eq!(usage.prompt_tokens + usage.completion_tokens, 1000);
}

#[tokio::test]
async fn an_answer_may_break_off() {
    let stage = stage(&json!({"turns": [{"say": "abcdef", "fail_after": 3}]}));
    let answer = play(&stage, ask("Go")).await;
    assert_eq!(answer.text(0), "abc");
    assert!(matches!(answer.error, Some(InferenceError::Engine { .. })));
}

#[tokio::test]
async fn cached_tokens_are_what_was_seen_before() {
    let stage = saying("Fine.");
    let first = play(&stage, ask("How are you?")).await.usage();
    assert_eq!(first.cached_tokens, 0);
    let next = chat(vec![
        Message::text(Role::User, "How are you?"),
        Message::text(Role::Assistant, "Fine."),
        Message::text(Role::User, "Good."),
    ]);
    let second = play(&stage, next).await.usage();
    // Prompt and answer, but not the end token, which was never computed.
    assert_eq!(
        second.cached_tokens,
        first.prompt_tokens + first.completion_tokens - 1
    );
    let other = play(&stage, ask("Who are you?")).await.usage();
    assert!(other.cached_tokens < first.prompt_tokens);
}

#[tokio::test]
async fn the_pace_is_kept() {
    let script = json!({"turns": [
        {"say": "abcdef", "prefill_seconds": 0.1, "tokens_per_second": 40, "chunk_tokens": 2},
    ]});
    let stage = stage(&script);
    let started = Instant::now();
    play(&stage, ask("Go")).await;
    // Seven tokens with the last one are four chunks of a twentieth of a second.
    assert!(started.elapsed() >= Duration::from_millis(300));
}

#[tokio::test]
async fn models_are_loaded_and_unloaded() {
    let stage = saying("abc");
    let playback = &stage.playback;
    assert!(playback.loaded().is_empty());
    playback.load(stage.card.clone()).await.unwrap();
    let asked = playback.generate(stage.card.clone(), ask("Go"));
    let stream = asked.await.unwrap();
    let busy = playback.loaded();
    assert_eq!((busy[0].active_requests, busy[0].idle), (1, Duration::ZERO));
    assert_eq!(busy[0].memory_bytes, 7);
    // A client that leaves.
    drop(stream);
    assert_eq!(playback.loaded()[0].active_requests, 0);
    playback.keep("org/model", KeepAlive::For(Duration::from_hours(1)));
    let left = playback.loaded()[0].expires_in.unwrap();
    assert!(left > Duration::from_mins(59), "{left:?}");
    playback.keep("org/model", KeepAlive::For(Duration::ZERO));
    assert!(playback.loaded().is_empty());
    playback.load(stage.card.clone()).await.unwrap();
    assert_eq!(playback.loaded()[0].expires_in, None, "another stay");
    assert!(playback.unload("org/model".into()).await.unwrap());
    assert!(!playback.unload("org/model".into()).await.unwrap());
}

#[tokio::test]
async fn the_model_is_asked_about_without_an_answer() {
    let stage = saying("abc");
    let card = || stage.card.clone();
    let traits = stage.playback.traits(card()).await.unwrap();
    assert!(traits.tools == ToolSupport::Native && traits.reasons && traits.has_reasoning_switch);
    let tokens = stage
        .playback
        .tokenize(
            card(),
            TokenizeRequest {
                model: "org/model".into(),
                input: TokenizeInput::Text {
                    text: "Hello".into(),
                    add_special_tokens: false,
                },
            },
        )
        .await
        .unwrap();
    let text = stage.playback.detokenize(card(), tokens).await.unwrap();
    assert_eq!(text, "Hello");
}

#[tokio::test]
async fn plain_prompts_are_continued_as_they_are() {
    let script =
        json!({"turns": [{"when": {"last_message_contains": "upon"}, "say": " a <think> time"}]});
    let stage = stage(&script);
    let request = GenerateRequest::new("org/model", Prompt::Text("Once upon".into()));
    assert_eq!(play(&stage, request).await.text(0), " a <think> time");
}
