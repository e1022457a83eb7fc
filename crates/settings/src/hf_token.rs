//! The access token of the Hugging Face Hub that a person gave to macMLX.

use std::{fs, io, path::PathBuf};

use crate::{Home, state_file};

/// Where a secret is kept, so that a system's own keychain can take the file's place.
pub trait SecretStore: std::fmt::Debug + Send + Sync + 'static {
    /// The secret, if there is one.
    fn get(&self) -> io::Result<Option<String>>;
    fn set(&self, secret: &str) -> io::Result<()>;
    /// Forgets it; having none is no error.
    fn remove(&self) -> io::Result<()>;
}

/// A file that only its owner may read.
#[derive(Debug)]
pub struct SecretFile(PathBuf);

impl SecretFile {
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }
}

impl SecretStore for SecretFile {
    fn get(&self) -> io::Result<Option<String>> {
        match fs::read_to_string(&self.0) {
            Ok(text) => Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn set(&self, secret: &str) -> io::Result<()> {
        // A file that exists keeps its mode, which others may have widened.
        self.remove()?;
        state_file::write(&self.0, format!("{secret}\n").as_bytes())
    }

    fn remove(&self) -> io::Result<()> {
        match fs::remove_file(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// Why a token is not kept.
#[derive(Debug, thiserror::Error)]
pub enum HfTokenError {
    #[error("a token is one word, as the hub shows it")]
    NotAToken,
    #[error("cannot keep the token: {0}")]
    Io(#[from] io::Error),
}

/// The token that was stored, else the environment's.
#[derive(Debug)]
pub struct HfToken {
    store: Box<dyn SecretStore>,
    from_environment: Option<String>,
}

impl HfToken {
    /// Holds the token that is kept in the home folder, and the one of the environment.
    pub fn new(home: &Home, from_environment: Option<String>) -> Self {
        Self {
            store: Box::new(SecretFile::new(home.hf_token_file())),
            from_environment,
        }
    }

    /// The token to send to the hub. Blocks on the store; one that cannot be read counts as empty.
    pub fn get(&self) -> Option<String> {
        let stored = self.store.get().unwrap_or_default();
        stored.or_else(|| self.from_environment.clone())
    }

    /// Keeps a token. Blocks on the store.
    pub fn set(&self, token: &str) -> Result<(), HfTokenError> {
        let token = token.trim();
        if token.is_empty() || !token.chars().all(|letter| letter.is_ascii_graphic()) {
            return Err(HfTokenError::NotAToken);
        }
        Ok(self.store.set(token)?)
    }

    /// Forgets the stored token; the environment's counts again.
    pub fn remove(&self) -> Result<(), HfTokenError> {
        Ok(self.store.remove()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_token_comes_before_the_environments() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        let token = HfToken::new(&home, Some("hf_environment".into()));
        assert_eq!(token.get().as_deref(), Some("hf_environment"));
        token.set(" hf_stored\n").unwrap();
        assert_eq!(token.get().as_deref(), Some("hf_stored"));
        assert!(matches!(
            token.set("two words"),
            Err(HfTokenError::NotAToken)
        ));
        assert!(token.set("").is_err());
        assert_eq!(token.get().as_deref(), Some("hf_stored"));
        token.remove().unwrap();
        token.remove().unwrap();
        assert_eq!(token.get().as_deref(), Some("hf_environment"));
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_reads_it() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        fs::write(home.hf_token_file(), "old").unwrap();
        fs::set_permissions(home.hf_token_file(), fs::Permissions::from_mode(0o644)).unwrap();
        HfToken::new(&home, None).set("hf_new").unwrap();
        let mode = fs::metadata(home.hf_token_file()).unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
    }
}
