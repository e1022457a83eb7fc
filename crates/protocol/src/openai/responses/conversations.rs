//! `/v1/conversations`: items that outlive the responses they came from.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{
    input::{self, Turns},
    items,
    tools::Toolbox,
};
use crate::{Context, Error, json};

/// A conversation without its items.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = responses::Conversation)]
pub struct Conversation {
    pub id: String,
    pub object: ConversationObject,
    /// Seconds since the Unix epoch.
    pub created_at: u64,
    pub metadata: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = responses::ConversationObject)]
pub enum ConversationObject {
    Conversation,
}

/// What is said of something that is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = responses::Deleted)]
pub struct Deleted {
    pub id: String,
    /// `response` or `conversation.deleted`.
    pub object: &'static str,
    pub deleted: bool,
}

impl Deleted {
    pub fn response(id: String) -> Self {
        Self::new(id, "response")
    }

    pub fn conversation(id: String) -> Self {
        Self::new(id, "conversation.deleted")
    }

    fn new(id: String, object: &'static str) -> Self {
        Self {
            id,
            object,
            deleted: true,
        }
    }
}

/// Bodies of requests that make or change a conversation.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = responses::ConversationRequest)]
pub struct Request {
    items: Option<Vec<Value>>,
    metadata: Option<Map<String, Value>>,
}

impl Request {
    pub fn parse(body: &[u8]) -> Result<Self, Error> {
        json::fields(&json::object(body)?)
    }

    /// A new conversation and its first items.
    pub fn create(self, context: &Context) -> Result<(Conversation, Vec<Value>), Error> {
        let conversation = Conversation {
            id: format!("conv_{}", context.id),
            object: ConversationObject::Conversation,
            created_at: context.created_unix,
            metadata: self.metadata.unwrap_or_default(),
        };
        let items = check_items(&[], self.items.unwrap_or_default(), &context.id)?;
        Ok((conversation, items))
    }

    /// What the metadata is to be from now on.
    pub fn into_metadata(self) -> Result<Map<String, Value>, Error> {
        self.metadata
            .ok_or_else(|| Error::invalid("metadata", "metadata is missing"))
    }

    /// Items to be added to a conversation that has `earlier` ones.
    pub fn into_items(self, earlier: &[Value], context: &Context) -> Result<Vec<Value>, Error> {
        let items = self
            .items
            .ok_or_else(|| Error::invalid("items", "items is missing"))?;
        check_items(earlier, items, &context.id)
    }
}

/// Items a later request will be able to read after `earlier` ones, with ids.
fn check_items(earlier: &[Value], given: Vec<Value>, id: &str) -> Result<Vec<Value>, Error> {
    let mut turns = Turns::new(Toolbox::default());
    for (index, item) in earlier.iter().enumerate() {
        turns.read(item, &format!("conversation.items[{index}]"))?;
    }
    let mut checked = Vec::with_capacity(given.len());
    for (index, item) in given.into_iter().enumerate() {
        let path = format!("items[{index}]");
        if input::kind(&item, &path)? == "item_reference" {
            return Err(Error::unsupported(path, "send the item itself"));
        }
        turns.read(&item, &path)?;
        checked.push(items::complete(item, &format!("{id}i{index:02}")));
    }
    Ok(checked)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn context() -> Context {
        Context {
            id: "0".into(),
            created_unix: 7,
            fingerprint: String::new(),
        }
    }

    fn refused(body: &Value) -> String {
        let request = Request::parse(body.to_string().as_bytes());
        match request.and_then(|request| request.create(&context())) {
            Err(Error::Invalid { param, .. }) => param.unwrap(),
            Err(Error::Unsupported { param, .. }) => param,
            other => panic!("{body}: {other:?}"),
        }
    }

    #[test]
    fn a_conversation_begins_with_its_items() {
        let body = json!({"metadata": {"a": "b"}, "items": [{"role": "user", "content": "hi"}]});
        let request = Request::parse(body.to_string().as_bytes()).unwrap();
        let (conversation, items) = request.create(&context()).unwrap();
        assert_eq!(
            serde_json::to_value(conversation).unwrap(),
            json!({"id": "conv_0", "object": "conversation", "created_at": 7, "metadata": {"a": "b"}})
        );
        assert_eq!(items[0]["id"], "msg_0i00");
    }

    #[test]
    fn results_answer_calls_that_are_there() {
        let result = json!({"type": "function_call_output", "call_id": "c", "output": "x"});
        let body = json!({"items": [result]}).to_string();
        let added = |earlier: &[Value]| {
            let request = Request::parse(body.as_bytes()).unwrap();
            request.into_items(earlier, &context()).is_ok()
        };
        let call = json!({"type": "function_call", "call_id": "c", "name": "f"});
        assert!(added(std::slice::from_ref(&call)));
        assert!(!added(&[]));
        assert!(!added(&[call, result]));
    }

    #[test]
    fn what_no_request_could_read_is_refused_at_once() {
        for (body, param) in [
            (json!({"metadata": []}), "metadata"),
            (json!({"items": {}}), "items"),
            (json!({"items": [1]}), "items[0]"),
            (json!({"items": [{}]}), "items[0].type"),
            (
                json!({"items": [{"role": "user", "content": 1}]}),
                "items[0].content",
            ),
            (
                json!({"items": [{"type": "item_reference", "id": "msg_1"}]}),
                "items[0]",
            ),
            (
                json!({"items": [{"type": "function_call", "call_id": "c"}]}),
                "items[0].name",
            ),
            (
                json!({"items": [{"type": "reasoning", "summary": [5]}]}),
                "items[0].summary[0]",
            ),
            (
                json!({"items": [{"type": "additional_tools"}]}),
                "items[0].tools",
            ),
        ] {
            assert_eq!(refused(&body), param, "{body}");
        }
    }
}
