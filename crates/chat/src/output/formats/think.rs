//! `<think>…</think>`: reasoning of Qwen3, `DeepSeek` R1, `SmolLM3` and many others.

use super::{Close, Format, Kind, Parsed};

#[derive(Debug)]
pub(super) struct Think;

impl Format for Think {
    fn name(&self) -> &'static str {
        "think"
    }

    fn kind(&self) -> Kind {
        Kind::Reasoning
    }

    fn detect(&self, template: &str) -> bool {
        template.contains("<think>") || template.contains("</think>")
    }

    fn open(&self) -> &'static [&'static str] {
        &["<think>"]
    }

    fn close(&self) -> Close {
        Close::Marker("</think>")
    }

    fn parse_body(&self, _body: &str) -> Parsed {
        Parsed::Text
    }
}
