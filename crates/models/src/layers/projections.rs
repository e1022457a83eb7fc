//! Several projections of the same input.

use mlx_rs::{Array, error::Exception};

use super::Linear;
use crate::{
    Result,
    weights::{Matrix, QuantizedMatrix, Scope},
};

/// Rows up to which the joined product is used: a decode step of a batch. Its parts are strided
/// views, which a long prefill would pay for.
const JOINED_ROWS: i32 = 16;

/// `N` projections; for few rows one product, where operations cost more than their arithmetic.
///
/// The parts are views of the joined weight, so that it is held once.
#[derive(Debug)]
pub(crate) struct Projections<const N: usize> {
    joined: Option<Linear>,
    parts: [Linear; N],
    /// Where the joined answer splits.
    borders: Vec<i32>,
}

impl<const N: usize> Projections<N> {
    /// Takes the projections of these names and outputs.
    pub(crate) fn load(
        scope: &mut Scope<'_>,
        inputs: i32,
        projections: [(&str, i32); N],
        has_bias: bool,
    ) -> Result<Self> {
        let compute = scope.compute();
        let mut matrices = Vec::with_capacity(N);
        let mut biases = Vec::with_capacity(N);
        for (name, outputs) in projections {
            let mut scope = scope.at(name);
            matrices.push(scope.matrix(outputs, inputs)?);
            biases.extend(
                has_bias
                    .then(|| scope.tensor("bias", &[outputs]))
                    .transpose()?,
            );
        }
        let borders = borders(projections.map(|(_, outputs)| outputs));
        let joined = if compute.saves_operations {
            Matrix::join(&matrices)?
        } else {
            None
        };
        if let Some(matrix) = joined {
            drop(matrices);
            let bias = has_bias
                .then(|| mlx_rs::ops::concatenate(&biases, 0))
                .transpose()?;
            return Self::split(&matrix, bias, borders, compute.blas_rows);
        }
        let mut biases = biases.into_iter();
        let parts = matrices
            .iter()
            .map(|m| Linear::new(m, biases.next(), compute.blas_rows));
        Ok(Self {
            joined: None,
            parts: exactly(parts.collect::<Result<_>>()?)?,
            borders,
        })
    }

    /// Takes one matrix that the checkpoint itself holds joined.
    pub(crate) fn load_joined(
        scope: &mut Scope<'_>,
        inputs: i32,
        outputs: [i32; N],
        has_bias: bool,
    ) -> Result<Self> {
        let all = outputs.iter().sum();
        let matrix = scope.matrix(all, inputs)?;
        let bias = has_bias.then(|| scope.tensor("bias", &[all])).transpose()?;
        Self::split(&matrix, bias, borders(outputs), scope.compute().blas_rows)
    }

    fn split(
        matrix: &Matrix,
        bias: Option<Array>,
        borders: Vec<i32>,
        blas_rows: Option<i32>,
    ) -> Result<Self> {
        let mut biases = match &bias {
            Some(bias) => bias.split_at_indices(&borders, 0)?,
            None => Vec::new(),
        }
        .into_iter();
        let parts = matrix.split(&borders)?;
        let parts = parts
            .iter()
            .map(|part| Linear::new(part, biases.next(), blas_rows));
        let parts = exactly(parts.collect::<Result<_>>()?)?;
        Ok(Self {
            joined: Some(Linear::new(matrix, bias, blas_rows)?),
            parts,
            borders,
        })
    }

    /// `[rows, inputs]` to `[rows, outputs]` of each projection.
    pub(crate) fn forward(&self, x: &Array) -> Result<[Array; N]> {
        let parts = match &self.joined {
            Some(joined) if x.dim(0) <= JOINED_ROWS => {
                joined.forward(x)?.split_at_indices(&self.borders, 1)?
            }
            _ => self
                .parts
                .iter()
                .map(|part| part.forward(x))
                .collect::<Result<_>>()?,
        };
        exactly(parts)
    }
}

impl Matrix {
    /// The matrices on top of each other, where they are held alike.
    fn join(matrices: &[Self]) -> Result<Option<Self>> {
        let mut dense = Vec::new();
        let mut quantized: Vec<&QuantizedMatrix> = Vec::new();
        for matrix in matrices {
            match matrix {
                Self::Dense(array) => dense.push(array),
                Self::Quantized(matrix) => quantized.push(matrix),
            }
        }
        let joined = |arrays: &[&Array]| -> Result<Array> {
            let joined = mlx_rs::ops::concatenate(arrays, 0)?;
            joined.eval()?;
            Ok(joined)
        };
        if let (Some(first), []) = (dense.first(), &*quantized) {
            let alike = dense.iter().all(|array| array.dtype() == first.dtype());
            return Ok(if alike {
                Some(Self::Dense(joined(&dense)?))
            } else {
                None
            });
        }
        let (Some(first), []) = (quantized.first(), &*dense) else {
            return Ok(None);
        };
        let how = |matrix: &QuantizedMatrix| (matrix.bits, matrix.group_size);
        if quantized.iter().any(|matrix| how(matrix) != how(first)) {
            return Ok(None);
        }
        let field = |get: fn(&QuantizedMatrix) -> &Array| {
            joined(
                &quantized
                    .iter()
                    .map(|matrix| get(matrix))
                    .collect::<Vec<_>>(),
            )
        };
        Ok(Some(Self::Quantized(QuantizedMatrix {
            weight: field(|matrix| &matrix.weight)?,
            scales: field(|matrix| &matrix.scales)?,
            biases: field(|matrix| &matrix.biases)?,
            ..**first
        })))
    }

    /// Views of the rows between `borders`.
    fn split(&self, borders: &[i32]) -> Result<Vec<Self>> {
        let views = |array: &Array| -> Result<Vec<Array>> {
            let views = array.split_at_indices(borders, 0)?;
            mlx_rs::transforms::eval(&views)?;
            Ok(views)
        };
        Ok(match self {
            Self::Dense(array) => views(array)?.into_iter().map(Self::Dense).collect(),
            Self::Quantized(matrix) => {
                let scales = views(&matrix.scales)?
                    .into_iter()
                    .zip(views(&matrix.biases)?);
                let rows = views(&matrix.weight)?.into_iter().zip(scales);
                rows.map(|(weight, (scales, biases))| {
                    Self::Quantized(QuantizedMatrix {
                        weight,
                        scales,
                        biases,
                        ..*matrix
                    })
                })
                .collect()
            }
        })
    }
}

/// Sums of all but the last of `outputs`.
fn borders<const N: usize>(outputs: [i32; N]) -> Vec<i32> {
    let ends = outputs.iter().scan(0, |end, &outputs| {
        *end += outputs;
        Some(*end)
    });
    ends.take(N - 1).collect()
}

fn exactly<T, const N: usize>(parts: Vec<T>) -> Result<[T; N]> {
    let count = parts.len();
    parts
        .try_into()
        .map_err(|_| Exception::custom(format!("{count} projections instead of {N}")).into())
}
