//! Finds out what a template accepts: small conversations are rendered, and what a text must not
//! do is vanish.

use macmlx_inference::{Message, Role, ToolCall, ToolDefinition};
use serde_json::{Value, json};

use super::shape::{CallContent, Shape, TextBesideCalls};

/// What conversations of a probe say, in this order.
const FIRST: &str = "needle-alpha-one";
const SECOND: &str = "needle-bravo-two";
const THIRD: &str = "needle-charlie-three";
const FOURTH: &str = "needle-delta-four";
const FIFTH: &str = "needle-echo-five";
const SIXTH: &str = "needle-foxtrot-six";
const NEEDLES: [&str; 6] = [FIRST, SECOND, THIRD, FOURTH, FIFTH, SIXTH];

/// Name of the tool that probes call.
const TOOL: &str = "needle_tool";

/// The tool that probes call.
pub(super) fn tool() -> ToolDefinition {
    ToolDefinition {
        name: TOOL.into(),
        description: Some("Probe.".into()),
        parameters: json!({"type": "object", "properties": {"key": {"type": "string"}}}),
        strict: false,
    }
}

/// Renders messages of a template; `None` when it fails.
pub(super) struct Probe<R>(pub(super) R);

impl<R: Fn(Vec<Value>) -> Option<String>> Probe<R> {
    /// The simplest shape in which the template shows everything. What it shows in none stays as
    /// it is.
    pub(super) fn shape(&self) -> Shape {
        let mut shape = Shape::default();
        self.find_content(&mut shape);
        self.find_systems(&mut shape);
        self.find_speakers(&mut shape);
        self.find_later_systems(&mut shape);
        self.find_calls(&mut shape);
        shape
    }

    fn find_content(&self, shape: &mut Shape) {
        let question = [user(FIRST)];
        improve(
            shape,
            |shape| self.shows(shape, &question),
            &[|shape| shape.typed_content = true],
        );
    }

    fn find_systems(&self, shape: &mut Shape) {
        improve(
            shape,
            |shape| {
                self.shows(shape, &[system(FIRST), user(SECOND)])
                    && self.is_told_apart(shape, &[system(FIRST), user(SECOND)], 0)
                    && self.shows_somewhere(
                        shape,
                        &[system(FIRST), user(SECOND), assistant(THIRD), user(FOURTH)],
                    )
            },
            &[|shape| shape.folds_system = true],
        );
        improve(
            shape,
            |shape| self.shows(shape, &[system(FIRST), system(SECOND), user(THIRD)]),
            &[|shape| shape.joins_systems = true],
        );
        improve(
            shape,
            |shape| self.shows(shape, &[system(FIRST)]),
            &[|shape| shape.needs_user = true],
        );
    }

    fn find_speakers(&self, shape: &mut Shape) {
        improve(
            shape,
            |shape| {
                self.shows(shape, &[user(FIRST), user(SECOND)])
                    && self.shows(
                        shape,
                        &[user(FIRST), assistant(SECOND), user(THIRD), user(FOURTH)],
                    )
            },
            &[|shape| shape.joins_users = true],
        );
        improve(
            shape,
            |shape| {
                let turns = [
                    user(FIRST),
                    assistant(SECOND),
                    assistant(THIRD),
                    user(FOURTH),
                ];
                self.shows(shape, &turns)
            },
            &[|shape| shape.joins_assistants = true],
        );
        improve(
            shape,
            |shape| {
                self.shows(shape, &[assistant(FIRST), user(SECOND)])
                    && self.shows_somewhere(shape, &[system(FIRST), assistant(SECOND), user(THIRD)])
            },
            &[|shape| shape.opens_with_user = true],
        );
    }

    fn find_later_systems(&self, shape: &mut Shape) {
        improve(
            shape,
            |shape| {
                let between = [user(FIRST), assistant(SECOND), system(THIRD), user(FOURTH)];
                let after = [user(FIRST), system(SECOND), assistant(THIRD), user(FOURTH)];
                let last = [
                    system(FIRST),
                    user(SECOND),
                    assistant(THIRD),
                    system(FOURTH),
                ];
                self.shows(shape, &between)
                    && self.shows(shape, &after)
                    && self.shows_somewhere(shape, &last)
                    && (shape.marks_systems || self.is_told_apart(shape, &between, 2))
            },
            &[|shape| shape.marks_systems = true],
        );
    }

