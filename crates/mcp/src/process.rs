//! The process of a server and all that it started, from start to a clean end.

use std::{
    io,
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::{
    process::{Child, ChildStdin, ChildStdout, Command},
    runtime::Handle,
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

use crate::{guard::Guard, log_tail::LogTail};

/// How long a server has to end by itself once its input is closed.
const CLOSED_GRACE: Duration = Duration::from_millis(500);
/// How long it has once it is asked to end.
const TERM_GRACE: Duration = Duration::from_secs(3);
/// How long its last words are waited for: a process that left its group may hold the pipe open.
const WORDS_GRACE: Duration = Duration::from_millis(500);
const POLL: Duration = Duration::from_millis(20);

/// Dropping it ends the process group: in order where there is a runtime, else at once.
#[derive(Debug)]
pub(crate) struct Process {
    group: Option<Group>,
}

/// The streams on which a process is spoken to.
#[derive(Debug)]
pub(crate) struct Pipes {
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
}

impl Process {
    /// Starts a command as the leader of a process group of its own. What it writes to its
    /// standard error is noted in `log`.
    pub(crate) fn spawn(
        command: &mut Command,
        guard: &Arc<Guard>,
        log: Arc<LogTail>,
    ) -> io::Result<(Self, Pipes)> {
        let mut child = command
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let (Some(id), Some(stdin), Some(stdout), Some(stderr)) = (
            id,
            child.stdin.take(),
            child.stdout.take(),
            child.stderr.take(),
        ) else {
            return Err(io::Error::other("the process ended while it was started"));
        };
        guard.watch(id);
        let group = Group {
            id,
            guard: guard.clone(),
            leader: child,
            words: tokio::spawn(async move { log.follow(stderr).await }),
            is_gone: false,
        };
        let pipes = Pipes { stdin, stdout };
        Ok((Self { group: Some(group) }, pipes))
    }

    pub(crate) fn id(&self) -> Option<u32> {
        let group = self.group.as_ref()?;
        Some(group.id.as_raw_nonzero().get().cast_unsigned())
    }

    /// How it ended, if it ends soon. What it wrote until then is in the log.
    pub(crate) async fn wait_for_end(&mut self) -> Option<ExitStatus> {
        let group = self.group.as_mut()?;
        let status = timeout(CLOSED_GRACE, group.leader.wait()).await.ok()?.ok();
        group.last_words().await;
        status
    }

    /// Ends the group. Its input must be closed already.
    pub(crate) async fn stop(mut self) {
        if let Some(group) = self.group.take() {
            group.end().await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let Some(group) = self.group.take() else {
            return;
        };
        // The log may be the next run's before this one has ended.
        group.words.abort();
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(group.end());
        }
    }
}

/// A process group. Dropping it kills it, since nothing is left that would wait for it.
#[derive(Debug)]
struct Group {
    id: Pid,
    guard: Arc<Guard>,
    leader: Child,
    /// Notes what it says on its standard error.
    words: JoinHandle<()>,
    is_gone: bool,
}

impl Group {
    async fn end(mut self) {
        self.leave().await;
        self.last_words().await;
    }

    async fn leave(&mut self) {
        if self.is_gone_within(CLOSED_GRACE).await {
            return;
        }
        let _ = kill_process_group(self.id, Signal::TERM);
        if self.is_gone_within(TERM_GRACE).await {
            return;
        }
        let _ = kill_process_group(self.id, Signal::KILL);
        self.is_gone_within(TERM_GRACE).await;
    }

    /// Waits until all it said is noted. From then on nothing more is.
    async fn last_words(&mut self) {
        if !self.words.is_finished() && timeout(WORDS_GRACE, &mut self.words).await.is_err() {
            self.words.abort();
        }
    }

    /// Whether leader and followers have ended by then.
    async fn is_gone_within(&mut self, grace: Duration) -> bool {
        let end = Instant::now() + grace;
        loop {
            // An ended leader stays in the group until it is waited for.
            let leader_ended = !matches!(self.leader.try_wait(), Ok(None));
            if leader_ended && test_kill_process_group(self.id).is_err() {
                self.is_gone = true;
                return true;
            }
            if Instant::now() >= end {
                return false;
            }
            sleep(POLL).await;
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Once it is gone, its number may belong to another process.
        if !self.is_gone {
            let _ = kill_process_group(self.id, Signal::KILL);
        }
        self.guard.forget(self.id);
    }
}
