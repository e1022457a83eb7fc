//! Which fields the readers of a body ask for, told by their types' own code.

use std::{cell::RefCell, collections::BTreeSet};

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, Visitor, value::Error},
    forward_to_deserialize_any,
};

thread_local! {
    static NOTED: RefCell<BTreeSet<String>> = const { RefCell::new(BTreeSet::new()) };
}

/// What is done, and the fields that it asks for on this thread: `model`, `options.seed`.
pub(crate) fn record_fields<T>(read: impl FnOnce() -> T) -> (T, BTreeSet<String>) {
    NOTED.take();
    (read(), NOTED.take())
}

/// Notes the fields that a type asks for in the object at `path`.
pub(super) fn note<'de, T: Deserialize<'de>>(path: &str) {
    // The type is told of no value, so it gives none.
    let _ = T::deserialize(Asks { path });
}

/// Is asked for an object, and has none.
struct Asks<'a> {
    path: &'a str,
}

impl<'de> Deserializer<'de> for Asks<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("there is nothing"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        let joined = fields.iter().map(|field| match self.path {
            "" => (*field).to_owned(),
            path => format!("{path}.{field}"),
        });
        NOTED.with_borrow_mut(|noted| noted.extend(joined));
        Err(Error::custom("there is nothing"))
    }

    fn deserialize_map<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        // A type with flattened parts asks for any field, and which it takes cannot be seen.
        NOTED.with_borrow_mut(|noted| noted.insert(joined_any(self.path)));
        Err(Error::custom("there is nothing"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct enum identifier ignored_any
    }
}

/// A name for fields that are not known.
fn joined_any(path: &str) -> String {
    match path {
        "" => "*".to_owned(),
        path => format!("{path}.*"),
    }
}
