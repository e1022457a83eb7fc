//! Room on the stack for what a template may nest: its source, and the values that it makes.

use std::{io, panic, thread};

/// What a parser or a drop takes for each level, times the levels that the limits below and the fuel
/// of a rendering allow. It is memory only as far as it is used.
const STACK_BYTES: usize = 512 * 1024 * 1024;

/// Templates of the largest families have a fifth of it.
const SOURCE_LIMIT_BYTES: usize = 256 * 1024;

/// Characters of one tag: an expression is as deep as it is long. Real ones have some hundred.
const TAG_LIMIT_BYTES: usize = 16 * 1024;

/// Refuses a source that is longer than any real one.
pub(super) fn check(source: &str) -> Result<(), String> {
    if source.len() > SOURCE_LIMIT_BYTES {
        return Err(format!("it is longer than {SOURCE_LIMIT_BYTES} bytes"));
    }
    let mut rest = source;
    while let Some(begin) = ["{{", "{%"].iter().filter_map(|open| rest.find(open)).min() {
        let close = if rest[begin..].starts_with("{{") {
            "}}"
        } else {
            "%}"
        };
        let tag = &rest[begin + 2..];
        let length = tag.find(close).unwrap_or(tag.len());
        if length > TAG_LIMIT_BYTES {
            return Err(format!("a tag is longer than {TAG_LIMIT_BYTES} bytes"));
        }
        rest = &tag[length..];
    }
    Ok(())
}

/// Does the work where there is stack enough.
///
/// # Errors
///
/// The system has no thread to give.
pub(super) fn with_stack<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name("template".into())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, work)?;
        Ok(thread
            .join()
            .unwrap_or_else(|payload| panic::resume_unwind(payload)))
    })
}
