//! What a request may demand of a model; the rest is refused by name.

use macmlx_inference::{
    ChatPrompt, ContentPart, InferenceError, Message, ReasoningOptions, Role, ToolChoice,
};

use macmlx_output::formats::Format;

use super::ChatModel;
use crate::ChatTemplate;

impl ChatModel {
    pub(super) fn check_tools(
        &self,
        template: &ChatTemplate,
    ) -> Result<&'static dyn Format, InferenceError> {
        let reason = if template.reads_tools() {
            format!(
                "`{}` writes tool calls in a format that is not known here",
                self.id
            )
        } else {
            format!("the chat template of `{}` does not take tools", self.id)
        };
        self.formats
            .tool_calls
            .ok_or_else(|| unsupported("tools", reason))
    }

    /// An image is part of the question, so a model that does not see refuses it. In the result of
    /// a tool, which the client replays for ever, it is told in words.
    pub(super) fn check_images(&self, messages: &[Message]) -> Result<(), InferenceError> {
        let shown = messages.iter().filter(|message| message.role != Role::Tool);
        for part in shown.flat_map(|message| &message.content) {
            if let ContentPart::Image(image) = part {
                return Err(unsupported(
                    &image.param,
                    format!("`{}` does not see images", self.id),
                ));
            }
        }
        Ok(())
    }

    /// The options with a switch that came among the template's variables. A wish that changes the
    /// answer and cannot be had is refused; not to think is no wish to a model that does not.
    pub(super) fn check_reasoning(
        &self,
        template: &ChatTemplate,
        chat: &ChatPrompt,
        reasoning: &ReasoningOptions,
    ) -> Result<ReasoningOptions, InferenceError> {
        let mut reasoning = reasoning.clone();
        let switch = chat
            .template_kwargs
            .get("enable_thinking")
            .and_then(serde_json::Value::as_bool);
        reasoning.enabled = switch.or(reasoning.enabled);
        let can_switch = template.has_reasoning_switch();
        match (reasoning.enabled, self.formats.reasoning) {
            _ if reasoning.is_hint && !can_switch => {
                reasoning.enabled = None;
                Ok(reasoning)
            }
            (Some(true), None) if !can_switch => Err(unsupported(
                "reasoning",
                format!("`{}` does not reason before it answers", self.id),
            )),
            (Some(false), Some(_)) if !can_switch => Err(unsupported(
                "reasoning",
                format!("the reasoning of `{}` cannot be switched off", self.id),
            )),
            _ => Ok(reasoning),
        }
    }
}

/// The tool that must be called is one of those offered.
pub(super) fn check_choice(chat: &ChatPrompt) -> Result<(), InferenceError> {
    match &chat.tool_choice {
        ToolChoice::Named(name) if chat.tools.iter().all(|tool| tool.name != *name) => {
            Err(InferenceError::InvalidRequest {
                param: Some("tool_choice".into()),
                message: format!("`tool_choice` names `{name}`, which is not among `tools`"),
            })
        }
        _ => Ok(()),
    }
}

pub(super) fn unsupported(param: &str, reason: String) -> InferenceError {
    InferenceError::Unsupported {
        param: param.into(),
        reason,
    }
}
