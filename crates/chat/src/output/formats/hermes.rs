//! `<tool_call>{"name": …, "arguments": {…}}</tool_call>`: Hermes, Qwen2.5, Qwen3 and whoever
//! follows them.

use super::{Close, Format, Kind, Parsed, bare_json};

#[derive(Debug)]
pub(super) struct Hermes;

impl Format for Hermes {
    fn name(&self) -> &'static str {
        "hermes"
    }

    fn kind(&self) -> Kind {
        Kind::ToolCalls
    }

    fn detect(&self, template: &str) -> bool {
        // The same marker holds XML in the templates of Qwen3-Coder and GLM.
        template.contains("<tool_call>")
            && !template.contains("<function=")
            && !template.contains("<arg_key>")
    }

    fn open(&self) -> &'static [&'static str] {
        &["<tool_call>"]
    }

    fn open_at_start(&self) -> &'static [&'static str] {
        // Qwen2.5-Coder often leaves the markers out.
        bare_json::STARTS
    }

    fn close(&self) -> Close {
        Close::Marker("</tool_call>")
    }

    fn parse_body(&self, body: &str) -> Parsed {
        bare_json::parse(body)
    }
}
