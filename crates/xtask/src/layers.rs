//! `cargo xtask layers`: crates depend on each other along the arrows of the design, and on each
//! arrow some crate does.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::{shell, workspace};

/// For each crate, by folder name, the crates of this workspace that it may depend on. Its tests may
/// reach as far and no further, so an edge that only they use counts as used.
const EDGES: &[(&str, &[&str])] = &[
    ("inference", &[]),
    ("json", &[]),
    ("output", &["inference", "json"]),
    ("chat", &["inference", "output", "json"]),
    ("fit", &[]),
    ("models", &["fit", "json"]),
    ("engine", &["models", "chat", "inference", "json"]),
    ("playback", &["chat", "inference"]),
    ("settings", &["inference", "json"]),
    ("gguf", &[]),
    ("store", &["inference", "settings", "fit", "gguf", "json"]),
    ("protocol", &["inference", "json"]),
    ("server", &["protocol", "inference"]),
    ("mcp", &["inference", "settings", "json"]),
    (
        "control",
        &["store", "settings", "mcp", "inference", "json", "fit"],
    ),
    (
        "host",
        &[
            "inference",
            "chat",
            "fit",
            "gguf",
            "json",
            "models",
            "engine",
            "playback",
            "settings",
            "store",
            "server",
            "mcp",
            "control",
        ],
    ),
    ("cli", &["host", "store", "settings", "gguf"]),
    ("src-tauri", &["host", "settings"]),
    (TEST_SUPPORT, &[]),
    ("xtask", &[]),
];

/// Outside crates that only some of ours may name, save for their tests: a double of a server is a
/// server too.
const OUTSIDE: &[(&str, &[&str])] = &[
    ("mlx-rs", &["models", "engine"]),
    ("mlx-sys", &["models", "engine"]),
    ("axum", &["server", "control", "host", TEST_SUPPORT]),
    ("rmcp", &["mcp"]),
    ("tauri", &["src-tauri"]),
];

/// A crate for tests, and the feature of `inference` that is for tests.
const TEST_SUPPORT: &str = "test-support";

/// A crate of this workspace.
#[derive(Debug)]
struct Member {
    /// The name of its folder.
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Debug)]
struct Dependency {
    /// The folder's name for a crate of this workspace, else the crate's name.
    name: String,
    is_ours: bool,
    is_dev: bool,
    features: Vec<String>,
}

pub(crate) fn run() -> Result<()> {
    let members = members()?;
    let violations = violations(&members);
    if violations.is_empty() {
        println!("layers: {} crates keep to the allowed edges", members.len());
        return Ok(());
    }
    bail!("{}", violations.join("\n"));
}

/// Everything that breaks the rules, one line each.
fn violations(members: &[Member]) -> Vec<String> {
    let mut lines = Vec::new();
    for member in members {
        let Some((_, allowed)) = EDGES.iter().find(|(name, _)| *name == member.name) else {
            lines.push(format!(
                "{}: not in the table of crates and edges",
                member.name
            ));
            continue;
        };
        for dependency in &member.dependencies {
            lines.extend(violation(member, allowed, dependency));
        }
        lines.extend(
            find_unused(member, allowed)
                .map(|to| format!("{} -> {to}: an edge that is not used", member.name)),
        );
    }
    lines
}

/// The allowed edges of `member` that it does not depend along.
fn find_unused<'a>(member: &'a Member, allowed: &'a [&str]) -> impl Iterator<Item = &'a str> {
    let is_used = |to: &str| {
        let mut ours = member.dependencies.iter().filter(|it| it.is_ours);
        ours.any(|it| it.name == to)
    };
    allowed.iter().copied().filter(move |to| !is_used(to))
}