    fn find_calls(&self, shape: &mut Shape) {
        let turns = [user(FIRST), call("", &[SECOND]), result(SECOND, THIRD)];
        // The object was printed, as Python does, where text was meant.
        let printed = format!("{{'key': '{SECOND}'");
        let shows = |shape: Shape| {
            self.render(shape, &turns)
                .is_some_and(|text| in_order(&text, &turns) && !text.contains(&printed))
        };
        let contents = [CallContent::Empty, CallContent::Absent, CallContent::Null];
        let found = [false, true]
            .into_iter()
            .flat_map(|short_ids| [false, true].map(|text_arguments| (short_ids, text_arguments)))
            .flat_map(|(short_ids, text_arguments)| {
                contents.map(|call_content| Shape {
                    call_content,
                    text_arguments,
                    short_ids,
                    ..*shape
                })
            })
            .find(|shape| shows(*shape));
        let Some(found) = found else {
            shape.tells_tools = true;
            return;
        };
        *shape = found;
        self.find_arguments(shape);
        improve(
            shape,
            |shape| {
                let parallel = [
                    user(FIRST),
                    call("", &[SECOND, THIRD]),
                    result(SECOND, FOURTH),
                    result(THIRD, FIFTH),
                ];
                self.shows_somewhere(shape, &parallel)
            },
            &[|shape| shape.single_calls = true],
        );
        improve(
            shape,
            |shape| {
                let open = [
                    user(FIRST),
                    call("", &[SECOND]),
                    result(SECOND, THIRD),
                    user(FOURTH),
                ];
                let mut closed = open.to_vec();
                closed.extend([assistant(FIFTH), user(SIXTH)]);
                self.shows(shape, &open) && self.shows(shape, &closed)
            },
            &[|shape| shape.joins_users_to_results = true],
        );
        improve(
            shape,
            |shape| {
                let mut turns = vec![
                    user(FIRST),
                    call(SECOND, &[THIRD]),
                    result(THIRD, FOURTH),
                    assistant(FIFTH),
                    user(SIXTH),
                ];
                let plain = self.shows_somewhere(shape, &turns);
                turns[1].reasoning = Some("thought".into());
                plain && self.shows_somewhere(shape, &turns)
            },
            &[
                |shape| shape.text_beside_calls = TextBesideCalls::Before,
                |shape| shape.text_beside_calls = TextBesideCalls::Result,
            ],
        );
        self.find_opening_call(shape);
    }

    /// Arguments that a model wrote and that are no object.
    fn find_arguments(&self, shape: &mut Shape) {
        improve(
            shape,
            |shape| {
                let mut broken = call("", &[SECOND]);
                broken.tool_calls[0].arguments = SECOND.into();
                self.shows(shape, &[user(FIRST), broken, result(SECOND, THIRD)])
            },
            &[|shape| shape.wraps_arguments = true],
        );
    }

    fn find_opening_call(&self, shape: &mut Shape) {
        improve(
            shape,
            |shape| {
                let turns = [call("", &[FIRST]), result(FIRST, SECOND), user(THIRD)];
                self.shows(shape, &turns)
            },
            &[|shape| shape.opens_with_user = true],
        );
    }

    fn render(&self, shape: Shape, messages: &[Message]) -> Option<String> {
        (self.0)(shape.messages(messages))
    }

    /// Every needle of the conversation is there, in order.
    fn shows(&self, shape: Shape, messages: &[Message]) -> bool {
        self.render(shape, messages)
            .is_some_and(|text| in_order(&text, messages))
    }

    /// Every needle of the conversation is there; templates may put system turns and results
    /// elsewhere.
    fn shows_somewhere(&self, shape: Shape, messages: &[Message]) -> bool {
        self.render(shape, messages)
            .is_some_and(|text| find_needles(messages).all(|needle| text.contains(needle)))
    }

    /// Returns whether a turn looks different from a turn of another role.
    fn is_told_apart(&self, shape: Shape, messages: &[Message], at: usize) -> bool {
        if shape.folds_system {
            return true;
        }
        let text = self.render(shape, messages);
        [Role::User, Role::Assistant].iter().all(|role| {
            let mut other = messages.to_vec();
            other[at].role = *role;
            self.render(shape, &other) != text
        })
    }
}

/// Changes a shape that does not do by the first change that makes it do, if there is one.
fn improve(shape: &mut Shape, does: impl Fn(Shape) -> bool, changes: &[fn(&mut Shape)]) {
    if does(*shape) {
        return;
    }
    for change in changes {
        let mut better = *shape;
        change(&mut better);
        if does(better) {
            *shape = better;
            return;
        }
    }
}

fn in_order(text: &str, messages: &[Message]) -> bool {
    let mut rest = text;
    find_needles(messages).all(|needle| match rest.split_once(needle) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

/// The needles of a conversation, which uses them from the first on.
fn find_needles(messages: &[Message]) -> impl Iterator<Item = &'static str> {
    let mut written = String::new();
    for message in messages {
        written.push_str(&message.joined_text());
        for call in &message.tool_calls {
            written.push_str(&call.arguments);
        }
    }
    NEEDLES
        .into_iter()
        .filter(move |needle| written.contains(needle))
}

fn system(text: &str) -> Message {
    Message::text(Role::System, text)
}

fn user(text: &str) -> Message {
    Message::text(Role::User, text)
}

fn assistant(text: &str) -> Message {
    Message::text(Role::Assistant, text)
}

/// Calls whose arguments hold a needle each.
fn call(text: &str, needles: &[&str]) -> Message {
    let mut message = Message::text(Role::Assistant, text);
    if text.is_empty() {
        message.content.clear();
    }
    message.tool_calls = needles
        .iter()
        .map(|needle| ToolCall {
            id: format!("call_{needle}"),
            name: TOOL.into(),
            arguments: format!(r#"{{"key": "{needle}"}}"#),
        })
        .collect();
    message
}

/// What the call with needle `of` gave.
fn result(of: &str, text: &str) -> Message {
    Message {
        tool_call_id: Some(format!("call_{of}")),
        name: Some(TOOL.into()),
        ..Message::text(Role::Tool, text)
    }
}
