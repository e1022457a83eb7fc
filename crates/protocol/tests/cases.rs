//! Walks `tests/fixtures/protocol/<dialect>/<case>`: a client's request and what a backend says,
//! against the request the backend is to get and every byte the client is to see.
//!
//! A case is `request.json` (`{"path", "body"}`) and, unless the request is refused or alone what
//! the case is about, `events.json` (events, `{"prompt", "event"}` where there are several prompts,
//! `{"error"}` where one fails). Expected: `expected_request.json`, and `stream.txt` and `reply.json`
//! where there are events, or `error.json`. Of the expected request only what differs from the
//! default is written: what is not there equals it. Each case runs streamed and whole, whichever the
//! client asked for. Where texts are turned into numbers, the backend's answer is in `answer.json`,
//! and there is no stream. After a wanted change,
//! `cargo test -p macmlx-protocol --test cases -- --bless` writes the expected files anew.

#![expect(clippy::unwrap_used, reason = "a broken fixture folder ends the test")]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use libtest_mimic::{Arguments, Failed, Trial};
use macmlx_inference::{GenerationEvent, InferenceError, Question};
use macmlx_protocol::{
    Body, Context, Described, Dialect, Encoding, Endpoint, Error, Reply, StreamEncoder,
    Translation,
    endpoints::{Route, Visitor, visit},
};
use macmlx_test_support::{golden::Golden, sse};
use serde::Deserialize;
use serde_json::{Value, json};

#[path = "cases/without_defaults.rs"]
mod without_defaults;

#[derive(Deserialize)]
struct Request {
    path: String,
    body: Value,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Step {
    Failure {
        error: InferenceError,
    },
    OfPrompt {
        prompt: usize,
        event: GenerationEvent,
    },
    Event(GenerationEvent),
}

fn main() -> ExitCode {
    let (flags, arguments): (Vec<_>, Vec<_>) =
        std::env::args().partition(|argument| argument == "--bless");
    let golden = if flags.is_empty() {
        Golden::Compare
    } else {
        Golden::Bless
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/protocol");
    let trials: Vec<Trial> = cases(&root)
        .into_iter()
        .map(|case| {
            let name = case.strip_prefix(&root).unwrap().display().to_string();
            Trial::test(name, move || run(&case, golden).map_err(Failed::from))
        })
        .collect();
    assert!(!trials.is_empty(), "no cases in {}", root.display());
    libtest_mimic::run(&Arguments::from_iter(arguments), trials).exit_code()
}

/// Folders that hold a request, in order.
fn cases(folder: &Path) -> Vec<PathBuf> {
    if folder.join("request.json").exists() {
        return vec![folder.to_owned()];
    }
    let mut children: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    children.sort();
    children.iter().flat_map(|child| cases(child)).collect()
}

fn run(case: &Path, golden: Golden) -> Result<(), String> {
    let request: Request = read(&case.join("request.json"))?;
    let mut endpoint = Found {
        path: request.path.split('?').next().unwrap_or_default(),
        case,
        golden,
        body: request.body,
        result: None,
    };
    visit(&mut endpoint);
    let nothing = || Err(format!("no endpoint takes {}", request.path));
    endpoint.result.unwrap_or_else(nothing)
}

/// Checks a case against the endpoint of its path.
struct Found<'a> {
    path: &'a str,
    case: &'a Path,
    golden: Golden,
    body: Value,
    result: Option<Result<(), String>>,
}

impl Visitor for Found<'_> {
    fn generating<E: Described>(&mut self, route: Route) {
        if route.path == self.path {
            self.result = Some(check::<E>(self.case, self.golden, self.body.clone()));
        }
    }

    fn encoding<E: Encoding>(&mut self, route: Route) {
        if route.path == self.path {
            self.result = Some(check_encoding::<E>(self.case, self.golden, &self.body));
        }
    }
}

fn check_encoding<E: Encoding>(case: &Path, golden: Golden, body: &Value) -> Result<(), String> {
    let parsed = E::parse(Body::json(body.to_string().as_bytes()));
    let asked = parsed.and_then(|asked| Ok((asked.question()?, asked)));
    let (question, asked) = match asked {
        Ok(asked) => asked,
        Err(error) => {
            let reply = written(E::DIALECT.error_reply(&error));
            return golden.check_json(&case.join("error.json"), &reply);
        }
    };
    golden.check_json(
        &case.join("expected_request.json"),
        &without_defaults::question(&question)?,
    )?;
    let answer: <E::Question as Question>::Answer = read(&case.join("answer.json"))?;
    // Numbers as they are on the wire, not widened on their way into a `Value`.
    let reply = serde_json::to_string(&asked.reply(answer, &context()))
        .and_then(|text| serde_json::from_str(&text))
        .map_err(|error| error.to_string())?;
    golden.check_json(&case.join("reply.json"), &reply)
}

