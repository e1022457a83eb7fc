//! The engine around a model that counts: each token is followed by the next higher one. Faults
//! and pauses are put at chosen forwards.

mod encoding;

use std::{
    sync::{Arc, mpsc},
    time::Duration,
};

use futures::{
    StreamExt,
    future::{Either, join, join3, select},
};
use macmlx_inference::{
    Backend, ChatPrompt, EventStream, FinishReason, GenerateRequest, GenerationEvent,
    InferenceError, Logprobs, Message, ModelCard, Prompt, Role,
};
use macmlx_models::{
    LogitsRows, Model, ModelError, Segment,
    cache::{CacheOptions, SequenceCache},
};
use mlx_rs::{Array, error::Exception, ops::indexing::TryIndexOp};
use parking_lot::Mutex;

use crate::{
    Engine, EngineOptions,
    pool::{Loaders, Weights},
    support::{Home, Named, for_ever, greedy, idle, read, run},
};

const VOCAB: i32 = 96;

/// A fault of a forward pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Panic,
    OutOfMemory,
    Other,
}

/// The test's hold on the model.
#[derive(Default)]
struct Control {
    /// Lengths of the segments or texts of each forward so far.
    forwards: Mutex<Vec<Vec<usize>>>,
    /// Faults, each with the number of its forward pass.
    faults: Mutex<Vec<(usize, Fault)>>,
    /// The forward pass at which the model sends a message and waits for one.
    pause: Mutex<Option<Pause>>,
}

impl Control {
    fn count(&self) -> usize {
        self.forwards.lock().len()
    }

    /// Counts a forward, pauses there and fails as it was told to.
    fn enter(&self, lengths: Vec<usize>) -> macmlx_models::Result<()> {
        let call = {
            let mut forwards = self.forwards.lock();
            forwards.push(lengths);
            forwards.len() - 1
        };
        let pause = self.pause.lock().take_if(|(at, ..)| *at == call);
        if let Some((_, reached, may_go)) = pause {
            reached.send(()).unwrap();
            may_go.recv().unwrap();
        }
        let faults = self.faults.lock().clone();
        match faults.iter().find(|(at, _)| *at == call) {
            Some((_, Fault::Panic)) => panic!("the model panicked"),
            Some((_, Fault::OutOfMemory)) => {
                Err(Exception::custom("[malloc] Unable to allocate 9 bytes.").into())
            }
            Some((_, Fault::Other)) => Err(ModelError::Mlx(Exception::custom("broken"))),
            None => Ok(()),
        }
    }

    /// Lets the model stop at forward `at`; gives the way to see it there and to let it go on.
    fn pause_at(&self, at: usize) -> (mpsc::Receiver<()>, mpsc::Sender<()>) {
        let (reached, is_reached) = mpsc::channel();
        let (go, may_go) = mpsc::channel();
        *self.pause.lock() = Some((at, reached, may_go));
        (is_reached, go)
    }
}

/// The forward, the way to say it is reached, the way to hear that it may go on.
type Pause = (usize, mpsc::Sender<()>, mpsc::Receiver<()>);

struct Counting(Arc<Control>);

