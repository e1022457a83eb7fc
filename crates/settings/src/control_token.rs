//! The secret that opens the control routes, made at first use.

use std::{fs, io};

use crate::{Home, state_file};

/// Bytes of randomness; the file holds them in hexadecimal.
const TOKEN_BYTES: usize = 32;

/// Reads the control token, or makes one (file mode 0600). Who may read the file may control the
/// server.
pub fn control_token(home: &Home) -> io::Result<String> {
    let path = home.control_token_file();
    match fs::read_to_string(&path) {
        Ok(text) if text.trim().len() >= TOKEN_BYTES * 2 => return Ok(text.trim().to_owned()),
        Ok(_) => {
            state_file::set_aside(&path)?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    home.create()?;
    let mut random = [0_u8; TOKEN_BYTES];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let token = random
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(u32::from(digit), 16))
        .collect::<String>();
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
        assert_eq!(token.len(), TOKEN_BYTES * 2);
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
        assert_eq!(control_token(&home).unwrap().len(), TOKEN_BYTES * 2);
    }
}
