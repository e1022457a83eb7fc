//! Facts from the files beside tokenizer.json, and what a model is asked that it cannot do.

use std::fs;

use macmlx_chat::{ChatModel, Tokenizer};
use macmlx_inference::{
    ChatPrompt, InferenceError, Message, Prompt, ReasoningOptions, Role, StopConditions,
    ToolChoice, ToolDefinition, ToolSupport,
};
use macmlx_output::formats::Format;
use serde_json::json;

use crate::tokenizers;

const HERMES: &str = "{% for m in messages %}{{ m.content }}{% endfor %}\
    {% if tools %}<tool_call>{{ tools | tojson }}{% endif %}";
const THINKING: &str = "{% for m in messages %}{{ m.content }}{% endfor %}\
    {% if enable_thinking is not defined or enable_thinking %}<think>\n{% else %}<think></think>{% endif %}";

fn model(template: Option<&str>) -> ChatModel {
    let folder = tokenizers::byte_level();
    if let Some(template) = template {
        fs::write(folder.path().join("chat_template.jinja"), template).unwrap();
    }
    ChatModel::load(folder.path(), "org/model").unwrap()
}

fn chat(text: &str) -> ChatPrompt {
    ChatPrompt {
        messages: vec![Message::text(Role::User, text)],
        ..ChatPrompt::default()
    }
}

fn with_tools(choice: ToolChoice) -> ChatPrompt {
    ChatPrompt {
        tools: vec![ToolDefinition {
            name: "f".into(),
            description: None,
            parameters: json!({}),
            strict: false,
        }],
        tool_choice: choice,
        ..chat("go")
    }
}

