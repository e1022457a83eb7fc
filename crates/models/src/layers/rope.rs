//! Rotary position embeddings and the ways checkpoints stretch them.
//!
//! Follows mlx-lm's `rope_utils`: frequencies here are what MLX's kernel takes, the number of
//! positions that turn a pair of features by one radian.

mod config;
mod matrix;

use std::{borrow::Cow, f32::consts::TAU, f64::consts::PI};

use mlx_rs::{Array, fast, ops};

pub(crate) use self::config::RopeConfig;
use self::matrix::RotationMatrix;
use crate::{Result, compute::Compute};

/// Rotation of the first `dims` features of each head by their position.
#[derive(Debug)]
pub(crate) struct Rope {
    dims: i32,
    traditional: bool,
    /// Base of the frequencies, where they are not given.
    base: Option<f32>,
    /// Factor on positions.
    scale: f32,
    frequencies: Option<Array>,
    /// Factors on the features of a head before rotation, `[head_dim]`.
    magnitude: Option<Array>,
    /// Where MLX has no kernel for rotation, how to write it as a matrix.
    matrix: Option<RotationMatrix>,
}

/// How a checkpoint stretches its rotation beyond the length it was first trained with.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RopeScaling {
    None,
    Linear {
        factor: f32,
    },
    Llama3 {
        factor: f32,
        low_factor: f32,
        high_factor: f32,
        original_length: f32,
    },
    Yarn(Yarn),
    /// A factor on each frequency and one on magnitudes; also called `su`.
    LongRope {
        factors: Vec<f32>,
        magnitude: f32,
    },
}

/// Parameters of yarn.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Yarn {
    pub(crate) factor: f64,
    pub(crate) original_length: f64,
    pub(crate) beta_fast: f64,
    pub(crate) beta_slow: f64,
    pub(crate) mscale: f64,
    pub(crate) mscale_all_dim: f64,
}

impl Rope {
    /// Rotation of the first `dims` of `head_dim` features.
    pub(crate) fn new(
        (dims, head_dim): (i32, i32),
        base: f32,
        traditional: bool,
        scaling: &RopeScaling,
        compute: Compute,
    ) -> Result<Self> {
        let stretched = |frequencies: Vec<f32>, magnitude: f32| Self {
            base: None,
            frequencies: Some(Array::from_slice(&frequencies, &[dims / 2])),
            magnitude: (magnitude.to_bits() != 1_f32.to_bits()).then(|| {
                let factors = (0..head_dim).map(|i| if i < dims { magnitude } else { 1.0 });
                Array::from_iter(factors, &[head_dim])
            }),
            ..Self::plain(dims, base, traditional)
        };
        let rope = match scaling {
            RopeScaling::None => Self::plain(dims, base, traditional),
            RopeScaling::Linear { factor } => Self {
                scale: 1.0 / factor,
                ..Self::plain(dims, base, traditional)
            },
            RopeScaling::Llama3 {
                factor,
                low_factor,
                high_factor,
                original_length,
            } => {
                let (low, high) = (original_length / low_factor, original_length / high_factor);
                let stretch = |frequency: f32| {
                    let wavelength = TAU * frequency;
                    if wavelength > low {
                        return frequency * factor;
                    }
                    if wavelength <= high || wavelength >= low {
                        return frequency;
                    }
                    let smooth =
                        (original_length / wavelength - low_factor) / (high_factor - low_factor);
                    frequency / ((1.0 - smooth) / factor + smooth)
                };
                stretched(
                    frequencies(dims, base)?.into_iter().map(stretch).collect(),
                    1.0,
                )
            }
            RopeScaling::Yarn(yarn) => stretched(
                yarn.stretch(&frequencies(dims, base)?, dims, base),
                yarn.magnitude(),
            ),
            RopeScaling::LongRope { factors, magnitude } => {
                let unscaled = frequencies(dims, base)?;
                stretched(
                    unscaled.iter().zip(factors).map(|(f, by)| f * by).collect(),
                    *magnitude,
                )
            }
        };
        rope.prepared(head_dim, compute)
    }

    /// Rotation of whole heads by `base` alone.
    pub(crate) fn unscaled(head_dim: i32, base: f32, compute: Compute) -> Result<Self> {
        Self::plain(head_dim, base, false).prepared(head_dim, compute)
    }

    /// No rotation at all, for layers whose queries and keys carry no position.
    pub(crate) fn none() -> Self {
        Self::plain(0, 1.0, false)
    }

