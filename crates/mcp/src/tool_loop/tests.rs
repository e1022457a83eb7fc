//! The loop over a scripted model and servers in this process.

use macmlx_inference::{
    FinishReason, GenerationEvent as E, Message, Role, ScriptedBackend, Timings, ToolCallPart,
    ToolDefinition, ToolRun, ToolRunEnd, ToolSupport, Usage,
};
use macmlx_settings::{Environment, Home, McpServer, McpServers, ToolPolicies, ToolPolicy};
use parking_lot::Mutex;
use rmcp::ServiceExt;
use serde_json::{Value, json};

use super::*;
use crate::{
    DecideError, Decision, LoginShell, PoolSetup,
    client::Client,
    fake_server::{self, World},
    log_tail::LogTail,
    transport::{Connection, OpenError, Transport},
};

fn card() -> Arc<ModelCard> {
    Arc::new(ModelCard::scripted("model"))
}

/// A server in this process.
struct InProcess(Arc<Notes>);

/// What servers in this process were seen to do.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl World for Notes {
    fn note(&self, text: &str) {
        self.0.lock().push(text.into());
    }

    fn crash(&self) {}

    fn look(&self) -> Value {
        Value::Null
    }

    fn spawn(&self) -> Value {
        Value::Null
    }
}

impl Transport for InProcess {
    fn open(
        &self,
        client: Client,
        _log: Arc<LogTail>,
    ) -> BoxFuture<'_, Result<Connection, OpenError>> {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (reader, writer) = tokio::io::split(theirs);
        tokio::spawn(fake_server::serve(reader, writer, self.0.clone()));
        async move {
            let service = client.serve(ours).await.expect("the fake answers");
            Ok(Connection {
                service,
                process: None,
            })
        }
        .boxed()
    }
}

/// A loop with one server called `fake`.
struct Scene {
    model: Arc<ScriptedBackend>,
    pool: Arc<Pool>,
    approvals: Arc<Approvals>,
    notes: Arc<Notes>,
    tool_loop: ToolLoop,
    _folder: tempfile::TempDir,
}

fn scene(policies: &[(&str, ToolPolicy)], model: ScriptedBackend) -> Scene {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path());
    let mcp = r#"{"mcpServers": {"fake": {"command": "fake"}}}"#;
    std::fs::write(home.mcp_file(), mcp).unwrap();
    let kept = Arc::new(ToolPolicies::new(&home));
    for (tool, policy) in policies {
        kept.set(&format!("fake__{tool}"), *policy).unwrap();
    }
    let environment = Environment::default();
    let setup = PoolSetup {
        servers: Arc::new(McpServers::new(&home, &environment)),
        policies: kept.clone(),
        shell: Arc::new(LoginShell::asking(None, &environment)),
    };
    let notes = Arc::new(Notes::default());
    let seen = notes.clone();
    let reach = move |_: &McpServer| Some(Arc::new(InProcess(seen.clone())) as Arc<dyn Transport>);
    let pool = Arc::new(Pool::reaching(setup, Arc::default(), Box::new(reach)));
    let approvals = Arc::new(Approvals::new(kept));
    let model = Arc::new(model);
    let tool_loop = ToolLoop::new(model.clone(), pool.clone(), approvals.clone());
    Scene {
        model,
        pool,
        approvals,
        notes,
        tool_loop,
        _folder: folder,
    }
}

impl Scene {
    /// Starts a request once the server is up.
    async fn begin(&self, request: GenerateRequest) -> EventStream {
        self.pool.reload().await;
        Backend::generate(&self.tool_loop, card(), request)
            .await
            .unwrap()
    }

    /// All events of a request that needs no person.
    async fn events(&self, request: GenerateRequest) -> Vec<E> {
        let stream = self.begin(request).await;
        stream.map(Result::unwrap).collect().await
    }

    async fn noted(&self, text: &str) {
        let seen = async {
            while !self.notes.0.lock().iter().any(|note| note == text) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), seen)
            .await
            .unwrap_or_else(|_| panic!("the server never saw: {text}"));
    }

    fn limited(mut self, limit: impl FnOnce(&mut Limits)) -> Self {
        let mut limits = Limits::default();
        limit(&mut limits);
        self.tool_loop = self.tool_loop.with_limits(limits);
        self
    }
}

