//! Responses and conversations by their ids.
//!
//! Bounded in number and in bytes; what was used longest ago makes way first. Items are shared
//! between a response, those that follow it and its conversation, so a chain of responses holds
//! each item once, and deleting one response leaves what followed it whole.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use macmlx_protocol::{
    Error,
    openai::responses::{
        Follows, Past, Request, Response,
        conversations::Conversation,
        list::{ItemList, Page},
    },
};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value};

use super::{
    kept::{Kept, Meter},
    recording::take_apart,
};

/// How much is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) responses: usize,
    pub(crate) conversations: usize,
    /// Approximate bytes of all items and responses together.
    pub(crate) bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            responses: 1000,
            conversations: 200,
            bytes: 128 * 1024 * 1024,
        }
    }
}

/// Everything kept.
#[derive(Debug, Default)]
pub(crate) struct Store {
    limits: Limits,
    meter: Meter,
    shelves: Mutex<Shelves>,
}

#[derive(Debug, Default)]
struct Shelves {
    responses: Shelf<StoredResponse>,
    conversations: Shelf<StoredConversation>,
    /// Counts uses.
    clock: u64,
}

/// Things by id, each with the time of its last use.
#[derive(Debug)]
struct Shelf<T>(HashMap<String, (u64, T)>);

#[derive(Debug)]
struct StoredResponse {
    /// The response without its output.
    response: Arc<Kept>,
    /// Items before the input, oldest first.
    history: Vec<Arc<Kept>>,
    input: Vec<Arc<Kept>>,
    output: Vec<Arc<Kept>>,
}

#[derive(Debug)]
struct StoredConversation {
    conversation: Conversation,
    items: Vec<Arc<Kept>>,
}

/// What a request comes after, and where its response goes.
#[derive(Debug, Default)]
pub(crate) struct Lineage {
    history: Vec<Arc<Kept>>,
    referenced: HashMap<String, Arc<Kept>>,
    conversation: Option<String>,
    wants_store: bool,
}

impl Lineage {
    /// The same for the translation.
    pub(crate) fn past(&self) -> Past {
        Past {
            items: values(&self.history).cloned().collect(),
            referenced: self
                .referenced
                .iter()
                .map(|(id, item)| (id.clone(), item.value().clone()))
                .collect(),
        }
    }
}

