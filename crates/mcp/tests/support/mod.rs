//! A data folder with servers, a pool over it, and a model that calls what it is told to.

use std::{path::Path, sync::Arc, time::Duration};

use futures::StreamExt;
use macmlx_inference::{
    Backend, ChatPrompt, EventStream, FinishReason, GenerateRequest, GenerationEvent, Message,
    Prompt, Role, ScriptedBackend, Timings, ToolCallPart, ToolRun, ToolRunEnd, Usage,
};
use macmlx_mcp::{
    Approvals, Limits, LoginShell, Pool, PoolSetup, ServerState, ServerStatus, ToolLoop,
};
use macmlx_settings::{Environment, Home, McpServers, ToolPolicies};
use serde_json::{Value, json};

/// Longer than anything here takes on a slow machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) struct Fixture {
    folder: tempfile::TempDir,
    pub(crate) home: Home,
    pub(crate) environment: Environment,
    pub(crate) shell: Option<String>,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().join("home"));
        std::fs::create_dir_all(home.root()).unwrap();
        let path = std::env::vars().find(|(name, _)| name == "PATH");
        let environment = Environment {
            user_home: Some(folder.path().to_path_buf()),
            variables: path.into_iter().collect(),
            ..Environment::default()
        };
        Self {
            folder,
            home,
            environment,
            shell: None,
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes mcp.json as another program would.
    pub(crate) fn write(&self, servers: &Value) {
        let text = json!({"mcpServers": servers}).to_string();
        std::fs::write(self.home.mcp_file(), text).unwrap();
    }

    pub(crate) fn pool(&self) -> Arc<Pool> {
        Arc::new(Pool::start(PoolSetup {
            servers: Arc::new(McpServers::new(&self.home, &self.environment)),
            policies: Arc::new(ToolPolicies::new(&self.home)),
            shell: Arc::new(LoginShell::asking(self.shell.clone(), &self.environment)),
        }))
    }
}

/// Waits until a server is as described.
pub(crate) async fn server_that(
    pool: &Pool,
    name: &str,
    is: impl Fn(&ServerStatus) -> bool,
) -> ServerStatus {
    let found = async {
        loop {
            if let Some(status) = pool.server(name).filter(&is) {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, found)
        .await
        .unwrap_or_else(|_| panic!("{name} does not get there: {:#?}", pool.server(name)))
}

pub(crate) async fn running(pool: &Pool, name: &str) -> ServerStatus {
    server_that(pool, name, |status| status.state == ServerState::Running).await
}

/// The events of a model that calls these tools in one turn and then says "done".
pub(crate) async fn calling(
    pool: &Arc<Pool>,
    calls: &[(&str, Value)],
    limits: Limits,
) -> EventStream {
    let started = || GenerationEvent::Started {
        model: "model".into(),
        prompt_tokens: 1,
        cached_tokens: 0,
    };
    let end = |reason| {
        [
            GenerationEvent::Finished {
                choice: 0,
                reason,
                stop_sequence: None,
            },
            GenerationEvent::Completed {
                usage: Usage::default(),
                timings: Timings::default(),
            },
        ]
    };
    let mut turn = vec![started()];
    for (index, (name, arguments)) in calls.iter().enumerate() {
        for part in [
            ToolCallPart::Start {
                id: format!("call{index}"),
                name: (*name).into(),
            },
            ToolCallPart::Arguments(arguments.to_string()),
            ToolCallPart::End,
        ] {
            turn.push(GenerationEvent::ToolCall {
                choice: 0,
                part,
                tokens: Vec::new(),
            });
        }
    }
    turn.extend(end(FinishReason::ToolCalls));
    let mut close = vec![started()];
    close.extend(end(FinishReason::Stop));
    let model = ScriptedBackend::default()
        .then_events(turn.into_iter().map(Ok).collect())
        .then_events(close.into_iter().map(Ok).collect());
    for (name, _) in calls {
        let policies = pool.policies().clone();
        policies
            .set(name, macmlx_settings::ToolPolicy::Always)
            .unwrap();
    }
    let approvals = Arc::new(Approvals::new(pool.policies().clone()));
    let tool_loop = ToolLoop::new(Arc::new(model), pool.clone(), approvals).with_limits(limits);
    let prompt = Prompt::Chat(ChatPrompt {
        messages: vec![Message::text(Role::User, "Go")],
        ..ChatPrompt::default()
    });
    let card = Arc::new(macmlx_inference::ModelCard::scripted("model"));
    Backend::generate(&tool_loop, card, GenerateRequest::new("model", prompt))
        .await
        .unwrap()
}

/// Calls a tool as a model would; returns how the call ended and what the model was told.
pub(crate) async fn call(pool: &Arc<Pool>, name: &str, arguments: Value) -> (ToolRunEnd, String) {
    let mut stream = calling(pool, &[(name, arguments)], Limits::default()).await;
    let mut ended = None;
    while let Some(event) = stream.next().await {
        if let GenerationEvent::ToolRun {
            run: ToolRun::Ended { end, content, .. },
            ..
        } = event.unwrap()
        {
            ended = Some((end, content));
        }
    }
    ended.expect("the call ends")
}

pub(crate) async fn done(pool: &Arc<Pool>, name: &str, arguments: Value) -> String {
    let (end, content) = call(pool, name, arguments).await;
    assert_eq!(end, ToolRunEnd::Done, "{name}: {content}");
    content
}

/// Ids of processes whose environment has this text: they and all they start carry it.
#[cfg(target_os = "linux")]
pub(crate) fn marked(mark: &str) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").unwrap();
    processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|id: &u32| {
            let environ = std::fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
            String::from_utf8_lossy(&environ).contains(mark)
        })
        .collect()
}

/// The same by `ps`, which shows environments to their owner.
#[cfg(not(target_os = "linux"))]
pub(crate) fn marked(mark: &str) -> Vec<u32> {
    let output = std::process::Command::new("ps")
        .args(["-A", "-E", "-ww", "-o", "pid=,command="])
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter(|line| line.contains(mark))
        .filter_map(|line| line.split_whitespace().next()?.parse().ok())
        .collect()
}
