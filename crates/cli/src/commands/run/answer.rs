//! One answer: printed as it comes, collected for the conversation.

use futures::StreamExt;
use serde::Serialize;
use serde_json::{Value, json};

use super::Session;
use crate::output;

/// A whole answer, in the shape `--json` prints.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(super) struct Answer {
    pub model: String,
    pub text: String,
    pub reasoning: String,
    pub finish_reason: Option<String>,
    pub usage: Value,
}

impl Answer {
    /// Adds a chunk; returns its visible text.
    fn add(&mut self, chunk: &Value) -> String {
        if let Some(model) = chunk["model"].as_str() {
            model.clone_into(&mut self.model);
        }
        if !chunk["usage"].is_null() {
            self.usage = chunk["usage"].clone();
        }
        let choice = &chunk["choices"][0];
        if let Some(reason) = choice["finish_reason"].as_str() {
            self.finish_reason = Some(reason.to_owned());
        }
        if let Some(text) = choice["delta"]["reasoning_content"].as_str() {
            self.reasoning.push_str(text);
        }
        let text = choice["delta"]["content"].as_str().unwrap_or_default();
        self.text.push_str(text);
        text.to_owned()
    }
}

/// Asks and prints, unless JSON is wanted: then the caller prints the whole. Dropping it cancels.
pub(super) async fn ask(session: &Session, messages: &[Value]) -> anyhow::Result<Answer> {
    let mut request = json!({
        "model": session.model,
        "messages": messages,
        "stream": true,
        "stream_options": {"include_usage": true}
    });
    for (key, value) in &session.options {
        request[key] = value.clone();
    }
    let mut chunks = session.remote.chat(&request).await?;
    let mut answer = Answer::default();
    while let Some(chunk) = chunks.next().await {
        let had_text = !answer.text.is_empty();
        let text = answer.add(&chunk?);
        if session.output.is_json() {
            continue;
        }
        // Templates often leave a line break ahead of the answer proper.
        let text = if had_text { &text } else { text.trim_start() };
        output::piece(text)?;
    }
    if !session.output.is_json() && !answer.text.ends_with('\n') {
        output::line("")?;
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_add_up() {
        let mut answer = Answer::default();
        let pieces: Vec<String> = [
            json!({"model": "m", "choices": [{"delta": {"role": "assistant", "content": ""}}]}),
            json!({"choices": [{"delta": {"reasoning_content": "hm"}}]}),
            json!({"choices": [{"delta": {"content": "Paris"}}]}),
            json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}),
            json!({"choices": [], "usage": {"completion_tokens": 2}}),
        ]
        .iter()
        .map(|chunk| answer.add(chunk))
        .collect();
        assert_eq!(pieces.concat(), "Paris");
        assert_eq!(
            answer,
            Answer {
                model: "m".into(),
                text: "Paris".into(),
                reasoning: "hm".into(),
                finish_reason: Some("stop".into()),
                usage: json!({"completion_tokens": 2}),
            }
        );
    }
}
