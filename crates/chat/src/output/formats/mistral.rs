//! `[TOOL_CALLS]`, followed by a JSON list of calls (Mistral 7B v0.3, Nemo) or by
//! `name[ARGS]{…}` once for each call (Small 3.2, Devstral, Magistral).

use serde_json::value::RawValue;

use super::{Call, Close, Format, Kind, Parsed, bare_json};

const ARGS: &str = "[ARGS]";
const CALL_ID: &str = "[CALL_ID]";

#[derive(Debug)]
pub(super) struct Mistral;

impl Format for Mistral {
    fn name(&self) -> &'static str {
        "mistral"
    }

    fn kind(&self) -> Kind {
        Kind::ToolCalls
    }

    fn detect(&self, template: &str) -> bool {
        template.contains("[TOOL_CALLS]")
    }

    fn open(&self) -> &'static [&'static str] {
        &["[TOOL_CALLS]"]
    }

    fn close(&self) -> Close {
        Close::End
    }

    fn inner_markers(&self) -> &'static [&'static str] {
        &[ARGS, CALL_ID]
    }

    fn parse_body(&self, body: &str) -> Parsed {
        if body.trim_start().starts_with(['[', '{']) {
            return bare_json::parse(body);
        }
        let Some(brace) = body.find('{') else {
            return Parsed::Text;
        };
        let (head, json) = body.trim_end().split_at(brace);
        let head = head.strip_suffix(ARGS).unwrap_or(head);
        let name = head.split(CALL_ID).next().unwrap_or_default().trim();
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Parsed::Text;
        }
        let mut values = serde_json::Deserializer::from_str(json).into_iter::<&RawValue>();
        match values.next() {
            Some(Ok(arguments)) => Parsed::Calls {
                calls: vec![Call {
                    name: name.into(),
                    arguments: arguments.get().into(),
                }],
                rest_len: json.len() - values.byte_offset(),
            },
            _ if bare_json::ends_inside_string(json) => Parsed::InsideString,
            _ => Parsed::Text,
        }
    }
}
