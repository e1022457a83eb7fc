//! Matrix products with a weight, held dense or quantized.

use mlx_rs::{Array, ops};

use crate::{
    Result,
    weights::{Matrix, QuantizedMatrix, Scope},
};

/// `x · weightᵀ + bias`.
#[derive(Debug)]
pub(crate) struct Linear {
    product: Product,
    bias: Option<Array>,
}

#[derive(Debug)]
enum Product {
    /// The transposed view `[inputs, outputs]`.
    Dense(Array),
    Quantized {
        matrix: QuantizedMatrix,
        blas_rows: Option<i32>,
    },
}

impl Linear {
    /// Takes `weight` `[outputs, inputs]`, and `bias` where `has_bias`.
    pub(crate) fn load(
        scope: &mut Scope<'_>,
        inputs: i32,
        outputs: i32,
        has_bias: bool,
    ) -> Result<Self> {
        let matrix = scope.matrix(outputs, inputs)?;
        let bias = has_bias
            .then(|| scope.tensor("bias", &[outputs]))
            .transpose()?;
        Self::new(&matrix, bias, scope.compute().blas_rows)
    }

    pub(crate) fn new(
        matrix: &Matrix,
        bias: Option<Array>,
        blas_rows: Option<i32>,
    ) -> Result<Self> {
        let product = match matrix {
            Matrix::Dense(weight) => Product::Dense(weight.transpose()?),
            Matrix::Quantized(matrix) => Product::Quantized {
                matrix: matrix.clone(),
                blas_rows,
            },
        };
        Ok(Self { product, bias })
    }

    /// `[rows, inputs]` to `[rows, outputs]`.
    pub(crate) fn forward(&self, x: &Array) -> Result<Array> {
        let product = match (&self.product, &self.bias) {
            (Product::Dense(weight), Some(bias)) => {
                return Ok(ops::addmm(bias, x, weight, None, None)?);
            }
            (Product::Dense(weight), None) => ops::matmul(x, weight)?,
            (Product::Quantized { matrix, blas_rows }, _) => {
                if blas_rows.is_some_and(|rows| x.dim(0) >= rows) {
                    ops::matmul(x, matrix.dequantize()?.transpose()?)?
                } else {
                    let QuantizedMatrix {
                        weight,
                        scales,
                        biases,
                        group_size,
                        bits,
                    } = matrix;
                    ops::quantized_matmul(x, weight, scales, biases, true, *group_size, *bits)?
                }
            }
        };
        Ok(match &self.bias {
            Some(bias) => product.add(bias)?,
            None => product,
        })
    }

    /// Features of the answer.
    pub(crate) fn outputs(&self) -> i32 {
        match &self.product {
            Product::Dense(weight) => weight.dim(-1),
            Product::Quantized { matrix, .. } => matrix.weight.dim(0),
        }
    }
}