fn question() -> GenerateRequest {
    GenerateRequest::new(
        "model",
        Prompt::Chat(ChatPrompt {
            messages: vec![Message::text(Role::User, "Hello")],
            ..ChatPrompt::default()
        }),
    )
}

fn text(text: &str) -> E {
    E::Text {
        choice: 0,
        text: text.into(),
        tokens: Vec::new(),
    }
}

/// A turn of a scripted model: the given events between start and end.
fn turn(events: Vec<E>, reason: FinishReason) -> Vec<Result<E, InferenceError>> {
    let mut all = vec![E::Started {
        model: "model".into(),
        prompt_tokens: 10,
        cached_tokens: 4,
    }];
    all.extend(events);
    all.push(E::Finished {
        choice: 0,
        reason,
        stop_sequence: None,
    });
    all.push(E::Completed {
        usage: Usage {
            prompt_tokens: 10,
            cached_tokens: 4,
            completion_tokens: 5,
            reasoning_tokens: 1,
        },
        timings: Timings {
            prefill: Duration::from_secs(1),
            decode: Duration::from_secs(2),
            ..Timings::default()
        },
    });
    all.into_iter().map(Ok).collect()
}

fn call(id: &str, name: &str, arguments: &str) -> Vec<E> {
    let part = |part| E::ToolCall {
        choice: 0,
        part,
        tokens: Vec::new(),
    };
    vec![
        part(ToolCallPart::Start {
            id: id.into(),
            name: name.into(),
        }),
        part(ToolCallPart::Arguments(arguments.into())),
        part(ToolCallPart::End),
    ]
}

fn calls(of: &[(&str, &str, &str)]) -> Vec<Result<E, InferenceError>> {
    let events = of
        .iter()
        .flat_map(|(id, name, arguments)| call(id, name, arguments))
        .collect();
    turn(events, FinishReason::ToolCalls)
}

fn answer(words: &str) -> Vec<Result<E, InferenceError>> {
    turn(vec![text(words)], FinishReason::Stop)
}

/// How each call ended, with what the model was told.
fn ends(events: &[E]) -> Vec<(&str, ToolRunEnd, &str)> {
    events
        .iter()
        .filter_map(|event| match event {
            E::ToolRun {
                id,
                run: ToolRun::Ended { end, content, .. },
                ..
            } => Some((&**id, *end, &**content)),
            _ => None,
        })
        .collect()
}

