//! How sampling parameters stand in files and on control routes: by the table of `inference`, under
//! the names that settings have there, and only those that are set.

use std::fmt;

use macmlx_inference::{SamplingParameter, SamplingParams};
use serde::{
    Deserializer, Serializer,
    de::{Error as _, MapAccess, Visitor},
    ser::SerializeMap,
};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{RefOr, Schema, schema::ObjectBuilder},
};

/// As a part of an object that has other fields too.
pub(crate) fn serialize<S: Serializer>(
    params: &SamplingParams,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    for row in SamplingParameter::ALL {
        match row.get(params) {
            Some(value) if row.is_integer => map.serialize_entry(row.setting, &(value as u64))?,
            Some(value) => map.serialize_entry(row.setting, &value)?,
            None => {}
        }
    }
    map.end()
}

/// Numbers of the right type; whether they are in their range is for the one who takes them.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<SamplingParams, D::Error> {
    deserializer.deserialize_struct("SamplingDefaults", SamplingParameter::SETTINGS, Fields)
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = SamplingParams;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("sampling parameters")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SamplingParams, A::Error> {
        let mut params = SamplingParams::default();
        while let Some(name) = map.next_key::<String>()? {
            let value: Option<f64> = map
                .next_value()
                .map_err(|error| A::Error::custom(format!("{name}: {error}")))?;
            let Some(row) = SamplingParameter::of_setting(&name) else {
                continue;
            };
            // The type of the field would make another number of these.
            let fits =
                |value: f64| value.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&value);
            if row.is_integer && !value.is_none_or(fits) {
                return Err(A::Error::custom(format!(
                    "{name} must be a whole number between 0 and {}",
                    u32::MAX
                )));
            }
            row.set(&mut params, value);
        }
        Ok(params)
    }
}

/// What the document says of them.
pub(crate) struct SamplingDefaults;

impl ToSchema for SamplingDefaults {}

impl PartialSchema for SamplingDefaults {
    fn schema() -> RefOr<Schema> {
        let object = SamplingParameter::ALL
            .iter()
            .fold(ObjectBuilder::new(), |object, row| {
                object.property(row.setting, row.schema(&row.openai()))
            });
        RefOr::T(Schema::Object(object.build()))
    }
}
