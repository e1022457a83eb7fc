//! Whether a file is what the hub has.

use std::{fs::File, io::Read, path::Path};

use sha1::Sha1;
use sha2::{Digest, Sha256};

use crate::hub::RemoteFile;

const BUFFER_BYTES: usize = 1 << 20;

/// Compares a file with the digest the hub gave, if it gave one. Reads all of it.
pub(super) fn is_intact(path: &Path, file: &RemoteFile) -> std::io::Result<bool> {
    let mut input = File::open(path)?;
    if input.metadata()?.len() != file.size_bytes {
        return Ok(false);
    }
    let (digest, expected) = match (&file.sha256, &file.blob_id) {
        (Some(expected), _) => (digest(&mut input, Sha256::new())?, expected),
        (None, Some(expected)) => {
            // Git puts the length in front of what it hashes.
            let header = Sha1::new().chain_update(format!("blob {}\0", file.size_bytes));
            (digest(&mut input, header)?, expected)
        }
        (None, None) => return Ok(true),
    };
    Ok(digest.eq_ignore_ascii_case(expected))
}

fn digest<D: Digest>(input: &mut File, mut hasher: D) -> std::io::Result<String> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let read = input.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        hasher.update(&buffer[..read]);
    }
    Ok(hex::encode(hasher.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_of_both_kinds() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "hello\n").unwrap();
        let file = |size_bytes, sha256: Option<&str>, blob_id: Option<&str>| RemoteFile {
            path: "file".into(),
            size_bytes,
            sha256: sha256.map(Into::into),
            blob_id: blob_id.map(Into::into),
            is_needed: true,
        };
        // `git hash-object` and `sha256sum` of it.
        let blob = "ce013625030ba8dba906f756967f9e9ca394464a";
        let sha256 = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";
        for (file, intact) in [
            (file(6, Some(sha256), None), true),
            (file(6, Some(&sha256.to_uppercase()), Some("other")), true),
            (file(6, None, Some(blob)), true),
            (file(6, None, None), true),
            (file(7, None, None), false),
            (file(6, Some(blob), None), false),
            (file(6, None, Some(sha256)), false),
        ] {
            assert_eq!(is_intact(&path, &file).unwrap(), intact, "{file:?}");
        }
    }
}
