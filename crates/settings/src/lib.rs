//! Typed settings, every path on disk and every environment variable, resolved once at the edge.

mod control_token;
pub mod env;
mod file;
mod home;
mod schema;
pub mod state_file;

pub use control_token::control_token;
pub use env::Environment;
pub use file::{Error, Loaded, load, patch};
pub use home::{Home, NoHome};
pub use schema::Settings;
