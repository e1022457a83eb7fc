//! Values of a document as values of our types.

use serde::{
    Deserialize, Deserializer,
    de::{
        DeserializeOwned, IntoDeserializer, Visitor,
        value::{MapAccessDeserializer, MapDeserializer, SeqDeserializer},
    },
    forward_to_deserialize_any,
};
use serde_json::{Map, Value};

use crate::{
    error::{Error, Problem},
    text::{parse, parse_edited, parse_python},
};

/// A `T` of a value. Where an integer is wanted, one that is written `100.0` or `1e2` is one too, as
/// JSON Schema has it.
///
/// # Errors
///
/// The value is not of the wanted form. The error names the place within it.
pub fn read<'de, T: Deserialize<'de>>(value: &'de Value) -> Result<T, Error> {
    read_as(Reader {
        value,
        is_text: false,
    })
}

/// A `T` of a whole document.
///
/// # Errors
///
/// The document is no JSON, or not of the wanted form.
pub fn read_document<T: DeserializeOwned>(document: &[u8]) -> Result<T, Error> {
    let value = parse(document).map_err(|error| Error::syntax(&error))?;
    read(&value)
}

/// A `T` of a file that people edit, as [`parse_edited`] reads it.
///
/// # Errors
///
/// The file is no JSON, or not of the wanted form.
pub fn read_edited<T: DeserializeOwned>(file: &[u8]) -> Result<T, Error> {
    let value = parse_edited(file).map_err(|error| Error::syntax(&error))?;
    read(&value)
}

/// A `T` of a file of a model's folder, as [`parse_python`] reads it.
///
/// # Errors
///
/// The file is no JSON, or not of the wanted form.
pub fn read_python<T: DeserializeOwned>(file: &[u8]) -> Result<T, Error> {
    let value = parse_python(file).map_err(|error| Error::syntax(&error))?;
    read(&value)
}

/// An object that stands as text within another text, such as the arguments of a tool call.
///
/// # Errors
///
/// The text is no JSON, or no object.
pub fn read_object(text: &str) -> Result<Map<String, Value>, Error> {
    read_document(text.as_bytes())
}

/// The arguments of a tool call. Some models and clients leave out those of a tool that takes none.
///
/// # Errors
///
/// The text is neither empty nor an object.
pub fn read_arguments(text: &str) -> Result<Map<String, Value>, Error> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    read_object(text)
}

/// A `T` of the pairs of a query string, whose numbers and booleans are text. A name without a value
/// counts as left out; of a name that stands twice the last counts.
///
/// # Errors
///
/// A value is not of the wanted form. The error names it.
pub fn read_query<T: DeserializeOwned>(pairs: Vec<(String, String)>) -> Result<T, Error> {
    let given = pairs.into_iter().filter(|(_, value)| !value.is_empty());
    let fields = given.map(|(name, value)| (name, Value::String(value)));
    read_as(Reader {
        value: &Value::Object(fields.collect()),
        is_text: true,
    })
}

/// A `T` of one value of a query string, named `name`.
///
/// # Errors
///
/// The value is not of the wanted form.
pub fn read_query_value<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, Error> {
    let read = read_as(Reader {
        value: &Value::String(text.to_owned()),
        is_text: true,
    });
    read.map_err(|error| error.below(name))
}

fn read_as<'de, T: Deserialize<'de>>(reader: Reader<'de>) -> Result<T, Error> {
    serde_path_to_error::deserialize(reader).map_err(|error| {
        let path = error.path().to_string();
        Error::new(path, error.into_inner())
    })
}

/// Reads one value.
#[derive(Debug, Clone, Copy)]
struct Reader<'de> {
    value: &'de Value,
    /// A number or a boolean may be written as text.
    is_text: bool,
}

impl<'de> Reader<'de> {
    /// The number or boolean that a text is.
    fn scalar(self) -> Option<Value> {
        match self.value {
            Value::String(text) if self.is_text => serde_json::from_str(text)
                .ok()
                .filter(|scalar: &Value| scalar.is_number() || scalar.is_boolean()),
            _ => None,
        }
    }

    fn is_no(self, wanted: &str) -> Problem {
        let got = match self.value {
            Value::String(text) if self.is_text => {
                return Problem::expected(wanted, format_args!("`{text}`"));
            }
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        Problem::expected(wanted, got)
    }

    fn integer<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        let scalar = self.scalar();
        let Value::Number(number) = scalar.as_ref().unwrap_or(self.value) else {
            return Err(self.is_no("an integer"));
        };
        if let Some(number) = number.as_u64() {
            return visitor.visit_u64(number);
        }
        if let Some(number) = number.as_i64() {
            return visitor.visit_i64(number);
        }
        // Both ends of a range of floats are powers of two, which floats hold exactly.
        match number.as_f64().unwrap_or(f64::NAN) {
            number if number.fract() != 0.0 => visitor.visit_f64(number),
            number @ 0.0..18_446_744_073_709_551_616.0 => visitor.visit_u64(number as u64),
            number @ -9_223_372_036_854_775_808.0..0.0 => visitor.visit_i64(number as i64),
            number => visitor.visit_f64(number),
        }
    }