impl Model for Counting {
    fn forward(
        &self,
        tokens: &Array,
        segments: &mut [Segment<'_>],
    ) -> macmlx_models::Result<Array> {
        self.0
            .enter(segments.iter().map(|segment| segment.length).collect())?;
        let mut rows: Vec<i32> = Vec::new();
        let mut start = 0;
        for segment in segments.iter() {
            let end = start + segment.length as i32;
            match segment.logits {
                LogitsRows::None => {}
                LogitsRows::Last => rows.push(end - 1),
                LogitsRows::All => rows.extend(start..end),
            }
            start = end;
        }
        if rows.is_empty() {
            return Ok(mlx_rs::ops::zeros::<f32>(&[0, VOCAB])?);
        }
        let rows = Array::from_slice(&rows, &[rows.len() as i32]);
        let next = tokens
            .take_axis(&rows, 0)?
            .as_type::<i32>()?
            .add(Array::from_int(1))?;
        let next = next.remainder(Array::from_int(VOCAB))?.reshape(&[-1, 1])?;
        let all: Vec<i32> = (0..VOCAB).collect();
        let hit = Array::from_slice(&all, &[1, VOCAB]).eq(&next)?;
        Ok(hit
            .as_type::<f32>()?
            .multiply(Array::from_f32(5.0))?
            .try_index((.., ..))?)
    }

    fn new_cache(&self, _: &CacheOptions) -> macmlx_models::Result<SequenceCache> {
        Ok(SequenceCache { layers: Vec::new() })
    }

    fn vocab_size(&self) -> u32 {
        VOCAB as u32
    }
}

struct Setup {
    // Dropped first: it still reads the folder.
    engine: Named,
    control: Arc<Control>,
    home: Home,
}

fn weights<M: ?Sized>(model: Box<M>) -> Weights<M> {
    Weights {
        model,
        memory_bytes: 1,
        description: "none".into(),
    }
}

fn loaders(control: Arc<Control>) -> Loaders {
    let encoders = control.clone();
    Loaders {
        generator: Box::new(move |card: &ModelCard| {
            assert!(card.id != "qwen2", "loading panicked");
            Ok(weights(Box::new(Counting(control.clone()))))
        }),
        encoder: Box::new(move |profile| Ok(encoding::load(profile, &encoders))),
    }
}

fn setup(options: EngineOptions) -> Setup {
    let home = Home::new(&["llama", "qwen2"]);
    let control = Arc::new(Control::default());
    let engine = home.name(Engine::with_loaders(
        options,
        for_ever(),
        loaders(control.clone()),
    ));
    Setup {
        engine,
        control,
        home,
    }
}

fn counted(from: u32, length: u32) -> Vec<u32> {
    (1..=length)
        .map(|step| (from + step) % VOCAB as u32)
        .collect()
}

async fn start(engine: &Named, prompt: &[u32], max_tokens: u32) -> EventStream {
    engine
        .generate(greedy("llama", prompt, max_tokens))
        .await
        .unwrap()
}

/// Starts a request while the model pauses and lets the model go on once it is on its way.
async fn start_paused(
    engine: &Named,
    prompt: &[u32],
    max_tokens: u32,
    go: mpsc::Sender<()>,
) -> EventStream {
    let release = async {
        posted(engine, 2).await;
        go.send(()).unwrap();
    };
    join(start(engine, prompt, max_tokens), release).await.0
}

/// Waits until so many requests are on their way to the MLX thread or there. Nothing is awaited
/// between counting a request and posting it, and tests run on one thread.
async fn posted(engine: &Named, requests: u32) {
    while engine.loaded()[0].active_requests < requests {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn reached(signal: mpsc::Receiver<()>) {
    tokio::task::spawn_blocking(move || signal.recv().unwrap())
        .await
        .unwrap();
}

#[tokio::test]
async fn no_forward_is_wasted_at_the_end() {
    let setup = setup(EngineOptions::default());
    let answer = run(&setup.engine, greedy("llama", &[1, 2, 3], 10)).await;
    assert_eq!(answer.ids(0), counted(3, 10));
    assert_eq!(setup.control.count(), 10);
    assert_eq!(answer.finished[0], Some((FinishReason::Length, None)));
}

#[tokio::test]
async fn sequences_join_and_leave_a_running_batch() {
    let setup = setup(EngineOptions::default());
    let (is_there, go) = setup.control.pause_at(5);
    let long = start(&setup.engine, &[10], 40).await;
    reached(is_there).await;
    let short = start_paused(&setup.engine, &[50, 51], 4, go).await;
    let (long, short) = join(read(long), read(short)).await;
    assert_eq!(long.ids(0), counted(10, 40));
    assert_eq!(short.ids(0), counted(51, 4));
    let forwards = setup.control.forwards.lock().clone();
    let together = forwards
        .iter()
        .filter(|lengths| **lengths == [1, 1])
        .count();
    assert!((3..=4).contains(&together), "{forwards:?}");
    assert_eq!(forwards.last(), Some(&vec![1]));
}

#[tokio::test]
async fn prefill_lets_others_decode_between_chunks() {
    let options = EngineOptions {
        prefill_chunk: 8,
        ..EngineOptions::default()
    };
    let setup = setup(options);
    let (is_there, go) = setup.control.pause_at(3);
    let running = start(&setup.engine, &[10], 60).await;
    reached(is_there).await;
    let prompt: Vec<u32> = (0..80).collect();
    let joining = start_paused(&setup.engine, &prompt, 2, go).await;
    let (running, joining) = join(read(running), read(joining)).await;
    assert_eq!(running.ids(0), counted(10, 60));
    assert_eq!(joining.ids(0), counted(79, 2));
    let forwards = setup.control.forwards.lock().clone();
    let chunks = forwards.iter().filter(|lengths| **lengths == [8]).count();
    assert_eq!(chunks, 10);
    assert!(
        forwards
            .windows(2)
            .all(|pair| !(pair[0] == [8] && pair[1] == [8])),
        "two chunks in a row: {forwards:?}"
    );
}

#[tokio::test]
async fn short_prompts_share_a_forward_and_overtake_long_ones() {
    let options = EngineOptions {
        prefill_chunk: 16,
        ..EngineOptions::default()
    };
    let setup = setup(options);
    let (is_there, go) = setup.control.pause_at(1);
    let long: Vec<u32> = (0..90).collect();
    let long = start(&setup.engine, &long, 1).await;
    reached(is_there).await;
    let release = async {
        posted(&setup.engine, 3).await;
        go.send(()).unwrap();
    };
    let (first, second, ()) = join3(
        start(&setup.engine, &[1, 2], 1),
        start(&setup.engine, &[3, 4, 5], 1),
        release,
    )
    .await;
    let (_, answers) = join(read(long), join(read(first), read(second))).await;
    assert_eq!((answers.0.ids(0), answers.1.ids(0)), (vec![3], vec![6]));
    let forwards = setup.control.forwards.lock().clone();
    let is_shared = |lengths: &Vec<usize>| *lengths == [11, 2, 3] || *lengths == [11, 3, 2];
    let shared = forwards.iter().position(is_shared);
    assert!(shared.is_some_and(|at| at <= 3), "{forwards:?}");
}

#[tokio::test]
async fn dropping_the_stream_during_prefill_cancels() {
    let options = EngineOptions {
        prefill_chunk: 1,
        ..EngineOptions::default()
    };
    let setup = setup(options);
    let (is_there, go) = setup.control.pause_at(3);
    let prompt: Vec<u32> = (0..400).map(|index| index % 90).collect();
    let stream = start(&setup.engine, &prompt, 5).await;
    reached(is_there).await;
    drop(stream);
    go.send(()).unwrap();
    idle(&setup.engine).await;
    assert!(setup.control.count() <= 5, "{}", setup.control.count());
    let answer = run(&setup.engine, greedy("llama", &[7], 2)).await;
    assert_eq!(answer.ids(0), [8, 9]);
}

#[tokio::test]
async fn dropping_the_stream_while_decoding_cancels() {
    let setup = setup(EngineOptions::default());
    let (is_there, go) = setup.control.pause_at(4);
    let stream = start(&setup.engine, &[1], 400).await;
    reached(is_there).await;
    drop(stream);
    go.send(()).unwrap();
    idle(&setup.engine).await;
    assert!(setup.control.count() <= 6, "{}", setup.control.count());
}

#[tokio::test]
async fn a_full_queue_refuses_and_a_waiting_request_can_go() {
    let options = EngineOptions {
        max_batch: 1,
        queue_limit: 1,
        ..EngineOptions::default()
    };
    let setup = setup(options);
    let (is_there, go) = setup.control.pause_at(1);
    let running = start(&setup.engine, &[1], 3).await;
    reached(is_there).await;
    let waiting = Box::pin(start(&setup.engine, &[20], 2));
    let is_posted = Box::pin(posted(&setup.engine, 2));
    let Either::Right(((), waiting)) = select(waiting, is_posted).await else {
        panic!("the model pauses")
    };
    let refused = setup.engine.generate(greedy("llama", &[1], 2)).await;
    assert_eq!(refused.err(), Some(InferenceError::Overloaded));
    assert_eq!(setup.engine.loaded()[0].active_requests, 2);
    drop(waiting);
    go.send(()).unwrap();
    assert_eq!(read(running).await.ids(0), counted(1, 3));
    idle(&setup.engine).await;
    // The request that waited was never started, and its place is free.
    assert_eq!(setup.control.count(), 3);
    run(&setup.engine, greedy("llama", &[20], 2)).await;
}

#[tokio::test]
async fn a_panic_ends_what_runs_and_the_thread_goes_on() {
    let setup = setup(EngineOptions::default());
    *setup.control.faults.lock() = vec![(3, Fault::Panic)];
    let answer = read(start(&setup.engine, &[1], 20).await).await;
    let message = "the model panicked".to_owned();
    assert_eq!(answer.error, Some(InferenceError::Engine { message }));
    assert_eq!(answer.completed, None);
    let answer = run(&setup.engine, greedy("llama", &[5], 2)).await;
    assert_eq!(answer.ids(0), [6, 7]);
}

#[tokio::test]
async fn a_panic_while_loading_is_an_error_and_the_thread_goes_on() {
    let setup = setup(EngineOptions::default());
    let error = setup.engine.load("qwen2").await.unwrap_err();
    assert!(matches!(error, InferenceError::Engine { .. }), "{error}");
    run(&setup.engine, greedy("llama", &[5], 2)).await;
}

#[tokio::test]
async fn out_of_memory_costs_the_longest_and_the_others_start_over() {
    let setup = setup(EngineOptions::default());
    let (is_there, go) = setup.control.pause_at(2);
    let long = start(&setup.engine, &[10, 11, 12, 13, 14, 15, 16], 30).await;
    reached(is_there).await;
    *setup.control.faults.lock() = vec![(8, Fault::OutOfMemory)];
    let short = start_paused(&setup.engine, &[50], 30, go).await;
    let (long, short) = join(read(long), read(short)).await;
    assert!(
        matches!(long.error, Some(InferenceError::OutOfMemory { .. })),
        "{:?}",
        long.error
    );
    assert_eq!(short.error, None);
    assert_eq!(short.ids(0), counted(50, 30));
}

#[tokio::test]
async fn out_of_memory_in_a_shared_chunk_keeps_all_the_others_asked_for() {
    let setup = setup(EngineOptions::default());
    let (is_there, go) = setup.control.pause_at(1);
    let running = start(&setup.engine, &[1], 40).await;
    reached(is_there).await;
    // The next forward is the chunk that both share.
    *setup.control.faults.lock() = vec![(2, Fault::OutOfMemory)];
    let mut short = greedy("llama", &[50, 51], 3);
    short.choices = 2;
    short.logprobs = Some(Logprobs {
        top: 1,
        prompt: true,
    });
    let release = async {
        posted(&setup.engine, 3).await;
        go.send(()).unwrap();
    };
    let (long, short, ()) = join3(
        start(&setup.engine, &[10, 11, 12], 3),
        setup.engine.generate(short),
        release,
    )
    .await;
    let (long, short) = join(read(long), read(short.unwrap())).await;
    assert!(
        matches!(long.error, Some(InferenceError::OutOfMemory { .. })),
        "{:?}",
        long.error
    );
    assert_eq!(short.error, None);
    assert_eq!(short.prompt_logprobs.len(), 2);
    assert_eq!(
        (short.ids(0), short.ids(1)),
        (counted(51, 3), counted(51, 3))
    );
    assert_eq!(read(running).await.ids(0), counted(1, 40));
}

#[tokio::test]
async fn a_failed_prefill_does_not_touch_those_who_decode() {
    let setup = setup(EngineOptions::default());
    let (is_there, go) = setup.control.pause_at(3);
    let running = start(&setup.engine, &[10], 20).await;
    reached(is_there).await;
    *setup.control.faults.lock() = vec![(4, Fault::Other)];
    let failing = start_paused(&setup.engine, &[50], 5, go).await;
    let (running, failing) = join(read(running), read(failing)).await;
    assert_eq!(
        failing.error,
        Some(InferenceError::Engine {
            message: "MLX: broken".into()
        })
    );
    assert_eq!(running.ids(0), counted(10, 20));
}

#[tokio::test]
async fn dropping_the_engine_ends_streams() {
    let setup = setup(EngineOptions::default());
    let (is_there, go) = setup.control.pause_at(2);
    let mut stream = start(&setup.engine, &[1], 400).await;
    reached(is_there).await;
    let drops = tokio::task::spawn_blocking(move || drop(setup));
    tokio::time::sleep(Duration::from_millis(20)).await;
    go.send(()).unwrap();
    drops.await.unwrap();
    let mut last = None;
    while let Some(event) = stream.next().await {
        last = Some(event);
    }
    assert_eq!(last, Some(Err(InferenceError::ShuttingDown)));
}

#[tokio::test]
async fn choices_share_a_prefill() {
    let setup = setup(EngineOptions {
        max_batch: 2,
        ..EngineOptions::default()
    });
    let mut request = greedy("llama", &[1, 2, 3], 4);
    request.choices = 3;
    let answer = run(&setup.engine, request).await;
    for choice in 0..3 {
        assert_eq!(answer.ids(choice), counted(3, 4));
    }
    let (usage, _) = answer.completed.unwrap();
    assert_eq!((usage.prompt_tokens, usage.completion_tokens), (3, 12));
    let forwards = setup.control.forwards.lock().clone();
    assert_eq!(forwards, [vec![3], vec![1; 3], vec![1; 3], vec![1; 3]]);
}

#[tokio::test]
async fn events_come_in_order() {
    let setup = setup(EngineOptions {
        prefill_chunk: 2,
        ..EngineOptions::default()
    });
    let mut request = greedy("llama", &[33, 34, 35], 2);
    request.logprobs = None;
    let events: Vec<GenerationEvent> = setup
        .engine
        .generate(request)
        .await
        .unwrap()
        .map(|event| event.unwrap())
        .collect()
        .await;
    let text = |text: &str| GenerationEvent::Text {
        choice: 0,
        text: text.into(),
        tokens: Vec::new(),
    };
    let Some(GenerationEvent::Loaded { elapsed }) = events.get(1).cloned() else {
        panic!("{events:?}")
    };
    let expected = [
        GenerationEvent::Loading {
            model: "llama".into(),
        },
        GenerationEvent::Loaded { elapsed },
        GenerationEvent::Started {
            model: "llama".into(),
            prompt_tokens: 3,
            cached_tokens: 0,
        },
        GenerationEvent::Prefill {
            processed: 2,
            total: 3,
        },
        GenerationEvent::Prefill {
            processed: 3,
            total: 3,
        },
        text("D"),
        text("E"),
        GenerationEvent::Finished {
            choice: 0,
            reason: FinishReason::Length,
            stop_sequence: None,
        },
    ];
    assert_eq!(events[..events.len() - 1], expected);
    let Some(GenerationEvent::Completed { usage, timings }) = events.last() else {
        panic!("{events:?}")
    };
    assert_eq!((usage.prompt_tokens, usage.completion_tokens), (3, 2));
    assert_eq!(timings.load, elapsed);
    assert!(timings.prefill > Duration::ZERO && timings.decode > Duration::ZERO);
}

#[tokio::test]
async fn a_reasoning_budget_closes_the_block() {
    let setup = setup(EngineOptions::default());
    let path = setup.home.path("llama");
    let template = "{{ messages[0].content }}<think>{# </think> #}";
    std::fs::write(path.join("chat_template.jinja"), template).unwrap();
    let chat = ChatPrompt {
        messages: vec![Message::text(Role::User, "1")],
        ..ChatPrompt::default()
    };
    let mut request = GenerateRequest::new("llama", Prompt::Chat(chat));
    request.sampling.temperature = Some(0.0);
    request.stop.max_tokens = Some(20);
    request.reasoning.budget_tokens = Some(3);
    let stream = setup.engine.generate(request).await.unwrap();
    let (mut reasoning, mut text, mut usage) = (String::new(), String::new(), None);
    for event in stream.collect::<Vec<_>>().await {
        match event.unwrap() {
            GenerationEvent::Reasoning { text, .. } => reasoning += &text,
            GenerationEvent::Text { text: piece, .. } => text += &piece,
            GenerationEvent::Completed { usage: counted, .. } => usage = Some(counted),
            _ => {}
        }
    }
    // The prompt ends with ">", and so does what closes the block: counting goes on from there.
    assert_eq!(reasoning, "?@A");
    assert!(text.starts_with("?@AB"), "{text:?}");
    let usage = usage.unwrap();
    assert_eq!(usage.completion_tokens, 20);
    assert!((3..20).contains(&usage.reasoning_tokens), "{usage:?}");
}