fn violation(member: &Member, allowed: &[&str], dependency: &Dependency) -> Option<String> {
    let Member { name: from, .. } = member;
    let Dependency {
        name: to,
        is_ours,
        is_dev,
        features,
    } = dependency;
    if !is_ours {
        let (_, users) = OUTSIDE.iter().find(|(name, _)| name == to)?;
        return (!is_dev && !users.contains(&from.as_str()))
            .then(|| format!("{from} -> {to}: only {} may use it", users.join(", ")));
    }
    let is_for_tests = to == TEST_SUPPORT || features.iter().any(|name| name == TEST_SUPPORT);
    if is_for_tests && !is_dev {
        return Some(format!(
            "{from} -> {to}: test support is for dev-dependencies only"
        ));
    }
    let is_allowed = allowed.contains(&to.as_str())
        || *is_dev && is_for_tests && (to == TEST_SUPPORT || to == "inference");
    (!is_allowed).then(|| format!("{from} -> {to}: not an allowed edge"))
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    manifest_path: String,
    dependencies: Vec<DeclaredDependency>,
}

#[derive(Deserialize)]
struct DeclaredDependency {
    name: String,
    kind: Option<String>,
    /// The folder of a path dependency.
    path: Option<String>,
    features: Vec<String>,
}

fn members() -> Result<Vec<Member>> {
    let metadata = shell::output(shell::cargo().current_dir(workspace::root()).args([
        "metadata",
        "--format-version",
        "1",
        "--no-deps",
    ]))?;
    let metadata: Metadata =
        serde_json::from_str(&metadata).context("cannot read what cargo metadata printed")?;
    Ok(metadata.packages.into_iter().map(member).collect())
}

