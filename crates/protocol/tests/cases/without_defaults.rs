//! What a request says beyond the defaults, so that a new field touches no case that does not set it.

use macmlx_inference::{ChatPrompt, GenerateRequest, Message, Prompt, Role, ToolDefinition};
use serde::Serialize;
use serde_json::{Map, Value};

/// Requests without the fields that are as in a new request, and so on for what they are made of.
pub(crate) fn requests(requests: &[GenerateRequest]) -> Result<Value, String> {
    requests.iter().map(request).collect()
}

/// A question without the options that were not given.
pub(crate) fn question(question: &impl Serialize) -> Result<Value, String> {
    let mut question = json(question)?;
    if let Value::Object(fields) = &mut question {
        fields.retain(|_, value| !value.is_null());
    }
    Ok(question)
}

fn request(request: &GenerateRequest) -> Result<Value, String> {
    let chat = Prompt::Chat(ChatPrompt::default());
    let mut default = json(&GenerateRequest::new("", chat))?;
    always(&mut default, &["model"]);
    if !matches!(request.prompt, Prompt::Chat(_)) {
        always(&mut default, &["prompt"]);
    }
    let mut said = json(request)?;
    leave_out(&mut said, &default);
    if let Some(chat) = said.pointer_mut("/prompt/Chat") {
        each(chat, "messages", &message_default()?);
        each(chat, "tools", &tool_default()?);
    }
    Ok(said)
}

fn message_default() -> Result<Value, String> {
    let mut default = json(&Message {
        content: Vec::new(),
        ..Message::text(Role::User, "")
    })?;
    always(&mut default, &["role"]);
    Ok(default)
}

fn tool_default() -> Result<Value, String> {
    let mut default = json(&ToolDefinition {
        name: String::new(),
        description: None,
        parameters: Value::Null,
        strict: false,
    })?;
    always(&mut default, &["name", "parameters"]);
    Ok(default)
}

/// These fields have no default.
fn always(default: &mut Value, names: &[&str]) {
    if let Value::Object(fields) = default {
        fields.retain(|name, _| !names.contains(&name.as_str()));
    }
}

/// Leaves the defaults out of each item of a list.
fn each(parent: &mut Value, name: &str, default: &Value) {
    if let Some(Value::Array(items)) = parent.get_mut(name) {
        for item in items {
            leave_out(item, default);
        }
    }
}

/// Takes away the fields that are as in `default`, also those of objects that both have.
fn leave_out(value: &mut Value, default: &Value) {
    let (Value::Object(fields), Value::Object(defaults)) = (value, default) else {
        return;
    };
    let kept = std::mem::take(fields)
        .into_iter()
        .filter_map(|(name, mut value)| match defaults.get(&name) {
            Some(default) if *default == value => None,
            Some(default) => {
                leave_out(&mut value, default);
                Some((name, value))
            }
            None => Some((name, value)),
        });
    *fields = kept.collect::<Map<_, _>>();
}

fn json(value: &impl Serialize) -> Result<Value, String> {
    serde_json::to_value(value).map_err(|error| error.to_string())
}
