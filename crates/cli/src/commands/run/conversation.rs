//! A conversation on a terminal: line editing, history, a few words that begin with a slash.

use std::path::PathBuf;

use anyhow::Context;
use rustyline::{DefaultEditor, error::ReadlineError};
use serde_json::{Value, json};

use super::{Session, answer};
use crate::{interrupt, output};

const PROMPT: &str = ">>> ";
const CONTINUED: &str = "... ";
/// Opens and closes a text of several lines.
const FENCE: &str = "\"\"\"";
const HELP: &str = "\
/clear          forget the conversation
/system TEXT    begin anew with this instruction
/bye            end (or Ctrl-D)
\"\"\"             begin and end a text of several lines
Ctrl-C stops an answer";

/// What was typed.
#[derive(Debug, PartialEq, Eq)]
enum Input {
    Message(String),
    Nothing,
    Clear,
    System(String),
    Help,
    Bye,
    Unknown(String),
}

pub(super) async fn hold(
    session: &Session,
    system: Option<Value>,
    history: PathBuf,
) -> anyhow::Result<()> {
    let output = session.output;
    let mut editor = DefaultEditor::new().context("cannot use this terminal")?;
    // There is none at first.
    let _ = editor.load_history(&history);
    output.note(&format!("{} (/help for help)", session.model));
    let mut messages: Vec<Value> = system.into_iter().collect();
    loop {
        let (returned, typed) = tokio::task::spawn_blocking(move || {
            let typed = read(&mut editor);
            (editor, typed)
        })
        .await?;
        editor = returned;
        let typed = match typed {
            Ok(typed) => typed,
            Err(ReadlineError::Interrupted) => {
                output.note("/bye or Ctrl-D ends the conversation");
                continue;
            }
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(error).context("cannot read from this terminal"),
        };
        // A history that cannot be kept is no reason to stop.
        let _ = editor.add_history_entry(typed.as_str());
        let _ = editor.save_history(&history);
        match parse(&typed) {
            Input::Nothing => {}
            Input::Bye => break,
            Input::Help => output.note(HELP),
            Input::Unknown(word) => output.note(&format!("{word} is not known; /help lists all")),
            Input::Clear => {
                messages.retain(|message| message["role"] == "system");
                output.note("the conversation is forgotten");
            }
            Input::System(text) => {
                messages = vec![json!({"role": "system", "content": text})];
                output.note("a new conversation begins");
            }
            Input::Message(text) => {
                messages.push(json!({"role": "user", "content": text}));
                reply(session, &mut messages).await?;
            }
        }
    }
    Ok(())
}

/// Prints an answer and adds it to the conversation. One that fails or is stopped leaves the
/// conversation as it was before the question.
async fn reply(session: &Session, messages: &mut Vec<Value>) -> anyhow::Result<()> {
    let answer = tokio::select! {
        answer = answer::ask(session, messages) => Some(answer),
        pressed = interrupt::pressed() => {
            pressed?;
            None
        }
    };
    match answer {
        Some(Ok(answer)) => {
            messages.push(json!({"role": "assistant", "content": answer.text}));
        }
        Some(Err(error)) if output::is_closed(&error) => return Err(error),
        Some(Err(error)) => {
            session.output.failure(&error);
            messages.pop();
        }
        None => {
            output::line("")?;
            session.output.note("stopped");
            messages.pop();
        }
    }
    Ok(())
}

/// A line, or the lines between two fences.
fn read(editor: &mut DefaultEditor) -> rustyline::Result<String> {
    let mut text = editor.readline(PROMPT)?;
    if text.trim_start().starts_with(FENCE) {
        while !is_closed(&text) {
            text.push('\n');
            text.push_str(&editor.readline(CONTINUED)?);
        }
    }
    Ok(text)
}

fn is_closed(text: &str) -> bool {
    let text = text.trim();
    text.len() >= 2 * FENCE.len() && text.ends_with(FENCE)
}

fn parse(typed: &str) -> Input {
    let text = typed.trim();
    if let Some(inner) = text.strip_prefix(FENCE) {
        let inner = inner.strip_suffix(FENCE).unwrap_or(inner).trim();
        return if inner.is_empty() {
            Input::Nothing
        } else {
            Input::Message(inner.to_owned())
        };
    }
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    match word {
        "" => Input::Nothing,
        "/bye" | "/exit" | "/quit" => Input::Bye,
        "/clear" => Input::Clear,
        "/system" if !rest.trim().is_empty() => Input::System(rest.trim().to_owned()),
        "/help" | "/?" => Input::Help,
        // A path or a comment may be a question, too.
        _ if word.starts_with('/') && !word[1..].contains(['/', '*']) => {
            Input::Unknown(word.to_owned())
        }
        _ => Input::Message(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_a_slash() {
        assert_eq!(parse("/bye"), Input::Bye);
        assert_eq!(parse("  /clear "), Input::Clear);
        assert_eq!(
            parse("/system Be brief."),
            Input::System("Be brief.".into())
        );
        assert_eq!(parse("/system"), Input::Unknown("/system".into()));
        assert_eq!(parse("/nope"), Input::Unknown("/nope".into()));
        assert_eq!(parse(""), Input::Nothing);
    }

    #[test]
    fn everything_else_is_a_message() {
        for text in ["hello", "/usr/bin is what?", "// a comment", "1 / 2"] {
            assert_eq!(parse(text), Input::Message(text.into()));
        }
    }

    #[test]
    fn several_lines() {
        assert!(!is_closed("\"\"\""));
        assert!(!is_closed("\"\"\"one"));
        assert!(is_closed("\"\"\"one\ntwo\"\"\""));
        assert_eq!(
            parse("\"\"\"one\ntwo\"\"\""),
            Input::Message("one\ntwo".into())
        );
    }
}