fn member(package: Package) -> Member {
    let folder = Path::new(&package.manifest_path).parent();
    Member {
        name: folder.map(file_name).unwrap_or_default(),
        dependencies: package
            .dependencies
            .into_iter()
            .map(|declared| Dependency {
                is_ours: declared.path.is_some(),
                name: declared
                    .path
                    .as_deref()
                    .map_or(declared.name, |path| file_name(Path::new(path))),
                is_dev: declared.kind.as_deref() == Some("dev"),
                features: declared.features,
            })
            .collect(),
    }
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dependency(name: &str, is_ours: bool, is_dev: bool, features: &[&str]) -> Dependency {
        Dependency {
            name: name.into(),
            is_ours,
            is_dev,
            features: features.iter().map(ToString::to_string).collect(),
        }
    }

    /// A crate that depends along every edge it has.
    fn whole(name: &str) -> Member {
        let (_, allowed) = EDGES.iter().find(|(from, _)| *from == name).unwrap();
        Member {
            name: name.into(),
            dependencies: allowed
                .iter()
                .map(|to| dependency(to, true, false, &[]))
                .collect(),
        }
    }

    fn found(from: &str, dependency: Dependency) -> Vec<String> {
        let mut member = whole(from);
        member.dependencies.push(dependency);
        violations(&[member])
    }

    #[test]
    fn an_edge_that_is_not_used_is_named() {
        let mut member = whole("protocol");
        assert!(violations(&[whole("protocol")]).is_empty());
        let last = member.dependencies.pop().unwrap();
        let missing = format!("protocol -> {}: an edge that is not used", last.name);
        assert_eq!(violations(&[member]), [missing]);

        // A crate of the same name from outside is not the one that the edge leads to.
        let mut member = whole("protocol");
        member.dependencies[0].is_ours = false;
        assert_eq!(violations(&[member]).len(), 1);

        // An edge of tests is one.
        let mut member = whole("protocol");
        member.dependencies[0].is_dev = true;
        assert!(violations(&[member]).is_empty());
    }

    #[test]
    fn the_design_page_has_the_same_table() {
        let page = workspace::root().join("docs/design.md");
        let page = std::fs::read_to_string(page).unwrap();
        let rows: Vec<(&str, Vec<&str>)> = page
            .lines()
            .skip_while(|line| !line.contains("| links |"))
            .skip(2)
            .map_while(|line| line.strip_prefix("| `"))
            .map(|row| {
                let (name, row) = row.split_once('`').unwrap();
                let (_, links) = row.trim_end_matches(" |").rsplit_once("| ").unwrap();
                let links = links.split(", ").filter(|to| *to != "\u{2013}").collect();
                (name, links)
            })
            .collect();
        assert_eq!(rows.len(), EDGES.len());
        for (name, mut links) in rows {
            let (_, allowed) = EDGES.iter().find(|(from, _)| *from == name).unwrap();
            let mut allowed = allowed.to_vec();
            links.sort_unstable();
            allowed.sort_unstable();
            assert_eq!(links, allowed, "{name}");
        }
    }

    #[test]
    fn an_edge_that_is_not_in_the_table_is_named() {
        assert_eq!(
            found("protocol", dependency("chat", true, false, &[])),
            ["protocol -> chat: not an allowed edge"]
        );
        assert!(found("protocol", dependency("inference", true, false, &[])).is_empty());
        // A test may not reach further than the code it tests.
        assert_eq!(
            found("protocol", dependency("server", true, true, &[])),
            ["protocol -> server: not an allowed edge"]
        );
    }

    #[test]
    fn test_support_is_for_tests() {
        assert!(found("protocol", dependency("test-support", true, true, &[])).is_empty());
        assert!(
            found(
                "mcp",
                dependency("inference", true, true, &["test-support"])
            )
            .is_empty()
        );
        assert!(found("settings", dependency("test-support", true, true, &[])).is_empty());
        assert!(
            found(
                "cli",
                dependency("inference", true, true, &["test-support"])
            )
            .is_empty()
        );
        for dependency in [
            dependency("test-support", true, false, &[]),
            dependency("inference", true, false, &["test-support"]),
        ] {
            assert_eq!(
                found("server", dependency)[0]
                    .split_once(": ")
                    .map(|(_, why)| why),
                Some("test support is for dev-dependencies only")
            );
        }
    }

    #[test]
    fn outside_crates_stay_where_they_belong() {
        assert_eq!(
            found("server", dependency("mlx-rs", false, false, &[])),
            ["server -> mlx-rs: only models, engine may use it"]
        );
        // Tests may.
        assert!(found("store", dependency("axum", false, true, &[])).is_empty());
        assert!(found("engine", dependency("mlx-rs", false, false, &[])).is_empty());
        assert!(found("server", dependency("serde", false, false, &[])).is_empty());
    }

    #[test]
    fn an_unknown_crate_is_an_error() {
        assert_eq!(
            violations(&[Member {
                name: "utils".into(),
                dependencies: vec![]
            }]),
            ["utils: not in the table of crates and edges"]
        );
    }

    #[test]
    fn folders_name_the_crates() {
        let package = serde_json::from_value(serde_json::json!({
            "name": "macmlx-server",
            "manifest_path": "/clone/crates/server/Cargo.toml",
            "dependencies": [
                { "name": "macmlx-test-support", "kind": "dev", "features": [],
                  "path": "/clone/crates/test-support" },
                { "name": "axum", "kind": null, "features": ["json"] },
            ],
        }));
        let member = member(package.unwrap());
        assert_eq!(member.name, "server");
        let [ours, outside] = &member.dependencies[..] else {
            panic!("{member:?}")
        };
        assert_eq!(
            (ours.name.as_str(), ours.is_ours, ours.is_dev),
            ("test-support", true, true)
        );
        assert_eq!(
            (outside.name.as_str(), outside.is_ours, outside.is_dev),
            ("axum", false, false)
        );
    }

    #[test]
    fn the_table_has_no_cycle() {
        // Each crate may only name crates that are sorted out before it.
        let mut known: Vec<&str> = Vec::new();
        while known.len() < EDGES.len() {
            let next = EDGES.iter().find(|(name, allowed)| {
                !known.contains(name) && allowed.iter().all(|to| known.contains(to))
            });
            known.push(
                next.expect("a cycle, or an edge to a crate that is not in the table")
                    .0,
            );
        }
    }
}
