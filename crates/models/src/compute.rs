//! In which dtype a model computes and how its weights are held.
//!
//! Apple GPUs run the checkpoint's dtype through quantized kernels. MLX's CPU backend is 10 to 80
//! times slower in half precision than in float32, and its quantized product pays for each row
//! again, so there everything is float32 and many rows go through BLAS.

use mlx_rs::{Device, DeviceType, Dtype};

use crate::Result;

/// Which policy to compute by.
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

impl ComputePolicy {
    /// `self` with the device's choice filled in.
    pub(crate) fn resolve(self) -> Result<Self> {
        Ok(match self {
            Self::ByDevice => match Device::try_default()?.get_type()? {
                DeviceType::Gpu => Self::Checkpoint,
                DeviceType::Cpu => Self::Float32,
            },
            chosen => chosen,
        })
    }
}

/// Rows from which a quantized product on the CPU dequantizes first and multiplies by BLAS.
///
/// Dequantizing costs about as much as a quantized product of one row, and BLAS adds little for
/// each further row while the quantized product costs the same again.
pub(crate) const BLAS_ROWS: i32 = 4;

/// The resolved policy that layers are built by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Compute {
    /// Dtype of floating-point weights; `None` keeps the checkpoint's.
    pub(crate) dtype: Option<Dtype>,
    /// Whether quantized weights are dequantized at load.
    pub(crate) dequantize: bool,
    /// Rows from which a quantized product dequantizes first; `None` never does.
    pub(crate) blas_rows: Option<i32>,
}
