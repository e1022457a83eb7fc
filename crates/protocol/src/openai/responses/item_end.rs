//! How an item of the output ends: the last events of each kind, and the whole item.

use serde_json::Value;

use super::{
    event::Event,
    freeform,
    response::{Assistant, ItemStatus, OutputItem, OutputText, SummaryText},
    sealed,
    tools::Callee,
};

pub(super) fn end_message(
    id: String,
    output_index: usize,
    status: ItemStatus,
    text: String,
    logprobs: Vec<Value>,
) -> (Vec<Event>, OutputItem) {
    let text_done = Event::TextDone {
        item_id: id.clone(),
        output_index,
        content_index: 0,
        text: text.clone(),
        logprobs: logprobs.clone(),
    };
    let part = OutputText::new(text, logprobs);
    let part_done = Event::PartDone {
        item_id: id.clone(),
        output_index,
        content_index: 0,
        part: part.clone(),
    };
    let item = OutputItem::Message {
        id,
        status,
        role: Assistant::Assistant,
        content: vec![part],
    };
    (vec![text_done, part_done], item)
}

pub(super) fn end_reasoning(
    id: String,
    output_index: usize,
    status: ItemStatus,
    text: String,
    seals: bool,
) -> (Vec<Event>, OutputItem) {
    let encrypted_content = seals.then(|| sealed::seal(&text));
    let text_done = Event::SummaryDone {
        item_id: id.clone(),
        output_index,
        summary_index: 0,
        text: text.clone(),
    };
    let part = SummaryText::new(text);
    let part_done = Event::SummaryPartDone {
        item_id: id.clone(),
        output_index,
        summary_index: 0,
        part: part.clone(),
    };
    let item = OutputItem::Reasoning {
        id,
        status,
        summary: vec![part],
        encrypted_content,
    };
    (vec![text_done, part_done], item)
}

pub(super) fn end_function(
    id: String,
    output_index: usize,
    status: ItemStatus,
    call_id: String,
    callee: Callee,
    mut arguments: String,
) -> (Vec<Event>, OutputItem) {
    let mut events = Vec::new();
    if arguments.trim().is_empty() && status == ItemStatus::Completed {
        // A call without arguments; clients parse what they get.
        "{}".clone_into(&mut arguments);
        events.push(Event::ArgumentsDelta {
            item_id: id.clone(),
            output_index,
            delta: arguments.clone(),
        });
    }
    events.push(Event::ArgumentsDone {
        item_id: id.clone(),
        output_index,
        name: callee.name.clone(),
        arguments: arguments.clone(),
    });
    let item = OutputItem::FunctionCall {
        id,
        status,
        call_id,
        name: callee.name,
        namespace: callee.namespace,
        arguments,
    };
    (events, item)
}

pub(super) fn end_custom(
    id: String,
    output_index: usize,
    status: ItemStatus,
    call_id: String,
    callee: Callee,
    mut reader: freeform::Reader,
) -> (Vec<Event>, OutputItem) {
    let mut events = Vec::new();
    // Of a call that was cut, what is no text yet is none.
    let delta = if status == ItemStatus::Completed {
        reader.finish()
    } else {
        String::new()
    };
    if !delta.is_empty() {
        events.push(Event::InputDelta {
            item_id: id.clone(),
            output_index,
            delta,
        });
    }
    let input = reader.into_text();
    events.push(Event::InputDone {
        item_id: id.clone(),
        output_index,
        input: input.clone(),
    });
    let item = OutputItem::CustomToolCall {
        id,
        status,
        call_id,
        name: callee.name,
        namespace: callee.namespace,
        input,
    };
    (events, item)
}
