//! JSON as clients, models, Python and people write it: text that is broken here and there, whole
//! numbers written with a fraction of zero, comments in files, and errors in JSON's own words that name
//! the place.

mod error;
mod reader;
mod text;

pub use error::Error;
pub use reader::{
    read, read_arguments, read_document, read_edited, read_object, read_python, read_query,
    read_query_value,
};
pub use text::{has_comments, make_integers, parse, parse_edited, parse_message, parse_python};
