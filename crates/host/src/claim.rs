//! One server a home: who claims it, and who has.
//!
//! `macmlx.pid` says who serves, in the form every macMLX reads. A pid alone may be stale or belong
//! to another process by now, so the server also holds a lock for as long as it lives. A record
//! without a held lock counts only if its process is there and its port answers: that is a server
//! that does not know the lock.

use std::{
    fs::{self, File, TryLockError},
    io::{self, Write},
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream},
    path::PathBuf,
    time::Duration,
};

use jiff::Timestamp;
use macmlx_settings::{Home, state_file};
use serde::{Deserialize, Serialize};

/// How long a port of this machine has to answer.
const ANSWER: Duration = Duration::from_millis(500);

/// Contents of `macmlx.pid`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    pub pid: i32,
    pub port: u16,
    /// Address the server is bound to; older servers leave it out and are on this machine only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<IpAddr>,
    #[serde(rename = "modelID", default, skip_serializing_if = "Option::is_none")]
    pub model_id: Option<String>,
    /// A date; writers differ in its form.
    #[serde(default)]
    pub started_at: serde_json::Value,
    pub owner: Owner,
}

/// What kind of process serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Owner {
    Gui,
    Cli,
}

impl Record {
    /// A record of this process.
    pub fn of_this_process(address: SocketAddr, model_id: Option<String>, owner: Owner) -> Self {
        Self {
            pid: rustix::process::getpid().as_raw_nonzero().get(),
            port: address.port(),
            host: Some(address.ip()),
            model_id,
            started_at: format!("{:.0}", Timestamp::now()).into(),
            owner,
        }
    }

    /// Where to reach it from this machine.
    pub fn address(&self) -> SocketAddr {
        let ip = match self.host {
            Some(ip) if !ip.is_unspecified() => ip,
            Some(IpAddr::V6(_)) => IpAddr::V6(std::net::Ipv6Addr::LOCALHOST),
            Some(IpAddr::V4(_)) | None => IpAddr::V4(Ipv4Addr::LOCALHOST),
        };
        SocketAddr::new(ip, self.port)
    }

    fn is_alive(&self) -> bool {
        rustix::process::Pid::from_raw(self.pid).is_some_and(|pid| {
            // A process of another user may not be signalled but is there.
            !matches!(
                rustix::process::test_kill_process(pid),
                Err(rustix::io::Errno::SRCH)
            )
        })
    }
}

/// Why a home cannot be claimed.
#[derive(Debug, thiserror::Error)]
pub enum AlreadyRunning {
    #[error(
        "a macMLX server is already running on port {} ({}, pid {}); stop it with `macmlx stop` or use it as it is",
        .0.port,
        match .0.owner { Owner::Gui => "app", Owner::Cli => "command line" },
        .0.pid
    )]
    Known(Box<Record>),
    #[error(
        "the macMLX app is running (pid {}) and its server is off; switch it on there or quit the app",
        .0.pid
    )]
    WithoutDoor(Holder),
    #[error("another macMLX server is just starting; try again in a moment")]
    Starting,
    #[error("cannot access {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// The holder of a home, as the locked file has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub pid: u32,
    pub owner: Owner,
}

/// The state of a home: whether a process uses it, and which.
#[derive(Debug, Clone, PartialEq)]
pub enum Presence {
    Nobody,
    /// An application that no port leads to, or none yet.
    WithoutDoor(Holder),
    Serving(Record),
}

/// The right to serve from a home, until dropped.
#[derive(Debug)]
pub struct Claim {
    pid_file: PathBuf,
    owner: Owner,
    is_announced: bool,
    /// Unlocked when closed, also when the process is killed.
    _lock: File,
}

impl Claim {
    /// Claims the home for this process. What a dead server left there is cleared away.
    pub fn new(home: &Home, owner: Owner) -> Result<Self, AlreadyRunning> {
        let failed = |path: PathBuf| |source| AlreadyRunning::Io { path, source };
        home.create().map_err(failed(home.root().to_path_buf()))?;
        let mut lock = open_lock(home).map_err(failed(home.lock_file()))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(match (read(home), holder(home)) {
                    (Some(record), _) => AlreadyRunning::Known(Box::new(record)),
                    (None, Some(holder)) if holder.owner == Owner::Gui => {
                        AlreadyRunning::WithoutDoor(holder)
                    }
                    (None, _) => AlreadyRunning::Starting,
                });
            }
            Err(TryLockError::Error(source)) => return Err(failed(home.lock_file())(source)),
        }
        if let Some(record) = read(home).filter(answers) {
            return Err(AlreadyRunning::Known(Box::new(record)));
        }
        sign(&mut lock, owner).map_err(failed(home.lock_file()))?;
        Ok(Self {
            pid_file: home.pid_file(),
            owner,
            is_announced: false,
            _lock: lock,
        })
    }

    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// Says who serves and where.
    pub fn announce(&mut self, record: &Record) -> io::Result<()> {
        let text = serde_json::to_vec(record)?;
        state_file::write(&self.pid_file, &text)?;
        self.is_announced = true;
        Ok(())
    }

    /// Removes the record of a server; the home stays claimed.
    pub fn retract(&mut self) {
        if std::mem::take(&mut self.is_announced) {
            // A file that stays is recognised as stale by the lock, once that is free.
            if let Err(error) = fs::remove_file(&self.pid_file) {
                tracing::warn!(%error, path = %self.pid_file.display(), "the pid file stays");
            }
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.retract();
    }
}

