//! Tokens to pieces through detokenizer, stop sequences and parser together.

use std::fs;

use macmlx_chat::{ChatModel, ChoiceOutput, Finish, OutputPiece, Rendered};
use macmlx_inference::{
    ChatPrompt, FinishReason, GenerationEvent, Message, Prompt, ReasoningOptions, Role,
    StopConditions, TokenLogprob, ToolCallPart, ToolDefinition,
};
use macmlx_output::{CallPart, Piece};
use serde_json::json;

use crate::tokenizers;

const TEMPLATE: &str = "{% for m in messages %}{{ m.content }}{% endfor %}{{ tools }}\
    {{ '<think></think><tool_call>' if false }}";
const MISTRAL: &str = "{% for m in messages %}{{ m.content }}{% endfor %}{{ tools }}\
    {{ '[TOOL_CALLS]' if false }}";

fn model(template: &str) -> ChatModel {
    let folder = tokenizers::byte_level();
    fs::write(folder.path().join("chat_template.jinja"), template).unwrap();
    ChatModel::load(folder.path(), "org/model").unwrap()
}

fn chat(model: &ChatModel) -> Rendered {
    let chat = prompt();
    model.render(&chat, &ReasoningOptions::default()).unwrap()
}

fn prompt() -> ChatPrompt {
    ChatPrompt {
        messages: vec![Message::text(Role::User, "go")],
        tools: vec![ToolDefinition {
            name: "f".into(),
            description: None,
            parameters: json!({}),
            strict: false,
        }],
        ..ChatPrompt::default()
    }
}

fn raw(model: &ChatModel) -> Rendered {
    let prompt = Prompt::Text("go".into());
    model.prompt(&prompt, &ReasoningOptions::default()).unwrap()
}

fn stops(sequences: &[&str]) -> StopConditions {
    StopConditions {
        sequences: sequences.iter().map(ToString::to_string).collect(),
        ..StopConditions::default()
    }
}

/// All pieces and the finish, as an engine runs it.
fn run(
    model: &ChatModel,
    rendered: &Rendered,
    stop: &StopConditions,
    output: &str,
) -> (Vec<OutputPiece>, Finish) {
    let mut stream = model.output(rendered, stop, None);
    let mut pieces = Vec::new();
    for id in model.tokenizer().encode(output, false).unwrap() {
        pieces.extend(stream.push(id));
        if stream.is_stopped() {
            break;
        }
    }
    let mut finish = stream.finish(FinishReason::Stop);
    pieces.append(&mut finish.pieces);
    (pieces, finish)
}

fn text(pieces: &[OutputPiece]) -> String {
    pieces
        .iter()
        .filter_map(|piece| match &piece.piece {
            Piece::Text(text) => Some(text.as_str()),
            Piece::Reasoning(_) | Piece::ToolCall(_) => None,
        })
        .collect()
}

