//! Names of the environment variables macMLX reads, and the only place that reads them.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// Moves everything that is `~/.mac-mlx` otherwise.
pub const MACMLX_HOME: &str = "MACMLX_HOME";
/// Same as `serve --host`.
pub const MACMLX_HOST: &str = "MACMLX_HOST";
/// Same as `serve --port`.
pub const MACMLX_PORT: &str = "MACMLX_PORT";
/// Same as `serve --api-key`.
pub const MACMLX_API_KEY: &str = "MACMLX_API_KEY";
/// Same as `serve --model`.
pub const MACMLX_MODEL: &str = "MACMLX_MODEL";
/// Log filter in `tracing`'s syntax (`info`, `macmlx_engine=debug`).
pub const MACMLX_LOG: &str = "MACMLX_LOG";
/// Access token of the Hugging Face Hub.
pub const HF_TOKEN: &str = "HF_TOKEN";
/// File that holds the token, when `HF_TOKEN` is not set.
pub const HF_TOKEN_PATH: &str = "HF_TOKEN_PATH";
/// Mirror of the hub, in place of `https://huggingface.co`.
pub const HF_ENDPOINT: &str = "HF_ENDPOINT";
/// Where Hugging Face's own tools keep their cache and token.
pub const HF_HOME: &str = "HF_HOME";

/// What the process was started with.
#[derive(Clone, Default)]
pub struct Environment {
    /// `~` of the user.
    pub user_home: Option<PathBuf>,
    pub macmlx_home: Option<PathBuf>,
    pub log_filter: Option<String>,
    pub hf_endpoint: Option<String>,
    pub hf_token: Option<String>,
    /// Every variable that is text, for programs that are started and for `${VAR}` in mcp.json.
    pub variables: BTreeMap<String, String>,
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Environment")
            .field("user_home", &self.user_home)
            .field("macmlx_home", &self.macmlx_home)
            .field("log_filter", &self.log_filter)
            .field("hf_endpoint", &self.hf_endpoint)
            .field("hf_token", &self.hf_token.as_ref().map(|_| "set"))
            .finish_non_exhaustive()
    }
}

impl Environment {
    /// Reads the variables, and the token file Hugging Face's tools keep.
    pub fn from_process() -> Self {
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Self {
            variables: variables.collect(),
            ..Self::from_lookup(variable)
        }
    }

    fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Self {
        let user_home = lookup("HOME").map(PathBuf::from);
        let hf_home = lookup(HF_HOME).map(PathBuf::from).or_else(|| {
            user_home
                .as_ref()
                .map(|home| home.join(".cache/huggingface"))
        });
        let token_file = lookup(HF_TOKEN_PATH)
            .map(PathBuf::from)
            .or_else(|| hf_home.map(|home| home.join("token")));
        Self {
            macmlx_home: lookup(MACMLX_HOME).map(PathBuf::from),
            log_filter: lookup(MACMLX_LOG),
            hf_endpoint: lookup(HF_ENDPOINT),
            hf_token: lookup(HF_TOKEN).or_else(|| token_file.as_deref().and_then(read_token)),
            user_home,
            variables: BTreeMap::new(),
        }
    }
}

/// Empty is unset, as in shells that cannot unset a variable for one command.
fn variable(name: &str) -> Option<String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the place that reads the environment"
    )]
    let value = std::env::var(name);
    value.ok().filter(|value| !value.is_empty())
}

fn read_token(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let token = text.trim();
    (!token.is_empty()).then(|| token.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_comes_from_the_variable_then_from_the_file() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("token"), "hf_file\n").unwrap();
        let hf_home = folder.path().to_string_lossy().into_owned();
        let from_file = Environment::from_lookup(|name| (name == HF_HOME).then(|| hf_home.clone()));
        assert_eq!(from_file.hf_token.as_deref(), Some("hf_file"));
        let from_variable = Environment::from_lookup(|name| match name {
            HF_HOME => Some(hf_home.clone()),
            HF_TOKEN => Some("hf_variable".into()),
            _ => None,
        });
        assert_eq!(from_variable.hf_token.as_deref(), Some("hf_variable"));
    }

    #[test]
    fn the_token_is_never_printed() {
        let environment = Environment {
            hf_token: Some("hf_secret".into()),
            ..Environment::default()
        };
        assert!(!format!("{environment:?}").contains("hf_secret"));
    }
}
