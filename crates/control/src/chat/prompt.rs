//! A stored conversation as the model is to read it.

use macmlx_inference::{
    ChatPrompt, ContentPart, Image, ImageSource, Message, Role, ToolCall as AskedCall,
};
use macmlx_store::conversations::{self as store, CallState, Conversation, ToolCall};

/// The result of a call that never had one.
const CANCELLED: &str = "The call was cancelled.";

/// Whether the last word is not the model's.
pub(super) fn can_be_answered(conversation: &Conversation) -> bool {
    conversation
        .messages
        .iter()
        .rev()
        .find(|message| !is_nothing(message))
        .is_some_and(|message| match message.role {
            store::Role::User | store::Role::Tool => true,
            store::Role::Assistant => calls(message).next().is_some(),
            store::Role::System => false,
        })
}

/// The prompt. An empty system prompt is none.
pub(super) fn chat(conversation: &Conversation, system_prompt: &str) -> ChatPrompt {
    let mut messages = Vec::with_capacity(conversation.messages.len() + 1);
    if !system_prompt.is_empty() {
        messages.push(Message::text(Role::System, system_prompt));
    }
    for (index, message) in conversation.messages.iter().enumerate() {
        match message.role {
            store::Role::System => messages.push(Message::text(Role::System, &message.content)),
            store::Role::User => messages.push(question(message, index)),
            store::Role::Tool => messages.push(Message::text(Role::Tool, &message.content)),
            store::Role::Assistant if is_nothing(message) => {}
            store::Role::Assistant => {
                messages.push(answer(message));
                messages.extend(calls(message).map(result));
            }
        }
    }
    ChatPrompt {
        messages,
        ..ChatPrompt::default()
    }
}

/// An answer that failed or was stopped before its first word.
fn is_nothing(message: &store::Message) -> bool {
    message.role == store::Role::Assistant
        && message.content.is_empty()
        && calls(message).next().is_none()
}

fn question(message: &store::Message, index: usize) -> Message {
    let images = message.images.iter().enumerate().map(|(at, image)| {
        ContentPart::Image(Image {
            source: ImageSource::Url(image.file_url.clone()),
            param: format!("messages[{index}].images[{at}]"),
        })
    });
    let mut question = Message::text(Role::User, "");
    question.content = images
        .chain([ContentPart::Text(message.content.clone())])
        .collect();
    question
}

fn answer(message: &store::Message) -> Message {
    Message {
        reasoning: message.reasoning.clone(),
        tool_calls: calls(message)
            .map(|call| AskedCall {
                id: call.id.clone(),
                name: call.name.clone(),
                arguments: arguments(call).to_owned(),
            })
            .collect(),
        ..Message::text(Role::Assistant, &message.content)
    }
}

fn result(call: &ToolCall) -> Message {
    let text = match (&call.result, call.state) {
        (Some(text), _) => text,
        (None, CallState::Done) => "",
        (None, CallState::Failed | CallState::Denied | CallState::Cancelled) => CANCELLED,
    };
    Message {
        tool_call_id: Some(call.id.clone()),
        name: Some(call.name.clone()),
        ..Message::text(Role::Tool, text)
    }
}

/// The calls of a message, without one that broke off while the model wrote it.
fn calls(message: &store::Message) -> impl Iterator<Item = &ToolCall> {
    message
        .tool_calls
        .iter()
        .filter(|call| macmlx_json::read_object(arguments(call)).is_ok())
}

/// JSON text of the arguments object; some models leave it out when it is empty.
fn arguments(call: &ToolCall) -> &str {
    match call.arguments.trim() {
        "" if call.state != CallState::Cancelled => "{}",
        written => written,
    }
}