fn unsupported(model: &ChatModel, chat: &ChatPrompt, enabled: Option<bool>) -> Option<String> {
    let reasoning = ReasoningOptions {
        enabled,
        ..ReasoningOptions::default()
    };
    match model.render(chat, &reasoning) {
        Ok(_) => None,
        Err(InferenceError::Unsupported { param, .. }) => Some(param),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_model_is_shared_between_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    fn moved<T: Send>(_: &T) {}
    let model = model(Some(HERMES));
    shared(&model);
    let prompt = Prompt::Text("hi".into());
    let rendered = model.prompt(&prompt, &ReasoningOptions::default()).unwrap();
    moved(&model.output(&rendered, &StopConditions::default(), None));
}

#[test]
fn the_template_for_tools_is_used_only_with_tools() {
    let folder = tokenizers::byte_level();
    let config = json!({"chat_template": [
        {"name": "default", "template": "D{% for m in messages %}{{ m.content }}{% endfor %}"},
        {"name": "tool_use", "template": format!("T{HERMES}")},
    ]});
    tokenizers::write(folder.path(), "tokenizer_config.json", &config);
    let model = ChatModel::load(folder.path(), "org/model").unwrap();
    let text = |chat: ChatPrompt| {
        model
            .render(&chat, &ReasoningOptions::default())
            .unwrap()
            .text
    };
    assert_eq!(text(chat("go")), "Dgo");
    assert!(text(with_tools(ToolChoice::Auto)).starts_with("Tgo<tool_call>"));
    assert_eq!(text(with_tools(ToolChoice::None)), "Dgo");
}

#[test]
fn reasoning_effort_and_variables_reach_the_template() {
    let model = model(Some(
        "{{ reasoning_effort }}|{{ mine.a }}|{{ enable_thinking }}",
    ));
    let chat = ChatPrompt {
        template_kwargs: json!({"mine": {"a": [1, null]}, "enable_thinking": true})
            .as_object()
            .cloned()
            .unwrap(),
        ..chat("go")
    };
    let reasoning = ReasoningOptions {
        effort: Some("low".into()),
        enabled: Some(false),
        ..ReasoningOptions::default()
    };
    let rendered = model.render(&chat, &reasoning).unwrap();
    assert_eq!(rendered.text, "low|[1, None]|True");
}

#[test]
fn tokens_that_end_a_generation_are_gathered_from_all_files() {
    let folder = tokenizers::byte_level();
    let write = |name, value| tokenizers::write(folder.path(), name, &value);
    write("generation_config.json", json!({"eos_token_id": [7, 3]}));
    write("config.json", json!({"eos_token_id": 9}));
    write(
        "tokenizer_config.json",
        json!({"eos_token": {"content": "<|im_end|>"}, "bos_token": "<bos>", "add_bos_token": true}),
    );
    let tokenizer = Tokenizer::load(folder.path(), "org/model").unwrap();
    let end = tokenizer.token_id("<|im_end|>").unwrap();
    assert_eq!(tokenizer.eos_token_ids(), [3, 7, 9, end]);
    let bos = tokenizer.bos_token_id().unwrap();
    assert!(tokenizer.is_special(bos));
    assert_eq!(tokenizer.encode("a", true).unwrap()[0], bos);
    assert_ne!(tokenizer.encode("a", false).unwrap()[0], bos);
    assert_eq!(tokenizer.encode("<bos>a", true).unwrap().len(), 2);
}

#[test]
fn add_bos_token_can_switch_the_post_processor_off() {
    let folder = tokenizers::sentence_piece();
    let load = || Tokenizer::load(folder.path(), "org/model").unwrap();
    let first = |tokenizer: &Tokenizer| tokenizer.encode("h", true).unwrap()[0];
    tokenizers::write(
        folder.path(),
        "tokenizer_config.json",
        &json!({"bos_token": "<s>"}),
    );
    assert_eq!(first(&load()), 1);
    tokenizers::write(
        folder.path(),
        "tokenizer_config.json",
        &json!({"bos_token": "<s>", "add_bos_token": false}),
    );
    assert_ne!(first(&load()), 1);
}

#[test]
fn bytes_of_tokens() {
    let tokenizer = Tokenizer::load(tokenizers::byte_level().path(), "m").unwrap();
    let bytes = |text| {
        tokenizer
            .token_bytes(tokenizer.token_id(text).unwrap())
            .to_vec()
    };
    assert_eq!(bytes("Ġh"), b" h");
    assert_eq!(bytes("Ċ"), b"\n");
    assert_eq!(bytes("ðŁ"), [0xF0, 0x9F]);
    assert_eq!(bytes("<｜ünïcode｜>"), "<｜ünïcode｜>".as_bytes());
    assert!(tokenizer.token_bytes(u32::MAX).is_empty());

    let tokenizer = Tokenizer::load(tokenizers::sentence_piece().path(), "m").unwrap();
    let bytes = |text| {
        tokenizer
            .token_bytes(tokenizer.token_id(text).unwrap())
            .to_vec()
    };
    assert_eq!(bytes("▁h"), b" h");
    assert_eq!(bytes("<0x0A>"), b"\n");
    assert_eq!(bytes("é"), "é".as_bytes());
    assert_eq!(bytes("<s>"), b"<s>");
}

#[test]
fn a_decoder_that_looks_at_neighbours_is_refused_by_name() {
    let folder = tokenizers::byte_level();
    let path = folder.path().join("tokenizer.json");
    let mut tokenizer: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    tokenizer["decoder"] = json!({
        "type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "|", "cleanup": true,
    });
    tokenizers::write(folder.path(), "tokenizer.json", &tokenizer);
    let error = Tokenizer::load(folder.path(), "org/model").unwrap_err();
    assert!(error.to_string().contains("CTC"), "{error}");
}

#[test]
fn chat_without_a_template_is_refused_and_says_what_to_do() {
    let model = model(None);
    let error = model
        .render(&chat("hi"), &ReasoningOptions::default())
        .unwrap_err();
    assert!(error.to_string().contains("org/model"), "{error}");
    assert!(error.to_string().contains("chat_template.jinja"), "{error}");
    let rendered = model
        .prompt(&Prompt::Text("hi".into()), &ReasoningOptions::default())
        .unwrap();
    assert_eq!(model.tokenizer().detokenize(&rendered.tokens), "hi");
}

#[test]
fn tokens_outside_the_vocabulary_are_refused() {
    let model = model(None);
    let prompt = |id| model.prompt(&Prompt::Tokens(vec![0, id]), &ReasoningOptions::default());
    let size = model.tokenizer().vocab_size() as u32;
    assert_eq!(prompt(size - 1).unwrap().tokens, [0, size - 1]);
    assert!(matches!(
        prompt(size).unwrap_err(),
        InferenceError::InvalidRequest { .. }
    ));
}

#[test]
fn tools_are_never_dropped() {
    let plain = "{% for m in messages %}{{ m.content }}{% endfor %}";
    let foreign = "{% for m in messages %}{{ m.content }}{% endfor %}{{ tools }}";
    let param = |template, choice| unsupported(&model(Some(template)), &with_tools(choice), None);
    // Models whose template takes no tools are told in words, if they would hear of it.
    assert_eq!(param(plain, ToolChoice::Auto), None);
    let deaf = "{{ messages[-1].content[:2] }}";
    assert_eq!(param(deaf, ToolChoice::Auto).as_deref(), Some("tools"));
    assert_eq!(model(Some(deaf)).traits().tools, ToolSupport::None);
    // Calls in no known notation are looked for as plain JSON.
    assert_eq!(param(foreign, ToolChoice::Auto), None);
    assert_eq!(param(HERMES, ToolChoice::Auto), None);
    assert_eq!(param(plain, ToolChoice::None), None);
}

#[test]
fn tools_not_offered_are_not_in_the_prompt() {
    let model = model(Some(HERMES));
    let text = |choice| {
        let rendered = model.render(&with_tools(choice), &ReasoningOptions::default());
        rendered.unwrap().text
    };
    assert!(text(ToolChoice::Auto).contains(r#""name": "f""#));
    assert_eq!(text(ToolChoice::None), "go");
}

#[test]
fn reasoning_is_switched_or_refused() {
    let plain = "{% for m in messages %}{{ m.content }}{% endfor %}";
    let always = "{% for m in messages %}{{ m.content }}{% endfor %}<think>";
    let param = |template, enabled| unsupported(&model(Some(template)), &chat("go"), enabled);
    assert_eq!(param(plain, Some(false)), None);
    assert_eq!(param(plain, Some(true)).as_deref(), Some("reasoning"));
    assert_eq!(param(always, Some(true)), None);
    assert_eq!(param(always, Some(false)).as_deref(), Some("reasoning"));
    assert_eq!(param(THINKING, Some(false)), None);
}

#[test]
fn the_prompt_tells_whether_output_starts_in_reasoning() {
    let model = model(Some(THINKING));
    let starts = |enabled| {
        let reasoning = ReasoningOptions {
            enabled,
            ..ReasoningOptions::default()
        };
        model
            .render(&chat("what is <think>"), &reasoning)
            .unwrap()
            .starts_in_reasoning
    };
    assert!(starts(None));
    assert!(!starts(Some(false)));
    let quoted = self::model(Some(
        "{% for m in messages %}{{ m.content }}|{% endfor %}{{ '</think>' if false }}",
    ));
    let continued = |text: &str| {
        let chat = ChatPrompt {
            messages: vec![
                Message::text(Role::User, "go"),
                Message::text(Role::Assistant, text),
            ],
            continue_final_message: true,
            ..ChatPrompt::default()
        };
        quoted.render(&chat, &ReasoningOptions::default()).unwrap()
    };
    assert!(continued("<think>half a thou").starts_in_reasoning);
    assert!(!continued("<think>whole</think>answ").starts_in_reasoning);
    assert_eq!(continued("answ ").text, "go|answ ");
}

#[test]
fn formats_can_be_chosen_in_the_model_folder() {
    let load = |file: serde_json::Value| {
        let folder = tokenizers::byte_level();
        fs::write(folder.path().join("chat_template.jinja"), HERMES).unwrap();
        tokenizers::write(folder.path(), "macmlx.json", &file);
        ChatModel::load(folder.path(), "org/model")
    };
    let names = |model: &ChatModel| {
        let name = |format: Option<&'static dyn Format>| format.map(Format::name);
        (name(model.reasoning_format()), name(model.tool_format()))
    };
    assert_eq!(names(&load(json!({})).unwrap()), (None, Some("hermes")));
    let chosen = json!({"tool_format": "qwen3_coder", "reasoning_format": "think"});
    assert_eq!(
        names(&load(chosen).unwrap()),
        (Some("think"), Some("qwen3_coder"))
    );
    let none = load(json!({"tool_format": "none"})).unwrap();
    assert_eq!(names(&none), (None, None));
    assert_eq!(none.traits().tools, ToolSupport::None);
    let tools = with_tools(ToolChoice::Auto);
    assert_eq!(unsupported(&none, &tools, None).as_deref(), Some("tools"));
    for unknown in [json!({"tool_format": "think"}), json!({"tool_format": 3})] {
        let error = load(unknown).unwrap_err().to_string();
        assert!(
            error.contains("tool_format") && error.contains("hermes"),
            "{error}"
        );
    }
}
