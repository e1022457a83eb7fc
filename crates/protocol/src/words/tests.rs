//! Every word of every dialect, on every route.

use macmlx_inference::GenerateRequest;
use serde_json::json;

use super::*;
use crate::{
    Body as RequestBody, Context, Described, Encoding, Endpoint,
    endpoints::{Route, Visitor, visit},
};

mod fields;

/// Every route of the table of endpoints whose body has words of all dialects, once.
fn apis() -> Vec<Api> {
    struct Apis(Vec<Api>);

    impl Apis {
        fn add(&mut self, vocabulary: Vocabulary) {
            if let Words::Shared(api) = vocabulary.0
                && !self.0.contains(&api)
            {
                self.0.push(api);
            }
        }
    }

    impl Visitor for Apis {
        fn generating<E: Described>(&mut self, _: Route) {
            self.add(E::VOCABULARY);
        }

        fn encoding<E: Encoding>(&mut self, _: Route) {
            self.add(E::VOCABULARY);
        }
    }

    let mut apis = Apis(Vec::new());
    visit(&mut apis);
    assert_eq!(apis.0.len(), APIS, "each list of words is that of a route");
    apis.0
}

fn plain(api: Api) -> Value {
    let turns = json!([{"role": "user", "content": "hi"}]);
    match api {
        Api::Chat | Api::Messages | Api::OllamaChat => json!({"model": "m", "messages": turns}),
        Api::Completions | Api::OllamaGenerate | Api::OllamaEmbeddings => {
            json!({"model": "m", "prompt": "hi"})
        }
        Api::Infill => json!({"model": "m", "input_prefix": "a", "input_suffix": "b"}),
        Api::Responses | Api::Embeddings | Api::OllamaEmbed => json!({"model": "m", "input": "hi"}),
        Api::Rerank => json!({"model": "m", "query": "q", "documents": ["a", "b"]}),
    }
}

fn generate<E: Endpoint>(body: &Value) -> Result<GenerateRequest, Error> {
    let context = Context {
        id: String::new(),
        created_unix: 0,
        fingerprint: String::new(),
    };
    let body = body.to_string();
    let request = E::parse(RequestBody::json(body.as_bytes()))?;
    Ok(E::translate(request, context)?.requests.remove(0))
}

/// The neutral request of a body, or what is to be encoded, as JSON.
fn asked(api: Api, body: &Value) -> Result<Value, Error> {
    struct Asked<'a> {
        api: Api,
        body: &'a Value,
        result: Option<Result<Value, Error>>,
    }

    impl Asked<'_> {
        fn is_meant(&self, vocabulary: Vocabulary) -> bool {
            self.result.is_none() && vocabulary == Vocabulary::shared(self.api)
        }
    }

    impl Visitor for Asked<'_> {
        fn generating<E: Described>(&mut self, _: Route) {
            if self.is_meant(E::VOCABULARY) {
                let request = generate::<E>(self.body);
                self.result = Some(request.map(|request| json::value(&request)));
            }
        }

        fn encoding<E: Encoding>(&mut self, _: Route) {
            if self.is_meant(E::VOCABULARY) {
                let body = self.body.to_string();
                let question = E::parse(RequestBody::json(body.as_bytes()))
                    .and_then(|request| request.question());
                self.result = Some(question.map(|question| json::value(&question)));
            }
        }
    }

    let mut asked = Asked {
        api,
        body,
        result: None,
    };
    visit(&mut asked);
    asked.result.unwrap()
}

fn named(error: &Error) -> &str {
    match error {
        Error::Invalid {
            param: Some(param), ..
        }
        | Error::NotKept {
            param: Some(param), ..
        }
        | Error::Unsupported { param, .. } => param,
        other => panic!("{other:?}"),
    }
}

