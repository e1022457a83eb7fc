//! Sampling parameters that are one number, by their table, in the spelling of any dialect.

use std::{borrow::Cow, fmt, marker::PhantomData};

use macmlx_inference::{SamplingParameter, SamplingParams, Spelling};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::Value;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{RefOr, Schema, schema::ObjectBuilder},
};

use crate::{Error, json::fields_at, range::check_range};

/// A dialect, as far as these parameters go.
pub(crate) trait Spelled {
    /// What the document of routes calls the parameters of this dialect.
    const SCHEMA: &str;
    /// What stands before a name where an error tells it.
    const PREFIX: &str;

    /// `None`: the dialect has no such parameter.
    fn spell(row: &SamplingParameter) -> Option<Spelling>;

    /// The names of all it has, kept.
    fn names() -> &'static [&'static str];

    /// The same, collected.
    fn all() -> Vec<&'static str> {
        let rows = SamplingParameter::ALL.iter();
        rows.filter_map(|row| Some(Self::spell(row)?.name))
            .collect()
    }
}

/// The parameters as they stand in an object, any values.
pub(crate) struct Numbers<S> {
    given: Vec<(&'static SamplingParameter, Spelling, Value)>,
    dialect: PhantomData<S>,
}

impl<S: Spelled> Numbers<S> {
    /// Reads the values.
    ///
    /// # Errors
    ///
    /// Names a value that is no number, or is out of its range.
    pub(crate) fn into_params(self) -> Result<SamplingParams, Error> {
        let mut params = SamplingParams::default();
        for (row, spelling, value) in self.given {
            let name = format!("{}{}", S::PREFIX, spelling.name);
            let number = if row.is_integer {
                let number: Option<i64> = fields_at(&value, &name)?;
                // Clients ask for as much as they can think of.
                number.map(|number| number.min(u32::MAX.into()) as f64)
            } else {
                fields_at(&value, &name)?
            };
            let number = number.map(|number| {
                if row.is_nothing(&spelling, number) {
                    row.neutral
                } else {
                    number
                }
            });
            row.set(&mut params, check_range(&name, number, spelling.range)?);
        }
        Ok(params)
    }
}

impl<S> Default for Numbers<S> {
    fn default() -> Self {
        Self {
            given: Vec::new(),
            dialect: PhantomData,
        }
    }
}

impl<S> fmt::Debug for Numbers<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let given = self.given.iter();
        formatter
            .debug_map()
            .entries(given.map(|(_, spelling, value)| (spelling.name, value)))
            .finish()
    }
}

impl<'de, S: Spelled> Deserialize<'de> for Numbers<S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_struct("Numbers", S::names(), Fields(PhantomData))
    }
}

struct Fields<S>(PhantomData<S>);

impl<'de, S: Spelled> Visitor<'de> for Fields<S> {
    type Value = Numbers<S>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Numbers<S>, A::Error> {
        let mut numbers = Numbers::default();
        while let Some(name) = map.next_key::<String>()? {
            let known = SamplingParameter::ALL
                .iter()
                .filter_map(|row| Some((row, S::spell(row)?)))
                .find(|(_, spelling)| spelling.name == name);
            match known {
                Some((row, spelling)) => numbers.given.push((row, spelling, map.next_value()?)),
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(numbers)
    }
}

impl<S: Spelled> ToSchema for Numbers<S> {
    fn name() -> Cow<'static, str> {
        S::SCHEMA.into()
    }
}

impl<S: Spelled> PartialSchema for Numbers<S> {
    fn schema() -> RefOr<Schema> {
        let object = SamplingParameter::ALL
            .iter()
            .filter_map(|row| Some((row, S::spell(row)?)))
            .fold(ObjectBuilder::new(), |object, (row, spelling)| {
                object.property(spelling.name, row.schema(&spelling))
            });
        RefOr::T(Schema::Object(object.build()))
    }
}
