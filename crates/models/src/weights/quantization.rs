//! Which layers of a checkpoint are quantized and how, from `quantization` of config.json.
//!
//! Follows what mlx-lm writes: defaults (`bits`, `group_size`, `mode`), and beside them one entry
//! for each layer that differs, its settings or `false`.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{ModelError, Result};

const BITS: [i32; 6] = [2, 3, 4, 5, 6, 8];
const GROUP_SIZES: [i32; 3] = [32, 64, 128];

/// Quantization settings of a checkpoint; the default is none.
#[derive(Debug, Clone, Default)]
pub(crate) struct Quantization {
    layers: HashMap<String, Layer>,
}

/// Settings of one layer, or the defaults.
#[derive(Debug, Clone, Deserialize)]
struct Layer {
    bits: i32,
    group_size: i32,
    #[serde(default = "affine")]
    mode: String,
}

fn affine() -> String {
    "affine".to_owned()
}

impl Quantization {
    /// Reads `quantization`, or `quantization_config` where that is MLX's own.
    pub(crate) fn from_config(config: &Map<String, Value>) -> Result<Self> {
        let (name, settings) = match (
            config.get("quantization"),
            config.get("quantization_config"),
        ) {
            (Some(Value::Object(settings)), _) => ("quantization", settings),
            (_, Some(Value::Object(settings))) => ("quantization_config", settings),
            _ => return Ok(Self::default()),
        };
        if let Some(Value::String(method)) = settings.get("quant_method") {
            return Err(ModelError::unsupported(
                format!("{name}.quant_method = {method}"),
                "only MLX's affine quantization is; use an MLX conversion of this model",
            ));
        }
        layer(name, &Value::Object(settings.clone()))?;
        let layers = settings
            .iter()
            .filter(|(_, value)| value.is_object())
            .map(|(path, value)| Ok((path.clone(), layer(&format!("{name}.{path}"), value)?)))
            .collect::<Result<_>>()?;
        Ok(Self { layers })
    }

    /// Names layers as they are called below `prefix`.
    pub(crate) fn enter(&mut self, prefix: &str) {
        let layers = std::mem::take(&mut self.layers);
        let inner = layers
            .into_iter()
            .filter_map(|(path, layer)| Some((path.strip_prefix(prefix)?.to_owned(), layer)));
        self.layers = inner.collect();
    }

    /// Bits and group size of the layer at `path`, which has `columns` inputs, `packed` words and
    /// `groups` scales in each row.
    ///
    /// The shapes decide, as in mlx-lm: defaults of a config can be wrong for a single layer. An
    /// entry of the layer's own must agree with them.
    pub(crate) fn layer(
        &self,
        path: &str,
        columns: i32,
        packed: i32,
        groups: i32,
    ) -> Result<(i32, i32)> {
        if groups == 0 || columns % groups != 0 {
            return Err(ModelError::Weights(format!(
                "`{path}.scales` has {groups} groups for {columns} columns"
            )));
        }
        let (bits, group_size) = (packed * 32 / columns, columns / groups);
        if packed * 32 != bits * columns
            || !BITS.contains(&bits)
            || !GROUP_SIZES.contains(&group_size)
        {
            return Err(ModelError::Weights(format!(
                "`{path}.weight` has {packed} words in {groups} groups for {columns} columns, \
                 which is no affine quantization"
            )));
        }
        match self.layers.get(path) {
            Some(own) if (own.bits, own.group_size) != (bits, group_size) => {
                Err(ModelError::Weights(format!(
                    "`{path}` is packed with {bits} bits in groups of {group_size}, but \
                     config.json says {} in {}",
                    own.bits, own.group_size
                )))
            }
            _ => Ok((bits, group_size)),
        }
    }
}

fn layer(name: &str, value: &Value) -> Result<Layer> {
    let layer: Layer = macmlx_json::read(value).map_err(|error| error.below(name))?;
    if layer.mode != "affine" {
        return Err(ModelError::unsupported(
            format!("{name}.mode = {}", layer.mode),
            "the MLX binding only offers affine quantization",
        ));
    }
    if !BITS.contains(&layer.bits) {
        let setting = format!("{name}.bits = {}", layer.bits);
        return Err(ModelError::unsupported(
            setting,
            format!("bits are one of {BITS:?}"),
        ));
    }
    if !GROUP_SIZES.contains(&layer.group_size) {
        let setting = format!("{name}.group_size = {}", layer.group_size);
        return Err(ModelError::unsupported(
            setting,
            format!("groups are one of {GROUP_SIZES:?}"),
        ));
    }
    Ok(layer)
}
