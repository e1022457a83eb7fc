//! The composition root: settings, models, engine, server and control put together, for the
//! command line and the desktop alike.

mod claim;
mod engine;
mod environment;
mod serve;

pub use claim::{AlreadyRunning, Claim, Owner, Record, running};
pub use environment::Host;
pub use serve::{ServeOptions, Server};
