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

/// MLX reports an allocation it could not make in words only. They are those of its Metal and CUDA
/// allocators, of Metal's command buffers, and of `std::bad_alloc`. (Its plain CPU allocator does
/// not check at all; there the system's limit is the limit.)
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
    fn refused_allocations_are_out_of_memory() {
        for words in [
            "[metal::malloc] Attempting to allocate 9 bytes which is greater than the maximum",
            "[malloc] Unable to allocate 9 bytes. at /src/allocator.cpp:9",
            "[METAL] Command buffer execution failed: Insufficient Memory",
            "std::bad_alloc",
        ] {
            let error = InferenceError::from(StepError::from(Exception::custom(words)));
            assert!(
                matches!(error, InferenceError::OutOfMemory { .. }),
                "{error}"
            );
        }
    }

    #[test]
    fn failures_of_mlx_are_errors_with_its_words() {
        let two = mlx_rs::Array::from_slice(&[1.0_f32, 2.0], &[2]);
        let three = mlx_rs::Array::from_slice(&[1.0_f32, 2.0, 3.0], &[3]);
        let error = InferenceError::from(StepError::from(two.add(&three).unwrap_err()));
        let InferenceError::Engine { message } = error else {
            panic!("{error}")
        };
        assert!(
            message.contains("broadcast") && !message.contains(".cpp"),
            "{message}"
        );
        let sum = two.add(&two).unwrap();
        assert_eq!(sum.to_vec_exact::<f32>().unwrap(), [2.0, 4.0]);
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
