//! Numbers and text as clients write them, on every route that reads a request.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, its helpers too"
)]

use macmlx_protocol::{
    Body, Context, Described, Encoding, Error,
    endpoints::{Route, Visitor, visit},
};
use serde_json::{Value, json};

/// What one route makes of a body, as text that can be compared.
struct Asked<'a> {
    path: &'a str,
    body: &'a [u8],
    result: Option<Result<String, Error>>,
}

impl Visitor for Asked<'_> {
    fn generating<E: Described>(&mut self, route: Route) {
        if route.path == self.path {
            let context = Context {
                id: String::new(),
                created_unix: 0,
                fingerprint: String::new(),
            };
            let request = E::parse(Body::json(self.body));
            let translation = request.and_then(|request| E::translate(request, context));
            self.result =
                Some(translation.map(|translation| format!("{:?}", translation.requests)));
        }
    }

    fn encoding<E: Encoding>(&mut self, route: Route) {
        if route.path == self.path {
            let request = E::parse(Body::json(self.body));
            let question = request.and_then(|request| request.question());
            self.result = Some(question.map(|question| serde_json::to_string(&question).unwrap()));
        }
    }
}

fn ask(path: &str, body: &[u8]) -> Result<String, Error> {
    let mut asked = Asked {
        path,
        body,
        result: None,
    };
    visit(&mut asked);
    asked
        .result
        .unwrap_or_else(|| panic!("no endpoint takes {path}"))
}

/// Each route with a small body of its own.
fn routes() -> Vec<(&'static str, Value)> {
    let turns = json!([{"role": "user", "content": "TEXT"}]);
    vec![
        (
            "/v1/chat/completions",
            json!({"model": "m", "messages": turns}),
        ),
        ("/v1/completions", json!({"model": "m", "prompt": "TEXT"})),
        (
            "/v1/infill",
            json!({"model": "m", "input_prefix": "TEXT", "input_suffix": "a"}),
        ),
        ("/v1/responses", json!({"model": "m", "input": "TEXT"})),
        (
            "/v1/messages",
            json!({"model": "m", "max_tokens": 9, "messages": turns}),
        ),
        ("/v1/embeddings", json!({"model": "m", "input": "TEXT"})),
        (
            "/v1/rerank",
            json!({"model": "m", "query": "TEXT", "documents": ["a", "b"]}),
        ),
        ("/api/chat", json!({"model": "m", "messages": turns})),
        ("/api/generate", json!({"model": "m", "prompt": "TEXT"})),
        ("/api/embed", json!({"model": "m", "input": "TEXT"})),
        ("/api/embeddings", json!({"model": "m", "prompt": "TEXT"})),
    ]
}

/// The body of a route with a value at a JSON pointer.
fn with(path: &str, pointer: &str, value: Value) -> Vec<u8> {
    let (_, mut body) = routes()
        .into_iter()
        .find(|(route, _)| *route == path)
        .unwrap();
    let mut place = &mut body;
    for name in pointer.split('/').skip(1) {
        place = &mut place[name];
    }
    *place = value;
    body.to_string().into_bytes()
}

#[test]
fn text_that_is_no_unicode_is_read_on_every_route() {
    for (path, body) in routes() {
        let body = body.to_string();
        let written = |text: &[u8]| {
            let at = body.find("TEXT").unwrap();
            [&body.as_bytes()[..at], text, &body.as_bytes()[at + 4..]].concat()
        };
        let expected = ask(path, &written("cut \u{fffd}".as_bytes())).unwrap();
        for text in [
            &b"cut \\ud83d"[..],
            b"cut \\ude00",
            b"cut \xff",
            b"cut \xf0\x9f\x98",
        ] {
            assert_eq!(ask(path, &written(text)).as_ref(), Ok(&expected), "{path}");
        }
        let marked = [b"\xef\xbb\xbf", &written(b"cut \\ud83d")[..]].concat();
        assert_eq!(ask(path, &marked).as_ref(), Ok(&expected), "{path}");
        let key = body.replacen('{', "{\"a\\ud83d\": {\"\\ude00\": 1}, ", 1);
        assert!(ask(path, key.as_bytes()).is_ok(), "{path}");
        let wrong = body.replacen('{', "{\"a\": NaN, ", 1);
        assert!(ask(path, wrong.as_bytes()).is_err(), "{path}");
    }
}

