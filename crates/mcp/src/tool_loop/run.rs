//! One tool call, from the question whether it may run to what the model is told.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use macmlx_inference::{GenerationEvent, Message, Role, ToolCall, ToolRun, ToolRunEnd};
use macmlx_settings::ToolPolicy;
use serde_json::{Map, Value};
use tokio::time::timeout;

use super::{Limits, driven::Events, repeats::Repeats};
use crate::{Approvals, Decision, Pool, Tool, session::CallTimes, tool_result};

/// Carries out the calls of one request.
pub(super) struct Runner {
    pool: Arc<Pool>,
    approvals: Arc<Approvals>,
    tools: Vec<Tool>,
    limits: Limits,
    repeats: Repeats,
    waited: Duration,
}

/// What becomes of a call.
struct Outcome {
    end: ToolRunEnd,
    content: String,
}

impl Outcome {
    fn failed(content: impl Into<String>) -> Self {
        Self {
            end: ToolRunEnd::Failed,
            content: content.into(),
        }
    }

    fn denied(content: &str) -> Self {
        Self {
            end: ToolRunEnd::Denied,
            content: content.into(),
        }
    }
}

impl Runner {
    pub(super) fn new(
        pool: Arc<Pool>,
        approvals: Arc<Approvals>,
        tools: Vec<Tool>,
        limits: Limits,
    ) -> Self {
        Self {
            pool,
            approvals,
            tools,
            limits,
            repeats: Repeats::default(),
            waited: Duration::ZERO,
        }
    }

    pub(super) fn knows(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.full_name == name)
    }

    /// Time spent on waiting for a person.
    pub(super) fn waited(&self) -> Duration {
        self.waited
    }

    /// Carries a call out, or says why not; returns the message for the model.
    pub(super) async fn run(&mut self, call: &ToolCall, events: &mut Events) -> Message {
        let mut began = None;
        let outcome = self.outcome(call, events, &mut began).await;
        let run = ToolRun::Ended {
            end: outcome.end,
            content: outcome.content.clone(),
            duration: began.map_or(Duration::ZERO, |began: Instant| began.elapsed()),
        };
        events.send(tell(call, run)).await;
        Message {
            tool_call_id: Some(call.id.clone()),
            name: Some(call.name.clone()),
            ..Message::text(Role::Tool, outcome.content)
        }
    }

    async fn outcome(
        &mut self,
        call: &ToolCall,
        events: &mut Events,
        began: &mut Option<Instant>,
    ) -> Outcome {
        let Some(tool) = self.tools.iter().find(|tool| tool.full_name == call.name) else {
            let known: Vec<_> = self.tools.iter().map(|tool| &*tool.full_name).collect();
            return Outcome::failed(format!(
                "There is no tool `{}`. The tools are: {}.",
                call.name,
                known.join(", ")
            ));
        };
        let tool = tool.clone();
        let arguments = match arguments(&call.arguments) {
            Ok(arguments) => arguments,
            Err(reason) => return Outcome::failed(reason),
        };
        if self.repeats.count(&tool.full_name, &arguments) >= self.limits.repeats {
            return Outcome::failed(format!(
                "This call was made {} times in a row with the same arguments and is not carried \
                 out again. Use the result you have, or try something else.",
                self.limits.repeats
            ));
        }
        if let Some(denied) = self.permission(call, &tool, events).await {
            return denied;
        }
        *began = Some(Instant::now());
        let run = ToolRun::Began {
            server: tool.server.clone(),
            tool: tool.name.clone(),
        };
        events.send(tell(call, run)).await;
        let times = CallTimes {
            quiet: self.limits.call_time,
            whole: self.limits.time,
        };
        match self.pool.call(&tool, arguments, times).await {
            Ok(result) => {
                let (content, is_error) = tool_result::render(result, self.limits.result_bytes);
                let end = if is_error {
                    ToolRunEnd::Failed
                } else {
                    ToolRunEnd::Done
                };
                Outcome { end, content }
            }
            Err(error) => Outcome::failed(error.to_string()),
        }
    }

    /// Why the call may not run, if it may not.
    async fn permission(
        &mut self,
        call: &ToolCall,
        tool: &Tool,
        events: &mut Events,
    ) -> Option<Outcome> {
        let policies = self.pool.all_policies().await;
        match policies.get(&tool.full_name).copied().unwrap_or_default() {
            ToolPolicy::Always => None,
            ToolPolicy::Never => Some(Outcome::denied("This tool is switched off.")),
            ToolPolicy::Ask => {
                // The question must be registered before it is seen, so that an answer finds it.
                let mut waiting = self.approvals.ask(&call.id, &tool.full_name);
                let began = Instant::now();
                let run = ToolRun::ApprovalNeeded {
                    server: tool.server.clone(),
                    tool: tool.name.clone(),
                    arguments: call.arguments.clone(),
                };
                events.send(tell(call, run)).await;
                let decision = timeout(self.limits.approval_time, waiting.decision()).await;
                self.waited += began.elapsed();
                match decision {
                    Ok(Some(Decision::AllowOnce | Decision::AllowAlways)) => None,
                    Ok(Some(Decision::Deny) | None) => {
                        Some(Outcome::denied("The user denied this call."))
                    }
                    Err(_) => Some(Outcome::denied(
                        "The user did not allow this call in time; it was not carried out.",
                    )),
                }
            }
        }
    }
}

fn tell(call: &ToolCall, run: ToolRun) -> GenerationEvent {
    GenerationEvent::ToolRun {
        choice: 0,
        id: call.id.clone(),
        run,
    }
}

/// The arguments of a call; none at all are those of a tool that takes none.
fn arguments(text: &str) -> Result<Map<String, Value>, String> {
    macmlx_json::read_arguments(text).map_err(|error| format!("The arguments are wrong: {error}."))
}
