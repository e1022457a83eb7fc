//! The composition root: settings, models, engine, server and control put together, for the
//! command line and the desktop alike.

mod chat_template;
mod claim;
mod engine;
mod environment;
mod keys;
mod names;
mod serve;

pub use chat_template::has_chat_template;
pub use claim::{AlreadyRunning, Claim, Owner, Record, running};
pub use environment::Host;
pub use macmlx_engine::wait_for_end;
pub use names::Names;
pub use serve::{ServeOptions, Server};
