//! Where each thing is kept below `~/.mac-mlx`.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use percent_encoding::percent_decode_str;

use crate::{Environment, Settings};

/// The operating system names no folder for data.
#[derive(Debug, thiserror::Error)]
#[error(
    "neither MACMLX_HOME nor HOME is set; set MACMLX_HOME to the folder for models and settings"
)]
pub struct NoHome;

/// The data folder; every path macMLX reads or writes comes from here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    root: PathBuf,
    user_home: Option<PathBuf>,
}

impl Home {
    /// `$MACMLX_HOME`, else `~/.mac-mlx`. Nothing is created yet.
    pub fn new(environment: &Environment) -> Result<Self, NoHome> {
        let root = match (&environment.macmlx_home, &environment.user_home) {
            (Some(root), _) => std::path::absolute(root).map_err(|_| NoHome)?,
            (None, Some(user)) => user.join(".mac-mlx"),
            (None, None) => return Err(NoHome),
        };
        Ok(Self {
            root,
            user_home: environment.user_home.clone(),
        })
    }

    /// A home at a given folder, for tests and tools.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            user_home: None,
        }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn settings_file(&self) -> PathBuf {
        self.root.join("settings.json")
    }

    /// The file that says which process serves on which port. App and CLI share it.
    pub fn pid_file(&self) -> PathBuf {
        self.root.join("macmlx.pid")
    }

    /// Locked by the running server for as long as it lives, which a pid alone cannot prove.
    pub fn lock_file(&self) -> PathBuf {
        self.root.join("macmlx.lock")
    }

    /// Secret of the `/x` routes, mode 0600.
    pub fn control_token_file(&self) -> PathBuf {
        self.root.join("control-token")
    }

    /// Named keys of clients, hashed, mode 0600.
    pub fn api_keys_file(&self) -> PathBuf {
        self.root.join("api-keys.json")
    }

    /// Access token of the hub, where no keychain keeps it, mode 0600.
    pub fn hf_token_file(&self) -> PathBuf {
        self.root.join("hf-token")
    }

    /// MCP servers, in the shape desktop clients share.
    pub fn mcp_file(&self) -> PathBuf {
        self.root.join("mcp.json")
    }

    /// `models/`, or where the settings say models are.
    pub fn models(&self, settings: &Settings) -> PathBuf {
        match settings.model_directory.as_deref() {
            Some(configured) => self.expand(configured),
            None => self.root.join("models"),
        }
    }

    /// Unfinished downloads.
    pub fn downloads(&self) -> PathBuf {
        self.root.join("downloads")
    }

    /// Parameters of each model, `<percent-encoded id>.json`.
    pub fn model_parameters(&self) -> PathBuf {
        self.root.join("model-params")
    }

    /// One file each, `<uuid>.json`.
    pub fn conversations(&self) -> PathBuf {
        self.root.join("conversations")
    }

    pub fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    /// What was typed into `macmlx run`.
    pub fn prompt_history_file(&self) -> PathBuf {
        self.root.join("prompt-history")
    }

    /// Creates the root, readable by its owner only.
    pub fn create(&self) -> io::Result<()> {
        if self.root.is_dir() {
            return Ok(());
        }
        fs::create_dir_all(&self.root)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(&self.root, fs::Permissions::from_mode(0o700))?;
        }
        Ok(())
    }

    /// Folders in settings may begin with `~` or be `file://` URLs, as macMLX on macOS wrote them.
    fn expand(&self, configured: &str) -> PathBuf {
        let path = match configured.strip_prefix("file://") {
            Some(url_path) => percent_decode_str(url_path)
                .decode_utf8_lossy()
                .into_owned(),
            None => configured.to_owned(),
        };
        match (path.strip_prefix('~'), &self.user_home) {
            (Some(rest), Some(user)) if rest.is_empty() || rest.starts_with('/') => {
                user.join(rest.trim_start_matches('/'))
            }
            _ => self.root.join(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home() -> Home {
        Home::new(&Environment {
            user_home: Some("/users/ann".into()),
            ..Environment::default()
        })
        .unwrap()
    }

    fn models(directory: &str) -> PathBuf {
        home().models(&Settings {
            model_directory: Some(directory.into()),
            ..Settings::default()
        })
    }

    #[test]
    fn the_variable_moves_everything() {
        let moved = Home::new(&Environment {
            user_home: Some("/users/ann".into()),
            macmlx_home: Some("/data/mlx".into()),
            ..Environment::default()
        })
        .unwrap();
        assert_eq!(moved.pid_file(), Path::new("/data/mlx/macmlx.pid"));
        assert_eq!(
            moved.models(&Settings::default()),
            Path::new("/data/mlx/models")
        );
        assert_eq!(home().root(), Path::new("/users/ann/.mac-mlx"));
        assert!(Home::new(&Environment::default()).is_err());
    }

    #[test]
    fn model_directories_as_settings_spell_them() {
        assert_eq!(models("~/models"), Path::new("/users/ann/models"));
        assert_eq!(models("/big/models"), Path::new("/big/models"));
        assert_eq!(
            models("file:///Volumes/My%20Disk/models"),
            Path::new("/Volumes/My Disk/models")
        );
    }
}
