//! What responses and conversations leave behind for later requests, in memory.

mod chats;
mod kept;
mod recording;
mod store;

pub(crate) use chats::{Chats, Remembering, messages};
pub(crate) use recording::Recording;
pub(crate) use store::{Limits, Store};
