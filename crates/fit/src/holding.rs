//! How weights are held: decided here alone, for the loader and for everyone who predicts it.

/// In which precision a machine computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// In the checkpoint's own, by quantized kernels: Apple GPUs.
    Checkpoint,
    /// In float32: CPUs, whose half precision is slow, and whose quantized product is slow for many
    /// rows.
    Float32 {
        /// Quantized weights are dequantized while the whole model, in float32, takes no more.
        dequantize_budget_bytes: u64,
    },
}

/// How the weights of a model are held in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holding {
    /// Every value is held as its file has it.
    AsStored,
    /// The model is not quantized, and every value is held in float32.
    Float32,
    /// Quantized weights are dequantized, and every value is held in float32.
    Dequantized,
    /// Quantized weights stay packed. Their scales and all other values are held in float32, in which
    /// the model computes.
    Packed,
}

impl Holding {
    /// How a machine holds a model with so many parameters (values of the model as it was made, see
    /// [`crate::count_parameters`]).
    pub fn of(precision: Precision, is_quantized: bool, parameters: u64) -> Self {
        match precision {
            Precision::Checkpoint => Self::AsStored,
            Precision::Float32 { .. } if !is_quantized => Self::Float32,
            Precision::Float32 {
                dequantize_budget_bytes,
            } if float32_bytes(parameters) <= dequantize_budget_bytes => Self::Dequantized,
            Precision::Float32 { .. } => Self::Packed,
        }
    }

    /// Whether the model computes in float32, whatever its files hold.
    pub fn is_float32(self) -> bool {
        self != Self::AsStored
    }

    /// What a person is told: `4-bit, dequantized to float32 (538 MB)`.
    ///
    /// `stored` names the form of the files (`4-bit`, `bf16`), and `bytes` is what is held.
    pub fn describe(self, stored: &str, bytes: u64) -> String {
        let held = match self {
            Self::AsStored => "",
            Self::Float32 if stored == "f32" => "",
            Self::Float32 => ", converted to float32",
            Self::Dequantized => ", dequantized to float32",
            Self::Packed => ", computed in float32",
        };
        format!("{stored}{held} ({} MB)", bytes.div_ceil(1_000_000))
    }
}

/// Bytes of so many values in float32.
pub(crate) fn float32_bytes(parameters: u64) -> u64 {
    parameters.saturating_mul(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_precision_the_form_and_the_budget_decide() {
        let float32 = |dequantize_budget_bytes| Precision::Float32 {
            dequantize_budget_bytes,
        };
        for (precision, is_quantized, expected) in [
            (Precision::Checkpoint, true, Holding::AsStored),
            (Precision::Checkpoint, false, Holding::AsStored),
            (float32(4000), true, Holding::Dequantized),
            (float32(3999), true, Holding::Packed),
            (float32(0), true, Holding::Packed),
            (float32(0), false, Holding::Float32),
            (float32(u64::MAX), false, Holding::Float32),
        ] {
            let holding = Holding::of(precision, is_quantized, 1000);
            assert_eq!(holding, expected, "{precision:?} {is_quantized}");
            assert_eq!(holding.is_float32(), precision != Precision::Checkpoint);
        }
        // Nothing is dequantized where no memory is meant to be spent on it.
        assert_eq!(
            Holding::of(float32(u64::MAX - 1), true, u64::MAX),
            Holding::Packed
        );
    }

    #[test]
    fn words_for_a_person() {
        for (holding, stored, expected) in [
            (Holding::AsStored, "4-bit", "4-bit (2 MB)"),
            (Holding::Float32, "f32", "f32 (2 MB)"),
            (
                Holding::Float32,
                "bf16",
                "bf16, converted to float32 (2 MB)",
            ),
            (
                Holding::Dequantized,
                "4-bit",
                "4-bit, dequantized to float32 (2 MB)",
            ),
            (
                Holding::Packed,
                "4-bit",
                "4-bit, computed in float32 (2 MB)",
            ),
        ] {
            assert_eq!(holding.describe(stored, 1_000_001), expected);
        }
    }
}
