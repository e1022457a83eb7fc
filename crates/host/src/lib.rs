//! The composition root: settings, models, engine, server and control put together, for the
//! command line and the desktop alike.

mod app;
mod chat_template;
mod claim;
mod defaults;
mod door;
mod engine;
mod environment;
mod generic_tools;
mod keys;
pub mod logs;
mod names;
mod parts;
mod ui;
mod visitors;

pub use app::{App, AppOptions};
/// What requests and answers of the in-process door carry.
pub use axum::body::Body;
pub use chat_template::has_chat_template;
pub use claim::{AlreadyRunning, Claim, Holder, Owner, Presence, Record, presence, running};
pub use door::{DoorError, DoorOptions, OpenDoor};
pub use environment::Host;
pub use macmlx_engine::wait_for_end;
pub use macmlx_inference::ModelTask;
pub use names::Names;
