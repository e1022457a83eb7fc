//! When a turn is played: everything a condition names must hold.

use macmlx_inference::{ChatPrompt, Message, Prompt, Role, ToolChoice};
use serde::Deserialize;

/// Characters of a message that an error shows.
const SHOWN_CHARS: usize = 200;

/// What must hold of a request; what is left out does not matter.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Condition {
    /// Model reference of the request, as the client typed it.
    pub model: Option<String>,
    /// Text that the last message must contain, or a prompt that is no conversation.
    pub last_message_contains: Option<String>,
    pub last_role: Option<Role>,
    /// Text that any message must contain that is not a system turn.
    pub message_contains: Option<String>,
    /// Text that the system turns must contain.
    pub system_contains: Option<String>,
    /// Some tool is offered, or none.
    pub has_tools: Option<bool>,
    /// This tool is offered.
    pub tool_offered: Option<String>,
    /// Assistant turns so far.
    pub turn: Option<usize>,
    /// Tool results so far.
    pub tool_results: Option<usize>,
    /// The end of the rendered prompt, by which one sees whether reasoning was switched off.
    pub prompt_ends_with: Option<String>,
}

/// A request as conditions see it.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) model: &'a str,
    pub(crate) prompt: &'a Prompt,
    /// The prompt after the chat template.
    pub(crate) rendered: &'a str,
}

impl Condition {
    pub(crate) fn holds(&self, asked: &Asked<'_>) -> bool {
        let has = |wanted: &Option<String>, text: &dyn Fn(&str) -> bool| {
            wanted.as_deref().is_none_or(text)
        };
        let last = asked.messages().last();
        let last_text = last.map_or_else(|| asked.rendered.to_owned(), Message::joined_text);
        let tools = asked.tools();
        has(&self.model, &|model| model == asked.model)
            && has(&self.last_message_contains, &|text| {
                last_text.contains(text)
            })
            && self
                .last_role
                .is_none_or(|role| last.is_some_and(|last| last.role == role))
            && has(&self.message_contains, &|text| {
                asked.any_message(text, |role| role != Role::System)
            })
            && has(&self.system_contains, &|text| {
                asked.any_message(text, |role| role == Role::System)
            })
            && self.has_tools.is_none_or(|has| has != tools.is_empty())
            && has(&self.tool_offered, &|name| tools.contains(&name))
            && self
                .turn
                .is_none_or(|count| asked.count(Role::Assistant) == count)
            && self
                .tool_results
                .is_none_or(|count| asked.count(Role::Tool) == count)
            && has(&self.prompt_ends_with, &|end| asked.rendered.ends_with(end))
    }
}

impl<'a> Asked<'a> {
    /// What a person needs to write the missing turn.
    pub(crate) fn describe(&self) -> String {
        let last = match self.messages().last() {
            Some(last) => format!(
                "last message ({:?}): {}",
                last.role,
                shorten(&last.joined_text())
            ),
            None => format!("prompt: {}", shorten(self.rendered)),
        };
        format!(
            "model `{}`; {} assistant turns, {} tool results; tools: [{}]; {last}",
            self.model,
            self.count(Role::Assistant),
            self.count(Role::Tool),
            self.tools().join(", "),
        )
    }

    fn chat(&self) -> Option<&'a ChatPrompt> {
        match self.prompt {
            Prompt::Chat(chat) => Some(chat),
            Prompt::Text(_) | Prompt::Tokens(_) | Prompt::Infill(_) => None,
        }
    }

    fn messages(&self) -> &'a [Message] {
        self.chat().map_or(&[], |chat| &chat.messages)
    }

    /// Names of the tools the model may call.
    fn tools(&self) -> Vec<&'a str> {
        self.chat()
            .filter(|chat| chat.tool_choice != ToolChoice::None)
            .map(|chat| chat.tools.iter().map(|tool| tool.name.as_str()).collect())
            .unwrap_or_default()
    }

    fn count(&self, role: Role) -> usize {
        let messages = self.messages().iter();
        messages.filter(|message| message.role == role).count()
    }

    fn any_message(&self, text: &str, role: impl Fn(Role) -> bool) -> bool {
        self.messages()
            .iter()
            .any(|message| role(message.role) && message.joined_text().contains(text))
    }
}