    fn text<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self.value {
            Value::String(text) => visitor.visit_borrowed_str(text),
            _ => Err(self.is_no("a string")),
        }
    }

    fn list<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self.value {
            Value::Array(items) => {
                let mut items = SeqDeserializer::new(items.iter().map(|value| self.within(value)));
                let list = visitor.visit_seq(&mut items)?;
                items.end()?;
                Ok(list)
            }
            _ => Err(self.is_no("a list")),
        }
    }

    fn object<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self.value {
            Value::Object(fields) => visitor.visit_map(self.fields(fields)),
            _ => Err(self.is_no("an object")),
        }
    }

    /// The fields of an object, one after the other.
    fn fields(
        self,
        fields: &'de Map<String, Value>,
    ) -> MapDeserializer<'de, impl Iterator<Item = (&'de str, Self)>, Problem> {
        let fields = fields.iter();
        MapDeserializer::new(fields.map(move |(name, value)| (name.as_str(), self.within(value))))
    }

    fn within(self, value: &'de Value) -> Self {
        Self { value, ..self }
    }
}

/// A number as it was written.
fn visit<'de, V: Visitor<'de>>(
    number: &serde_json::Number,
    visitor: V,
) -> Result<V::Value, Problem> {
    if let Some(number) = number.as_u64() {
        visitor.visit_u64(number)
    } else if let Some(number) = number.as_i64() {
        visitor.visit_i64(number)
    } else {
        visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN))
    }
}

