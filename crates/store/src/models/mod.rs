//! Local models: which folders hold one, what is known about it, which one a reference means.

mod config;
mod folder;
mod library;
mod reference;
mod weights;

pub use folder::{Entry, State};
pub use library::{Library, RemoveError};