impl Store {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    fn shelves(&self) -> MutexGuard<'_, Shelves> {
        self.shelves.lock()
    }

    /// Finds what a request refers to. Items that are not found are left to the translation.
    pub(crate) fn lineage(&self, request: &Request) -> Result<Lineage, Error> {
        let mut shelves = self.shelves();
        let now = shelves.tick();
        let follows = request.follows();
        let mut lineage = Lineage {
            wants_store: request.wants_store(),
            ..Lineage::default()
        };
        match follows {
            Follows::Nothing => {}
            Follows::Response(id) => {
                let found = shelves.responses.touch(id, now);
                let found = found.ok_or_else(|| follows.not_kept())?;
                lineage.history.clone_from(&found.history);
                lineage.history.extend_from_slice(&found.input);
                lineage.history.extend_from_slice(&found.output);
            }
            Follows::Conversation(id) => {
                let found = shelves.conversations.touch(id, now);
                let found = found.ok_or_else(|| follows.not_kept())?;
                lineage.history.clone_from(&found.items);
                lineage.conversation = Some(id.to_owned());
            }
        }
        lineage.referenced = shelves.items(&request.references().collect());
        Ok(lineage)
    }

    /// Keeps a response that is complete, unless its request was against it, and adds to the
    /// conversation it belongs to.
    pub(crate) fn record(&self, lineage: &Lineage, response: &Response, input: &[Value]) {
        if !lineage.wants_store && lineage.conversation.is_none() {
            return;
        }
        let id = response.id.clone();
        let (response, output) = take_apart(response);
        let input = self.keep_all(input.to_vec());
        let output = self.keep_all(output);
        let mut shelves = self.shelves();
        let now = shelves.tick();
        let conversation = lineage.conversation.as_deref();
        if let Some(conversation) = conversation.and_then(|id| shelves.conversations.touch(id, now))
        {
            conversation.items.extend_from_slice(&input);
            conversation.items.extend_from_slice(&output);
        }
        if lineage.wants_store {
            let stored = StoredResponse {
                response: Kept::new(response, &self.meter),
                history: lineage.history.clone(),
                input,
                output,
            };
            shelves.responses.put(id, now, stored);
        }
        self.make_room(&mut shelves);
    }

    /// A response with its output.
    pub(crate) fn response(&self, id: &str) -> Result<Value, Error> {
        let mut shelves = self.shelves();
        let now = shelves.tick();
        let stored = shelves
            .responses
            .touch(id, now)
            .ok_or_else(|| gone("response", id))?;
        let mut response = stored.response.value().clone();
        response["output"] = values(&stored.output).cloned().collect();
        Ok(response)
    }

    pub(crate) fn delete_response(&self, id: &str) -> Result<(), Error> {
        let removed = self.shelves().responses.0.remove(id);
        removed.map(drop).ok_or_else(|| gone("response", id))
    }

    /// Items of the request that a response answers.
    pub(crate) fn input_items(&self, id: &str, page: &Page) -> Result<ItemList, Error> {
        let mut shelves = self.shelves();
        let now = shelves.tick();
        let stored = shelves
            .responses
            .touch(id, now)
            .ok_or_else(|| gone("response", id))?;
        page.of(values(&stored.input))
    }

    pub(crate) fn create_conversation(&self, conversation: Conversation, items: Vec<Value>) {
        let stored = StoredConversation {
            items: self.keep_all(items),
            conversation: conversation.clone(),
        };
        let mut shelves = self.shelves();
        let now = shelves.tick();
        shelves.conversations.put(conversation.id, now, stored);
        self.make_room(&mut shelves);
    }

    pub(crate) fn conversation(&self, id: &str) -> Result<Conversation, Error> {
        self.with_conversation(id, |stored| Ok(stored.conversation.clone()))
    }

    pub(crate) fn set_metadata(
        &self,
        id: &str,
        metadata: Map<String, Value>,
    ) -> Result<Conversation, Error> {
        self.with_conversation(id, |stored| {
            stored.conversation.metadata = metadata;
            Ok(stored.conversation.clone())
        })
    }

    pub(crate) fn delete_conversation(&self, id: &str) -> Result<(), Error> {
        let removed = self.shelves().conversations.0.remove(id);
        removed.map(drop).ok_or_else(|| gone("conversation", id))
    }

    pub(crate) fn items(&self, id: &str, page: &Page) -> Result<ItemList, Error> {
        self.with_conversation(id, |stored| page.of(values(&stored.items)))
    }

    /// Adds items, which `make` makes from those that are there.
    pub(crate) fn add_items(
        &self,
        id: &str,
        make: impl FnOnce(&[Value]) -> Result<Vec<Value>, Error>,
    ) -> Result<ItemList, Error> {
        let added = self.with_conversation(id, |stored| {
            let earlier: Vec<Value> = values(&stored.items).cloned().collect();
            let added = make(&earlier)?;
            stored.items.extend(self.keep_all(added.clone()));
            Ok(added)
        })?;
        self.make_room(&mut self.shelves());
        Ok(ItemList::whole(added))
    }

    pub(crate) fn item(&self, id: &str, item: &str) -> Result<Value, Error> {
        self.with_conversation(id, |stored| {
            let found = stored.items.iter().find(|kept| kept.has_id(item));
            found
                .map(|kept| kept.value().clone())
                .ok_or_else(|| gone("item", item))
        })
    }

    pub(crate) fn delete_item(&self, id: &str, item: &str) -> Result<Conversation, Error> {
        self.with_conversation(id, |stored| {
            let before = stored.items.len();
            stored.items.retain(|kept| !kept.has_id(item));
            if stored.items.len() == before {
                return Err(gone("item", item));
            }
            Ok(stored.conversation.clone())
        })
    }

    fn with_conversation<T>(
        &self,
        id: &str,
        act: impl FnOnce(&mut StoredConversation) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut shelves = self.shelves();
        let now = shelves.tick();
        let stored = shelves.conversations.touch(id, now);
        act(stored.ok_or_else(|| gone("conversation", id))?)
    }

    fn keep_all(&self, values: Vec<Value>) -> Vec<Arc<Kept>> {
        values
            .into_iter()
            .map(|value| Kept::new(value, &self.meter))
            .collect()
    }

    fn make_room(&self, shelves: &mut Shelves) {
        while shelves.responses.0.len() > self.limits.responses {
            shelves.responses.drop_oldest();
        }
        while shelves.conversations.0.len() > self.limits.conversations {
            shelves.conversations.drop_oldest();
        }
        while self.meter.bytes() > self.limits.bytes && !shelves.is_empty() {
            shelves.drop_oldest();
        }
    }
}

