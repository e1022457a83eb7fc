//! `cargo xtask sizes`: source files stay short; tests do not count.

use std::{fs, path::Path, process::Command};

use anyhow::{Context, Result, bail};

use crate::{shell, workspace};

/// Production lines from which a file is named, and from which it fails.
const WARN_LINES: usize = 400;
const FAIL_LINES: usize = 800;

const EXTENSIONS: &[&str] = &["rs", "py", "ts", "svelte", "mjs", "css"];

/// `path: reason` lines for files that may be longer.
const WAIVERS: &str = include_str!("../sizes.txt");

/// A file and how many of its lines are not tests.
#[derive(Debug)]
struct Source {
    path: String,
    lines: usize,
}

/// What the limits say about a set of files, one line each.
#[derive(Debug, Default, PartialEq)]
struct Verdict {
    warnings: Vec<String>,
    failures: Vec<String>,
}

pub(crate) fn run() -> Result<()> {
    let sources = sources()?;
    let verdict = judge(&sources, WAIVERS);
    for warning in &verdict.warnings {
        println!("sizes: warning: {warning}");
    }
    if !verdict.failures.is_empty() {
        bail!("{}", verdict.failures.join("\n"));
    }
    let longest = sources.iter().max_by_key(|source| source.lines);
    if let Some(Source { path, lines }) = longest {
        println!(
            "sizes: {} files, the longest is {path} with {lines} lines",
            sources.len()
        );
    }
    Ok(())
}

fn judge(sources: &[Source], waivers: &str) -> Verdict {
    let mut verdict = Verdict::default();
    let mut waived = Vec::new();
    for line in waivers
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        match line.split_once(": ") {
            Some((path, reason)) if !reason.trim().is_empty() => waived.push(path),
            _ => verdict
                .failures
                .push(format!("sizes.txt: `{line}` gives no reason")),
        }
    }
    for Source { path, lines } in sources {
        if *lines < WARN_LINES || waived.contains(&path.as_str()) {
            continue;
        }
        let found = format!("{path}: {lines} production lines");
        if *lines >= FAIL_LINES {
            verdict
                .failures
                .push(format!("{found}, the limit is {FAIL_LINES}: split it"));
        } else {
            verdict.warnings.push(found);
        }
    }
    for path in waived {
        if !sources
            .iter()
            .any(|source| source.path == path && source.lines >= WARN_LINES)
        {
            verdict
                .failures
                .push(format!("sizes.txt: {path} needs no waiver"));
        }
    }
    verdict
}

fn sources() -> Result<Vec<Source>> {
    let listed = shell::output(Command::new("git").current_dir(workspace::root()).args([
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
    ]))?;
    let mut sources = Vec::new();
    for path in listed.lines().filter(|path| is_production(path)) {
        let file = workspace::root().join(path);
        // Listed by git and deleted in the working tree.
        if !file.exists() {
            continue;
        }
        let text =
            fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let is_rust = file.extension().is_some_and(|extension| extension == "rs");
        let lines = if is_rust {
            production(&text).len()
        } else {
            text.lines().count()
        };
        sources.push(Source {
            path: path.to_owned(),
            lines,
        });
    }
    Ok(sources)
}

/// Whether a file is source that we wrote and is not a test.
pub(crate) fn is_production(path: &str) -> bool {
    let path = Path::new(path);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.extension()
        .is_some_and(|extension| EXTENSIONS.iter().any(|known| extension == *known))
        && !name.contains(".gen.")
        && !name.contains(".test.")
        && name != "tests.rs"
        && !path.components().any(|part| part.as_os_str() == "tests")
}

/// Returns the lines outside items that are compiled for tests only.
///
/// Relies on rustfmt: an item ends with a line that is indented like its first one.
pub(crate) fn production(text: &str) -> Vec<&str> {
    let mut kept = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(indent) = test_attribute_indent(line) else {
            kept.push(line);
            continue;
        };
        for line in lines.by_ref() {
            let is_at_indent = line.len() - line.trim_start().len() == indent;
            if is_at_indent && ends_item(line.trim()) {
                break;
            }
        }
    }
    kept
}

fn test_attribute_indent(line: &str) -> Option<usize> {
    let attribute = line.trim_start();
    (attribute == "#[cfg(test)]" || attribute.starts_with("#[cfg(all(test,"))
        .then_some(line.len() - attribute.len())
}

fn ends_item(line: &str) -> bool {
    !line.starts_with('#') && !line.starts_with("//") && line.ends_with(['}', ';', ','])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_test_modules_do_not_count() {
        let text = "\
//! A module.

fn one() {
    two();
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = \"tests\")]
mod tests {
    fn three() {
        let x = 1;
    }
}

fn four() {}
";
        assert_eq!(production(text).len(), 8);
    }

    #[test]
    fn single_items_for_tests_do_not_count() {
        let text = "\
struct S {
    #[cfg(test)]
    probe: u32,
    kept: u32,
}
#[cfg(test)]
mod tests;
#[cfg(test)]
use std::fs;
#[cfg(all(test, unix))]
fn only(
    a: u32,
) {
    b();
}
fn kept() {}
";
        assert_eq!(production(text).len(), 4);
    }

    #[test]
    fn limits_name_the_file() {
        let source = |path: &str, lines| Source {
            path: path.into(),
            lines,
        };
        let sources = [
            source("a.rs", 399),
            source("b.rs", 400),
            source("c.rs", 799),
            source("d.rs", 800),
        ];
        let verdict = judge(&sources, "");
        assert_eq!(
            verdict.warnings,
            ["b.rs: 400 production lines", "c.rs: 799 production lines"]
        );
        assert_eq!(
            verdict.failures,
            ["d.rs: 800 production lines, the limit is 800: split it"]
        );
        let waived = judge(&sources[3..], "# why\n\nd.rs: one table of flags\n");
        assert_eq!(waived, Verdict::default());
    }

    #[test]
    fn waivers_need_a_reason_and_a_long_file() {
        let sources = [Source {
            path: "a.rs".into(),
            lines: 10,
        }];
        assert_eq!(
            judge(&sources, "a.rs: \n").failures,
            ["sizes.txt: `a.rs: ` gives no reason"]
        );
        assert_eq!(
            judge(&sources, "a.rs: long\n").failures,
            ["sizes.txt: a.rs needs no waiver"]
        );
    }

    #[test]
    fn tests_and_generated_files_are_not_production() {
        for path in ["crates/a/src/lib.rs", "bench/bench.py", "ui/src/app.svelte"] {
            assert!(is_production(path), "{path}");
        }
        for path in [
            "crates/a/tests/cases.rs",
            "crates/a/src/tests.rs",
            "tests/e2e/conftest.py",
            "ui/src/app.test.svelte",
            "ui/src/api.gen.ts",
            "README.md",
        ] {
            assert!(!is_production(path), "{path}");
        }
    }
}
