//! Token embeddings, and the output projection where it shares their matrix.

use mlx_rs::Array;

use super::Linear;
use crate::{
    Result,
    weights::{Matrix, QuantizedMatrix, Scope},
};

/// A table of `[vocab, features]`.
#[derive(Debug)]
pub(crate) struct Embedding {
    table: Matrix,
    blas_rows: Option<i32>,
}

impl Embedding {
    pub(crate) fn load(scope: &mut Scope<'_>, vocab: i32, features: i32) -> Result<Self> {
        Ok(Self {
            table: scope.matrix(vocab, features)?,
            blas_rows: scope.compute().blas_rows,
        })
    }

    /// `[rows]` of ids to `[rows, features]`.
    pub(crate) fn forward(&self, tokens: &Array) -> Result<Array> {
        match &self.table {
            Matrix::Dense(table) => Ok(table.take_axis(tokens, 0)?),
            Matrix::Quantized(table) => QuantizedMatrix {
                weight: table.weight.take_axis(tokens, 0)?,
                scales: table.scales.take_axis(tokens, 0)?,
                biases: table.biases.take_axis(tokens, 0)?,
                ..*table
            }
            .dequantize(),
        }
    }

    /// The projection to logits by the same matrix.
    pub(crate) fn tied_head(&self) -> Result<Linear> {
        Linear::new(&self.table, None, self.blas_rows)
    }
}
