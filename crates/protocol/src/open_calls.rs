//! Calls of a conversation that wait for their results.

use macmlx_inference::{ContentPart, Message, Role, ToolCall};

use crate::Error;

/// Calls without a result so far, oldest first, and those that have theirs.
///
/// Servers that number the calls of each answer anew give an id twice. A result then answers the
/// newest turn that has such a call open, and among the calls of one turn the first.
#[derive(Debug, Default)]
pub(crate) struct OpenCalls {
    open: Vec<OpenCall>,
    answered: Vec<String>,
    /// Turns with calls so far.
    turns: usize,
    /// Calls so far.
    count: usize,
}

#[derive(Debug)]
struct OpenCall {
    id: String,
    name: String,
    turn: usize,
    /// The client keeps no ids, so a result with any id may answer it.
    is_unnamed: bool,
}

impl OpenCalls {
    /// The next calls belong to a turn of their own.
    pub(crate) fn begin_turn(&mut self) {
        self.turns += 1;
    }

    /// Adds a call of the turn that is going on. A call without an id gets one by its place.
    pub(crate) fn add(&mut self, call: &mut ToolCall) {
        let is_unnamed = call.id.is_empty();
        if is_unnamed {
            // Nine letters and digits: the strictest templates take no other.
            call.id = format!("call{:05}", self.count);
        }
        self.count += 1;
        self.open.push(OpenCall {
            id: call.id.clone(),
            name: call.name.clone(),
            turn: self.turns,
            is_unnamed,
        });
    }

    /// Gives a result the id and the name of the call that it answers: the one with its id, else
    /// one that has no id of its own and the same tool, else the next one that has none.
    /// False: there is no such call.
    pub(crate) fn answer(&mut self, result: &mut Message) -> bool {
        let id = result.tool_call_id.as_deref().filter(|id| !id.is_empty());
        let name = result.name.as_deref();
        let found = match id {
            Some(id) => self
                .newest(|call| call.id == id)
                .or_else(|| self.newest(|call| call.is_unnamed && Some(&*call.name) == name))
                .or_else(|| self.newest(|call| call.is_unnamed && name.is_none())),
            None if name.is_some() => self.newest(|call| Some(&*call.name) == name),
            None => self.newest(|_| true),
        };
        let Some(found) = found else {
            return false;
        };
        let call = self.open.remove(found);
        self.answered.push(call.id.clone());
        result.tool_call_id = Some(call.id);
        result.name.get_or_insert(call.name);
        true
    }

    /// The place of the first call that `fits`, in the newest turn that has one.
    fn newest(&self, fits: impl Fn(&OpenCall) -> bool) -> Option<usize> {
        let newest = self.open.iter().rev().find(|call| fits(call))?.turn;
        self.open
            .iter()
            .position(|call| call.turn == newest && fits(call))
    }

    /// The error for a result that answers none: `param` is the field that names the call and
    /// `place` the turn, block or item that is the result.
    pub(crate) fn orphan(&self, id: Option<&str>, param: &str, place: &str) -> Error {
        let id = id.unwrap_or_default();
        let message = if self.answered.iter().any(|answered| answered == id) {
            format!("{param}: the call `{id}` has its result already; drop {place}")
        } else if id.is_empty() {
            format!(
                "{param}: no call before it is unanswered; drop {place}, or send the turn with \
                 the call"
            )
        } else {
            format!(
                "{param}: no turn before it makes the call `{id}`, which may have been trimmed \
                 away; drop {place} as well, or send the turn with the call"
            )
        };
        Error::invalid(param, message)
    }
}

/// Makes a result without its call a turn of the user, in the words that most models know: no chat
/// template takes a result that answers nothing.
pub(crate) fn tell_result(result: &mut Message) {
    let mut content = vec![ContentPart::Text("<tool_response>\n".to_owned())];
    content.append(&mut result.content);
    content.push(ContentPart::Text("\n</tool_response>".to_owned()));
    *result = Message {
        content: Vec::with_capacity(content.len()),
        ..Message::text(Role::User, "")
    };
    for part in content {
        match (result.content.last_mut(), part) {
            (Some(ContentPart::Text(before)), ContentPart::Text(text)) => before.push_str(&text),
            (_, part) => result.content.push(part),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(open: &mut OpenCalls, turn: &[(&str, &str)]) {
        open.begin_turn();
        for (id, name) in turn {
            open.add(&mut ToolCall {
                id: (*id).to_owned(),
                name: (*name).to_owned(),
                arguments: String::new(),
            });
        }
    }

    fn result(id: Option<&str>, name: Option<&str>) -> Message {
        Message {
            tool_call_id: id.map(str::to_owned),
            name: name.map(str::to_owned),
            ..Message::text(Role::Tool, "1")
        }
    }

    fn answered(open: &mut OpenCalls, id: Option<&str>, name: Option<&str>) -> Option<String> {
        let mut result = result(id, name);
        open.answer(&mut result).then(|| {
            format!(
                "{}:{}",
                result.tool_call_id.unwrap_or_default(),
                result.name.unwrap_or_default()
            )
        })
    }

    #[test]
    fn the_newest_call_of_an_id_is_meant() {
        let mut open = OpenCalls::default();
        calls(&mut open, &[("call_0", "interrupted")]);
        calls(&mut open, &[("call_0", "a"), ("call_0", "b")]);
        let mut next = || answered(&mut open, Some("call_0"), None);
        assert_eq!(next().as_deref(), Some("call_0:a"));
        assert_eq!(next().as_deref(), Some("call_0:b"));
        assert_eq!(next().as_deref(), Some("call_0:interrupted"));
        assert_eq!(next(), None);
    }

    #[test]
    fn calls_without_ids_are_answered_by_name_and_in_order() {
        let mut open = OpenCalls::default();
        calls(&mut open, &[("", "a"), ("", "b"), ("", "a")]);
        let mut next = |id, name| answered(&mut open, id, name);
        assert_eq!(next(None, Some("b")).as_deref(), Some("call00001:b"));
        assert_eq!(next(Some("x"), Some("a")).as_deref(), Some("call00000:a"));
        assert_eq!(next(None, Some("c")), None);
        assert_eq!(next(Some(""), None).as_deref(), Some("call00002:a"));
    }

    #[test]
    fn an_orphan_is_told_what_to_drop() {
        let mut open = OpenCalls::default();
        calls(&mut open, &[("c", "f")]);
        assert!(answered(&mut open, Some("c"), None).is_some());
        for (id, words) in [
            (Some("c"), "already"),
            (Some("d"), "`d`"),
            (None, "no call"),
        ] {
            let said = open.orphan(id, "messages[3].id", "messages[3]").to_string();
            assert!(said.starts_with("messages[3].id: "), "{said}");
            assert!(said.contains("drop messages[3]"), "{said}");
            assert!(said.contains(words), "{said}");
        }
    }

    #[test]
    fn a_result_without_its_call_keeps_its_text() {
        let mut orphan = result(Some("c"), Some("f"));
        tell_result(&mut orphan);
        let told = "<tool_response>\n1\n</tool_response>";
        assert_eq!(orphan, Message::text(Role::User, told));
    }
}
