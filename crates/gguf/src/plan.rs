//! What becomes of each tensor: decided from descriptions, before a value is read.

use std::collections::BTreeMap;

use safetensors::Dtype;
use serde_json::{Map, Value, json};

use crate::{
    Error,
    architecture::{Architecture, Target, Undo},
    header::{Kind, Tensor},
};

/// Values that share a scale, in GGUF's blocks and so in what they become.
pub(crate) const GROUP_SIZE: u64 = 32;

/// One GGUF tensor on its way.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Item {
    pub source: Tensor,
    pub target: Target,
    pub form: Form,
}

/// How the values are stored in the MLX checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Float(Float),
    /// `weight`, `scales` and `biases` with this many bits a value.
    Affine {
        bits: u64,
    },
}

/// A floating-point type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Float {
    F32,
    F16,
    Bf16,
}

impl Float {
    /// As weight files name it.
    pub(crate) fn dtype(self) -> Dtype {
        match self {
            Self::F32 => Dtype::F32,
            Self::F16 => Dtype::F16,
            Self::Bf16 => Dtype::BF16,
        }
    }

    /// As config.json spells it.
    pub(crate) fn config_name(self) -> &'static str {
        match self {
            Self::F32 => "float32",
            Self::F16 => "float16",
            Self::Bf16 => "bfloat16",
        }
    }

    pub(crate) fn bytes(self) -> u64 {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
        }
    }
}

/// One tensor of the MLX checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Output {
    pub name: String,
    pub dtype: Dtype,
    pub shape: Vec<u64>,
    pub bytes: u64,
}

impl Item {
    /// Rows are the first dimension; a vector has one value a row.
    pub(crate) fn rows(&self) -> u64 {
        self.source.shape.first().copied().unwrap_or(1)
    }

    pub(crate) fn row_values(&self) -> u64 {
        self.source.shape.iter().skip(1).product()
    }

    /// The tensors this becomes, in the order their bytes are written.
    pub(crate) fn outputs(&self) -> Vec<Output> {
        let values: u64 = self.source.shape.iter().product();
        match self.form {
            Form::Float(float) => vec![Output {
                name: self.target.name.clone(),
                dtype: float.dtype(),
                shape: self.source.shape.clone(),
                bytes: values * float.bytes(),
            }],
            Form::Affine { bits } => {
                let with_columns = |divisor: u64| {
                    let mut shape = self.source.shape.clone();
                    if let Some(columns) = shape.last_mut() {
                        *columns /= divisor;
                    }
                    shape
                };
                let scales = |name| Output {
                    name: format!("{}.{name}", self.layer()),
                    dtype: Float::F16.dtype(),
                    shape: with_columns(GROUP_SIZE),
                    bytes: values / GROUP_SIZE * Float::F16.bytes(),
                };
                vec![
                    Output {
                        name: self.target.name.clone(),
                        dtype: Dtype::U32,
                        shape: with_columns(32 / bits),
                        bytes: values * bits / 8,
                    },
                    scales("scales"),
                    scales("biases"),
                ]
            }
        }
    }

    /// Path of the layer the tensor belongs to.
    fn layer(&self) -> &str {
        self.target
            .name
            .rsplit_once('.')
            .map_or(self.target.name.as_str(), |(layer, _)| layer)
    }
}

/// Decides the form of every tensor. Tensors that are not weights are left out.
pub(crate) fn plan(architecture: Architecture, tensors: &[Tensor]) -> Result<Vec<Item>, Error> {
    let mut items = Vec::with_capacity(tensors.len());
    for tensor in tensors {
        let Some(target) = architecture.target(&tensor.name)? else {
            continue;
        };
        let form = match tensor.kind {
            Kind::F32 => Form::Float(Float::F32),
            Kind::F16 => Form::Float(Float::F16),
            Kind::Bf16 => Form::Float(Float::Bf16),
            Kind::Q4_0 | Kind::Q4_1 => Form::Affine { bits: 4 },
            Kind::Q8_0 => Form::Affine { bits: 8 },
            Kind::Other(_) => {
                return Err(Error::Quantization {
                    tensor: tensor.name.clone(),
                    quantization: tensor.kind.name(),
                });
            }
        };
        let item = Item {
            source: tensor.clone(),
            target,
            form,
        };
        let is_vector = tensor.shape.len() == 1;
        let undoes_values = item.target.undo == Undo::AddedOne;
        let is_affine = matches!(form, Form::Affine { .. });
        if is_affine && (is_vector || undoes_values) || undoes_values && tensor.kind != Kind::F32 {
            return Err(Error::Quantization {
                tensor: tensor.name.clone(),
                quantization: tensor.kind.name(),
            });
        }
        items.push(item);
    }
    Ok(items)
}

/// The type the model computes in: that of its matrices. Quantized ones compute in the type of
/// their scales.
pub(crate) fn compute_type(items: &[Item]) -> Float {
    let matrices = items.iter().filter(|item| item.source.shape.len() > 1);
    let forms: Vec<Form> = matrices.map(|item| item.form).collect();
    let has = |wanted: Form| forms.contains(&wanted);
    if forms.iter().any(|form| matches!(form, Form::Affine { .. })) || has(Form::Float(Float::F16))
    {
        Float::F16
    } else if has(Form::Float(Float::Bf16)) {
        Float::Bf16
    } else {
        Float::F32
    }
}

/// The quantization section of config.json: the commonest width, and each layer with another one.
pub(crate) fn quantization(items: &[Item]) -> Option<Value> {
    let layers: Vec<(&str, u64)> = items
        .iter()
        .filter_map(|item| match item.form {
            Form::Affine { bits } => Some((item.layer(), bits)),
            Form::Float(_) => None,
        })
        .collect();
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    for (_, bits) in &layers {
        *counts.entry(*bits).or_default() += 1;
    }
    let (common, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    let parameters = |bits: u64| json!({"group_size": GROUP_SIZE, "bits": bits, "mode": "affine"});
    let mut section: Map<String, Value> = Map::new();
    if let Value::Object(default) = parameters(common) {
        section = default;
    }
    for (layer, bits) in layers {
        if bits != common {
            section.insert(layer.to_owned(), parameters(bits));
        }
    }
    Some(Value::Object(section))
}