/// A value that asks for something, where any value does not do.
fn sample(name: &str) -> Option<Value> {
    let schema = json!({"type": "object"});
    let function = json!({"name": "f", "parameters": schema});
    Some(match name {
        "typical" | "typ_p" => return sample("typical_p"),
        "temperature" | "top_p" | "min_p" | "typical_p" | "xtc_threshold" => json!(0.25),
        "repetition_penalty" | "repeat_penalty" | "rep_pen" | "dry_base" => json!(1.5),
        "presence_penalty" | "frequency_penalty" | "xtc_probability" | "dry_multiplier" => {
            json!(0.5)
        }
        "logit_bias" => json!({"5": 1}),
        "stop_token_ids" => json!([7]),
        "dry_sequence_breakers"
        | "stop"
        | "stop_sequences"
        | "stop_strings"
        | "stopping_strings" => json!(["x"]),
        "stop_sequence" => json!("x"),
        "num_return_sequences" | "candidate_count" | "n" => json!(2),
        "top_logprobs" | "n_probs" => json!(3),
        "think"
        | "enable_thinking"
        | "ignore_eos"
        | "ban_eos_token"
        | "raw"
        | "echo"
        | "return_full_text"
        | "disable_parallel_tool_use" => json!(true),
        "reasoning_effort" => json!("high"),
        "thinking" => json!({"type": "enabled"}),
        "reasoning" | "output_config" => json!({"effort": "high"}),
        "chat_template_kwargs" | "chat_template_args" | "template_kwargs" => json!({"a": 1}),
        "response_format" => json!({"type": "json_object"}),
        "format" => json!("json"),
        "output_format" => json!({"type": "json_schema", "schema": schema}),
        "response_schema" | "guided_json" | "json_schema" => schema,
        "text" => json!({"format": {"type": "json_object"}}),
        "structured_outputs" => json!({"regex": "a"}),
        "guided_regex" | "regex" => json!("a"),
        "guided_choice" => json!(["a"]),
        "guided_grammar" | "grammar" | "grammar_string" | "ebnf" => json!("root ::= \"a\""),
        "tools" => json!([{"type": "function", "function": function}]),
        "functions" => json!([function]),
        "tool_choice" | "function_call" => json!("none"),
        "parallel_tool_calls" => json!(false),
        "messages" => json!([{"role": "user", "content": "other"}]),
        "documents" => json!(["other"]),
        "model" | "prompt" | "input" | "query" | "system" | "system_prompt"
        | "system_instruction" | "instructions" | "input_prefix" | "input_suffix" => json!("other"),
        // What stands at another name already may not be said twice.
        "suffix" => json!("b"),
        "response_fields" => json!(["content"]),
        "input_extra" => json!([{"filename": "a", "text": "b"}]),
        "images" => json!(["iVBORw=="]),
        "context_management" => json!({"edits": [{"type": "clear_thinking_20251015"}]}),
        _ => return None,
    })
}

/// Words of a route that change what is told of the answer, or nothing in the request at hand, so
/// that the neutral request is the same; each with why.
const SAME: &[(&str, &str)] = &[
    ("xtc_threshold", "it needs xtc_probability"),
    ("dry_base", "it needs dry_multiplier"),
    ("dry_allowed_length", "it needs dry_multiplier"),
    ("dry_sequence_breakers", "it needs dry_multiplier"),
    ("dry_penalty_last_n", "it needs dry_multiplier"),
    ("response_fields", "the reply leaves the others out"),
    ("n_indent", "the encoder ends the answer"),
    ("suffix", "it is the same as input_suffix"),
    ("best_of", "it is taken where it equals n"),
    ("echo", "the encoder tells the prompt"),
    ("keep_alive", "the server is told beside the request"),
    ("ttl", "the server is told beside the request"),
    ("return_full_text", "the encoder tells the prompt"),
    ("context_management", "there is no thinking to clear"),
    ("encoding_format", "it is how the vectors are written"),
    ("dimensions", "the reply cuts the vectors"),
    ("output_dimension", "the reply cuts the vectors"),
    ("output_dimensionality", "the reply cuts the vectors"),
    ("top_n", "the reply cuts the list"),
    ("top_k", "the reply cuts the list"),
];

/// Any value that asks for something.
fn any(word: &Word) -> Value {
    let candidates = [
        json!(7),
        json!(true),
        json!(false),
        json!("x"),
        json!(["x"]),
        json!({"a": 1}),
    ];
    let asks = |value: &Value| !word.asks_nothing(value);
    candidates.into_iter().find(asks).unwrap_or(json!(7))
}