#[test]
fn every_token_is_reported_once_with_the_piece_its_text_ends_in() {
    let model = model(TEMPLATE);
    let rendered = chat(&model);
    let output = "<think>\nhé👋\n</think>\n\nhello é👋 \
        <tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call><|im_start|>bye";
    let ids = model.tokenizer().encode(output, false).unwrap();
    let mut stream = model.output(&rendered, &stops(&["nowhere", "hell of"]), None);
    let mut pieces = Vec::new();
    for id in &ids {
        pieces.extend(stream.push(*id));
    }
    let finish = stream.finish(FinishReason::Stop);
    pieces.extend(finish.pieces);
    assert_eq!(
        pieces.iter().map(|piece| piece.tokens).sum::<usize>(),
        ids.len()
    );
    assert_eq!(finish.reason, FinishReason::ToolCalls);
    assert_eq!(text(&pieces), "hello é👋 bye");

    // The tokens of each piece end with the piece's text.
    let mut next = 0;
    for piece in &pieces {
        let tokens = &ids[next..next + piece.tokens];
        next += piece.tokens;
        let spelled = model.tokenizer().detokenize(tokens);
        match &piece.piece {
            Piece::Text(text) | Piece::Reasoning(text) if text.is_ascii() => {
                let spelled = spelled.replace("<|im_start|>", "");
                assert!(spelled.contains(text.trim()), "{text:?} in {spelled:?}");
            }
            Piece::ToolCall(CallPart::Start { .. }) => {
                assert!(spelled.contains(r#""name": "f""#), "{spelled}");
            }
            Piece::ToolCall(_) | Piece::Text(_) | Piece::Reasoning(_) => {}
        }
    }
}

#[test]
fn a_stop_sequence_across_tokens_is_cut_with_its_tokens() {
    let model = model(TEMPLATE);
    let (pieces, finish) = run(
        &model,
        &raw(&model),
        &stops(&["lo w", "zzz"]),
        "hello world",
    );
    assert_eq!(text(&pieces), "hel");
    assert_eq!(finish.stop_sequence.as_deref(), Some("lo w"));
    assert_eq!(finish.reason, FinishReason::Stop);
    // "he" is whole; "llo" ends in the stop sequence.
    assert_eq!(pieces.iter().map(|piece| piece.tokens).sum::<usize>(), 1);
}

#[test]
fn what_only_began_like_a_stop_sequence_comes_at_the_end() {
    let model = model(TEMPLATE);
    let (pieces, finish) = run(&model, &raw(&model), &stops(&["world!"]), "hello world");
    assert_eq!(text(&pieces), "hello world");
    assert_eq!(finish.stop_sequence, None);
}

#[test]
fn reasoning_and_calls_may_hold_a_stop_sequence() {
    let model = model(TEMPLATE);
    let output = "<think>say END</think><tool_call>{\"name\": \"f\", \"arguments\": \
        {\"a\": \"END\"}}</tool_call>ok END no";
    let (pieces, finish) = run(&model, &chat(&model), &stops(&["END"]), output);
    assert_eq!(text(&pieces), "ok ");
    assert_eq!(finish.stop_sequence.as_deref(), Some("END"));
    assert!(
        pieces
            .iter()
            .any(|piece| piece.piece == Piece::Reasoning("say END".into())
                || matches!(&piece.piece, Piece::Reasoning(text) if text.ends_with('D')))
    );
    assert_eq!(finish.reason, FinishReason::ToolCalls);
}

#[test]
fn a_stop_sequence_that_holds_a_marker_stops_at_the_marker() {
    let model = model(TEMPLATE);
    let (pieces, finish) = run(
        &model,
        &chat(&model),
        &stops(&["</think>"]),
        "<think>a</think>b",
    );
    assert_eq!(text(&pieces), "");
    assert_eq!(finish.stop_sequence.as_deref(), Some("</think>"));
}

#[test]
fn a_stop_sequence_that_is_a_special_token_stops_at_the_token() {
    let model = model(TEMPLATE);
    let (pieces, finish) = run(
        &model,
        &chat(&model),
        &stops(&["<|im_start|>"]),
        "hello<|im_start|>x",
    );
    assert_eq!(text(&pieces), "hello");
    assert_eq!(finish.stop_sequence.as_deref(), Some("<|im_start|>"));
}

#[test]
fn no_stop_sequence_counts_before_min_tokens() {
    let model = model(TEMPLATE);
    let stop = StopConditions {
        min_tokens: 4,
        ..stops(&["a"])
    };
    let (pieces, finish) = run(&model, &raw(&model), &stop, "aabxac");
    assert_eq!(text(&pieces), "aabx");
    assert_eq!(finish.stop_sequence.as_deref(), Some("a"));
}

#[test]
fn a_stop_sequence_may_end_in_the_last_of_min_tokens() {
    let model = model(TEMPLATE);
    let stop = StopConditions {
        min_tokens: 4,
        ..stops(&["a"])
    };
    let (pieces, finish) = run(&model, &raw(&model), &stop, "aaba");
    assert_eq!(text(&pieces), "aab");
    assert_eq!(finish.stop_sequence.as_deref(), Some("a"));
}

#[test]
fn tokens_of_a_character_that_was_cut_are_not_reported() {
    let model = model(TEMPLATE);
    let (pieces, finish) = run(&model, &raw(&model), &stops(&["👋"]), "he👋");
    assert_eq!(finish.stop_sequence.as_deref(), Some("👋"));
    let expected = OutputPiece {
        piece: Piece::Text("he".into()),
        tokens: 1,
    };
    assert_eq!(pieces, [expected]);
}

#[test]
fn markers_that_are_special_tokens_reach_their_format_and_nobody_else() {
    let model = model(MISTRAL);
    let output = "hi[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {}}]";
    let (pieces, finish) = run(&model, &chat(&model), &stops(&[]), output);
    assert_eq!(text(&pieces), "hi");
    assert_eq!(finish.reason, FinishReason::ToolCalls);
    let (pieces, _) = run(&model, &raw(&model), &stops(&[]), "hi[TOOL_CALLS]");
    assert_eq!(text(&pieces), "hi");
}

#[test]
fn with_a_single_call_the_output_is_over_after_it() {
    let model = model(TEMPLATE);
    let chat = ChatPrompt {
        single_tool_call: true,
        ..prompt()
    };
    let rendered = model.render(&chat, &ReasoningOptions::default()).unwrap();
    let call = "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>";
    let output = format!("Hm.{call}{call}x");
    let (pieces, finish) = run(&model, &rendered, &stops(&[]), &output);
    let starts =
        |piece: &&OutputPiece| matches!(piece.piece, Piece::ToolCall(CallPart::Start { .. }));
    assert_eq!(pieces.iter().filter(starts).count(), 1);
    assert_eq!(text(&pieces), "Hm.");
    assert_eq!(finish.reason, FinishReason::ToolCalls);
    // It is over with the brace, before the marker.
    let call = call.strip_suffix("</tool_call>").unwrap();
    let tokens = model.tokenizer().encode(&format!("Hm.{call}"), false);
    let reported: usize = pieces.iter().map(|piece| piece.tokens).sum();
    assert_eq!(reported, tokens.unwrap().len());
}

#[test]
fn events_carry_choice_ids_and_log_probabilities() {
    let model = model(TEMPLATE);
    let rendered = chat(&model);
    let call = "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>";
    let output = format!("<think>he</think>hello{call}{call}");
    let ids = model.tokenizer().encode(&output, false).unwrap();
    let mut choice = ChoiceOutput::new(3, model.output(&rendered, &stops(&[]), None));
    let mut events = Vec::new();
    for id in &ids {
        let logprob = TokenLogprob {
            id: *id,
            bytes: Vec::new(),
            logprob: Some(-1.0),
            top: Vec::new(),
        };
        choice.push(*id, Some(logprob), |event| events.push(event));
    }
    choice.finish(FinishReason::Stop, |event| events.push(event));
    let mut reported = Vec::new();
    let mut calls = Vec::new();
    let mut arguments = String::new();
    for event in &events {
        match event {
            GenerationEvent::Text { choice, tokens, .. }
            | GenerationEvent::Reasoning { choice, tokens, .. }
            | GenerationEvent::ToolCall { choice, tokens, .. } => {
                assert_eq!(*choice, 3);
                reported.extend(tokens.iter().map(|token| token.id));
            }
            GenerationEvent::Finished { choice, reason, .. } => {
                assert_eq!((*choice, *reason), (3, FinishReason::ToolCalls));
            }
            event => panic!("{event:?}"),
        }
        if let GenerationEvent::ToolCall { part, .. } = event {
            match part {
                ToolCallPart::Start { id, .. } => calls.push(id),
                ToolCallPart::Arguments(text) => arguments.push_str(text),
                ToolCallPart::End => arguments.push(';'),
            }
        }
    }
    assert_eq!(reported, ids);
    assert_eq!(arguments, "{};{};");
    assert_eq!(calls.len(), 2);
    assert_ne!(calls[0], calls[1]);
    assert!(choice.reasoning_tokens() > 0);
}

#[test]
fn a_reasoning_budget_holds_for_all_blocks_together() {
    let model = model(TEMPLATE);
    let mut choice = ChoiceOutput::new(0, model.output(&chat(&model), &stops(&[]), None));
    let mut push = |text: &str| {
        let mut closes = Vec::new();
        for id in model.tokenizer().encode(text, false).unwrap() {
            choice.push(id, None, |_| {});
            closes.push(choice.close_reasoning(3));
        }
        closes
    };
    assert_eq!(push("ab<think>"), [None; 3]);
    // Three tokens of thought; what closes the block is asked for once.
    let close = Some("\n</think>\n\n");
    assert_eq!(push("abab"), [None, None, close, None]);
    assert_eq!(push("\n</think>\n\nab"), [None; 6]);
    assert_eq!(push("<think>a"), [close, None]);
}

/// A limit may fall on any token.
#[test]
fn an_output_that_is_cut_says_the_beginning_of_the_whole() {
    let model = model(TEMPLATE);
    let rendered = chat(&model);
    let call = r#"{"a": "é👋"}"#;
    let output =
        format!("é👋 <b> <tool_call>\n{{\"name\": \"f\", \"arguments\": {call}}}\n</tool_call>");
    let ids: Vec<u32> = output
        .chars()
        .flat_map(|character| {
            let text = character.to_string();
            model.tokenizer().encode(&text, false).unwrap()
        })
        .collect();
    for len in 0..ids.len() {
        let mut stream = model.output(&rendered, &stops(&[]), None);
        let mut pieces: Vec<OutputPiece> =
            ids[..len].iter().flat_map(|id| stream.push(*id)).collect();
        let finish = stream.finish(FinishReason::Length);
        assert_eq!(finish.reason, FinishReason::Length);
        pieces.extend(finish.pieces);
        let tokens: usize = pieces.iter().map(|piece| piece.tokens).sum();
        assert_eq!(tokens, len, "{pieces:?}");
        assert!("é👋 <b> ".starts_with(&text(&pieces)), "{pieces:?}");
        let mut in_call = false;
        let mut arguments = String::new();
        for piece in &pieces {
            match &piece.piece {
                Piece::ToolCall(CallPart::Start { .. }) => in_call = true,
                Piece::ToolCall(CallPart::Arguments(text)) => arguments.push_str(text),
                Piece::ToolCall(CallPart::End) => {
                    in_call = false;
                    assert_eq!(arguments, call);
                }
                Piece::Text(_) | Piece::Reasoning(_) => assert!(!in_call, "{pieces:?}"),
            }
        }
        assert!(call.starts_with(&arguments), "{pieces:?}");
    }
}