fn context() -> Context {
    Context {
        id: "0123456789abcdef".into(),
        created_unix: 1_700_000_000,
        fingerprint: "macmlx-test".into(),
    }
}

fn check<E: Endpoint>(case: &Path, golden: Golden, body: Value) -> Result<(), String> {
    let mut streamed = body.clone();
    streamed["stream"] = true.into();
    let mut whole = body;
    whole["stream"] = false.into();
    let body_of_stream = streamed.clone();
    let (streamed, whole) = match (translate::<E>(&streamed), translate::<E>(&whole)) {
        (Ok(streamed), Ok(whole)) => (streamed, whole),
        (Err(error), Err(again)) if error == again => {
            return golden.check_json(
                &case.join("error.json"),
                &written(E::DIALECT.error_reply(&error)),
            );
        }
        (streamed, whole) => {
            return Err(format!(
                "only one of the two is refused: {:?}, {:?}",
                streamed.err(),
                whole.err()
            ));
        }
    };
    if streamed.requests != whole.requests {
        return Err("the backend is asked for something else when streaming".into());
    }
    golden.check_json(
        &case.join("expected_request.json"),
        &without_defaults::requests(&whole.requests)?,
    )?;
    if !case.join("events.json").exists() {
        return about_its_request_alone(case);
    }
    let steps: Vec<Step> = read(&case.join("events.json"))?;
    let text = stream::<E>(streamed.encoder, &steps);
    loading_is_not_told::<E>(&body_of_stream, &steps, &text)?;
    golden.check(&case.join("stream.txt"), &text)?;
    match reply::<E>(whole.encoder, steps) {
        Ok(reply) => {
            golden.check_json(&case.join("reply.json"), &reply)?;
            same_text(&text, &reply)?;
            same_blocks(&text, &reply)
        }
        Err(error) => golden.check_json(&case.join("error.json"), &written(error)),
    }
}

/// Only LM Studio's dialect has events for it: others wait for what comes after.
fn loading_is_not_told<E: Endpoint>(
    body: &Value,
    steps: &[Step],
    told: &str,
) -> Result<(), String> {
    if E::DIALECT == Dialect::LmStudio {
        return Ok(());
    }
    let mut encoder = translate::<E>(body)
        .map_err(|error| error.to_string())?
        .encoder;
    let loading = [
        GenerationEvent::Loading {
            model: "org/small".into(),
        },
        GenerationEvent::Loaded {
            elapsed: Duration::from_secs(1),
        },
    ];
    for event in loading {
        let frames = encoder.encode(0, event);
        if !frames.is_empty() {
            return Err(format!("loading is told: {frames:?}"));
        }
    }
    if stream::<E>(encoder, steps) != told {
        return Err("after loading something else is told".into());
    }
    Ok(())
}

/// A case without events has no files that nothing would be compared with.
fn about_its_request_alone(case: &Path) -> Result<(), String> {
    match ["stream.txt", "reply.json", "error.json"].map(|file| case.join(file)) {
        files if files.iter().any(|file| file.exists()) => {
            Err(format!("{} has a reply but no events.json", case.display()))
        }
        _ => Ok(()),
    }
}

fn translate<E: Endpoint>(body: &Value) -> Result<Translation<E::Encoder>, Error> {
    let body = body.to_string();
    E::translate(E::parse(Body::json(body.as_bytes()))?, context())
}

fn stream<E: Endpoint>(mut encoder: E::Encoder, steps: &[Step]) -> String {
    let mut text = String::new();
    for step in steps {
        let frames = match step {
            Step::Failure { error } => encoder.encode_error(error),
            Step::OfPrompt { prompt, event } => encoder.encode(*prompt, event.clone()),
            Step::Event(event) => encoder.encode(0, event.clone()),
        };
        for frame in &frames {
            E::Encoder::FRAMING.write(frame, &mut text);
        }
    }
    text
}

fn reply<E: Endpoint>(mut encoder: E::Encoder, steps: Vec<Step>) -> Result<Value, Reply> {
    for step in steps {
        let frames = match step {
            Step::Failure { error } => return Err(E::DIALECT.error_reply(&error.into())),
            Step::OfPrompt { prompt, event } => encoder.encode(prompt, event),
            Step::Event(event) => encoder.encode(0, event),
        };
        assert!(frames.is_empty(), "a whole reply has no frames: {frames:?}");
    }
    Ok(encoder.into_body())
}

fn written(reply: Reply) -> Value {
    let headers: BTreeMap<_, _> = reply.headers.into_iter().collect();
    json!({"status": reply.status, "headers": headers, "body": reply.body})
}

