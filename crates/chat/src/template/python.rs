//! Values as Python's `str` and `repr` write them.

use std::fmt::{self, Write as _};

use minijinja::{
    Error, ErrorKind, State,
    value::{Tuple, Value, ValueKind},
};

use super::metered::Metered;

/// Levels of a value that are written. Python stops at 1000.
pub(super) const DEPTH: usize = 200;

pub(super) const TOO_DEEP: &str = "a value is nested too deeply to be written";

/// Python's `str(value)`; an undefined value is empty, as in Jinja.
pub(super) fn str(state: &State, value: &Value) -> Result<String, Error> {
    if let Some(text) = value.as_str() {
        return Ok(text.to_owned());
    }
    let mut out = Metered::new(state);
    let written = write_repr(value, DEPTH, &mut out);
    let text = out.finish()?;
    match written {
        Ok(()) => Ok(text),
        Err(fmt::Error) => Err(Error::new(ErrorKind::InvalidOperation, TOO_DEEP)),
    }
}

/// A float as Python writes it: always with a point or an exponent, the exponent signed and with
/// at least two digits, from 1e16 and below 1e-4.
pub(super) fn float(value: f64) -> String {
    if !value.is_finite() {
        let name = if value.is_nan() { "nan" } else { "inf" };
        let sign = if value == f64::NEG_INFINITY { "-" } else { "" };
        return format!("{sign}{name}");
    }
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-4..1e16).contains(&magnitude) {
        let text = format!("{value:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, digits) = match exponent.strip_prefix('-') {
            Some(digits) => ('-', digits),
            None => ('+', exponent),
        };
        return format!("{mantissa}e{sign}{digits:0>2}");
    }
    let text = value.to_string();
    if text.contains('.') {
        text
    } else {
        text + ".0"
    }
}

fn write_repr(value: &Value, depth: usize, out: &mut Metered<'_>) -> fmt::Result {
    let deeper = depth.checked_sub(1).ok_or(fmt::Error)?;
    let write = |item: &Value, out: &mut Metered<'_>| write_repr(item, deeper, out);
    match value.kind() {
        ValueKind::Undefined => Ok(()),
        ValueKind::None => out.write_str("None"),
        ValueKind::Bool => out.write_str(if value.is_true() { "True" } else { "False" }),
        ValueKind::String => write_quoted(value.as_str().unwrap_or_default(), out),
        ValueKind::Number if !value.is_integer() => {
            out.write_str(&f64::try_from(value.clone()).map_or_else(|_| value.to_string(), float))
        }
        ValueKind::Seq if value.downcast_object_ref::<Tuple>().is_some() => {
            let close = if value.len() == Some(1) { ",)" } else { ")" };
            write_items(value, "(", close, out, write)
        }
        ValueKind::Seq | ValueKind::Iterable => write_items(value, "[", "]", out, write),
        ValueKind::Map => write_items(value, "{", "}", out, |key, out| {
            write(key, out)?;
            out.write_str(": ")?;
            write(&value.get_item(key).unwrap_or_default(), out)
        }),
        _ => write!(out, "{value}"),
    }
}

fn write_items(
    value: &Value,
    open: &str,
    close: &str,
    out: &mut Metered<'_>,
    write: impl Fn(&Value, &mut Metered<'_>) -> fmt::Result,
) -> fmt::Result {
    out.write_str(open)?;
    for (index, item) in value.try_iter().into_iter().flatten().enumerate() {
        if index > 0 {
            out.write_str(", ")?;
        }
        write(&item, out)?;
    }
    out.write_str(close)
}

/// Single quotes, unless that would need escapes which double quotes would not.
fn write_quoted(text: &str, out: &mut impl fmt::Write) -> fmt::Result {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    out.write_char(quote)?;
    for character in text.chars() {
        match character {
            '\\' => out.write_str("\\\\")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            c if c == quote => {
                out.write_char('\\')?;
                out.write_char(c)?;
            }
            c if !is_printable(c) => match c as u32 {
                code @ ..0x100 => write!(out, "\\x{code:02x}")?,
                code @ ..0x1_0000 => write!(out, "\\u{code:04x}")?,
                code => write!(out, "\\U{code:08x}")?,
            },
            c => out.write_char(c)?,
        }
    }
    out.write_char(quote)
}

/// Python escapes what `escape_debug` does; a mark that combines with the character before it is
/// printable to both.
fn is_printable(character: char) -> bool {
    let shown = String::from_iter(['a', character])
        .escape_debug()
        .to_string();
    !shown.contains("\\u{")
}