impl<'de> IntoDeserializer<'de, Problem> for Reader<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// Methods of [`Deserializer`] that are all done by one of [`Reader`]'s own.
macro_rules! all_by {
    ($own:ident: $($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
            self.$own(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = Problem;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(is_true) => visitor.visit_bool(*is_true),
            Value::Number(number) => visit(number, visitor),
            Value::String(_) => self.text(visitor),
            Value::Array(_) => self.list(visitor),
            Value::Object(_) => self.object(visitor),
        }
    }

    all_by! {
        integer:
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
    }
    all_by! { text: deserialize_char deserialize_str deserialize_string deserialize_identifier }
    all_by! { list: deserialize_seq }
    all_by! { object: deserialize_map }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self.scalar().as_ref().unwrap_or(self.value) {
            Value::Bool(is_true) => visitor.visit_bool(*is_true),
            _ => Err(self.is_no("a boolean")),
        }
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self.scalar().as_ref().unwrap_or(self.value) {
            Value::Number(number) => visit(number, visitor),
            _ => Err(self.is_no("a number")),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Problem> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        _length: usize,
        visitor: V,
    ) -> Result<V::Value, Problem> {
        self.list(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _length: usize,
        visitor: V,
    ) -> Result<V::Value, Problem> {
        self.list(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        self.object(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        match self.value {
            Value::String(name) => visitor.visit_enum(name.as_str().into_deserializer()),
            Value::Object(fields) if fields.len() == 1 => {
                visitor.visit_enum(MapAccessDeserializer::new(self.fields(fields)))
            }
            _ => Err(self.is_no("a string")),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! { bytes byte_buf unit unit_struct }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Map, json};

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Turn {
        role: String,
        count: Option<u32>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Format {
        Float,
        Base64,
        Of(u8),
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(tag = "type", rename_all = "lowercase")]
    enum Tagged {
        Text { text: String },
    }

    #[derive(Debug, PartialEq, Default, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Body {
        turns: Vec<Turn>,
        is_on: Option<bool>,
        size: Option<f32>,
        least: Option<i64>,
        wide: Option<i128>,
        small: Option<u8>,
        format: Option<Format>,
        tagged: Option<Tagged>,
        biases: BTreeMap<String, f32>,
        pair: Option<(u8, u8)>,
        anything: Option<Value>,
        fields: Option<Map<String, Value>>,
    }

    fn body(value: &Value) -> Result<Body, Error> {
        read(value)
    }

    #[test]
    fn whole_numbers_are_integers_however_they_are_written() {
        for document in ["100", "100.0", "1e2", "1000e-1", "1.0E+2"] {
            let value: Value = serde_json::from_str(document).unwrap();
            assert_eq!(read::<u32>(&value), Ok(100), "{document}");
            assert_eq!(read::<i64>(&value), Ok(100), "{document}");
            assert_eq!(read::<u8>(&value), Ok(100), "{document}");
            assert_eq!(read::<i128>(&value), Ok(100), "{document}");
            assert_eq!(
                read::<Vec<Option<u32>>>(&json!([value])),
                Ok(vec![Some(100)])
            );
        }
        assert_eq!(read::<i64>(&json!(-3.0)), Ok(-3));
        assert_eq!(read::<u32>(&json!(-0.0)), Ok(0));
        assert_eq!(
            read::<i64>(&json!(-9_223_372_036_854_775_808.0)),
            Ok(i64::MIN)
        );
        assert_eq!(
            read::<u64>(&json!(9_223_372_036_854_775_808.0)),
            Ok(1 << 63)
        );
        // A number of any kind stays as it was written.
        assert_eq!(read::<Value>(&json!(100.0)), Ok(json!(100.0)));
    }

    #[test]
    fn everything_else_is_read_as_it_stands() {
        let given = json!({
            "turns": [{"role": "a"}, {"role": "b", "count": null, "more": 1}],
            "is_on": true, "size": 1, "format": "base64", "tagged": {"type": "text", "text": "x"},
            "biases": {"5": 1.5}, "pair": [1, 2.0], "anything": {"a": [null]}, "fields": {"b": 1},
        });
        let turn = |role: &str| Turn {
            role: role.into(),
            count: None,
        };
        assert_eq!(
            body(&given).unwrap(),
            Body {
                turns: vec![turn("a"), turn("b")],
                is_on: Some(true),
                size: Some(1.0),
                format: Some(Format::Base64),
                tagged: Some(Tagged::Text { text: "x".into() }),
                biases: BTreeMap::from([("5".into(), 1.5)]),
                pair: Some((1, 2)),
                anything: Some(json!({"a": [null]})),
                fields: Some(Map::from_iter([("b".into(), json!(1))])),
                ..Body::default()
            }
        );
        assert_eq!(read::<Format>(&json!({"of": 3.0})), Ok(Format::Of(3)));
    }

    #[test]
    fn errors_say_where_and_in_words_of_json() {
        for (given, message) in [
            (json!([]), "expected an object, got a list"),
            (
                json!({"turns": {}}),
                "turns: expected a list, got an object",
            ),
            (
                json!({"turns": ["a"]}),
                "turns[0]: expected an object, got a string",
            ),
            (
                json!({"turns": [["a"]]}),
                "turns[0]: expected an object, got a list",
            ),
            (json!({"turns": [{}]}), "`turns[0].role` is missing"),
            (
                json!({"turns": [{"role": 1}]}),
                "turns[0].role: expected a string, got a number",
            ),
            (
                json!({"turns": [{"role": "a", "count": -1}]}),
                "turns[0].count: expected an integer between 0 and 4294967295, got -1",
            ),
            (
                json!({"turns": [{"role": "a", "count": 1e30}]}),
                "turns[0].count: expected an integer between 0 and 4294967295, got 1e30",
            ),
            (json!({"least": 0.5}), "least: expected an integer, got 0.5"),
            (json!({"wide": 0.5}), "wide: expected an integer, got 0.5"),
            (
                json!({"least": "1"}),
                "least: expected an integer, got a string",
            ),
            (
                json!({"small": 300.0}),
                "small: expected an integer between 0 and 255, got 300",
            ),
            (
                json!({"size": "x"}),
                "size: expected a number, got a string",
            ),
            (
                json!({"is_on": 1}),
                "is_on: expected a boolean, got a number",
            ),
            (
                json!({"format": "x"}),
                "format: expected one of `float`, `base64`, `of`, got `x`",
            ),
            (
                json!({"format": 1}),
                "format: expected a string, got a number",
            ),
            (json!({"tagged": 1}), "tagged: expected an object, got 1"),
            (json!({"tagged": {}}), "`tagged.type` is missing"),
            (
                json!({"tagged": {"type": "x"}}),
                "tagged.type: expected `text`, got `x`",
            ),
            (
                json!({"tagged": {"type": "text"}}),
                "`tagged.text` is missing",
            ),
            (
                json!({"biases": {"5": null}}),
                "biases.5: expected a number, got null",
            ),
            (
                json!({"biases": []}),
                "biases: expected an object, got a list",
            ),
            (
                json!({"pair": [1]}),
                "pair: expected a list, got a list of 1",
            ),
            (
                json!({"fields": "x"}),
                "fields: expected an object, got a string",
            ),
        ] {
            assert_eq!(body(&given).unwrap_err().to_string(), message);
        }
        let unknown = body(&json!({"size": 1, "sise": 2})).unwrap_err();
        assert_eq!(unknown.path(), "sise");
    }

    #[test]
    fn a_document_that_is_no_json_says_where_it_stops_to_be() {
        let error = read_document::<Body>(b"{\"size\": 1,}").unwrap_err();
        assert_eq!(
            error.to_string(),
            "not valid JSON: trailing comma at line 1 column 12"
        );
        let read = read_document::<Body>(b"\xef\xbb\xbf{\"least\": 1.0}").unwrap();
        assert_eq!(read.least, Some(1));
    }

    #[test]
    fn arguments_are_an_object_or_left_out() {
        for (text, object) in [
            ("", json!({})),
            (" \n", json!({})),
            ("{\"a\": 1.0}", json!({"a": 1.0})),
            (" {\"a\": \"\\ud83d\"}", json!({"a": "\u{fffd}"})),
        ] {
            assert_eq!(Value::from(read_arguments(text).unwrap()), object, "{text}");
        }
        for (text, message) in [
            ("[1]", "expected an object, got a list"),
            ("null", "expected an object, got null"),
            ("\"{}\"", "expected an object, got a string"),
        ] {
            assert_eq!(read_arguments(text).unwrap_err().to_string(), message);
        }
        assert!(read_arguments("{\"a\": 1,}").is_err());
        assert!(read_object("").is_err());
    }

    #[test]
    fn files_are_read_as_their_writers_write_them() {
        let edited = b"{\"least\": 1.0, // one\n}";
        assert_eq!(read_edited::<Body>(edited).unwrap().least, Some(1));
        assert_eq!(read_python::<Body>(edited).unwrap().least, Some(1));
        let python = b"{\"least\": 1.0, \"size\": Infinity}";
        assert_eq!(read_python::<Body>(python).unwrap().least, Some(1));
        assert!(read_edited::<Body>(python).is_err());
        assert!(read_document::<Body>(edited).is_err());
    }

    #[test]
    fn numbers_and_switches_of_a_query_are_text() {
        #[derive(Debug, Default, PartialEq, Deserialize)]
        #[serde(default)]
        struct Query {
            limit: Option<u32>,
            ratio: Option<f32>,
            is_on: Option<bool>,
            name: Option<String>,
            format: Option<Format>,
        }
        let query = |text: &str| {
            let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
            read_query::<Query>(pairs.map(|(a, b)| (a.into(), b.into())).collect())
        };
        assert_eq!(
            query("limit=10.0&ratio=1&is_on=true&name=5&format=base64&other=x"),
            Ok(Query {
                limit: Some(10),
                ratio: Some(1.0),
                is_on: Some(true),
                name: Some("5".into()),
                format: Some(Format::Base64),
            })
        );
        assert_eq!(query("limit=&name=").unwrap(), Query::default());
        assert_eq!(query("limit=1&limit=2").unwrap().limit, Some(2));
        for (text, message) in [
            ("limit=x", "limit: expected an integer, got `x`"),
            (
                "limit=-1",
                "limit: expected an integer between 0 and 4294967295, got -1",
            ),
            ("limit=1.5", "limit: expected an integer, got 1.5"),
            ("limit=[1]", "limit: expected an integer, got `[1]`"),
            ("is_on=1", "is_on: expected a boolean, got `1`"),
            ("ratio=NaN", "ratio: expected a number, got `NaN`"),
            (
                "format=x",
                "format: expected one of `float`, `base64`, `of`, got `x`",
            ),
        ] {
            assert_eq!(query(text).unwrap_err().to_string(), message);
        }
        assert_eq!(read_query_value::<i64>("limit", "2e1"), Ok(20));
        let error = read_query_value::<i64>("limit", "x").unwrap_err();
        assert_eq!(error.to_string(), "limit: expected an integer, got `x`");
        // Text in a document is text.
        assert!(read::<u32>(&json!("1")).is_err());
    }

    #[test]
    fn a_path_goes_on_from_where_the_value_was() {
        let missing = read::<Turn>(&json!({})).unwrap_err().below("turns[3]");
        assert_eq!(missing.path(), "turns[3].role");
        let itself = read::<u32>(&json!("a")).unwrap_err().below("count");
        assert_eq!(
            itself.to_string(),
            "count: expected an integer, got a string"
        );
        assert_eq!(
            itself.within("count").to_string(),
            "expected an integer, got a string"
        );
        let turn = read::<Body>(&json!({"turns": [{}]})).unwrap_err();
        assert_eq!(turn.clone().within("turns").path(), "[0].role");
        assert_eq!(turn.within("turn").path(), "turns[0].role");
        let item = read::<Vec<u32>>(&json!([0.5])).unwrap_err().below("input");
        assert_eq!(item.path(), "input[0]");
    }
}
