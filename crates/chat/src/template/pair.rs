//! Templates of rerankers, whose messages are a query and a document.

use serde_json::json;

use super::{ChatTemplate, environment, room, standard};

/// Stand for the texts while the template is rendered.
const QUERY: &str = "PAIR_QUERY_TAG";
const DOCUMENT: &str = "PAIR_DOCUMENT_TAG";

/// What stands around a query and a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PairFrame {
    pub(crate) before: String,
    pub(crate) between: String,
    pub(crate) after: String,
}

impl ChatTemplate {
    /// What the template puts around a pair; `None`: it is not made for pairs. The instruction is
    /// its system message. The error is a reason for a person.
    pub(crate) fn pair_frame(
        &self,
        instruction: Option<&str>,
    ) -> Result<Option<PairFrame>, String> {
        let names = |role: &str| {
            ['"', '\''].iter().any(|quote| {
                self.default
                    .source
                    .contains(&format!("{quote}{role}{quote}"))
            })
        };
        if !names("query") || !names("document") {
            return Ok(None);
        }
        let message = |role: &str, content: &str| json!({"role": role, "content": content});
        let mut messages: Vec<_> = instruction
            .map(|text| message("system", text))
            .into_iter()
            .collect();
        messages.extend([message("query", QUERY), message("document", DOCUMENT)]);
        let variables = standard(messages, Vec::new(), true);
        let text = room::with_stack(|| {
            self.render_variables(&self.default, &variables)
                .map_err(|error| environment::words(&error))
        })
        .unwrap_or_else(|error| Err(error.to_string()))
        .map_err(|words| format!("its chat template refuses a pair: {words}"))?;
        let frame = text.split_once(QUERY).and_then(|(before, rest)| {
            let (between, after) = rest.split_once(DOCUMENT)?;
            Some(PairFrame {
                before: before.into(),
                between: between.into(),
                after: after.into(),
            })
        });
        frame.map(Some).ok_or_else(|| {
            "its chat template does not write the query and then the document".into()
        })
    }
}
