//! What `OpenAPI` documents say of sampling parameters.

use std::ops::Bound;

use utoipa::openapi::{
    Schema,
    schema::{ObjectBuilder, SchemaType, Type},
};

use crate::{SamplingParameter, Spelling};

impl SamplingParameter {
    /// The schema of its value where it is spelled so.
    pub fn schema(&self, spelling: &Spelling) -> Schema {
        let number = if self.is_integer {
            Type::Integer
        } else {
            Type::Number
        };
        let mut schema = ObjectBuilder::new()
            .schema_type(SchemaType::from_iter([number, Type::Null]))
            .title(Some(self.label))
            .description(Some(self.meaning));
        let (least, most) = spelling.range;
        schema = match least {
            Bound::Included(least) => schema.minimum(Some(least)),
            Bound::Excluded(limit) => schema.exclusive_minimum(Some(limit)),
            Bound::Unbounded => schema,
        };
        if let Bound::Included(most) = most {
            schema = schema.maximum(Some(most));
        }
        Schema::Object(schema.build())
    }
}
