//! A conversation's file: read whole, written whole.

use std::{fs, path::Path};

use super::{Conversation, Error, state_file};

pub(super) fn read(path: &Path) -> Result<Conversation, Error> {
    let bytes = fs::read(path).map_err(|source| Error::Io {
        path: path.into(),
        source,
    })?;
    macmlx_json::read_document(&bytes).map_err(|error| Error::Unreadable {
        path: path.into(),
        reason: error.to_string(),
    })
}

pub(super) fn write(path: &Path, conversation: &Conversation) -> Result<(), Error> {
    let failed = |source| Error::Io {
        path: path.into(),
        source,
    };
    let text = serde_json::to_vec_pretty(conversation).map_err(|error| failed(error.into()))?;
    state_file::write(path, &text).map_err(failed)
}