#[test]
fn a_word_changes_the_request_is_refused_by_name_or_is_harmless() {
    for api in apis() {
        let unchanged = asked(api, &plain(api)).unwrap();
        for word in api.words() {
            for name in word.names {
                let mut body = plain(api);
                body[*name] = sample(name).unwrap_or_else(|| any(word));
                let context = format!("{api:?}: {name}: {}", body[*name]);
                let outcome = asked(api, &body);
                let is_asked = !word.asks_nothing(&body[*name]);
                match (word.used(api), outcome) {
                    (Use::Refused(_), Err(error)) => {
                        assert!(
                            matches!(error, Error::Unsupported { .. }),
                            "{context}: {error}"
                        );
                        assert_eq!(named(&error), *name, "{context}");
                    }
                    (Use::Refused(_), Ok(_)) => assert!(!is_asked, "{context}: taken"),
                    (Use::Harmless(reason), outcome) => {
                        assert!(!reason.is_empty(), "{context}");
                        // A route may read it for its reply, and not like its type.
                        let outcome = outcome.unwrap_or_else(|error| {
                            assert!(named(&error).contains(name), "{context}: {error}");
                            unchanged.clone()
                        });
                        assert_eq!(outcome, unchanged, "{context}");
                    }
                    (Use::Read(_) | Use::Rewritten(_), Ok(outcome)) => {
                        let is_same = SAME.iter().any(|(same, _)| same == name);
                        assert!(
                            outcome != unchanged || is_same,
                            "{context}: it changes nothing"
                        );
                    }
                    (Use::Read(_) | Use::Rewritten(_), Err(error)) => {
                        assert!(named(&error).starts_with(name), "{context}: {error}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_name_stands_once_in_the_tables() {
    for api in [Api::Chat, Api::Embeddings] {
        let mut names: Vec<_> = api.words().flat_map(|word| word.names).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}

#[test]
fn names_of_one_thing_ask_for_the_same() {
    for (api, one, other) in [
        (Api::Chat, json!({"n_predict": 5}), json!({"max_tokens": 5})),
        (
            Api::Chat,
            json!({"max_output_tokens": 5}),
            json!({"max_tokens": 5}),
        ),
        (
            Api::Chat,
            json!({"options": {"num_predict": 5, "num_ctx": 9}}),
            json!({"max_tokens": 5}),
        ),
        (
            Api::Completions,
            json!({"max_new_tokens": 5}),
            json!({"max_tokens": 5}),
        ),
        (
            Api::Responses,
            json!({"max_tokens": 5}),
            json!({"max_output_tokens": 5}),
        ),
        (
            Api::Messages,
            json!({"max_completion_tokens": 5}),
            json!({"max_tokens": 5}),
        ),
        (
            Api::OllamaChat,
            json!({"max_tokens": 5}),
            json!({"options": {"num_predict": 5}}),
        ),
        (
            Api::OllamaChat,
            json!({"options": {"max_tokens": 5}}),
            json!({"options": {"num_predict": 5}}),
        ),
        (
            Api::OllamaGenerate,
            json!({"temperature": 0, "stop": "x"}),
            json!({"options": {"temperature": 0, "stop": ["x"]}}),
        ),
        (
            Api::Chat,
            json!({"num_predict": 0}),
            json!({"max_tokens": -1}),
        ),
        (
            Api::Chat,
            json!({"truncate": 7}),
            json!({"truncate_prompt_tokens": 7}),
        ),
        (
            Api::Completions,
            json!({"truncate": true}),
            json!({"truncate": false}),
        ),
        (
            Api::Rerank,
            json!({"max_doc_length": 7}),
            json!({"max_tokens_per_doc": 7}),
        ),
        (
            Api::Chat,
            json!({"repeat_penalty": 1.1}),
            json!({"repetition_penalty": 1.1}),
        ),
        (
            Api::OllamaChat,
            json!({"options": {"repetition_penalty": 1.1}}),
            json!({"options": {"repeat_penalty": 1.1}}),
        ),
        (
            Api::Chat,
            json!({"stop_sequences": ["x"]}),
            json!({"stop": "x"}),
        ),
        (
            Api::Messages,
            json!({"stop": "x"}),
            json!({"stop_sequences": ["x"]}),
        ),
        (
            Api::Chat,
            json!({"think": false}),
            json!({"enable_thinking": false}),
        ),
        (
            Api::Messages,
            json!({"think": true}),
            json!({"thinking": {"type": "enabled"}}),
        ),
        (
            Api::Messages,
            json!({"enable_thinking": true}),
            json!({"chat_template_kwargs": {"enable_thinking": true}, "thinking": {"type": "adaptive"}}),
        ),
        (
            Api::Messages,
            json!({"thinking_budget_tokens": 64}),
            json!({"thinking": {"type": "enabled", "budget_tokens": 64}}),
        ),
        (
            Api::Messages,
            json!({"reasoning_effort": "low"}),
            json!({"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}),
        ),
        (
            Api::OllamaChat,
            json!({"reasoning_effort": "low"}),
            json!({"think": "low"}),
        ),
        (
            Api::OllamaChat,
            json!({"reasoning": {"effort": "none"}}),
            json!({"think": false}),
        ),
        (
            Api::OllamaChat,
            json!({"thinking": {"type": "enabled"}}),
            json!({"think": true}),
        ),
        (
            Api::Chat,
            json!({"chat_template_args": {"a": 1}}),
            json!({"chat_template_kwargs": {"a": 1}}),
        ),
        (
            Api::Chat,
            json!({"n_probs": 3}),
            json!({"logprobs": true, "top_logprobs": 3}),
        ),
        (
            Api::Completions,
            json!({"n_probs": 3}),
            json!({"logprobs": 3}),
        ),
        (
            Api::Responses,
            json!({"logprobs": true}),
            json!({"include": ["message.output_text.logprobs"]}),
        ),
        (
            Api::Messages,
            json!({"parallel_tool_calls": false}),
            json!({"tool_choice": {"type": "auto", "disable_parallel_tool_use": true}}),
        ),
        (
            Api::Chat,
            json!({"system": "Be brief."}),
            json!({"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}]}),
        ),
        (
            Api::Responses,
            json!({"system": "Be brief."}),
            json!({"instructions": "Be brief."}),
        ),
        (
            Api::Messages,
            json!({"instructions": "Be brief."}),
            json!({"system": "Be brief."}),
        ),
        (Api::Rerank, json!({"top_k": 1}), json!({"top_n": 1})),
        (
            Api::Embeddings,
            json!({"output_dimension": 8}),
            json!({"dimensions": 8}),
        ),
    ] {
        let with = |more: &Value| {
            let mut body = plain(api);
            for (name, value) in more.as_object().unwrap() {
                body[name] = value.clone();
            }
            let mut asked = asked(api, &body).unwrap();
            // The kwargs are told to the template, too.
            if let Some(prompt) = asked.pointer_mut("/prompt/Chat")
                && more.get("enable_thinking").is_some() | more.get("thinking").is_some()
            {
                prompt["template_kwargs"] = json!({});
            }
            asked
        };
        assert_eq!(with(&one), with(&other), "{api:?}: {one}");
    }
}

#[test]
fn a_prompt_may_be_read_alone_in_the_word_of_llama_cpp() {
    for api in [Api::Chat, Api::Completions] {
        let mut body = plain(api);
        body["n_predict"] = json!(0);
        let asked = asked(api, &body).unwrap();
        assert_eq!(asked["stop"]["max_tokens"], 0, "{api:?}");
        for name in ["max_tokens", "max_completion_tokens"] {
            let mut body = plain(api);
            body[name] = json!(0);
            assert_eq!(named(&super::tests::asked(api, &body).unwrap_err()), name);
        }
    }
}

#[test]
fn a_format_is_the_same_in_every_dialects_words() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let of_chat = json!({"type": "json_schema", "json_schema": {"name": "n", "schema": schema}});
    let flat = json!({"type": "json_schema", "name": "n", "schema": schema});
    let words = [
        json!({"response_format": of_chat}),
        json!({"format": schema}),
        json!({"text": {"format": flat}}),
        json!({"output_format": flat}),
        json!({"output_config": {"format": flat}}),
        json!({"response_schema": schema}),
        json!({"guided_json": schema}),
        json!({"json_schema": schema}),
    ];
    for api in GENERATING.iter().copied() {
        for word in &words {
            let mut body = plain(api);
            let (name, value) = word.as_object().unwrap().iter().next().unwrap();
            body[name] = value.clone();
            let asked =
                asked(api, &body).unwrap_or_else(|error| panic!("{api:?}: {word}: {error}"));
            let grammar = &asked["grammar"];
            assert_eq!(grammar["language"]["JsonSchema"], schema, "{api:?}: {word}");
            let param = grammar["param"].as_str().unwrap();
            assert!(param.starts_with(name.as_str()), "{api:?}: {word}: {param}");
        }
    }
}

#[test]
fn tools_and_choices_are_the_same_in_every_dialects_words() {
    let schema = json!({"type": "object"});
    let tools = [
        json!({"tools": [{"type": "function", "function": {"name": "f", "parameters": schema}}]}),
        json!({"tools": [{"type": "function", "name": "f", "parameters": schema}]}),
        json!({"tools": [{"name": "f", "input_schema": schema}]}),
        json!({"tools": [{"type": "custom", "name": "f", "input_schema": schema}]}),
        json!({"functions": [{"name": "f", "parameters": schema}]}),
    ];
    let choices = [
        json!({"type": "function", "function": {"name": "f"}}),
        json!({"type": "function", "name": "f"}),
        json!({"type": "tool", "name": "f"}),
        json!({"name": "f"}),
    ];
    let required = [
        json!("required"),
        json!("any"),
        json!({"type": "any"}),
        json!({"type": "required"}),
    ];
    for api in [Api::Chat, Api::Responses, Api::Messages, Api::OllamaChat] {
        let asked = |tools: &Value, choice: Option<&Value>| {
            let mut body = plain(api);
            let (name, value) = tools.as_object().unwrap().iter().next().unwrap();
            body[name] = value.clone();
            let field = if name == "tools" {
                "tool_choice"
            } else {
                "function_call"
            };
            if let Some(choice) = choice {
                body[field] = choice.clone();
            }
            let asked = asked(api, &body);
            let prompt = asked.unwrap_or_else(|error| panic!("{api:?}: {body}: {error}"));
            let prompt = &prompt["prompt"]["Chat"];
            (prompt["tools"].clone(), prompt["tool_choice"].clone())
        };
        let expected =
            json!([{"name": "f", "description": null, "parameters": schema, "strict": false}]);
        for tools in &tools {
            assert_eq!(asked(tools, None).0, expected, "{api:?}: {tools}");
            assert_eq!(
                asked(tools, Some(&json!({"name": "f"}))).1,
                json!({"Named": "f"})
            );
        }
        for choice in &choices {
            assert_eq!(
                asked(&tools[0], Some(choice)).1,
                json!({"Named": "f"}),
                "{api:?}: {choice}"
            );
        }
        for choice in &required {
            assert_eq!(
                asked(&tools[0], Some(choice)).1,
                "Required",
                "{api:?}: {choice}"
            );
        }
    }
}

#[test]
fn two_names_that_disagree_are_both_told() {
    for (api, more, one, other) in [
        (
            Api::Chat,
            json!({"max_tokens": 5, "n_predict": 6}),
            "n_predict",
            "max_tokens",
        ),
        (
            Api::OllamaChat,
            json!({"temperature": 1, "options": {"temperature": 0.5}}),
            "temperature",
            "options.temperature",
        ),
        (
            Api::Messages,
            json!({"thinking": {"type": "disabled"}, "think": true}),
            "think",
            "thinking.type",
        ),
        (
            Api::Chat,
            json!({"response_format": {"type": "text"}, "format": "json"}),
            "format",
            "response_format",
        ),
        (
            Api::Chat,
            json!({"think": true, "enable_thinking": false}),
            "think",
            "enable_thinking",
        ),
    ] {
        let mut body = plain(api);
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        let error = asked(api, &body).unwrap_err();
        assert_eq!(named(&error), one, "{more}");
        assert!(error.to_string().contains(other), "{more}: {error}");
    }
    let mut body = plain(Api::Chat);
    body["max_tokens"] = json!(5);
    body["n_predict"] = json!(5.0);
    assert!(asked(Api::Chat, &body).is_ok());
}

#[test]
fn errors_name_what_the_client_wrote() {
    for (api, body, param) in [
        (Api::Chat, json!({"n_predict": "x"}), "n_predict"),
        (Api::Chat, json!({"n_predict": -9}), "n_predict"),
        (Api::Responses, json!({"max_tokens": -9}), "max_tokens"),
        (Api::OllamaChat, json!({"temperature": -1}), "temperature"),
        (
            Api::OllamaChat,
            json!({"options": {"max_tokens": "x"}}),
            "options.max_tokens",
        ),
        (Api::Messages, json!({"think": 5}), "think"),
        (Api::Messages, json!({"stop": [1]}), "stop"),
        (
            Api::Messages,
            json!({"response_format": 5}),
            "response_format",
        ),
        (
            Api::OllamaChat,
            json!({"reasoning_effort": "lots"}),
            "reasoning_effort",
        ),
        (Api::Chat, json!({"temprature": 0}), "temprature"),
        (Api::Chat, json!({"maxTokens": 5}), "maxTokens"),
        (
            Api::OllamaChat,
            json!({"options": {"temprature": 0}}),
            "options.temprature",
        ),
    ] {
        let mut whole = plain(api);
        for (name, value) in body.as_object().unwrap() {
            whole[name] = value.clone();
        }
        let error = asked(api, &whole).unwrap_err();
        let blamed = named(&error);
        assert!(
            blamed == param || blamed.starts_with(&format!("{param}[")),
            "{api:?}: {body}: {blamed}: {error}"
        );
        assert!(error.to_string().contains(param), "{error}");
    }
}

#[test]
fn words_that_nobody_has_are_taken() {
    for api in apis() {
        let mut body = plain(api);
        body["something_new"] = json!({"a": 1});
        assert_eq!(asked(api, &body), asked(api, &plain(api)), "{api:?}");
    }
}
