//! Local models: which folders hold one, what is known about it, which one a reference means.

mod config;
mod copy;
mod create;
mod description;
mod digest;
mod encoders;
mod files;
mod folder;
mod library;
mod reference;
mod task;
mod weights;

pub use copy::CopyError;
pub use create::Prepared;
pub use description::describe;
pub use encoders::Encoders;
pub use files::Files;
pub use folder::{Entry, State};
pub use library::{Library, RemoveError};
