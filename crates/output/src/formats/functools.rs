//! `functools[{"name": …, "arguments": {…}}]`: Firefunction.

use crate::readers::json_format::{JsonFormat, Shape};

pub(super) static FUNCTOOLS: JsonFormat = JsonFormat {
    // Firefunction 2 puts a space before it, which is white space before a call.
    open: &["functools"],
    shape: Shape::List,
    ..JsonFormat::new("functools", |template| template.contains("functools["))
};
