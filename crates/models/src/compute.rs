//! The dtype in which a model computes, and how its weights are held.
//!
//! Apple GPUs run the checkpoint's dtype through quantized kernels. MLX's CPU backend is 10 to 80
//! times slower in half precision than in float32, and its quantized product pays for each row
//! again, so there everything is float32 and many rows go through BLAS.

use macmlx_fit::{Holding, Precision};
use mlx_rs::{Device, DeviceType, Dtype};

use crate::Result;

/// The rule by which the compute dtype is chosen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ComputePolicy {
    /// What suits MLX's default device.
    #[default]
    ByDevice,
    /// The checkpoint's dtype and quantized kernels: Apple GPUs.
    Checkpoint,
    /// Float32, dequantized where that fits the budget: the CPU backend.
    Float32,
}

/// Rows from which a quantized product on the CPU dequantizes first and multiplies by BLAS.
///
/// Measured on x86 for 4 bits: dequantizing takes as long as nine rows of the quantized product,
/// and BLAS adds little for each row.
const BLAS_ROWS: i32 = 10;

/// The resolved policy that layers are built by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Compute {
    pub(crate) holding: Holding,
    /// Rows from which a quantized product dequantizes first; `None` never does.
    pub(crate) blas_rows: Option<i32>,
    /// Whether to spend arithmetic to save operations. On the CPU MLX's norm, rotation and attention
    /// are chains of small operations, which cost a decode step more than its arithmetic; layers
    /// then compute few rows in other ways.
    pub(crate) saves_operations: bool,
}

impl Compute {
    /// `policy` on MLX's default device, for a model of so many parameters.
    pub(crate) fn new(
        policy: ComputePolicy,
        dequantize_budget_bytes: u64,
        is_quantized: bool,
        parameters: u64,
    ) -> Result<Self> {
        let on_cpu = matches!(Device::try_default()?.get_type()?, DeviceType::Cpu);
        let in_float32 = match policy {
            ComputePolicy::ByDevice => on_cpu,
            ComputePolicy::Checkpoint => false,
            ComputePolicy::Float32 => true,
        };
        let precision = if in_float32 {
            Precision::Float32 {
                dequantize_budget_bytes,
            }
        } else {
            Precision::Checkpoint
        };
        Ok(Self {
            holding: Holding::of(precision, is_quantized, parameters),
            blas_rows: in_float32.then_some(BLAS_ROWS),
            saves_operations: in_float32 && on_cpu,
        })
    }

    /// Dtype of floating-point weights; `None` keeps the checkpoint's.
    pub(crate) fn dtype(&self) -> Option<Dtype> {
        self.holding.is_float32().then_some(Dtype::Float32)
    }
}