impl Shelves {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn is_empty(&self) -> bool {
        self.responses.0.is_empty() && self.conversations.0.is_empty()
    }

    /// Conversations were asked to be kept; responses are kept unless asked not to be. So age alone
    /// decides only within each.
    fn drop_oldest(&mut self) {
        if self.responses.0.is_empty() {
            self.conversations.drop_oldest();
        } else {
            self.responses.drop_oldest();
        }
    }

    /// Those of the wanted items that any response or conversation has, by id.
    fn items(&self, wanted: &HashSet<&str>) -> HashMap<String, Arc<Kept>> {
        if wanted.is_empty() {
            return HashMap::new();
        }
        let of_responses = self.responses.0.values().flat_map(|(_, stored)| {
            let output = stored.output.iter();
            output.chain(&stored.input)
        });
        let of_conversations = self
            .conversations
            .0
            .values()
            .flat_map(|(_, stored)| &stored.items);
        of_responses
            .chain(of_conversations)
            .filter_map(|item| {
                let id = item.id()?;
                wanted
                    .contains(id)
                    .then(|| (id.to_owned(), Arc::clone(item)))
            })
            .collect()
    }
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T> Shelf<T> {
    fn put(&mut self, id: String, now: u64, thing: T) {
        self.0.insert(id, (now, thing));
    }

    fn touch(&mut self, id: &str, now: u64) -> Option<&mut T> {
        let (last_used, thing) = self.0.get_mut(id)?;
        *last_used = now;
        Some(thing)
    }

    fn drop_oldest(&mut self) {
        let oldest = self
            .0
            .iter()
            .min_by_key(|(_, (last_used, _))| *last_used)
            .map(|(id, _)| id.clone());
        if let Some(id) = oldest {
            self.0.remove(&id);
        }
    }
}

fn values(items: &[Arc<Kept>]) -> impl DoubleEndedIterator<Item = &Value> {
    items.iter().map(|item| item.value())
}

/// What a path names is not there.
fn gone(kind: &'static str, id: &str) -> Error {
    Error::NotKept {
        kind,
        id: id.to_owned(),
        param: None,
    }
}

#[cfg(test)]
mod tests {
    use macmlx_inference::{FinishReason, GenerationEvent, Timings, Usage};
    use macmlx_protocol::{
        Body, Context, Endpoint, StreamEncoder,
        openai::responses::{Responses, conversations::Request as ConversationBody},
    };
    use serde_json::json;

    use super::*;

    fn context(id: &str) -> Context {
        Context {
            id: id.into(),
            created_unix: 0,
            fingerprint: String::new(),
        }
    }

