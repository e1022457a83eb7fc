//! Rotation as a matrix product.
//!
//! Where MLX has no kernel for rotation, it takes nineteen operations for each layer's queries and
//! again for its keys. A decode step makes one matrix for all layers instead, and each rotation is
//! one product.

use mlx_rs::{Array, ops};

use super::Rope;
use crate::Result;

/// What a rotation matrix is mixed from: `cos(angle) · same + sin(angle) · swapped`, by column.
#[derive(Debug)]
pub(super) struct RotationMatrix {
    /// Angle of each feature at position 1, `[head_dim]`; 0 where nothing rotates.
    angles: Array,
    /// Diagonal, `[head_dim, head_dim]`.
    same: Array,
    /// Takes each feature to the place of its partner, `[head_dim, head_dim]`.
    swapped: Array,
}

impl RotationMatrix {
    pub(super) fn new(rope: &Rope, head_dim: i32) -> Result<Self> {
        let (size, dims) = (head_dim as usize, rope.dims as usize);
        let half = dims / 2;
        let inverse = rope.inverse_frequencies()?;
        let magnitude = match &rope.magnitude {
            Some(factors) => factors.as_slice::<f32>().to_vec(),
            None => vec![1.0; size],
        };
        let mut angles = vec![0.0; size];
        let mut same: Vec<f32> = vec![0.0; size * size];
        let mut swapped = same.clone();
        for feature in 0..size {
            same[feature * size + feature] = magnitude[feature];
        }
        for (pair, angle) in inverse.into_iter().enumerate() {
            let (first, second) = if rope.traditional {
                (2 * pair, 2 * pair + 1)
            } else {
                (pair, pair + half)
            };
            angles[first] = angle;
            angles[second] = angle;
            // first' = first cos - second sin, second' = second cos + first sin.
            swapped[second * size + first] = -magnitude[second];
            swapped[first * size + second] = magnitude[first];
        }
        Ok(Self {
            angles: Array::from_slice(&angles, &[head_dim]),
            same: Array::from_slice(&same, &[head_dim, head_dim]),
            swapped: Array::from_slice(&swapped, &[head_dim, head_dim]),
        })
    }

    /// The matrices at `positions` (`[batch]`): `[batch, head_dim, head_dim]`.
    pub(super) fn at(&self, positions: &Array) -> Result<Array> {
        let angles = positions.reshape(&[-1, 1, 1])?.multiply(&self.angles)?;
        let same = angles.cos()?.multiply(&self.same)?;
        Ok(angles.sin()?.multiply(&self.swapped)?.add(same)?)
    }
}

impl Rope {
    /// Radians of each pair at position 1, as MLX computes them.
    fn inverse_frequencies(&self) -> Result<Vec<f32>> {
        let half = self.dims / 2;
        let inverse = match (&self.frequencies, self.base) {
            (Some(frequencies), _) => frequencies.reciprocal()?,
            (None, base) => {
                let step = -(base.unwrap_or(10_000.0).ln() / half as f32);
                let exponents = Array::from_iter((0..half).map(|i| i as f32), &[half]);
                ops::exp(exponents.multiply(Array::from_f32(step))?)?
            }
        };
        let inverse = inverse.multiply(Array::from_f32(self.scale))?;
        inverse.eval()?;
        Ok(inverse.as_slice::<f32>().to_vec())
    }
}
