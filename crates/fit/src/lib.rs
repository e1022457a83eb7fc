//! How the weights of a model are held in memory, what that costs, and whether the model fits.
//!
//! Pure: numbers and a `config.json` come in, decisions and bytes go out. The loader holds weights
//! as [`Holding::of`] decides, so that what is told before a load is what the load does.

mod estimate;
mod holding;
mod kv_cache;
mod left_out;
mod machine;
mod quantization;
mod shape;
mod weights;

pub use estimate::{DEFAULT_CONTEXT_TOKENS, Fit, Question, Verdict, estimate};
pub use holding::{Holding, Precision};
pub use kv_cache::KvQuantization;
pub use left_out::{LeftOut, fill_in};
pub use machine::{Budget, Machine};
pub use quantization::Quantization;
pub use shape::context_length;
pub use weights::{StoredWeights, count_parameters};

#[cfg(test)]
mod tests;
