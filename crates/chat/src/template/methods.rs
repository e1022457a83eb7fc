//! Methods of Python's `str` and `list` that `minijinja-contrib` leaves out.

use minijinja::{
    Error, ErrorKind, State, Value,
    value::{Tuple, from_args},
};
use minijinja_contrib::pycompat;

use super::metered::BYTES_OF_FUEL;

/// Calls a method of Python that the value does not have here.
pub(super) fn call(
    state: &mut State,
    value: &Value,
    method: &str,
    args: &[Value],
) -> Result<Value, Error> {
    match pycompat::unknown_method_callback(state, value, method, args) {
        Err(error) if error.kind() == ErrorKind::UnknownMethod => match value.as_str() {
            Some(text) => of_text(state, text, method, args),
            None if method == "index" => list_index(value, args),
            None => Err(error),
        },
        result => result,
    }
}

fn of_text(state: &State, text: &str, method: &str, args: &[Value]) -> Result<Value, Error> {
    match method {
        "removeprefix" => {
            let (prefix,): (&str,) = from_args(args)?;
            Ok(text.strip_prefix(prefix).unwrap_or(text).into())
        }
        "removesuffix" => {
            let (suffix,): (&str,) = from_args(args)?;
            Ok(text.strip_suffix(suffix).unwrap_or(text).into())
        }
        "rsplit" => {
            let (separator, limit): (&str, Option<usize>) = from_args(args)?;
            let count = limit.map_or(usize::MAX, |limit| limit + 1);
            let mut pieces: Vec<_> = text.rsplitn(count, separator).collect();
            pieces.reverse();
            Ok(pieces
                .into_iter()
                .map(Value::from)
                .collect::<Vec<_>>()
                .into())
        }
        "partition" => {
            let (separator,): (&str,) = from_args(args)?;
            let (before, found, after) = match text.split_once(separator) {
                Some((before, after)) => (before, separator, after),
                None => (text, "", ""),
            };
            Ok(tuple([before, found, after]))
        }
        "rpartition" => {
            let (separator,): (&str,) = from_args(args)?;
            let (before, found, after) = match text.rsplit_once(separator) {
                Some((before, after)) => (before, separator, after),
                None => ("", "", text),
            };
            Ok(tuple([before, found, after]))
        }
        "index" => {
            let (part,): (&str,) = from_args(args)?;
            let at = text
                .find(part)
                .ok_or_else(|| invalid("substring not found"))?;
            Ok(text[..at].chars().count().into())
        }
        "zfill" => {
            let (width,): (usize,) = from_args(args)?;
            let (sign, digits) = match text.split_at_checked(1) {
                Some((sign @ ("+" | "-"), digits)) => (sign, digits),
                _ => ("", text),
            };
            let zeros = pad(state, text, width, "0")?;
            Ok(format!("{sign}{zeros}{digits}").into())
        }
        "ljust" | "rjust" => {
            let (width, fill): (usize, Option<&str>) = from_args(args)?;
            let fill = pad(state, text, width, fill.unwrap_or(" "))?;
            let parts = if method == "ljust" {
                [text, &fill]
            } else {
                [&fill, text]
            };
            Ok(parts.concat().into())
        }
        "swapcase" => {
            let swapped: String = text
                .chars()
                .flat_map(|c| -> Box<dyn Iterator<Item = char>> {
                    if c.is_uppercase() {
                        Box::new(c.to_lowercase())
                    } else {
                        Box::new(c.to_uppercase())
                    }
                })
                .collect();
            Ok(swapped.into())
        }
        _ => Err(Error::new(
            ErrorKind::UnknownMethod,
            format!("string has no method named {method}"),
        )),
    }
}

fn list_index(list: &Value, args: &[Value]) -> Result<Value, Error> {
    let (item,): (&Value,) = from_args(args)?;
    let at = list.try_iter()?.position(|other| other == *item);
    at.map(Value::from)
        .ok_or_else(|| invalid("item is not in the list"))
}

fn tuple(parts: [&str; 3]) -> Value {
    Tuple::from(parts.map(Value::from)).into()
}

/// Makes what text lacks to be `width` characters long.
fn pad(state: &State, text: &str, width: usize, fill: &str) -> Result<String, Error> {
    let missing = width.saturating_sub(text.chars().count());
    let bytes = missing.saturating_mul(fill.len());
    state.consume_fuel((bytes / BYTES_OF_FUEL) as u64)?;
    Ok(fill.repeat(missing))
}

fn invalid(message: &'static str) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}
