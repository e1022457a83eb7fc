//! `{"name": …, "parameters": {…}}` as the whole answer, with or without `<|python_tag|>` before
//! it: Llama 3.1, 3.2 and 3.3.

use super::{Close, Format, Kind, Parsed, bare_json};

#[derive(Debug)]
pub(super) struct Llama3Json;

impl Format for Llama3Json {
    fn name(&self) -> &'static str {
        "llama3_json"
    }

    fn kind(&self) -> Kind {
        Kind::ToolCalls
    }

    fn detect(&self, template: &str) -> bool {
        template.contains("<|python_tag|>")
            || template.contains(r#"{"name": function name, "parameters":"#)
    }

    fn open(&self) -> &'static [&'static str] {
        &["<|python_tag|>"]
    }

    fn open_at_start(&self) -> &'static [&'static str] {
        bare_json::STARTS
    }

    fn close(&self) -> Close {
        Close::End
    }

    fn parse_body(&self, body: &str) -> Parsed {
        bare_json::parse(body)
    }
}
