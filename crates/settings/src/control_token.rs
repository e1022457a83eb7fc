//! The secret that opens the control routes, made at first use.

use std::{fs, io};

use crate::{Home, secret, state_file};

/// Reads the control token, or makes one (file mode 0600). Who may read the file may control the
/// server.
pub fn control_token(home: &Home) -> io::Result<String> {
    let path = home.control_token_file();
    match fs::read_to_string(&path) {
        Ok(text) if text.trim().len() >= secret::LENGTH => return Ok(text.trim().to_owned()),
        Ok(_) => {
            state_file::set_aside(&path)?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    home.create()?;
    let token = secret::random()?;
    state_file::write(&path, format!("{token}\n").as_bytes())?;
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_made_once_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().join("home"));
        let token = control_token(&home).unwrap();
        assert_eq!(token.len(), secret::LENGTH);
        assert_eq!(control_token(&home).unwrap(), token);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(home.control_token_file())
                .unwrap()
                .permissions();
            assert_eq!(mode.mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn a_damaged_token_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        fs::write(home.control_token_file(), "").unwrap();
        assert_eq!(control_token(&home).unwrap().len(), secret::LENGTH);
    }
}