fn shorten(text: &str) -> String {
    let mut start: String = text.chars().take(SHOWN_CHARS).collect();
    if start.len() < text.len() {
        start.push('…');
    }
    format!("{start:?}")
}

#[cfg(test)]
mod tests {
    use macmlx_inference::ToolDefinition;

    use super::*;

    fn conversation() -> Prompt {
        Prompt::Chat(ChatPrompt {
            messages: vec![
                Message::text(Role::System, "Be kind."),
                Message::text(Role::User, "Weather in Paris?"),
                Message::text(Role::Assistant, ""),
                Message::text(Role::Tool, "17 degrees"),
            ],
            tools: vec![ToolDefinition {
                name: "weather".into(),
                description: None,
                parameters: serde_json::json!({}),
                strict: false,
            }],
            ..ChatPrompt::default()
        })
    }

    fn holds(json: &str, prompt: &Prompt, rendered: &str) -> bool {
        let condition: Condition = serde_json::from_str(json).unwrap();
        condition.holds(&Asked {
            model: "m",
            prompt,
            rendered,
        })
    }

    #[test]
    fn each_condition_holds_and_fails() {
        let prompt = conversation();
        for (yes, no) in [
            (r#"{"model": "m"}"#, r#"{"model": "n"}"#),
            (r#"{"last_role": "tool"}"#, r#"{"last_role": "user"}"#),
            (
                r#"{"last_message_contains": "17"}"#,
                r#"{"last_message_contains": "Paris"}"#,
            ),
            (
                r#"{"message_contains": "Paris"}"#,
                r#"{"message_contains": "kind"}"#,
            ),
            (
                r#"{"system_contains": "kind"}"#,
                r#"{"system_contains": "Paris"}"#,
            ),
            (r#"{"has_tools": true}"#, r#"{"has_tools": false}"#),
            (
                r#"{"tool_offered": "weather"}"#,
                r#"{"tool_offered": "time"}"#,
            ),
            (r#"{"turn": 1}"#, r#"{"turn": 0}"#),
            (r#"{"tool_results": 1}"#, r#"{"tool_results": 2}"#),
            (
                r#"{"prompt_ends_with": "assistant\n"}"#,
                r#"{"prompt_ends_with": "</think>"}"#,
            ),
            ("{}", r#"{"turn": 1, "has_tools": false}"#),
        ] {
            assert!(holds(yes, &prompt, "… assistant\n"), "{yes}");
            assert!(!holds(no, &prompt, "… assistant\n"), "{no}");
        }
    }

    #[test]
    fn tools_that_may_not_be_called_are_not_offered() {
        let mut prompt = conversation();
        if let Prompt::Chat(chat) = &mut prompt {
            chat.tool_choice = ToolChoice::None;
        }
        assert!(holds(r#"{"has_tools": false}"#, &prompt, ""));
        assert!(!holds(r#"{"tool_offered": "weather"}"#, &prompt, ""));
    }

    #[test]
    fn plain_prompts_are_known_by_their_text() {
        let prompt = Prompt::Text("Once upon".into());
        assert!(holds(
            r#"{"last_message_contains": "upon"}"#,
            &prompt,
            "Once upon"
        ));
        assert!(!holds(r#"{"last_role": "user"}"#, &prompt, "Once upon"));
    }

    #[test]
    fn what_was_asked_is_told() {
        let prompt = conversation();
        let told = Asked {
            model: "m",
            prompt: &prompt,
            rendered: "",
        }
        .describe();
        for word in ["`m`", "1 assistant", "weather", "Tool", "17 degrees"] {
            assert!(told.contains(word), "{told}");
        }
        let prompt = Prompt::Text("é".repeat(500));
        let told = Asked {
            model: "m",
            prompt: &prompt,
            rendered: &"é".repeat(500),
        }
        .describe();
        assert!(told.contains('…') && told.len() < 700, "{told}");
    }
}