/// The joined deltas of each choice are the text of the whole reply. A response ends with itself.
fn same_text(stream: &str, reply: &Value) -> Result<(), String> {
    if reply["object"] == "response" {
        return ends_with(stream, reply);
    }
    if reply.get("created_at").is_some() {
        return same_lines(stream, reply);
    }
    let mut joined: BTreeMap<u64, String> = BTreeMap::new();
    for chunk in sse::parse(stream)
        .iter()
        .filter_map(|record| serde_json::from_str::<Value>(record.data()?).ok())
    {
        for choice in chunk["choices"].as_array().into_iter().flatten() {
            let text = choice["delta"]["content"]
                .as_str()
                .or(choice["text"].as_str())
                .unwrap_or_default();
            joined
                .entry(choice["index"].as_u64().unwrap_or_default())
                .or_default()
                .push_str(text);
        }
    }
    let whole: BTreeMap<u64, String> = reply["choices"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|choice| {
            let text = choice["message"]["content"]
                .as_str()
                .or(choice["text"].as_str())
                .unwrap_or_default();
            (
                choice["index"].as_u64().unwrap_or_default(),
                text.to_owned(),
            )
        })
        .collect();
    if joined == whole {
        Ok(())
    } else {
        Err(format!("the stream says {joined:?}, the reply {whole:?}"))
    }
}

/// The lines of Ollama's stream, added up, are the whole reply.
fn same_lines(stream: &str, reply: &Value) -> Result<(), String> {
    let mut sum = Value::Null;
    for line in stream.lines() {
        let mut line: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        for field in [
            "/message/content",
            "/message/thinking",
            "/message/tool_calls",
            "/response",
            "/thinking",
            "/tool_calls",
            "/logprobs",
        ] {
            let joined = match (sum.pointer(field), line.pointer(field)) {
                (Some(Value::String(before)), Some(Value::String(new))) => {
                    json!(format!("{before}{new}"))
                }
                (Some(Value::Array(before)), Some(Value::Array(new))) => {
                    json!([before.as_slice(), new.as_slice()].concat())
                }
                (Some(before), None) => before.clone(),
                _ => continue,
            };
            let (parent, name) = field.rsplit_once('/').unwrap();
            line.pointer_mut(parent).unwrap()[name] = joined;
        }
        sum = line;
    }
    if &sum == reply {
        Ok(())
    } else {
        Err(format!("the stream adds up to {sum}, the reply is {reply}"))
    }
}

/// The joined deltas of each of Anthropic's blocks are the block of the whole reply.
fn same_blocks(stream: &str, reply: &Value) -> Result<(), String> {
    let Some(blocks) = reply["content"].as_array() else {
        return Ok(());
    };
    let mut joined: BTreeMap<usize, String> = BTreeMap::new();
    for record in sse::parse(stream) {
        let event: Value = serde_json::from_str(record.data().unwrap_or_default())
            .map_err(|error| format!("{record:?}: {error}"))?;
        let delta = &event["delta"];
        let index = event["index"].as_u64().unwrap_or_default() as usize;
        for field in ["text", "thinking", "partial_json"] {
            let text = delta[field].as_str().unwrap_or_default();
            joined.entry(index).or_default().push_str(text);
        }
    }
    for (index, block) in blocks.iter().enumerate() {
        let said = joined.remove(&index).unwrap_or_default();
        let is_same = match &block["input"] {
            Value::Null => block["text"] == *said || block["thinking"] == *said,
            input if said.is_empty() => *input == json!({}),
            input => {
                serde_json::from_str(&said).ok().as_ref() == Some(input)
                    || input["INVALID_JSON"] == *said
            }
        };
        if !is_same {
            return Err(format!("the stream says {said:?}, the reply {block}"));
        }
    }
    joined.retain(|_, said| !said.is_empty());
    if joined.is_empty() {
        Ok(())
    } else {
        Err(format!("only the stream says {joined:?}"))
    }
}

/// The last event repeats the reply, and the deltas of each item are what it holds.
fn ends_with(stream: &str, reply: &Value) -> Result<(), String> {
    let events: Vec<Value> = sse::parse(stream)
        .iter()
        .filter_map(|record| serde_json::from_str(record.data()?).ok())
        .collect();
    let last = events.last().map(|event| &event["response"]);
    if last != Some(reply) {
        return Err(format!(
            "the stream ends with {last:?}, the reply is {reply}"
        ));
    }
    for (index, item) in reply["output"].as_array().into_iter().flatten().enumerate() {
        let joined: String = events
            .iter()
            .filter(|event| event["output_index"] == index)
            .filter_map(|event| event["delta"].as_str())
            .collect();
        let held = ["/content/0/text", "/summary/0/text", "/arguments", "/input"]
            .iter()
            .find_map(|place| item.pointer(place)?.as_str());
        if held.is_some_and(|held| held != joined) {
            return Err(format!("the deltas of {item} are {joined}"));
        }
    }
    Ok(())
}

fn read<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<T, String> {
    let text = fs::read_to_string(path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
}
