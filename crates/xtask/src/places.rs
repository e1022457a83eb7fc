//! `cargo xtask check`, places: adding a thing touches as many files as README says, and no more.
//!
//! A member that is there already stands for the next one: where its name is written is where the next
//! one must be. Tests, cases and generated files do not count.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use anyhow::{Context, Result, bail};

use crate::{shell, sizes, workspace};

/// A thing that people add, as README calls it, and a member that was added.
#[derive(Debug)]
struct Walk {
    thing: &'static str,
    /// How the member is written, in Rust and elsewhere.
    names: &'static [&'static str],
}

const WALKS: &[Walk] = &[
    Walk {
        thing: "an architecture",
        names: &["starcoder2"],
    },
    Walk {
        thing: "an encoder's architecture",
        names: &["nomic_bert"],
    },
    Walk {
        thing: "a sampling parameter",
        names: &["top_n_sigma", "topNSigma"],
    },
    Walk {
        thing: "a setting",
        names: &["log_retention_days", "logRetentionDays"],
    },
    Walk {
        thing: "an output format",
        names: &["minimax_m2"],
    },
];

/// Checkpoints judge an architecture, and are made by these files.
const NO_TESTS: &[&str] = &["tests/parity/make.py", "tests/parity/make_encoders.py"];

/// No walk is longer.
const LIMIT: usize = 3;

pub(crate) fn run() -> Result<()> {
    let readme = fs::read_to_string(workspace::root().join("README.md"))?;
    let mut wrong = Vec::new();
    for walk in WALKS {
        let places = places(walk.names)?;
        wrong.extend(judge(walk.thing, &places, stated(&readme, walk.thing)));
    }
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n"));
    }
    println!("places: {} walks are as README says", WALKS.len());
    Ok(())
}

/// What is wrong with a walk.
fn judge(thing: &str, places: &BTreeSet<String>, stated: Option<usize>) -> Option<String> {
    let found = places.len();
    if stated == Some(found) && (1..=LIMIT).contains(&found) {
        return None;
    }
    let stated = stated.map_or_else(|| "no number".to_owned(), |stated| stated.to_string());
    let listed = places.iter().map(String::as_str).collect::<Vec<_>>();
    Some(format!(
        "{thing}: README says {stated} of places, at most {LIMIT} are allowed, and there are {found}: {}",
        listed.join(", ")
    ))
}

/// The number that README gives, as in `- **a setting**, 3 places`.
fn stated(readme: &str, thing: &str) -> Option<usize> {
    let (_, rest) = readme.split_once(&format!("- **{thing}**"))?;
    let entry = rest.split("\n- ").next()?;
    let (before, _) = entry.split_once(" places")?;
    before.rsplit(' ').next()?.parse().ok()
}

/// Files that name the member.
fn places(names: &[&str]) -> Result<BTreeSet<String>> {
    let mut search = Command::new("git");
    search.current_dir(workspace::root()).args(["grep", "-lF"]);
    for name in names {
        search.args(["-e", name]);
    }
    let found = shell::output(&mut search)?;
    let mut places = BTreeSet::new();
    for path in found.lines().filter(|path| is_place(path)) {
        let text = fs::read_to_string(workspace::root().join(path))
            .with_context(|| format!("cannot read {path}"))?;
        let counts = !has_extension(path, "rs") || {
            let kept = sizes::production(&text);
            kept.iter()
                .any(|line| names.iter().any(|name| line.contains(name)))
        };
        if counts {
            places.insert(path.to_owned());
        }
    }
    Ok(places)
}

fn is_place(path: &str) -> bool {
    let is_translation = has_extension(path, "json") && path.contains("/strings/");
    NO_TESTS.contains(&path)
        || path != "crates/xtask/src/places.rs"
            && !path.contains(".gen.")
            && (is_translation || sizes::is_production(path))
}

fn has_extension(path: &str, extension: &str) -> bool {
    Path::new(path)
        .extension()
        .is_some_and(|found| found == extension)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_of_this_repository_are_as_readme_says() {
        run().unwrap();
    }

    #[test]
    fn numbers_are_read_where_they_stand() {
        let readme = "- **a setting**, 3 places: one;\n  two 7 things\n- **a screen**: no number\n\
                      - **a format** (how it\n  is), 2 places: x\n";
        assert_eq!(stated(readme, "a setting"), Some(3));
        assert_eq!(stated(readme, "a screen"), None);
        assert_eq!(stated(readme, "a format"), Some(2));
        assert_eq!(stated(readme, "a colour"), None);
    }

    #[test]
    fn a_walk_is_as_long_as_stated_and_no_longer_than_the_limit() {
        let places = |count: usize| (0..count).map(|place| place.to_string()).collect();
        assert_eq!(judge("x", &places(3), Some(3)), None);
        for (found, stated) in [(2, Some(3)), (3, None), (0, Some(0)), (4, Some(4))] {
            let wrong = judge("x", &places(found), stated).unwrap();
            assert!(wrong.starts_with("x: README says"), "{wrong}");
        }
    }

    #[test]
    fn tests_cases_and_generated_files_are_no_places() {
        for path in [
            "crates/a/src/schema.rs",
            "ui/src/features/settings/strings/zh-Hans.json",
            "tests/parity/make.py",
        ] {
            assert!(is_place(path), "{path}");
        }
        for path in [
            "crates/a/src/tests.rs",
            "tests/fixtures/protocol/openai/x/request.json",
            "ui/src/features/settings/strings/en.gen.json",
            "ui/src/features/settings/table.gen.ts",
            "README.md",
        ] {
            assert!(!is_place(path), "{path}");
        }
    }
}
