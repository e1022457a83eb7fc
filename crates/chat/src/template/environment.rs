//! Jinja as `transformers` sets it up: block trimming, loop controls, its filters and functions.

use std::{error::Error as _, fmt};

use minijinja::{
    Environment, Error, ErrorKind, Output, State, Value, syntax::SyntaxConfig, value::ValueKind,
};

use super::{json, methods, python};

/// What one rendering may cost: about as many steps, each of which may take 64 bytes. A conversation of
/// the largest body takes half of it.
pub(super) const FUEL: u64 = 2_000_000;

/// The same where a template is tried with a few short messages.
pub(super) const PROBE_FUEL: u64 = 100_000;

/// An environment without templates.
pub(super) fn new() -> Result<Environment<'static>, Error> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build()?;
    environment.set_syntax(syntax);
    environment.set_unknown_method_callback(methods::call);
    environment.set_formatter(format);
    environment.add_filter("tojson", json::tojson);
    environment.add_filter("string", python::str);
    environment.add_test("iterable", is_iterable);
    environment.add_test("sequence", is_sequence);
    environment.add_function("raise_exception", raise_exception);
    environment.add_function("strftime_now", strftime_now);
    Ok(environment)
}

/// The words of a template's own refusal, else what went wrong and where.
pub(super) fn words(error: &Error) -> String {
    let mut source = error.source();
    while let Some(inner) = source {
        if let Some(Refusal(words)) = inner.downcast_ref() {
            return words.clone();
        }
        source = inner.source();
    }
    if error.kind() == ErrorKind::OutOfFuel {
        return "the chat template takes more work than one rendering may".to_owned();
    }
    error.to_string()
}

/// `{{ value }}` writes what Python's `str` gives.
fn format(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    out.write_str(&python::str(state, value)?)
        .map_err(Error::from)
}

/// Returns whether Python could iterate over a value: not over `none`, but over what is undefined.
fn is_iterable(value: &Value) -> bool {
    is_sequence(value) || value.kind() == ValueKind::Iterable
}

/// Returns whether Python sees a sequence: a value that has a length and items, so also text and
/// mappings.
fn is_sequence(value: &Value) -> bool {
    matches!(
        value.kind(),
        ValueKind::Undefined | ValueKind::String | ValueKind::Seq | ValueKind::Map
    )
}

/// Carries the words of `raise_exception`.
#[derive(Debug)]
struct Refusal(String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

fn raise_exception(state: &State, message: &Value) -> Result<Value, Error> {
    let message = python::str(state, message)?;
    Err(Error::new(ErrorKind::InvalidOperation, message.clone()).with_source(Refusal(message)))
}

/// Local time in Python's `strftime` notation.
fn strftime_now(format: &str) -> Result<String, Error> {
    jiff::fmt::strtime::format(format, &jiff::Zoned::now()).map_err(|error| {
        Error::new(
            ErrorKind::InvalidOperation,
            format!("strftime_now: {error}"),
        )
    })
}