/// Integer fields of each route, with a number that they take.
const INTEGERS: &[(&str, &[(&str, i64)])] = &[
    (
        "/v1/chat/completions",
        &[
            ("/max_tokens", 100),
            ("/max_completion_tokens", 100),
            ("/min_tokens", 0),
            ("/n", 2),
            ("/seed", 7),
            ("/top_k", 20),
            ("/repetition_context_size", 8),
            ("/repeat_last_n", 8),
            ("/dry_allowed_length", 3),
            ("/dry_penalty_last_n", 9),
            ("/thinking_budget", 64),
            ("/thinking/budget_tokens", 64),
            ("/reasoning/max_tokens", 64),
        ],
    ),
    (
        "/v1/completions",
        &[
            ("/max_tokens", 100),
            ("/n", 2),
            ("/best_of", 1),
            ("/logprobs", 3),
            ("/seed", 7),
            ("/top_k", 20),
        ],
    ),
    (
        "/v1/infill",
        &[
            ("/n_predict", 100),
            ("/n_probs", 3),
            ("/n_indent", 4),
            ("/seed", 7),
            ("/top_k", 20),
        ],
    ),
    (
        "/v1/responses",
        &[
            ("/max_output_tokens", 100),
            ("/max_tool_calls", 3),
            ("/top_logprobs", 2),
            ("/seed", 7),
            ("/top_k", 20),
        ],
    ),
    ("/v1/messages", &[("/max_tokens", 100), ("/top_k", 20)]),
    (
        "/v1/embeddings",
        &[("/dimensions", 8), ("/embd_normalize", 2)],
    ),
    ("/v1/rerank", &[("/top_n", 1), ("/top_k", 1)]),
    (
        "/api/chat",
        &[
            ("/options/num_predict", 100),
            ("/options/num_ctx", 4096),
            ("/options/top_k", 20),
            ("/options/seed", 7),
            ("/options/repeat_last_n", 8),
            ("/options/mirostat", 0),
            ("/keep_alive", 300),
        ],
    ),
    ("/api/generate", &[("/options/num_predict", 100)]),
    (
        "/api/embed",
        &[("/dimensions", 8), ("/options/num_ctx", 4096)],
    ),
    ("/api/embeddings", &[("/options/num_ctx", 4096)]),
];

#[test]
fn whole_numbers_are_integers_in_every_field() {
    for (path, fields) in INTEGERS {
        for (field, number) in *fields {
            let expected = ask(path, &with(path, field, json!(number)));
            assert!(expected.is_ok(), "{path} {field}: {expected:?}");
            let float = ask(path, &with(path, field, json!(*number as f64)));
            assert_eq!(float, expected, "{path} {field}");
            if *field != "/keep_alive" {
                let fraction = ask(path, &with(path, field, json!(0.5)));
                let error = fraction.unwrap_err().to_string();
                let name = field.rsplit('/').next().unwrap();
                assert!(error.contains(name), "{path} {field}: {error}");
            }
        }
    }
}

/// Numbers that stand for none, and what means the same.
const SENTINELS: &[(&str, &str, i64, Option<i64>)] = &[
    (
        "/v1/chat/completions",
        "/max_tokens",
        -1,
        Some(u32::MAX as i64),
    ),
    (
        "/v1/chat/completions",
        "/max_tokens",
        -2,
        Some(u32::MAX as i64),
    ),
    (
        "/v1/chat/completions",
        "/max_completion_tokens",
        -1,
        Some(u32::MAX as i64),
    ),
    ("/v1/chat/completions", "/top_k", -1, Some(0)),
    ("/v1/chat/completions", "/seed", -1, None),
    ("/v1/chat/completions", "/repeat_last_n", -1, None),
    ("/v1/chat/completions", "/dry_penalty_last_n", -1, None),
    ("/v1/chat/completions", "/thinking_budget", -1, None),
    (
        "/v1/chat/completions",
        "/truncate_prompt_tokens",
        -1,
        Some(u32::MAX as i64),
    ),
    ("/v1/chat/completions", "/num_predict", 0, Some(-1)),
    ("/v1/completions", "/max_tokens", -1, Some(u32::MAX as i64)),
    ("/v1/infill", "/n_predict", -1, Some(u32::MAX as i64)),
    (
        "/v1/completions",
        "/truncate_prompt_tokens",
        -1,
        Some(u32::MAX as i64),
    ),
    ("/v1/completions", "/num_predict", 0, Some(-1)),
    ("/v1/completions", "/top_k", -1, Some(0)),
    (
        "/v1/responses",
        "/max_output_tokens",
        -1,
        Some(u32::MAX as i64),
    ),
    ("/v1/responses", "/seed", -1, None),
    ("/v1/responses", "/num_predict", 0, Some(-1)),
    ("/v1/messages", "/max_tokens", -1, Some(u32::MAX as i64)),
    ("/v1/messages", "/top_k", -1, Some(0)),
    ("/v1/embeddings", "/dimensions", 0, None),
    ("/v1/rerank", "/top_n", 0, None),
    ("/v1/rerank", "/top_n", -1, None),
    ("/v1/rerank", "/max_tokens_per_doc", -1, None),
    ("/v1/rerank", "/truncate_prompt_tokens", -1, None),
    (
        "/api/chat",
        "/options/num_predict",
        0,
        Some(u32::MAX as i64),
    ),
    (
        "/api/chat",
        "/options/num_predict",
        -1,
        Some(u32::MAX as i64),
    ),
    (
        "/api/chat",
        "/options/num_predict",
        -2,
        Some(u32::MAX as i64),
    ),
    ("/api/chat", "/options/num_ctx", 0, None),
    ("/api/chat", "/options/seed", -1, None),
    ("/api/chat", "/options/top_k", -1, Some(0)),
    ("/api/chat", "/options/repeat_last_n", -1, None),
    (
        "/api/generate",
        "/options/num_predict",
        -1,
        Some(u32::MAX as i64),
    ),
    ("/api/embed", "/dimensions", 0, None),
    ("/api/embed", "/dimensions", -1, None),
];

#[test]
fn numbers_that_stand_for_none_mean_what_their_servers_say() {
    for (path, field, sentinel, same) in SENTINELS {
        let expected = ask(path, &with(path, field, json!(same)));
        assert!(expected.is_ok(), "{path} {field}: {expected:?}");
        for sentinel in [json!(sentinel), json!(*sentinel as f64)] {
            let read = ask(path, &with(path, field, sentinel));
            assert_eq!(read, expected, "{path} {field}");
        }
    }
}
