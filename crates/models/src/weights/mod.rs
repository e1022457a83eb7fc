//! A checkpoint's tensors, handed out strictly.
//!
//! Each key is assigned to a layer, ignored by name, or reported; so is each key an architecture
//! asks for in vain. Problems are collected, so that one error names them all.

mod files;
mod quantization;

use std::collections::HashMap;

use macmlx_fit::Holding;
use mlx_rs::{Array, Dtype, ops};

pub(crate) use self::files::{load_arrays, read_json};
pub(crate) use self::quantization::Quantization;
use crate::{ModelError, Result, compute::Compute};

/// Tensors that no layer has taken yet.
#[derive(Debug)]
pub(crate) struct Weights {
    arrays: HashMap<String, Array>,
    quantization: Quantization,
    pub(crate) compute: Compute,
    /// What the files put before each key, for people.
    root: String,
    problems: Vec<String>,
    /// Bytes of everything handed out, as it is held.
    held_bytes: usize,
}

/// A matrix `[rows, columns]` as it is held.
#[derive(Debug, Clone)]
pub(crate) enum Matrix {
    Dense(Array),
    Quantized(QuantizedMatrix),
}

/// Affine quantization as MLX packs it: `weight` is `[rows, columns * bits / 32]` of `u32`, the
/// others `[rows, columns / group_size]`.
#[derive(Debug, Clone)]
pub(crate) struct QuantizedMatrix {
    pub(crate) weight: Array,
    pub(crate) scales: Array,
    pub(crate) biases: Array,
    pub(crate) group_size: i32,
    pub(crate) bits: i32,
}

impl QuantizedMatrix {
    pub(crate) fn dequantize(&self) -> Result<Array> {
        Ok(ops::dequantize(
            &self.weight,
            &self.scales,
            &self.biases,
            self.group_size,
            self.bits,
        )?)
    }
}

impl Weights {
    pub(crate) fn new(
        arrays: HashMap<String, Array>,
        quantization: Quantization,
        compute: Compute,
    ) -> Self {
        Self {
            arrays,
            quantization,
            compute,
            root: String::new(),
            problems: Vec::new(),
            held_bytes: 0,
        }
    }

    /// The part of the checkpoint below `prefix`.
    pub(crate) fn at(&mut self, prefix: &str) -> Scope<'_> {
        Scope {
            weights: self,
            prefix: prefix.to_owned(),
        }
    }

    pub(crate) fn contains(&self, key: &str) -> bool {
        self.arrays.contains_key(key)
    }

    /// Returns the one of `prefixes` (each ends with a dot, or is empty) under which this
    /// checkpoint has `key`: the same layout is saved with and without the name of the model that
    /// contains it. Returns the last one where none has it.
    pub(crate) fn root<'a>(&self, prefixes: &[&'a str], key: &str) -> &'a str {
        let has_key = |prefix: &&&str| self.contains(&format!("{prefix}{key}"));
        let found = prefixes.iter().find(has_key).or(prefixes.last());
        found.copied().unwrap_or_default()
    }

    /// Makes what is below `prefix` (which ends with a dot) the whole checkpoint. What is beside it
    /// cannot be taken any more.
    pub(crate) fn enter(&mut self, prefix: &str) {
        self.root.push_str(prefix);
        for (key, array) in std::mem::take(&mut self.arrays) {
            match key.strip_prefix(prefix) {
                Some(inner) => {
                    self.arrays.insert(inner.to_owned(), array);
                }
                None => self.problems.push(format!("`{key}` is not used")),
            }
        }
        // The files list them in no order.
        self.problems.sort_unstable();
        self.quantization.enter(prefix);
    }

    /// Drops every key that `is_unused` claims: tensors that some exporters write and no
    /// computation reads.
    pub(crate) fn ignore(&mut self, is_unused: impl Fn(&str) -> bool) {
        self.arrays.retain(|key, _| !is_unused(key));
    }

    /// Removes `key`, which must have `shape`.
    fn take(&mut self, key: &str, shape: &[i32]) -> Option<Array> {
        let Some(array) = self.arrays.remove(key) else {
            self.problems
                .push(format!("`{}{key}` is missing", self.root));
            return None;
        };
        if array.shape() == shape {
            return Some(array);
        }
        let found = array.shape();
        let root = &self.root;
        let problem = format!("`{root}{key}` has shape {found:?} instead of {shape:?}");
        self.problems.push(problem);
        None
    }

    /// `array` in the compute dtype, evaluated, so that what it was made from can be let go.
    fn hold(&mut self, array: &Array) -> Result<Array> {
        let held = match self.compute.dtype() {
            Some(dtype) if is_float(array.dtype()) => array.as_dtype(dtype)?,
            _ => array.clone(),
        };
        held.eval()?;
        self.held_bytes += held.nbytes();
        Ok(held)
    }

    /// Loads with the tensors of another file, which are held to the same strictness and count with
    /// these.
    pub(crate) fn beside<T>(
        &mut self,
        arrays: HashMap<String, Array>,
        load: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let mut other = Self::new(arrays, Quantization::default(), self.compute);
        let loaded = load(&mut other)?;
        other.finish()?;
        self.held_bytes += other.held_bytes;
        Ok(loaded)
    }

    /// Bytes of all weights as they are held.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Fails with every key that was missing, left over or of the wrong shape.
    pub(crate) fn finish(&mut self) -> Result<()> {
        let mut left: Vec<_> = self.arrays.keys().collect();
        left.sort_unstable();
        let root = &self.root;
        let left = left.into_iter();
        self.problems
            .extend(left.map(|key| format!("`{root}{key}` is not used")));
        if self.problems.is_empty() {
            return Ok(());
        }
        Err(ModelError::Weights(self.problems.join(", ")))
    }
}

