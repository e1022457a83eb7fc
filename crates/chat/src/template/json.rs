//! The `tojson` filter of `transformers`: Python's `json.dumps` without escaping for HTML or ASCII.

use std::io::{self, Write};

use minijinja::{
    Error, ErrorKind, State,
    value::{Kwargs, Value},
};
use serde::Serialize;
use serde_json::ser::Formatter;

use super::{metered::Metered, python};

/// `value|tojson(ensure_ascii=False, indent=None, separators=None, sort_keys=False)`.
#[expect(clippy::needless_pass_by_value, reason = "the signature of a filter")]
pub(super) fn tojson(
    state: &State,
    value: &Value,
    indent: Option<Value>,
    args: Kwargs,
) -> Result<Value, Error> {
    let indent = indent.or(args.get::<Option<Value>>("indent")?);
    let indent = match indent {
        Some(indent) if indent.is_none() => None,
        Some(indent) => Some(if let Some(text) = indent.as_str() {
            text.to_owned()
        } else {
            let width = usize::try_from(indent)?;
            state.consume_fuel(width as u64)?;
            " ".repeat(width)
        }),
        None => None,
    };
    let ensure_ascii = args.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false);
    let sort_keys = args.get::<Option<bool>>("sort_keys")?.unwrap_or(false);
    let separators: Option<Vec<String>> = args.get("separators")?;
    args.assert_all_used()?;
    let (item, key) = match separators.as_deref() {
        Some([item, key]) => (item.clone(), key.clone()),
        _ if indent.is_some() => (",".into(), ": ".into()),
        _ => (", ".into(), ": ".into()),
    };

    let failed = |error: serde_json::Error| {
        Error::new(ErrorKind::InvalidOperation, format!("tojson: {error}"))
    };
    let mut out = Metered::new(state);
    let mut serializer = serde_json::Serializer::with_formatter(
        &mut out,
        Dumps {
            item,
            key,
            indent,
            ensure_ascii,
            depth: 0,
            has_value: false,
        },
    );
    let written = if sort_keys {
        // Written once for its cost: what is sorted is a copy of everything in it.
        value
            .serialize(&mut serde_json::Serializer::new(Metered::new(state)))
            .and_then(|()| serde_json::to_value(value))
            .and_then(|mut sorted| {
                sorted.sort_all_objects();
                sorted.serialize(&mut serializer)
            })
    } else {
        value.serialize(&mut serializer)
    };
    match (out.finish(), written) {
        (Err(error), _) => Err(error),
        (Ok(_), Err(error)) => Err(failed(error)),
        (Ok(text), Ok(())) => Ok(Value::from(text)),
    }
}

/// `json.dumps`: separators are whatever the caller says, containers are broken into lines only
/// with an indent.
struct Dumps {
    item: String,
    key: String,
    indent: Option<String>,
    ensure_ascii: bool,
    depth: usize,
    has_value: bool,
}

impl Dumps {
    fn line<W: ?Sized + Write>(&self, writer: &mut W) -> io::Result<()> {
        if let Some(indent) = &self.indent {
            writer.write_all(b"\n")?;
            for _ in 0..self.depth {
                writer.write_all(indent.as_bytes())?;
            }
        }
        Ok(())
    }

    fn begin<W: ?Sized + Write>(&mut self, writer: &mut W, open: &[u8]) -> io::Result<()> {
        self.depth += 1;
        if self.depth > python::DEPTH {
            return Err(io::Error::other(python::TOO_DEEP));
        }
        self.has_value = false;
        writer.write_all(open)
    }

    fn end<W: ?Sized + Write>(&mut self, writer: &mut W, close: &[u8]) -> io::Result<()> {
        self.depth -= 1;
        if self.has_value {
            self.line(writer)?;
        }
        self.has_value = true;
        writer.write_all(close)
    }

    fn separate<W: ?Sized + Write>(&self, writer: &mut W, first: bool) -> io::Result<()> {
        if !first {
            writer.write_all(self.item.as_bytes())?;
        }
        self.line(writer)
    }
}

impl Formatter for Dumps {
    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(python::float(value).as_bytes())
    }

    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        if !self.ensure_ascii {
            return writer.write_all(fragment.as_bytes());
        }
        for character in fragment.chars() {
            if character.is_ascii() {
                write!(writer, "{character}")?;
            } else {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    write!(writer, "\\u{unit:04x}")?;
                }
            }
        }
        Ok(())
    }

    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.begin(writer, b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.end(writer, b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.separate(writer, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, _writer: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.begin(writer, b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.end(writer, b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.separate(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(self.key.as_bytes())
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, _writer: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }
}
