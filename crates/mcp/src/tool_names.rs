//! Names for tools that models can write: `server__tool` in `[a-zA-Z0-9_-]`, at most 64 of them.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

use crate::Tool;

const LONGEST: usize = 64;
/// Hexadecimal digits that tell names apart.
const DIGITS: usize = 8;

/// Gives each tool its full name. Equal ones are told apart by a digest of what they come from, so
/// that a name does not depend on the order of servers.
pub(crate) fn assign(tools: &mut [Tool]) {
    let mut counts = HashMap::new();
    for tool in tools.iter_mut() {
        tool.full_name = plain(tool);
        *counts.entry(tool.full_name.clone()).or_insert(0) += 1;
    }
    for tool in tools {
        if counts.get(&tool.full_name).is_some_and(|count| *count > 1) {
            tool.full_name = with_digest(&tool.full_name, tool);
        }
    }
}

fn plain(tool: &Tool) -> String {
    let name: String = format!("{}__{}", tool.server, tool.name)
        .chars()
        .map(|char| match char {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => char,
            _ => '_',
        })
        .collect();
    if name.len() > LONGEST {
        with_digest(&name, tool)
    } else {
        name
    }
}

/// `name` is ASCII.
fn with_digest(name: &str, tool: &Tool) -> String {
    let mut digest = Sha256::new();
    digest.update(&tool.server);
    // No name has it, so `a` + `bc` differs from `ab` + `c`.
    digest.update([0]);
    digest.update(&tool.name);
    let mut named = name[..name.len().min(LONGEST - DIGITS - 1)].to_owned();
    named.push('_');
    named.push_str(&hex::encode(&digest.finalize()[..DIGITS / 2]));
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(tools: &[(&str, &str)]) -> Vec<String> {
        let mut tools: Vec<_> = tools
            .iter()
            .map(|(server, name)| Tool {
                server: (*server).into(),
                name: (*name).into(),
                full_name: String::new(),
                title: None,
                description: None,
                input_schema: serde_json::Map::new(),
                is_read_only: None,
            })
            .collect();
        assign(&mut tools);
        tools.into_iter().map(|tool| tool.full_name).collect()
    }

    #[test]
    fn names_are_ones_that_models_can_write() {
        assert_eq!(
            names(&[
                ("time", "get-current_time"),
                ("Brave Search", "web.search"),
                ("é", "ü")
            ]),
            ["time__get-current_time", "Brave_Search__web_search", "___"]
                .map(|name| name.replace("___", "____"))
        );
        let long = "x".repeat(100);
        for name in names(&[
            ("server", &long),
            (&long, "tool"),
            (&long, "other"),
            ("日本", "天気"),
        ]) {
            assert!((1..=64).contains(&name.len()), "{name}");
            assert!(
                name.chars()
                    .all(|char| char.is_ascii_alphanumeric() || "_-".contains(char)),
                "{name}"
            );
        }
    }

    #[test]
    fn equal_names_are_told_apart_whatever_the_order() {
        let long = "x".repeat(100);
        let tools = [
            ("a", "b__c"),
            ("a__b", "c"),
            ("a", "b.c"),
            ("a", "b c"),
            (&*long, "d"),
            (&*long, "e"),
            ("alone", "tool"),
        ];
        let forward = names(&tools);
        let reversed: Vec<_> = tools.iter().rev().copied().collect();
        let mut backward = names(&reversed);
        backward.reverse();
        assert_eq!(forward, backward);
        let unique: std::collections::BTreeSet<_> = forward.iter().collect();
        assert_eq!(unique.len(), tools.len(), "{forward:?}");
        assert_eq!(forward[6], "alone__tool");
        assert!(forward[0].starts_with("a__b__c_"));
    }
}
