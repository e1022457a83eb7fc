//! The key-value pairs of a GGUF file.

use std::collections::HashMap;

use crate::Error;

/// A value; widths are forgotten.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Bool(bool),
    String(String),
    Array(Vec<Value>),
}

impl Value {
    pub(crate) fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Unsigned(number) => Some(*number),
            Self::Signed(number) => u64::try_from(*number).ok(),
            Self::Float(_) | Self::Bool(_) | Self::String(_) | Self::Array(_) => None,
        }
    }

    fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Float(number) => Some(*number),
            Self::Unsigned(number) => Some(*number as f64),
            Self::Signed(number) => Some(*number as f64),
            Self::Bool(_) | Self::String(_) | Self::Array(_) => None,
        }
    }

    fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            Self::Unsigned(_)
            | Self::Signed(_)
            | Self::Float(_)
            | Self::Bool(_)
            | Self::Array(_) => None,
        }
    }
}

/// All pairs, with typed access. Keys of the model itself begin with its architecture's name.
#[derive(Debug)]
pub(crate) struct Metadata {
    values: HashMap<String, Value>,
    architecture: String,
}

impl Metadata {
    pub(crate) fn new(values: HashMap<String, Value>) -> Self {
        let architecture = values
            .get("general.architecture")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        Self {
            values,
            architecture,
        }
    }

    /// Empty when the file does not say.
    pub(crate) fn architecture(&self) -> &str {
        &self.architecture
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.values.get(key)
    }

    /// Keys that begin with `prefix`, without it.
    pub(crate) fn suffixes<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a str> {
        self.values
            .keys()
            .filter_map(move |key| key.strip_prefix(prefix))
    }

    pub(crate) fn string(&self, key: &str) -> Result<Option<&str>, Error> {
        self.read_as(key, "a text", Value::as_str)
    }

    pub(crate) fn unsigned(&self, key: &str) -> Result<Option<u64>, Error> {
        self.read_as(key, "a whole number", Value::as_u64)
    }

    pub(crate) fn flag(&self, key: &str) -> Result<Option<bool>, Error> {
        self.read_as(key, "true or false", |value| match value {
            Value::Bool(flag) => Some(*flag),
            _ => None,
        })
    }

    pub(crate) fn strings(&self, key: &str) -> Result<Option<Vec<&str>>, Error> {
        self.list(key, "a list of texts", Value::as_str)
    }

    pub(crate) fn unsigneds(&self, key: &str) -> Result<Option<Vec<u64>>, Error> {
        self.list(key, "a list of whole numbers", Value::as_u64)
    }

    pub(crate) fn floats(&self, key: &str) -> Result<Option<Vec<f64>>, Error> {
        self.list(key, "a list of numbers", Value::as_f64)
    }

    /// A hyperparameter: the key without the architecture's name.
    pub(crate) fn model_unsigned(&self, key: &str) -> Result<Option<u64>, Error> {
        self.unsigned(&self.model_key(key))
    }

    /// A hyperparameter that must be there.
    pub(crate) fn required_unsigned(&self, key: &str) -> Result<u64, Error> {
        self.model_unsigned(key)?
            .ok_or_else(|| Error::MissingKey(self.model_key(key)))
    }

    pub(crate) fn model_float(&self, key: &str) -> Result<Option<f64>, Error> {
        self.read_as(&self.model_key(key), "a number", Value::as_f64)
    }

    pub(crate) fn model_string(&self, key: &str) -> Result<Option<&str>, Error> {
        self.string(&self.model_key(key))
    }

    fn model_key(&self, key: &str) -> String {
        format!("{}.{key}", self.architecture)
    }

    fn read_as<'a, T>(
        &'a self,
        key: &str,
        expected: &'static str,
        convert: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        let Some(value) = self.values.get(key) else {
            return Ok(None);
        };
        match convert(value) {
            Some(converted) => Ok(Some(converted)),
            None => Err(Error::WrongKey {
                key: key.to_owned(),
                expected,
            }),
        }
    }

    fn list<'a, T>(
        &'a self,
        key: &str,
        expected: &'static str,
        convert: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<Vec<T>>, Error> {
        self.read_as(key, expected, |value| match value {
            Value::Array(items) => items.iter().map(&convert).collect(),
            _ => None,
        })
    }
}
