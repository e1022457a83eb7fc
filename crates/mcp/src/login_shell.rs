//! What the person's login shell knows, PATH above all: an app started from the Finder or a
//! service has a bare one, and `npx` and `uvx` are found nowhere.

use std::{collections::BTreeMap, fs::File, process::Stdio, time::Duration};

use macmlx_settings::Environment;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{process::Command, sync::OnceCell, time::timeout};

const PATIENCE: Duration = Duration::from_secs(5);
/// Stands before and after what we ask for: start-up files print what they like.
const MARK: &str = "__macmlx_environment__";

/// The environment of the login shell, asked for once.
#[derive(Debug)]
pub struct LoginShell {
    /// None: it is not asked, our own environment is what it would say.
    shell: Option<String>,
    own: BTreeMap<String, String>,
    answer: OnceCell<BTreeMap<String, String>>,
}

impl LoginShell {
    /// The shell that `SHELL` names, unless we were started from a terminal: then its PATH is ours
    /// already.
    pub fn new(environment: &Environment) -> Self {
        let has_terminal = File::open("/dev/tty").is_ok();
        let shell = environment.variables.get("SHELL").cloned();
        Self::asking(shell.filter(|_| !has_terminal), environment)
    }

    /// This shell, or none.
    pub fn asking(shell: Option<String>, environment: &Environment) -> Self {
        Self {
            shell,
            own: environment.variables.clone(),
            answer: OnceCell::new(),
        }
    }

    /// Our own variables.
    pub(crate) fn own(&self) -> &BTreeMap<String, String> {
        &self.own
    }

    /// The shell's variables; our own if there is no shell or it does not answer.
    pub(crate) async fn variables(&self) -> &BTreeMap<String, String> {
        self.answer
            .get_or_init(|| async {
                let Some(shell) = &self.shell else {
                    return self.own.clone();
                };
                match ask(shell, &self.own).await {
                    Ok(variables) => variables,
                    Err(reason) => {
                        tracing::warn!(
                            shell,
                            reason,
                            "the login shell does not tell its PATH; MCP servers get ours"
                        );
                        self.own.clone()
                    }
                }
            })
            .await
    }
}

async fn ask(
    shell: &str,
    own: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, String> {
    let child = Command::new(shell)
        .args(["-i", "-l", "-c"])
        .arg(format!("echo {MARK}; /usr/bin/env; echo {MARK}"))
        .env_clear()
        .envs(own)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let answer = timeout(PATIENCE, child.wait_with_output()).await;
    // Start-up files may have left something running, or hang.
    if let Some(group) = group {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let output = answer
        .map_err(|_| "it takes too long".to_owned())?
        .map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let variables = parse(&text).ok_or("it prints something else")?;
    if variables.contains_key("PATH") {
        Ok(variables)
    } else {
        Err("it has no PATH".into())
    }
}

/// The variables between the marks. Lines that start none continue the one before.
fn parse(output: &str) -> Option<BTreeMap<String, String>> {
    let (_, after) = output.split_once(&format!("{MARK}\n"))?;
    let (between, _) = after.rsplit_once(MARK)?;
    let mut variables = BTreeMap::new();
    let mut last: Option<(String, String)> = None;
    for line in between.lines() {
        match line.split_once('=').filter(|(name, _)| is_name(name)) {
            Some((name, value)) => {
                variables.extend(last.replace((name.to_owned(), value.to_owned())));
            }
            None => {
                if let Some((_, value)) = &mut last {
                    value.push('\n');
                    value.push_str(line);
                }
            }
        }
    }
    variables.extend(last);
    Some(variables)
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|first: char| first.is_ascii_digit())
        && text
            .chars()
            .all(|char| char.is_ascii_alphanumeric() || char == '_')
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt, path::Path};

    use super::*;

    fn shell_that(folder: &Path, script: &str) -> LoginShell {
        let path = folder.join("shell");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let environment = Environment {
            variables: BTreeMap::from([("PATH".to_owned(), "/own".to_owned())]),
            ..Environment::default()
        };
        LoginShell::asking(Some(path.to_string_lossy().into_owned()), &environment)
    }

    #[tokio::test]
    async fn its_path_is_found_among_what_start_up_files_print() {
        let folder = tempfile::tempdir().unwrap();
        let shell = shell_that(
            folder.path(),
            r#"[ "$1 $2 $3" = "-i -l -c" ] || exit 1
               echo "Welcome! PATH=/wrong"; echo noise >&2
               export PATH=/shell/bin:/usr/bin TEXT='two
lines'
               eval "$4""#,
        );
        let variables = shell.variables().await;
        assert_eq!(variables["PATH"], "/shell/bin:/usr/bin");
        assert_eq!(variables["TEXT"], "two\nlines");
    }

    #[tokio::test]
    async fn our_own_path_stands_in_for_a_shell_that_fails() {
        let folder = tempfile::tempdir().unwrap();
        for script in ["exit 1", "echo PATH=/wrong", "unset PATH; eval \"$4\""] {
            let shell = shell_that(folder.path(), script);
            assert_eq!(shell.variables().await["PATH"], "/own", "{script}");
        }
        let missing = LoginShell::asking(
            Some("/nonexistent/shell".into()),
            &Environment {
                variables: BTreeMap::from([("PATH".to_owned(), "/own".to_owned())]),
                ..Environment::default()
            },
        );
        assert_eq!(missing.variables().await["PATH"], "/own");
    }

    #[tokio::test]
    async fn a_shell_that_hangs_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let note = folder.path().join("pid");
        let shell = shell_that(
            folder.path(),
            &format!("echo $$ > {}; /bin/sleep 600 & wait", note.display()),
        );
        tokio::time::timeout(Duration::from_secs(20), async {
            assert_eq!(shell.variables().await["PATH"], "/own");
        })
        .await
        .unwrap();
        let id = fs::read_to_string(note).unwrap().trim().parse().unwrap();
        let group = Pid::from_raw(id).unwrap();
        let ended = async {
            while rustix::process::test_kill_process_group(group).is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), ended)
            .await
            .expect("nothing of the shell is left");
    }
}
