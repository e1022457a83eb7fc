//! `<TOOLCALL>[{"name": …, "arguments": {…}}]</TOOLCALL>`: Nemotron Nano 2 and its kin.

use crate::readers::json_format::{JsonFormat, Shape};

pub(super) static NEMOTRON: JsonFormat = JsonFormat {
    open: &["<TOOLCALL>"],
    close: Some("</TOOLCALL>"),
    shape: Shape::List,
    ..JsonFormat::new("nemotron", |template| template.contains("<TOOLCALL>"))
};
