//! What goes wrong on the MLX thread, and what becomes of it outside.

use macmlx_inference::InferenceError;
use macmlx_models::ModelError;
use mlx_rs::error::{ConversionError, Exception};

/// A step that failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StepError {
    #[error("{}", .0.what())]
    Mlx(#[from] Exception),
    #[error(transparent)]
    Conversion(#[from] ConversionError),
    #[error(transparent)]
    Model(#[from] ModelError),
    /// An invariant of the engine does not hold.
    #[error("{0}")]
    Broken(&'static str),
}

/// Result of everything that touches arrays.
pub(crate) type Result<T> = std::result::Result<T, StepError>;

impl From<StepError> for InferenceError {
    fn from(error: StepError) -> Self {
        let message = without_place(&error.to_string());
        if is_out_of_memory(&message) {
            Self::OutOfMemory { message }
        } else {
            Self::Engine { message }
        }
    }
}

/// MLX ends its messages with the source file that threw, which says nothing to a client.
fn without_place(message: &str) -> String {
    let end = message.rfind(" at /").unwrap_or(message.len());
    message[..end].to_owned()
}

/// MLX reports an allocation it could not make in words only. They are those of its allocators
/// (CPU, Metal, CUDA), of Metal's command buffers, and of `std::bad_alloc`.
fn is_out_of_memory(message: &str) -> bool {
    const SIGNS: [&str; 6] = [
        "Unable to allocate",
        "Attempting to allocate",
        "Insufficient Memory",
        "OutOfMemory",
        "out of memory",
        "bad_alloc",
    ];
    SIGNS.iter().any(|sign| message.contains(sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_impossible_allocation_is_out_of_memory_and_survivable() {
        // More than an address space; nothing is touched before the allocator has refused.
        let error = mlx_rs::ops::broadcast_to(mlx_rs::Array::from_f32(1.0), &[i32::MAX, 1 << 22])
            .and_then(|wide| wide.contiguous())
            .and_then(|wide| wide.eval())
            .map_err(StepError::from)
            .unwrap_err();
        let error = InferenceError::from(error);
        assert!(
            matches!(error, InferenceError::OutOfMemory { .. }),
            "{error}"
        );
        let two = mlx_rs::Array::from_f32(1.0)
            .add(mlx_rs::Array::from_f32(1.0))
            .unwrap();
        assert_eq!(two.item_exact::<f32>().to_bits(), 2.0_f32.to_bits());
    }

    #[test]
    fn other_failures_keep_their_words() {
        let error = InferenceError::from(StepError::from(Exception::custom("shapes differ")));
        assert_eq!(
            error,
            InferenceError::Engine {
                message: "shapes differ".into()
            }
        );
        assert_eq!(
            without_place("[add] shapes differ at /src/ops.cpp:7"),
            "[add] shapes differ"
        );
    }
}