/// A place in the checkpoint, such as `model.layers.3.self_attn`.
#[derive(Debug)]
pub(crate) struct Scope<'a> {
    weights: &'a mut Weights,
    prefix: String,
}

impl Scope<'_> {
    pub(crate) fn at(&mut self, name: impl std::fmt::Display) -> Scope<'_> {
        Scope {
            prefix: self.key(name),
            weights: self.weights,
        }
    }

    pub(crate) fn compute(&self) -> Compute {
        self.weights.compute
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.weights.contains(&self.key(name))
    }

    /// Rows of this place's `weight`, where it has one.
    pub(crate) fn rows(&self) -> Option<i32> {
        let weight = self.weights.arrays.get(&self.key("weight"))?;
        Some(weight.dim(0))
    }

    fn key(&self, name: impl std::fmt::Display) -> String {
        if self.prefix.is_empty() {
            name.to_string()
        } else {
            format!("{}.{name}", self.prefix)
        }
    }

    /// The tensor `name` of exactly `shape`.
    pub(crate) fn tensor(&mut self, name: &str, shape: &[i32]) -> Result<Array> {
        match self.weights.take(&self.key(name), shape) {
            Some(array) => self.weights.hold(&array),
            // The problem is on record and fails the load; building goes on to find the others.
            None => Ok(ops::zeros_dtype(shape, Dtype::Float32)?),
        }
    }

    /// The matrix `weight` of this place, `[rows, columns]`, dequantized.
    pub(crate) fn dense(&mut self, rows: i32, columns: i32) -> Result<Array> {
        match self.matrix(rows, columns)? {
            Matrix::Dense(array) => Ok(array),
            Matrix::Quantized(matrix) => {
                let dense = matrix.dequantize()?;
                self.weights.hold(&dense)
            }
        }
    }

    /// The matrix `weight` of this place, `[rows, columns]`, quantized or not.
    pub(crate) fn matrix(&mut self, rows: i32, columns: i32) -> Result<Matrix> {
        if !self.weights.contains(&self.key("scales")) {
            return Ok(Matrix::Dense(self.tensor("weight", &[rows, columns])?));
        }
        let packed = self
            .weights
            .arrays
            .get(&self.key("weight"))
            .map_or(0, |w| w.dim(-1));
        let groups = self.weights.arrays[&self.key("scales")].dim(-1);
        let (bits, group_size) =
            self.weights
                .quantization
                .layer(&self.prefix, columns, packed, groups)?;
        let weight = self
            .weights
            .take(&self.key("weight"), &[rows, columns * bits / 32]);
        let scales = self
            .weights
            .take(&self.key("scales"), &[rows, columns / group_size]);
        let biases = self
            .weights
            .take(&self.key("biases"), &[rows, columns / group_size]);
        let (Some(weight), Some(scales), Some(biases)) = (weight, scales, biases) else {
            return Ok(Matrix::Dense(ops::zeros_dtype(
                &[rows, columns],
                Dtype::Float32,
            )?));
        };
        let dtype = self.weights.compute.dtype().unwrap_or(scales.dtype());
        let (scales, biases) = (scales.as_dtype(dtype)?, biases.as_dtype(dtype)?);
        let matrix = QuantizedMatrix {
            weight,
            scales,
            biases,
            group_size,
            bits,
        };
        if self.weights.compute.holding == Holding::Dequantized {
            let dense = matrix.dequantize()?;
            return Ok(Matrix::Dense(self.weights.hold(&dense)?));
        }
        Ok(Matrix::Quantized(QuantizedMatrix {
            weight: self.weights.hold(&matrix.weight)?,
            scales: self.weights.hold(&matrix.scales)?,
            biases: self.weights.hold(&matrix.biases)?,
            ..matrix
        }))
    }
}

fn is_float(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::Float16 | Dtype::Bfloat16 | Dtype::Float32)
}
