//! Encoding: texts that become vectors and scores, beside whatever generates.
//!
//! [`draft`] checks and tokenizes on ordinary threads; on the MLX thread, [`queue`] holds what was
//! asked for and computes one batch a turn, as [`batches`] puts them together.

mod batches;
mod draft;
mod entry;
mod queue;
mod rows;

pub(crate) use draft::Draft;
pub(crate) use entry::Job;
pub(crate) use queue::Queue;
