//! A small process that outlives us when we are killed, and then ends our servers.
//!
//! A server learns from the end of its input that its client is gone, but not every server looks,
//! and what it started itself (npx starts node) never does. The guard holds the other end of a pipe
//! of ours: the system closes it however we die, and the guard ends the process groups it was told
//! of. It is a shell script, so it works the same on macOS and Linux.

use std::{
    io::{self, PipeWriter, Write},
    process::Stdio,
    sync::OnceLock,
};

use parking_lot::Mutex;
use rustix::process::Pid;
use tokio::{process::Command, sync::watch};

const SCRIPT: &str = r#"
trap '' HUP INT TERM
groups=
while read -r change group; do
    kept=
    for one in $groups; do
        [ "$one" = "$group" ] || kept="$kept $one"
    done
    groups=$kept
    [ "$change" = + ] && groups="$groups $group"
done
[ -n "$groups" ] || exit 0
for one in $groups; do kill -s TERM -- "-$one"; done
sleep 3
for one in $groups; do kill -s KILL -- "-$one"; done
"#;

/// Started with the first group it is told of; ends when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    pipe: OnceLock<Option<Mutex<PipeWriter>>>,
    groups: watch::Sender<usize>,
}

impl Guard {
    /// Makes the group end with this process, from now on.
    pub(crate) fn watch(&self, group: Pid) {
        self.groups.send_modify(|groups| *groups += 1);
        self.tell('+', group);
    }

    /// The group has ended; its number may soon belong to another one.
    pub(crate) fn forget(&self, group: Pid) {
        self.tell('-', group);
        self.groups
            .send_modify(|groups| *groups = groups.saturating_sub(1));
    }

    /// Returns once no group is left.
    pub(crate) async fn wait_until_empty(&self) {
        let mut groups = self.groups.subscribe();
        let _ = groups.wait_for(|groups| *groups == 0).await;
    }

    fn tell(&self, change: char, group: Pid) {
        let Some(pipe) = self.pipe.get_or_init(start) else {
            return;
        };
        let mut pipe = pipe.lock();
        let line = format!("{change} {}\n", group.as_raw_nonzero());
        if let Err(error) = pipe.write_all(line.as_bytes()) {
            tracing::warn!(%error, "MCP servers are left running if this process is killed");
        }
    }
}

fn start() -> Option<Mutex<PipeWriter>> {
    match spawn() {
        Ok(pipe) => Some(Mutex::new(pipe)),
        Err(error) => {
            tracing::warn!(%error, "MCP servers are left running if this process is killed");
            None
        }
    }
}

fn spawn() -> io::Result<PipeWriter> {
    let (reader, writer) = io::pipe()?;
    // Tokio reaps it once it has ended.
    Command::new("/bin/sh")
        .args(["-c", SCRIPT])
        .process_group(0)
        .stdin(reader)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    Ok(writer)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn sleeper() -> (tokio::process::Child, Pid) {
        let child = Command::new("sh")
            .args(["-c", "sleep 600 & wait"])
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let group = Pid::from_raw(child.id().unwrap().cast_signed()).unwrap();
        (child, group)
    }

    #[tokio::test]
    async fn what_it_watches_ends_with_us_and_nothing_else_does() {
        let guard = Guard::default();
        let (mut watched, watched_group) = sleeper();
        let (mut forgotten, forgotten_group) = sleeper();
        guard.watch(watched_group);
        guard.watch(forgotten_group);
        guard.forget(forgotten_group);
        // The end of the pipe is all that it ever sees of our death.
        drop(guard);
        tokio::time::timeout(Duration::from_secs(10), watched.wait())
            .await
            .expect("the guard ends what it watches")
            .unwrap();
        assert!(forgotten.try_wait().unwrap().is_none());
        let _ = rustix::process::kill_process_group(forgotten_group, rustix::process::Signal::KILL);
        forgotten.wait().await.unwrap();
    }
}
