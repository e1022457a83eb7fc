//! JSON as clients and models write it: text that is broken here and there, whole numbers written
//! with a fraction of zero, and errors in JSON's own words that name the place.

mod error;
mod reader;
mod text;

pub use error::Error;
pub use reader::{read, read_document, read_query, read_query_value};
pub use text::{mend, parse, parse_python};
