//! The bound for the weights of all models in memory.

use macmlx_inference::{InferenceError, ModelCard};

/// Bytes that the weights of all models may take; `None`: as much as there is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemoryLimit(pub(crate) Option<u64>);

impl MemoryLimit {
    /// Refuses a model that takes `bytes` where others keep `others_bytes`.
    pub(crate) fn check(
        self,
        card: &ModelCard,
        bytes: u64,
        others_bytes: u64,
    ) -> Result<(), InferenceError> {
        let Some(limit) = self.0 else {
            return Ok(());
        };
        if bytes.saturating_add(others_bytes) <= limit {
            return Ok(());
        }
        let others = match others_bytes {
            0 => String::new(),
            bytes => format!(", of which other models hold {}", gigabytes(bytes)),
        };
        Err(InferenceError::ModelLoad {
            model: card.id.clone(),
            reason: format!(
                "it needs {} of memory, and the setting maxResidentMemoryGB allows {}{others}; take \
                 a smaller model or raise the limit",
                gigabytes(bytes),
                gigabytes(limit)
            ),
        })
    }
}

/// Formats a size in the unit of the setting.
fn gigabytes(bytes: u64) -> String {
    format!("{:.2} GB", bytes as f64 / f64::from(1 << 30))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_exceeds_the_limit_is_refused_with_the_numbers() {
        let card = ModelCard::scripted("org/large");
        let limit = MemoryLimit(Some(4 << 30));
        assert_eq!(limit.check(&card, 4 << 30, 0), Ok(()));
        assert_eq!(limit.check(&card, 3 << 30, 1 << 30), Ok(()));
        assert_eq!(MemoryLimit(None).check(&card, u64::MAX, u64::MAX), Ok(()));
        let refused = limit.check(&card, 5 << 30, 0).unwrap_err().to_string();
        for words in ["org/large", "5.00 GB", "maxResidentMemoryGB allows 4.00 GB"] {
            assert!(refused.contains(words), "{refused}");
        }
        let refused = limit.check(&card, 3 << 30, 2 << 30).unwrap_err();
        assert!(
            refused.to_string().contains("other models hold 2.00 GB"),
            "{refused}"
        );
    }
}
