//! Everything the commands print, and the only place that prints.

use std::{
    fmt::Write as _,
    io::{self, IsTerminal, Write},
};

use serde::Serialize;

/// Where results, notes and errors go: results to standard output, the rest to standard error.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    is_json: bool,
    is_quiet: bool,
}

impl Output {
    pub(crate) fn new(is_json: bool, is_quiet: bool) -> Self {
        Self { is_json, is_quiet }
    }

    pub(crate) fn is_json(self) -> bool {
        self.is_json
    }

    /// Whether the output is a terminal that can show moving bars.
    pub(crate) fn shows_bars(self) -> bool {
        !self.is_json && !self.is_quiet && io::stderr().is_terminal()
    }

    /// Something worth knowing that is not the result.
    pub(crate) fn note(self, text: &str) {
        if !self.is_quiet {
            aside(text);
        }
    }

    /// A failure: one line with its causes, or JSON.
    pub(crate) fn failure(self, error: &anyhow::Error) {
        let text = one_line(error);
        if self.is_json {
            let value = serde_json::json!({"error": {"message": text}});
            aside(&value.to_string());
        } else {
            aside(&format!("error: {text}"));
        }
    }
}

/// A line of the result.
pub(crate) fn line(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{text}")?;
    stdout.flush()
}

/// A piece of the result as it comes.
pub(crate) fn piece(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// The result as one line of JSON.
pub(crate) fn json(value: &impl Serialize) -> io::Result<()> {
    line(&serde_json::to_string(value)?)
}

/// Rows with aligned columns under a heading.
pub(crate) fn table(heading: &[&str], rows: &[Vec<String>]) -> io::Result<()> {
    let mut widths: Vec<usize> = heading.iter().map(|cell| cell.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut stdout = io::stdout().lock();
    let heading: Vec<String> = heading.iter().map(|cell| (*cell).to_owned()).collect();
    for row in std::iter::once(&heading).chain(rows) {
        let mut line = String::new();
        for (cell, &width) in row.iter().zip(&widths) {
            // Writing into a text cannot fail.
            let _ = write!(line, "{cell:<width$}   ");
        }
        writeln!(stdout, "{}", line.trim_end())?;
    }
    stdout.flush()
}

fn aside(text: &str) {
    // When standard error is gone, there is no place to report it.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Whether the reader of standard output went away.
pub(crate) fn is_closed(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}

/// The error and its causes, without what a cause repeats.
fn one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain() {
        let text = cause.to_string().replace('\n', " ");
        if line.contains(&text) {
            continue;
        }
        if !line.is_empty() {
            line.push_str(": ");
        }
        line.push_str(&text);
    }
    line
}

#[cfg(test)]
mod tests {
    use anyhow::{Context, anyhow};

    use super::*;

    #[test]
    fn causes_are_told_once() {
        let error = Err::<(), _>(anyhow!("port 8000 is taken"))
            .context("cannot serve: port 8000 is taken")
            .unwrap_err();
        assert_eq!(one_line(&error), "cannot serve: port 8000 is taken");
        let error = Err::<(), _>(anyhow!("no space"))
            .context("cannot write")
            .unwrap_err();
        assert_eq!(one_line(&error), "cannot write: no space");
    }

    #[test]
    fn a_closed_pipe_is_recognised_below_context() {
        let error = Err::<(), _>(io::Error::from(io::ErrorKind::BrokenPipe))
            .context("printing")
            .unwrap_err();
        assert!(is_closed(&error));
    }
}
