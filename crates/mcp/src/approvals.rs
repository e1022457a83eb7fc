//! Tool calls that wait for a person.

use std::{collections::HashMap, sync::Arc};

use macmlx_settings::{ToolPolicies, ToolPolicy};
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// What a person says to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Decision {
    Deny,
    AllowOnce,
    /// This call, and all later ones of its tool.
    AllowAlways,
}

/// Why a decision has no effect, or not all of it.
#[derive(Debug, thiserror::Error)]
pub enum DecideError {
    #[error(
        "no tool call waits under the id `{call_id}`: it was decided, timed out or was stopped"
    )]
    NotWaiting { call_id: String },
    #[error("the call was allowed, but later ones are asked about again: {0}")]
    NotStored(macmlx_settings::Error),
}

/// The calls that wait, shared by the tool loop and the route that asks the person.
#[derive(Debug)]
pub struct Approvals {
    policies: Arc<ToolPolicies>,
    waiting: Mutex<HashMap<String, Pending>>,
}

#[derive(Debug)]
struct Pending {
    tool: String,
    answer: oneshot::Sender<Decision>,
}

impl Approvals {
    pub fn new(policies: Arc<ToolPolicies>) -> Self {
        Self {
            policies,
            waiting: Mutex::default(),
        }
    }

    /// Answers a call that waits, by the id of its `ToolRun::ApprovalNeeded`.
    pub async fn decide(&self, call_id: &str, decision: Decision) -> Result<(), DecideError> {
        let not_waiting = || DecideError::NotWaiting {
            call_id: call_id.into(),
        };
        let Pending { tool, answer } = self
            .waiting
            .lock()
            .remove(call_id)
            .ok_or_else(not_waiting)?;
        if decision != Decision::AllowAlways {
            return answer.send(decision).map_err(|_| not_waiting());
        }
        let policies = self.policies.clone();
        // Stored first, so that the next call of the same turn finds it; and on a task that ends
        // even if the deciding request is dropped.
        let storing = tokio::task::spawn_blocking(move || {
            let stored = policies.set(&tool, ToolPolicy::Always);
            (stored, answer.send(decision).is_ok())
        });
        match storing.await {
            Ok((Err(error), _)) => Err(DecideError::NotStored(error)),
            Ok((Ok(()), true)) => Ok(()),
            Ok((Ok(()), false)) | Err(_) => Err(not_waiting()),
        }
    }

    /// Has a call wait. It waits no more once the return value is dropped.
    pub(crate) fn ask(&self, call_id: &str, tool: &str) -> Waiting<'_> {
        let (answer, decision) = oneshot::channel();
        let pending = Pending {
            tool: tool.into(),
            answer,
        };
        self.waiting.lock().insert(call_id.into(), pending);
        Waiting {
            approvals: self,
            call_id: call_id.into(),
            decision,
        }
    }
}

/// A call that waits.
#[derive(Debug)]
pub(crate) struct Waiting<'a> {
    approvals: &'a Approvals,
    call_id: String,
    decision: oneshot::Receiver<Decision>,
}

impl Waiting<'_> {
    /// `None` means that no answer can come any more.
    pub(crate) async fn decision(&mut self) -> Option<Decision> {
        (&mut self.decision).await.ok()
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.approvals.waiting.lock().remove(&self.call_id);
    }
}
