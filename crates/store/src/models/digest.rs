//! A model's identity, taken from samples of its files: gigabytes are not read to list models.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::PathBuf,
    time::UNIX_EPOCH,
};

use sha2::{Digest, Sha256};

/// Bytes read at the beginning, in the middle and at the end of each weight file.
const SAMPLE_BYTES: u64 = 4096;

/// 64 hexadecimal digits. Hard links give the same ones; a change of any weight file or of the
/// config gives others, also where modification times are all alike.
pub(super) fn digest(config: &str, weights: &[PathBuf]) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let mut add = |bytes: &[u8]| {
        hasher.update((bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    add(config.as_bytes());
    for path in weights {
        let mut file = File::open(path)?;
        let metadata = file.metadata()?;
        let modified = metadata
            .modified()?
            .duration_since(UNIX_EPOCH)
            .map_or(0, |elapsed| elapsed.as_nanos());
        add(path.file_name().unwrap_or_default().as_encoded_bytes());
        add(&metadata.len().to_le_bytes());
        add(&modified.to_le_bytes());
        for start in [
            0,
            metadata.len() / 2,
            metadata.len().saturating_sub(SAMPLE_BYTES),
        ] {
            let mut sample = Vec::new();
            file.seek(SeekFrom::Start(start))?;
            file.by_ref().take(SAMPLE_BYTES).read_to_end(&mut sample)?;
            add(&sample);
        }
    }
    Ok(hex::encode(hasher.finalize()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn weights_and_config_tell_models_apart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        let mut bytes = vec![0_u8; 20_000];
        fs::write(&path, &bytes).unwrap();
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        let weights = [path.clone()];
        let first = digest("{}", &weights).unwrap();
        assert_eq!(first.len(), 64);
        assert!(first.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_eq!(digest("{}", &weights).unwrap(), first);
        assert_ne!(digest("{ }", &weights).unwrap(), first);
        bytes[10_001] = 1;
        fs::write(&path, &bytes).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(modified).unwrap();
        assert_ne!(digest("{}", &weights).unwrap(), first);
    }
}
