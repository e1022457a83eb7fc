//! `~` and `${VAR}` in commands, as MCP clients expand them.

use std::{collections::BTreeMap, path::Path};

use super::McpServersError;

/// What names stand for.
pub(super) struct Scope<'a> {
    pub(super) user_home: Option<&'a Path>,
    /// The first that has a variable wins.
    pub(super) variables: [&'a BTreeMap<String, String>; 2],
}

impl Scope<'_> {
    /// Expands `~` at the start, `${VAR}`, `${VAR:-default}`, and the spellings of editors:
    /// `${env:VAR}` and `${userHome}`. `$VAR` stays: it is text for the program that gets it.
    pub(super) fn expand(&self, text: &str, place: &str) -> Result<String, McpServersError> {
        let mut expanded = String::with_capacity(text.len());
        let mut rest = text;
        if let Some(after) = text.strip_prefix('~')
            && (after.is_empty() || after.starts_with('/'))
        {
            expanded.push_str(&self.home(place)?);
            rest = after;
        }
        while let Some(start) = rest.find("${") {
            let Some(end) = rest[start..].find('}').map(|end| start + end) else {
                break;
            };
            expanded.push_str(&rest[..start]);
            expanded.push_str(&self.value(&rest[start + 2..end], place)?);
            rest = &rest[end + 1..];
        }
        expanded.push_str(rest);
        Ok(expanded)
    }

    fn value(&self, inside: &str, place: &str) -> Result<String, McpServersError> {
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        if name == "userHome" {
            return self.home(place);
        }
        let name = name.strip_prefix("env:").unwrap_or(name);
        self.variables
            .iter()
            .find_map(|variables| variables.get(name))
            .map(String::as_str)
            .or(default)
            .map(str::to_owned)
            .ok_or_else(|| McpServersError::NotSet {
                variable: name.into(),
                place: place.into(),
            })
    }

    fn home(&self, place: &str) -> Result<String, McpServersError> {
        self.user_home
            .map(|home| home.to_string_lossy().into_owned())
            .ok_or_else(|| McpServersError::NoHome {
                place: place.into(),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_clients_expand() {
        let own = BTreeMap::from([("TOKEN".to_owned(), "own".to_owned())]);
        let shell = BTreeMap::from([
            ("TOKEN".to_owned(), "shell".to_owned()),
            ("REGION".to_owned(), "eu".to_owned()),
        ]);
        let scope = Scope {
            user_home: Some(Path::new("/users/ann")),
            variables: [&own, &shell],
        };
        for (text, expected) in [
            ("plain", "plain"),
            ("~", "/users/ann"),
            ("~/notes", "/users/ann/notes"),
            ("~bob/notes", "~bob/notes"),
            ("--root=~/notes", "--root=~/notes"),
            ("${TOKEN}", "own"),
            ("${env:REGION}-${TOKEN}!", "eu-own!"),
            ("${userHome}/x", "/users/ann/x"),
            ("${MISSING:-none}", "none"),
            ("${MISSING:-}", ""),
            ("$TOKEN ${", "$TOKEN ${"),
            ("é${REGION}é", "éeué"),
        ] {
            assert_eq!(scope.expand(text, "args").unwrap(), expected, "{text}");
        }
        let error = scope.expand("${MISSING}", "env.KEY").unwrap_err();
        assert_eq!(
            error.to_string(),
            "`${MISSING}` in `env.KEY` is not set; set it, or write the value into mcp.json"
        );
    }

    #[test]
    fn without_a_home_there_is_no_tilde() {
        let none = BTreeMap::new();
        let scope = Scope {
            user_home: None,
            variables: [&none, &none],
        };
        assert!(scope.expand("~/x", "command").is_err());
        assert_eq!(scope.expand("/x", "command").unwrap(), "/x");
    }
}