fn chat(request: &GenerateRequest) -> &ChatPrompt {
    match &request.prompt {
        Prompt::Chat(chat) => chat,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_call_is_carried_out_and_the_model_goes_on() {
    let mut first = vec![
        E::Reasoning {
            choice: 0,
            text: "hm".into(),
            tokens: Vec::new(),
        },
        text("Let me see. "),
    ];
    first.extend(call("c1", "fake__echo", r#"{"text": "héllo 日本"}"#));
    let model = ScriptedBackend::default()
        .then_events(turn(first, FinishReason::ToolCalls))
        .then_events(answer("It says hello."));
    let scene = scene(&[("echo", ToolPolicy::Always)], model);
    let events = scene.events(question()).await;

    let kinds: Vec<_> = events
        .iter()
        .map(|event| match event {
            E::Started { .. } => "started",
            E::Reasoning { .. } => "reasoning",
            E::Text { .. } => "text",
            E::ToolCall { .. } => "call",
            E::ToolRun {
                run: ToolRun::Began { server, tool },
                ..
            } if server == "fake" && tool == "echo" => "began",
            E::ToolRun {
                run: ToolRun::Ended { .. },
                ..
            } => "ended",
            E::Finished { .. } => "finished",
            E::Completed { .. } => "completed",
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        kinds,
        [
            "started",
            "reasoning",
            "text",
            "call",
            "call",
            "call",
            "began",
            "ended",
            "text",
            "finished",
            "completed"
        ]
    );
    assert_eq!(ends(&events), [("c1", ToolRunEnd::Done, "héllo 日本")]);
    let Some(E::Completed { usage, timings }) = events.last() else {
        panic!("{events:?}");
    };
    assert_eq!(
        (usage.prompt_tokens, usage.cached_tokens),
        (10, 4),
        "the last turn's"
    );
    assert_eq!((usage.completion_tokens, usage.reasoning_tokens), (10, 2));
    assert_eq!(timings.prefill, Duration::from_secs(1));
    assert_eq!(timings.decode, Duration::from_secs(4));

    let requests = scene.model.requests();
    let offered = &chat(&requests[0]).tools;
    assert_eq!(offered.len(), 10, "all pages, in the server's order");
    assert_eq!(offered[0].name, "fake__echo");
    assert_eq!(offered[0].description.as_deref(), Some("What echo does"));
    assert_eq!(offered, &chat(&requests[1]).tools);
    let messages = &chat(&requests[1]).messages;
    assert_eq!(messages.len(), 3);
    assert_eq!(messages[1].role, Role::Assistant);
    assert_eq!(messages[1].joined_text(), "Let me see. ");
    assert_eq!(messages[1].reasoning.as_deref(), Some("hm"));
    assert_eq!(messages[1].tool_calls[0].id, "c1");
    assert_eq!(messages[2].role, Role::Tool);
    assert_eq!(messages[2].tool_call_id.as_deref(), Some("c1"));
    assert_eq!(messages[2].joined_text(), "héllo 日本");
}

#[tokio::test]
async fn what_goes_wrong_with_a_call_is_told_to_the_model() {
    let model = ScriptedBackend::default()
        .then_events(calls(&[
            ("c1", "fake__fail", "{}"),
            ("c2", "fake__echo", "[]"),
            ("c3", "fake__echo", r#"{"text": "#),
            ("c4", "fake__nothing", "{}"),
            ("c5", "fake__picture", ""),
            ("c6", "fake__crash", "{}"),
        ]))
        .then_events(answer("Well."));
    let policies = ["fail", "echo", "picture", "crash"].map(|tool| (tool, ToolPolicy::Always));
    let scene = scene(&policies, model);
    let events = scene.events(question()).await;
    let ends = ends(&events);
    assert_eq!(ends[0], ("c1", ToolRunEnd::Failed, "It is broken."));
    assert_eq!(
        ends[1],
        (
            "c2",
            ToolRunEnd::Failed,
            "The arguments are wrong: expected an object, got a list."
        )
    );
    assert!(
        ends[2]
            .2
            .starts_with("The arguments are wrong: not valid JSON")
    );
    assert!(ends[3].2.starts_with("There is no tool `fake__nothing`."));
    assert_eq!(
        ends[4],
        ("c5", ToolRunEnd::Done, "[image image/png, 3 bytes]")
    );
    assert_eq!(
        ends[5],
        (
            "c6",
            ToolRunEnd::Failed,
            "The server ended during the call."
        )
    );
    let requests = scene.model.requests();
    assert_eq!(chat(&requests[1]).messages.len(), 2 + ends.len());
}

#[tokio::test]
async fn a_person_decides() {
    let model = ScriptedBackend::default()
        .then_events(calls(&[
            ("c1", "fake__echo", r#"{"text": "1"}"#),
            ("c2", "fake__echo", r#"{"text": "2"}"#),
            ("c3", "fake__echo", r#"{"text": "3"}"#),
            ("c4", "fake__echo", r#"{"text": "4"}"#),
        ]))
        .then_events(answer("Done."));
    let scene = scene(&[], model);
    let mut stream = scene.begin(question()).await;
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        let event = event.unwrap();
        if let E::ToolRun {
            id,
            run:
                ToolRun::ApprovalNeeded {
                    server,
                    tool,
                    arguments,
                },
            ..
        } = &event
        {
            assert_eq!((&**server, &**tool), ("fake", "echo"));
            assert!(arguments.contains("text"));
            let decision = match &**id {
                "c1" => Decision::Deny,
                "c2" => Decision::AllowOnce,
                "c3" => Decision::AllowAlways,
                other => panic!("{other} needs no approval any more"),
            };
            scene.approvals.decide(id, decision).await.unwrap();
            let again = scene.approvals.decide(id, decision).await;
            assert!(matches!(again, Err(DecideError::NotWaiting { .. })));
        }
        events.push(event);
    }
    assert_eq!(
        ends(&events),
        [
            ("c1", ToolRunEnd::Denied, "The user denied this call."),
            ("c2", ToolRunEnd::Done, "2"),
            ("c3", ToolRunEnd::Done, "3"),
            ("c4", ToolRunEnd::Done, "4"),
        ]
    );
    assert_eq!(
        scene.pool.policies().of("fake__echo"),
        ToolPolicy::Always,
        "kept for later"
    );
}

#[tokio::test]
async fn nobody_answers_in_time() {
    let model = ScriptedBackend::default()
        .then_events(calls(&[("c1", "fake__echo", "{}")]))
        .then_events(answer("Well."));
    let scene =
        scene(&[], model).limited(|limits| limits.approval_time = Duration::from_millis(50));
    let events = scene.events(question()).await;
    assert_eq!(ends(&events)[0].1, ToolRunEnd::Denied);
    let late = scene.approvals.decide("c1", Decision::AllowOnce).await;
    assert!(late.is_err());
}

#[tokio::test]
async fn what_is_switched_off_is_not_offered() {
    let model = ScriptedBackend::default()
        .then_events(calls(&[("c1", "fake__fail", "{}")]))
        .then_events(answer("Well."));
    let scene = scene(&[("fail", ToolPolicy::Never)], model);
    let events = scene.events(question()).await;
    let requests = scene.model.requests();
    let offered = &chat(&requests[0]).tools;
    assert!(offered.iter().all(|tool| tool.name != "fake__fail"));
    assert_eq!(ends(&events)[0].1, ToolRunEnd::Failed);
    assert!(!scene.notes.0.lock().contains(&"call fail".into()));
}

#[tokio::test]
async fn after_enough_rounds_the_model_must_close() {
    let mut model = ScriptedBackend::default();
    for round in 0..3 {
        let arguments = format!(r#"{{"text": "{round}"}}"#);
        let id = format!("c{round}");
        model = model.then_events(calls(&[(&id, "fake__echo", &arguments)]));
    }
    let model = model.then_events(answer("Enough."));
    let scene = scene(&[("echo", ToolPolicy::Always)], model).limited(|limits| limits.rounds = 3);
    let events = scene.events(question()).await;
    assert_eq!(ends(&events).len(), 3);
    let requests = scene.model.requests();
    let choices: Vec<_> = requests
        .iter()
        .map(|request| chat(request).tool_choice.clone())
        .collect();
    assert_eq!(
        choices,
        [
            ToolChoice::Auto,
            ToolChoice::Auto,
            ToolChoice::Auto,
            ToolChoice::None
        ]
    );
    assert!(events.contains(&text("Enough.")));
}

#[tokio::test]
async fn a_model_that_calls_though_it_must_close_is_not_listened_to() {
    let model = ScriptedBackend::default()
        .then_events(calls(&[("c1", "fake__echo", "{}")]))
        .then_events(calls(&[("c2", "fake__echo", "{}")]));
    let scene = scene(&[("echo", ToolPolicy::Always)], model)
        .limited(|limits| limits.time = Duration::ZERO);
    let events = scene.events(question()).await;
    assert_eq!(ends(&events).len(), 1);
    assert!(matches!(
        events[events.len() - 2],
        E::Finished {
            reason: FinishReason::ToolCalls,
            ..
        }
    ));
}

#[tokio::test]
async fn the_same_call_over_and_over_is_refused() {
    let mut model = ScriptedBackend::default();
    for id in ["c1", "c2", "c3"] {
        model = model.then_events(calls(&[(id, "fake__echo", r#"{"text": "again"}"#)]));
    }
    let scene = scene(
        &[("echo", ToolPolicy::Always)],
        model.then_events(answer("Well.")),
    );
    let events = scene.events(question()).await;
    let ends = ends(&events);
    assert_eq!(ends[1].1, ToolRunEnd::Done);
    assert_eq!(ends[2].1, ToolRunEnd::Failed);
    assert!(ends[2].2.contains("3 times in a row"));
}

#[tokio::test]
async fn long_results_are_cut() {
    let model = ScriptedBackend::default()
        .then_events(calls(&[("c1", "fake__big", r#"{"bytes": 200000}"#)]))
        .then_events(answer("Long."));
    let scene = scene(&[("big", ToolPolicy::Always)], model);
    let events = scene.events(question()).await;
    let content = ends(&events)[0].2;
    assert!(content.starts_with(&"x".repeat(64 * 1024)));
    assert!(content.len() < 64 * 1024 + 200);
    assert!(content.contains("cut here"));
}

#[tokio::test]
async fn progress_keeps_a_call_alive_and_silence_does_not() {
    let model = ScriptedBackend::default()
        .then_events(calls(&[
            ("c1", "fake__progress", r#"{"count": 12, "ms": 100}"#),
            ("c2", "fake__wait", "{}"),
        ]))
        .then_events(answer("Well."));
    let policies = ["progress", "wait"].map(|tool| (tool, ToolPolicy::Always));
    let scene = scene(&policies, model).limited(|limits| limits.call_time = Duration::from_secs(1));
    let events = scene.events(question()).await;
    let ends = ends(&events);
    assert_eq!(ends[0], ("c1", ToolRunEnd::Done, "done at last"));
    assert_eq!(ends[1].1, ToolRunEnd::Failed);
    assert!(ends[1].2.contains("did not answer within 1 s"));
    scene.noted("cancelled").await;
}

#[tokio::test]
async fn dropping_the_stream_cancels_the_call() {
    let model = ScriptedBackend::default().then_events(calls(&[("c1", "fake__wait", "{}")]));
    let scene = scene(&[("wait", ToolPolicy::Always)], model);
    let mut stream = scene.begin(question()).await;
    let until_called = async {
        while let Some(event) = stream.next().await {
            event.unwrap();
        }
    };
    tokio::select! {
        () = until_called => panic!("the call never ends"),
        () = scene.noted("call wait") => {}
    }
    drop(stream);
    scene.noted("cancelled").await;
}

#[tokio::test]
async fn dropping_the_stream_takes_the_question_back() {
    let model = ScriptedBackend::default().then_events(calls(&[("c1", "fake__echo", "{}")]));
    let scene = scene(&[], model);
    let mut stream = scene.begin(question()).await;
    while let Some(event) = stream.next().await {
        let asks = matches!(
            event.unwrap(),
            E::ToolRun {
                run: ToolRun::ApprovalNeeded { .. },
                ..
            }
        );
        if asks {
            break;
        }
    }
    drop(stream);
    let decided = scene.approvals.decide("c1", Decision::AllowOnce).await;
    assert!(matches!(decided, Err(DecideError::NotWaiting { .. })));
    assert!(!scene.notes.0.lock().contains(&"call echo".into()));
}

#[tokio::test]
async fn a_clients_own_tools_stay_its_own() {
    let own = ToolDefinition {
        name: "fake__echo".into(),
        description: None,
        parameters: json!({"type": "object"}),
        strict: false,
    };
    let mut request = question();
    if let Prompt::Chat(chat) = &mut request.prompt {
        chat.tools.push(own);
    }
    // Both a call of the client's tool and a turn that has one end the loop.
    for turn in [
        calls(&[("c1", "fake__echo", "{}")]),
        calls(&[("c1", "fake__fail", "{}"), ("c2", "other", "{}")]),
    ] {
        let scene = scene(
            &[("echo", ToolPolicy::Always), ("fail", ToolPolicy::Always)],
            ScriptedBackend::default().then_events(turn.clone()),
        );
        let events = scene.events(request.clone()).await;
        let expected: Vec<_> = turn.into_iter().map(Result::unwrap).collect();
        assert_eq!(events, expected);
        let requests = scene.model.requests();
        let names = chat(&requests[0]).tools.iter();
        assert_eq!(names.filter(|tool| tool.name == "fake__echo").count(), 1);
    }
}

#[tokio::test]
async fn without_tools_to_offer_the_loop_is_transparent() {
    let plain = GenerateRequest::new("model", Prompt::Text("Once".into()));
    let mut none = question();
    let mut named = question();
    if let (Prompt::Chat(none), Prompt::Chat(named)) = (&mut none.prompt, &mut named.prompt) {
        none.tool_choice = ToolChoice::None;
        named.tool_choice = ToolChoice::Named("other".into());
    }
    for request in [plain, none, named] {
        let scene = scene(&[], ScriptedBackend::default().then_events(answer("Yes.")));
        let events = scene.events(request.clone()).await;
        let expected: Vec<_> = answer("Yes.").into_iter().map(Result::unwrap).collect();
        assert_eq!(events, expected);
        assert_eq!(scene.model.requests(), [request]);
    }
}

#[tokio::test]
async fn models_hear_of_tools_whose_notation_is_told_and_not_where_they_take_none() {
    for (support, hears) in [
        (ToolSupport::Native, true),
        (ToolSupport::Generic, true),
        (ToolSupport::None, false),
    ] {
        let model = ScriptedBackend::default().then_events(answer("Yes."));
        let scene = scene(&[], model.with_tools(support));
        scene.events(question()).await;
        let requests = scene.model.requests();
        let Prompt::Chat(chat) = &requests[0].prompt else {
            panic!("a chat");
        };
        assert_eq!(
            chat.tools.iter().any(|tool| tool.name == "fake__echo"),
            hears,
            "{support:?}"
        );
    }
}

#[tokio::test]
async fn what_must_be_called_must_be_called_once() {
    let mut request = question();
    if let Prompt::Chat(chat) = &mut request.prompt {
        chat.tool_choice = ToolChoice::Named("fake__echo".into());
    }
    let model = ScriptedBackend::default()
        .then_events(calls(&[("c1", "fake__echo", "{}")]))
        .then_events(answer("Well."));
    let scene = scene(&[("echo", ToolPolicy::Always)], model);
    scene.events(request).await;
    let requests = scene.model.requests();
    assert_eq!(
        chat(&requests[0]).tool_choice,
        ToolChoice::Named("fake__echo".into())
    );
    assert_eq!(chat(&requests[1]).tool_choice, ToolChoice::Auto);
}

#[tokio::test]
async fn an_answer_that_was_begun_is_continued_once() {
    let mut request = question();
    if let Prompt::Chat(chat) = &mut request.prompt {
        chat.messages.push(Message::text(Role::Assistant, "Sure: "));
        chat.continue_final_message = true;
    }
    let mut first = vec![text("I look.")];
    first.extend(call("c1", "fake__echo", "{}"));
    let model = ScriptedBackend::default()
        .then_events(turn(first, FinishReason::ToolCalls))
        .then_events(answer("Well."));
    let scene = scene(&[("echo", ToolPolicy::Always)], model);
    scene.events(request).await;
    let requests = scene.model.requests();
    let second = chat(&requests[1]);
    assert!(!second.continue_final_message);
    assert_eq!(second.messages.len(), 3);
    assert_eq!(second.messages[1].joined_text(), "Sure: I look.");
    assert_eq!(second.messages[1].tool_calls.len(), 1);
}

#[tokio::test]
async fn errors_come_through() {
    let refused = InferenceError::ModelNotFound {
        reference: "model".into(),
        suggestions: Vec::new(),
    };
    let broken = InferenceError::Engine {
        message: "broken".into(),
    };
    let model = ScriptedBackend::default()
        .then_error(refused.clone())
        .then_events(calls(&[("c1", "fake__echo", "{}")]))
        .then_error(broken.clone());
    let scene = scene(&[("echo", ToolPolicy::Always)], model);
    scene.pool.reload().await;
    let outer = Backend::generate(&scene.tool_loop, card(), question()).await;
    assert_eq!(outer.err(), Some(refused));
    let stream = scene.begin(question()).await;
    let items: Vec<_> = stream.collect().await;
    assert_eq!(items.last(), Some(&Err(broken)));
    let mut several = question();
    several.choices = 2;
    let outer = Backend::generate(&scene.tool_loop, card(), several).await;
    assert!(matches!(
        outer.err(),
        Some(InferenceError::Unsupported { param, .. }) if param == "n"
    ));
}
