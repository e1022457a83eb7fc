//! What responses and conversations leave behind for later requests, in memory.

mod kept;
mod recording;
mod store;

pub(crate) use recording::Recording;
pub(crate) use store::{Limits, Store};
