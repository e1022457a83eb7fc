//! LM Studio's own dialect, below `/api/v0` and `/api/v1`.
//!
//! The former is OpenAI's with figures about the answer; the latter has its own words throughout.
//! Source: the REST pages of `lmstudio-ai/docs`, April 2026.

pub mod chat;
pub mod downloads;
pub mod error;
pub mod measured;
pub mod models;
pub mod residency;

use macmlx_inference::ModelCard;

use crate::StreamEncoder;

/// An encoder whose answer tells of the model beside what it wrote.
pub trait Describing: StreamEncoder {
    /// Is told once, before the first event.
    fn describe(&mut self, card: &ModelCard);
}
