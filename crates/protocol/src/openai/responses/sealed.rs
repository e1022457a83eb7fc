//! `encrypted_content` of reasoning items: how thinking comes back from clients that keep
//! everything themselves.
//!
//! Nothing is secret here, the client sees the same text as a summary. Clients take the field for
//! opaque, so a version in front tells it from what other servers wrote into it.

use base64::{Engine, prelude::BASE64_STANDARD};

const VERSION: &str = "macmlx1.";

/// Text as clients carry it.
pub(super) fn seal(text: &str) -> String {
    format!("{VERSION}{}", BASE64_STANDARD.encode(text))
}

/// The text; `None` when another server sealed it.
pub(super) fn open(sealed: &str) -> Option<String> {
    let bytes = BASE64_STANDARD.decode(sealed.strip_prefix(VERSION)?).ok()?;
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sealed_here_opens() {
        for text in ["", "hm", "größer\n\u{1f600}"] {
            assert_eq!(open(&seal(text)).as_deref(), Some(text));
        }
    }

    #[test]
    fn what_others_sealed_stays_shut() {
        for foreign in ["", "gAAAAABo", "macmlx1.%%", "macmlx1./w==", "macmlx2.aG0="] {
            assert_eq!(open(foreign), None, "{foreign}");
        }
    }
}