    /// Has a request answered with its own id, and the response kept.
    fn respond(store: &Store, id: &str, mut body: Value) -> Result<(), Error> {
        body["model"] = "small".into();
        let request = Responses::parse(Body::json(body.to_string().as_bytes()))?;
        let lineage = store.lineage(&request)?;
        let mut encoder = request.translate(&lineage.past(), context(id))?.encoder;
        for event in [
            GenerationEvent::Text {
                choice: 0,
                text: id.into(),
                tokens: Vec::new(),
            },
            GenerationEvent::Finished {
                choice: 0,
                reason: FinishReason::Stop,
                stop_sequence: None,
            },
            GenerationEvent::Completed {
                usage: Usage::default(),
                timings: Timings::default(),
            },
        ] {
            encoder.encode(0, event);
        }
        let (response, input) = encoder.finished().unwrap();
        store.record(&lineage, response, input);
        Ok(())
    }

    fn kept(store: &Store, ids: &[&str]) -> Vec<bool> {
        let shelves = store.shelves();
        ids.iter()
            .map(|id| shelves.responses.0.contains_key(&format!("resp_{id}")))
            .collect()
    }

    fn conversation(store: &Store, id: &str) {
        let body = br#"{"items": [{"role": "user", "content": "a"}]}"#;
        let body = ConversationBody::parse(body).unwrap();
        let (conversation, items) = body.create(&context(id)).unwrap();
        store.create_conversation(conversation, items);
    }

    #[test]
    fn what_was_used_longest_ago_makes_way() {
        let store = Store::new(Limits {
            responses: 2,
            conversations: 1,
            ..Limits::default()
        });
        for id in ["1", "2"] {
            respond(&store, id, json!({"input": "a"})).unwrap();
        }
        store.response("resp_1").unwrap();
        respond(&store, "3", json!({"input": "a"})).unwrap();
        assert_eq!(kept(&store, &["1", "2", "3"]), [true, false, true]);
        conversation(&store, "1");
        conversation(&store, "2");
        assert!(store.conversation("conv_1").is_err());
        assert!(store.conversation("conv_2").is_ok());
    }

    #[test]
    fn bytes_are_bounded_too_and_conversations_stay_longest() {
        let store = Store::new(Limits {
            bytes: 50_000,
            ..Limits::default()
        });
        conversation(&store, "1");
        let long = "x".repeat(10_000);
        for id in ["1", "2", "3", "4", "5", "6"] {
            respond(&store, id, json!({"input": long})).unwrap();
            assert!(store.meter.bytes() <= 50_000);
        }
        assert_eq!(kept(&store, &["1", "5", "6"]), [false, true, true]);
        assert!(store.conversation("conv_1").is_ok());
        // More than there is room for is not kept at all, but does no harm.
        respond(&store, "7", json!({"input": "x".repeat(60_000)})).unwrap();
        assert_eq!(kept(&store, &["6", "7"]), [false, false]);
        assert!(store.meter.bytes() <= 50_000);
    }

    #[test]
    fn a_chain_holds_each_item_once_and_outlives_its_links() {
        let store = Store::new(Limits::default());
        let long = "x".repeat(1_000_000);
        respond(&store, "0", json!({"input": long})).unwrap();
        for link in 1..50 {
            let previous = format!("resp_{}", link - 1);
            let body = json!({"input": "a", "previous_response_id": previous});
            respond(&store, &link.to_string(), body).unwrap();
        }
        assert!(store.meter.bytes() < 2 * long.len());
        for link in 0..49 {
            store.delete_response(&format!("resp_{link}")).unwrap();
        }
        assert!(store.meter.bytes() > long.len());
        let body = json!({"input": "a", "previous_response_id": "resp_49"});
        respond(&store, "50", body).unwrap();
        let shelves = store.shelves();
        let (_, last) = &shelves.responses.0["resp_50"];
        assert_eq!(last.history.len(), 100);
        assert!(last.history[0].value().to_string().contains(&long));
    }

    #[test]
    fn nothing_is_left_when_all_is_deleted() {
        let store = Store::new(Limits::default());
        conversation(&store, "1");
        let body = json!({"input": "a", "conversation": "conv_1"});
        respond(&store, "1", body).unwrap();
        store.delete_response("resp_1").unwrap();
        store.delete_conversation("conv_1").unwrap();
        assert_eq!(store.meter.bytes(), 0);
        assert!(store.delete_conversation("conv_1").is_err());
    }
}