/// The server of a home, if one runs.
pub fn running(home: &Home) -> Option<Record> {
    match presence(home) {
        Presence::Serving(record) => Some(record),
        Presence::Nobody | Presence::WithoutDoor(_) => None,
    }
}

/// Returns which process uses a home.
pub fn presence(home: &Home) -> Presence {
    // Asking must not make a home.
    let is_locked = File::open(home.lock_file())
        .is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)));
    match (read(home), is_locked) {
        (Some(record), true) => Presence::Serving(record),
        (Some(record), false) if answers(&record) => Presence::Serving(record),
        (None, true) => holder(home).map_or(Presence::Nobody, Presence::WithoutDoor),
        (Some(_) | None, false) => Presence::Nobody,
    }
}

/// Writes into the locked file who locked it.
fn sign(lock: &mut File, owner: Owner) -> io::Result<()> {
    let holder = Holder {
        pid: std::process::id(),
        owner,
    };
    lock.set_len(0)?;
    lock.write_all(&serde_json::to_vec(&holder)?)
}

fn holder(home: &Home) -> Option<Holder> {
    serde_json::from_slice(&fs::read(home.lock_file()).ok()?).ok()
}

fn open_lock(home: &Home) -> io::Result<File> {
    File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .read(true)
        .open(home.lock_file())
}

fn read(home: &Home) -> Option<Record> {
    serde_json::from_slice(&fs::read(home.pid_file()).ok()?).ok()
}

/// Whether a server that may not know the lock is really there.
fn answers(record: &Record) -> bool {
    record.is_alive() && TcpStream::connect_timeout(&record.address(), ANSWER).is_ok()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn home() -> (tempfile::TempDir, Home) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        (folder, home)
    }

    fn record(port: u16) -> Record {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        Record::of_this_process(address, Some("owner/model".into()), Owner::Cli)
    }

    #[test]
    fn a_second_server_learns_about_the_first() {
        let (_folder, home) = home();
        let mut claim = Claim::new(&home, Owner::Cli).unwrap();
        assert!(matches!(
            Claim::new(&home, Owner::Cli),
            Err(AlreadyRunning::Starting)
        ));
        claim.announce(&record(8123)).unwrap();
        let message = Claim::new(&home, Owner::Cli).unwrap_err().to_string();
        assert!(message.contains("8123") && message.contains("macmlx stop"));
        assert_eq!(running(&home), Some(record_like(&home)));
        drop(claim);
        assert_eq!(running(&home), None);
        assert!(!home.pid_file().exists());
        Claim::new(&home, Owner::Cli).unwrap();
    }

    #[test]
    fn an_app_with_a_closed_door_is_there() {
        let (_folder, home) = home();
        assert_eq!(presence(&home), Presence::Nobody);
        let mut claim = Claim::new(&home, Owner::Gui).unwrap();
        let holder = Holder {
            pid: std::process::id(),
            owner: Owner::Gui,
        };
        assert_eq!(presence(&home), Presence::WithoutDoor(holder));
        let message = Claim::new(&home, Owner::Cli).unwrap_err().to_string();
        assert!(message.contains("switch it on"), "{message}");
        claim.announce(&record(8123)).unwrap();
        assert!(matches!(presence(&home), Presence::Serving(_)));
        claim.retract();
        assert!(matches!(presence(&home), Presence::WithoutDoor(_)));
        assert!(!home.pid_file().exists());
        drop(claim);
        assert_eq!(presence(&home), Presence::Nobody);
    }

    fn record_like(home: &Home) -> Record {
        read(home).unwrap()
    }

    #[test]
    fn a_stale_record_is_no_server() {
        let (_folder, home) = home();
        // This process is alive, but nothing answers on that port.
        let closed = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        fs::write(
            home.pid_file(),
            serde_json::to_vec(&record(closed.port())).unwrap(),
        )
        .unwrap();
        assert_eq!(running(&home), None);
        Claim::new(&home, Owner::Cli).unwrap();
    }

    #[test]
    fn a_server_that_knows_no_lock_is_respected() {
        let (_folder, home) = home();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let text = format!(
            r#"{{"pid": {}, "port": {port}, "startedAt": 786000000.5, "owner": "gui"}}"#,
            std::process::id()
        );
        fs::write(home.pid_file(), text).unwrap();
        let found = running(&home).unwrap();
        assert_eq!(found.owner, Owner::Gui);
        assert_eq!(found.address().port(), port);
        assert!(matches!(
            Claim::new(&home, Owner::Cli),
            Err(AlreadyRunning::Known(_))
        ));
        // Asking leaves the record alone.
        assert!(home.pid_file().exists());
    }

    #[test]
    fn a_damaged_record_does_not_stop_anyone() {
        let (_folder, home) = home();
        fs::write(home.pid_file(), "{").unwrap();
        assert_eq!(running(&home), None);
        Claim::new(&home, Owner::Cli).unwrap();
    }
}
