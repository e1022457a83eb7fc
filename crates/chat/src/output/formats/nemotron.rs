//! `<TOOLCALL>[{"name": …, "arguments": {…}}]</TOOLCALL>`: Nemotron Nano 2 and its kin.

use crate::output::readers::json_format::JsonFormat;

pub(super) static NEMOTRON: JsonFormat = JsonFormat {
    open: &["<TOOLCALL>"],
    close: Some("</TOOLCALL>"),
    is_list: true,
    ..JsonFormat::new("nemotron", |template| template.contains("<TOOLCALL>"))
};