    fn plain(dims: i32, base: f32, traditional: bool) -> Self {
        Self {
            dims,
            traditional,
            base: Some(base),
            scale: 1.0,
            frequencies: None,
            magnitude: None,
            matrix: None,
        }
    }

    /// Prepares rotation by a matrix, where that saves operations.
    fn prepared(self, head_dim: i32, compute: Compute) -> Result<Self> {
        if !compute.saves_operations {
            return Ok(self);
        }
        Ok(Self {
            matrix: Some(RotationMatrix::new(&self, head_dim)?),
            ..self
        })
    }

    /// Rotates `[1, heads, length, head_dim]` whose first row is at `position`.
    pub(crate) fn rotate(&self, x: &Array, position: i32) -> Result<Array> {
        let Self {
            dims,
            traditional,
            base,
            scale,
            ..
        } = *self;
        if dims == 0 {
            return Ok(x.clone());
        }
        let x = self.magnify(x)?;
        let frequencies = self.frequencies.as_ref();
        Ok(fast::rope(
            &*x,
            dims,
            traditional,
            base,
            scale,
            position,
            frequencies,
        )?)
    }

    /// Rotates `[batch, heads, 1, head_dim]`, each at its own of `positions` (`[batch]`).
    pub(crate) fn rotate_each(&self, x: &Array, positions: &Array) -> Result<Array> {
        let Self {
            dims,
            traditional,
            base,
            scale,
            ..
        } = *self;
        if dims == 0 {
            return Ok(x.clone());
        }
        let x = self.magnify(x)?;
        let frequencies = self.frequencies.as_ref();
        Ok(fast::rope_dynamic(
            &*x,
            dims,
            traditional,
            base,
            scale,
            positions,
            frequencies,
        )?)
    }

    /// Rotation at each of `positions` (`[batch]`) as `[batch, head_dim, head_dim]`, to multiply
    /// heads by from the right; `None` where MLX's kernel does it.
    pub(crate) fn matrices(&self, positions: &Array) -> Result<Option<Array>> {
        self.matrix
            .as_ref()
            .map(|matrix| matrix.at(positions))
            .transpose()
    }

    fn magnify<'a>(&self, x: &'a Array) -> Result<Cow<'a, Array>> {
        Ok(match &self.magnitude {
            None => Cow::Borrowed(x),
            Some(factors) => Cow::Owned(x.multiply(factors.as_dtype(x.dtype())?)?),
        })
    }
}

/// `base^(2i / dims)`, by MLX's own power so that the last bit is the one mlx-lm gets.
fn frequencies(dims: i32, base: f32) -> Result<Vec<f32>> {
    let exponents = (0..dims / 2).map(|i| (2 * i) as f32 / dims as f32);
    let exponents = Array::from_iter(exponents, &[dims / 2]);
    let frequencies = ops::power(Array::from_f32(base), exponents)?;
    frequencies.eval()?;
    Ok((0..dims / 2)
        .zip(frequencies.as_slice::<f32>())
        .map(|(_, frequency)| *frequency)
        .collect())
}

impl Yarn {
    fn magnitude(&self) -> f32 {
        let scaled = |mscale: f64| {
            if self.factor <= 1.0 {
                1.0
            } else {
                0.1 * mscale * self.factor.ln() + 1.0
            }
        };
        (scaled(self.mscale) / scaled(self.mscale_all_dim)) as f32
    }

    /// Mixes stretched and unstretched frequencies by a ramp over the pairs of features.
    fn stretch(&self, frequencies: &[f32], dims: i32, base: f32) -> Vec<f32> {
        let dim_of = |rotations: f64| {
            let turn = self.original_length / (rotations * 2.0 * PI);
            f64::from(dims) * turn.ln() / (2.0 * f64::from(base).ln())
        };
        let low = dim_of(self.beta_fast).floor().max(0.0) as f32;
        let mut high = dim_of(self.beta_slow).ceil().min(f64::from(dims - 1)) as f32;
        if low.to_bits() == high.to_bits() {
            high += 0.001;
        }
        let factor = self.factor as f32;
        let stretch = |(index, &extrapolated): (usize, &f32)| {
            let ramp = ((index as f32 - low) / (high - low)).clamp(0.0, 1.0);
            let keep = 1.0 - ramp;
            let interpolated = factor * extrapolated;
            (interpolated * extrapolated) / (interpolated * keep + extrapolated * (1.0 - keep))
        };
        frequencies.iter().enumerate().map(stretch).collect()
    }
}
