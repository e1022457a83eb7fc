//! Turns of a conversation rearranged to what a template accepts, with every text kept.

use std::collections::HashMap;

use macmlx_inference::{ContentPart, Message, Role};

use super::{
    shape::{Shape, TextBesideCalls, text_of},
    told::tell_turns,
};

/// Text between the texts of turns that become one.
const SEPARATOR: &str = "\n\n";

impl Shape {
    /// The turns to render. Later turns never change what becomes of a finished exchange.
    pub(super) fn turns(self, messages: &[Message]) -> Vec<Message> {
        let mut turns = messages.to_vec();
        name_results(&mut turns);
        if self.tells_tools {
            tell_turns(&mut turns);
        }
        self.place_systems(&mut turns);
        if self.joins_users_to_results {
            turns = join(turns, |last, next| {
                (last.role, next.role) == (Role::Tool, Role::User)
            });
        }
        turns = join(turns, |last, next| {
            last.role == next.role
                && match next.role {
                    Role::User => self.joins_users,
                    Role::Assistant => self.joins_assistants,
                    Role::System | Role::Tool => false,
                }
        });
        if self.opens_with_user {
            open_with_user(&mut turns);
        }
        if self.single_calls {
            turns = single_calls(turns);
        }
        match self.text_beside_calls {
            TextBesideCalls::Beside => turns,
            TextBesideCalls::Before => texts_before_calls(turns),
            TextBesideCalls::Result => {
                texts_to_results(&mut turns);
                turns
            }
        }
    }

    fn place_systems(self, turns: &mut Vec<Message>) {
        let leading = turns
            .iter()
            .take_while(|turn| turn.role == Role::System)
            .count();
        if self.marks_systems {
            for turn in &mut turns[leading..] {
                if turn.role == Role::System {
                    let text = format!("<system-reminder>\n{}\n</system-reminder>", text_of(turn));
                    *turn = Message::text(Role::User, text);
                }
            }
        }
        if leading > 1 && (self.joins_systems || self.folds_system) {
            let joined = texts(turns.drain(..leading));
            turns.insert(0, Message::text(Role::System, joined));
        }
        if turns.first().is_none_or(|turn| turn.role != Role::System) {
            return;
        }
        if self.needs_user && turns.iter().all(|turn| turn.role != Role::User) {
            let last = turns.iter_mut().rfind(|turn| turn.role == Role::System);
            if let Some(turn) = last {
                turn.role = Role::User;
            }
        } else if self.folds_system {
            let text = text_of(&turns[0]);
            // Else an assistant speaks first, and the instructions are a turn before.
            if turns.get(1).is_some_and(|turn| turn.role == Role::User) {
                turns.remove(0);
                turns[0]
                    .content
                    .insert(0, ContentPart::Text(text + SEPARATOR));
            } else {
                turns[0].role = Role::User;
            }
        }
    }
}

/// Gives each tool result the name of the tool, which clients leave out.
fn name_results(turns: &mut [Message]) {
    let mut names = HashMap::new();
    for turn in turns {
        for call in &turn.tool_calls {
            names.insert(call.id.clone(), call.name.clone());
        }
        if turn.role == Role::Tool && turn.name.is_none() {
            let id = turn.tool_call_id.as_ref();
            turn.name = id.and_then(|id| names.get(id).cloned());
        }
    }
}

/// Makes one turn of neighbours where `joins` says so.
fn join(turns: Vec<Message>, joins: impl Fn(&Message, &Message) -> bool) -> Vec<Message> {
    let mut joined: Vec<Message> = Vec::with_capacity(turns.len());
    for turn in turns {
        match joined.last_mut() {
            Some(last) if joins(last, &turn) => append(last, turn),
            _ => joined.push(turn),
        }
    }
    joined
}

fn append(last: &mut Message, next: Message) {
    if !last.content.is_empty() && !next.content.is_empty() {
        last.content.push(ContentPart::Text(SEPARATOR.into()));
    }
    last.content.extend(next.content);
    last.tool_calls.extend(next.tool_calls);
    last.reasoning = match (last.reasoning.take(), next.reasoning) {
        (Some(last), Some(next)) => Some(last + SEPARATOR + &next),
        (last, next) => last.or(next),
    };
}

/// Puts an empty user turn before an assistant turn that opens the conversation.
fn open_with_user(turns: &mut Vec<Message>) {
    let first = turns.iter().position(|turn| turn.role != Role::System);
    if let Some(first) = first
        && turns[first].role == Role::Assistant
    {
        turns.insert(first, Message::text(Role::User, ""));
    }
}

/// Gives each call of a turn a turn of its own, followed by its result.
fn single_calls(turns: Vec<Message>) -> Vec<Message> {
    let mut singles = Vec::with_capacity(turns.len());
    let mut turns = turns.into_iter().peekable();
    while let Some(mut turn) = turns.next() {
        if turn.tool_calls.len() < 2 {
            singles.push(turn);
            continue;
        }
        let calls = std::mem::take(&mut turn.tool_calls);
        let mut results = Vec::new();
        while let Some(result) = turns.next_if(|next| next.role == Role::Tool) {
            results.push(result);
        }
        let mut turn = Some(turn);
        for call in calls {
            let result = results
                .iter()
                .position(|result| result.tool_call_id.as_ref() == Some(&call.id))
                .map(|at| results.remove(at));
            let mut single = turn.take().unwrap_or_else(|| Message {
                content: Vec::new(),
                ..Message::text(Role::Assistant, "")
            });
            single.tool_calls.push(call);
            singles.push(single);
            singles.extend(result);
        }
        singles.extend(results);
    }
    singles
}

fn texts_before_calls(turns: Vec<Message>) -> Vec<Message> {
    let mut split = Vec::with_capacity(turns.len());
    for mut turn in turns {
        if !turn.tool_calls.is_empty() && !text_of(&turn).is_empty() {
            split.push(Message {
                content: std::mem::take(&mut turn.content),
                ..Message::text(Role::Assistant, "")
            });
        }
        split.push(turn);
    }
    split
}

fn texts_to_results(turns: &mut [Message]) {
    let mut text = None;
    for turn in turns {
        if !turn.tool_calls.is_empty() && !text_of(turn).is_empty() {
            text = Some(text_of(turn));
            turn.content.clear();
        } else if turn.role == Role::Tool
            && let Some(text) = text.take()
        {
            turn.content.insert(0, ContentPart::Text(text + SEPARATOR));
        }
    }
}

fn texts(turns: impl Iterator<Item = Message>) -> String {
    let texts: Vec<String> = turns.map(|turn| text_of(&turn)).collect();
    texts.join(SEPARATOR)
}
