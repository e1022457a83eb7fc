//! Calls over an open connection.

use std::time::Duration;

use rmcp::{
    RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, CallToolResult, CancelledNotificationParam,
        ClientRequest, PingRequest, ServerResult,
    },
    service::{Peer, PeerRequestOptions, ServiceError},
};
use serde_json::{Map, Value};
use tokio::sync::oneshot;

/// Bounds of one call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallTimes {
    /// Longest time without a sign of progress.
    pub(crate) quiet: Duration,
    /// Longest time altogether, whatever progress there is.
    pub(crate) whole: Duration,
}

/// Why a call has no result. The words are for the model.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    #[error("The server `{server}` is not running: {reason}")]
    NotRunning { server: String, reason: String },
    #[error("The server `{server}` has no tool `{tool}` any more.")]
    NoTool { server: String, tool: String },
    #[error("The server refused the call: {message}")]
    Refused { message: String },
    #[error("The server ended during the call.")]
    Ended,
    #[error("The tool did not answer within {} s and was cancelled.", after.as_secs())]
    Timeout { after: Duration },
    #[error("The server's answer cannot be understood: {reason}")]
    Answer { reason: String },
}

/// Calls a tool. Dropping the future cancels the call, and the server is told.
pub(crate) async fn call(
    peer: &Peer<RoleClient>,
    tool: String,
    arguments: Map<String, Value>,
    times: CallTimes,
) -> Result<CallToolResult, CallError> {
    let (waiting, gone) = oneshot::channel::<()>();
    let peer = peer.clone();
    // A task of its own, because the server must be told even if the caller stops waiting.
    let task = tokio::spawn(async move {
        let params = CallToolRequestParams::new(tool).with_arguments(arguments);
        let options = PeerRequestOptions::with_timeout(times.quiet)
            .reset_timeout_on_progress()
            .with_max_total_timeout(times.whole);
        let handle = peer
            .send_cancellable_request(
                ClientRequest::CallToolRequest(CallToolRequest::new(params)),
                options,
            )
            .await?;
        let id = handle.id.clone();
        tokio::select! {
            response = handle.await_response() => response,
            _ = gone => {
                let reason = "the person or the client stopped it".to_owned();
                let cancelled = CancelledNotificationParam::new(Some(id), Some(reason));
                let _ = peer.notify_cancelled(cancelled).await;
                Err(ServiceError::Cancelled { reason: None })
            }
        }
    });
    let response = task.await;
    drop(waiting);
    match response {
        Ok(Ok(ServerResult::CallToolResult(result))) => Ok(result),
        Ok(Ok(ServerResult::EmptyResult(_))) => Ok(CallToolResult::default()),
        Ok(Ok(_)) => Err(CallError::Answer {
            reason: "it is no result of a tool".into(),
        }),
        Ok(Err(ServiceError::McpError(error))) => Err(CallError::Refused {
            message: error.message.into_owned(),
        }),
        Ok(Err(ServiceError::Timeout { timeout })) => Err(CallError::Timeout { after: timeout }),
        Ok(Err(
            ServiceError::TransportClosed
            | ServiceError::TransportSend(_)
            | ServiceError::Cancelled { .. },
        ))
        | Err(_) => Err(CallError::Ended),
        Ok(Err(error)) => Err(CallError::Answer {
            reason: error.to_string(),
        }),
    }
}

/// Whether the server still answers. One that does not know pings answers, too.
pub(crate) async fn answers_ping(peer: &Peer<RoleClient>, patience: Duration) -> bool {
    let request = ClientRequest::PingRequest(PingRequest::default());
    let sent = peer
        .send_cancellable_request(request, PeerRequestOptions::with_timeout(patience))
        .await;
    match sent {
        Ok(handle) => !matches!(
            handle.await_response().await,
            Err(ServiceError::Timeout { .. } | ServiceError::TransportClosed)
        ),
        Err(_) => false,
    }
}
