//! Values as Python's `str` and `repr` write them.

use std::fmt::Write as _;

use minijinja::value::{Tuple, Value, ValueKind};

/// Python's `str(value)`; an undefined value is empty, as in Jinja.
pub(super) fn str(value: &Value) -> String {
    if let Some(text) = value.as_str() {
        return text.to_owned();
    }
    let mut out = String::new();
    write_repr(value, &mut out);
    out
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

fn write_repr(value: &Value, out: &mut String) {
    match value.kind() {
        ValueKind::Undefined => {}
        ValueKind::None => out.push_str("None"),
        ValueKind::Bool => out.push_str(if value.is_true() { "True" } else { "False" }),
        ValueKind::String => write_quoted(value.as_str().unwrap_or_default(), out),
        ValueKind::Number if !value.is_integer() => {
            out.push_str(&f64::try_from(value.clone()).map_or_else(|_| value.to_string(), float));
        }
        ValueKind::Seq if value.downcast_object_ref::<Tuple>().is_some() => {
            let close = if value.len() == Some(1) { ",)" } else { ")" };
            write_items(value, "(", close, out, write_repr);
        }
        ValueKind::Seq | ValueKind::Iterable => write_items(value, "[", "]", out, write_repr),
        ValueKind::Map => write_items(value, "{", "}", out, |key, out| {
            write_repr(key, out);
            out.push_str(": ");
            write_repr(&value.get_item(key).unwrap_or_default(), out);
        }),
        _ => {
            let _ = write!(out, "{value}");
        }
    }
}

fn write_items(
    value: &Value,
    open: &str,
    close: &str,
    out: &mut String,
    write: impl Fn(&Value, &mut String),
) {
    out.push_str(open);
    for (index, item) in value.try_iter().into_iter().flatten().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        write(&item, out);
    }
    out.push_str(close);
}

/// Single quotes, unless that would need escapes which double quotes would not.
fn write_quoted(text: &str, out: &mut String) {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    out.push(quote);
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if !is_printable(c) => {
                let _ = match c as u32 {
                    code @ ..0x100 => write!(out, "\\x{code:02x}"),
                    code @ ..0x1_0000 => write!(out, "\\u{code:04x}"),
                    code => write!(out, "\\U{code:08x}"),
                };
            }
            c => out.push(c),
        }
    }
    out.push(quote);
}

/// Python escapes what `escape_debug` does; a mark that combines with the character before it is
/// printable to both.
fn is_printable(character: char) -> bool {
    let shown = String::from_iter(['a', character])
        .escape_debug()
        .to_string();
    !shown.contains("\\u{")
}
