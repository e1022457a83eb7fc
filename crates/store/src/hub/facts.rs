//! What the hub's answer about a model tells of its size and form. All of it may be missing.

use std::collections::BTreeMap;

use serde_json::Value;

use super::wire::to_count;

/// Sizes and form of a model, as far as its listing shows them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// Values of the model as it was made, before it was quantized.
    pub parameters: Option<u64>,
    /// `4-bit`, `mxfp4`, `bf16` and the like.
    pub quantization: Option<String>,
    /// Bytes of the weight files.
    pub size_bytes: Option<u64>,
}

/// Reads the facts from counts by data type, the configuration, tags and the name.
pub(super) fn facts(
    name: &str,
    tags: &[String],
    config: &Value,
    counts: &BTreeMap<String, u64>,
) -> Facts {
    let section = match &config["quantization"] {
        Value::Null => &config["quantization_config"],
        section => section,
    };
    let bits = to_count(&section["bits"])
        .or_else(|| tags.iter().find_map(|tag| bits(tag)))
        .or_else(|| name.split(['-', '_']).find_map(bits));
    let mode = section["mode"]
        .as_str()
        .filter(|mode| *mode != "affine")
        .map(str::to_owned)
        .or_else(|| {
            let name = name.to_lowercase();
            ["mxfp4", "mxfp8", "nvfp4"]
                .into_iter()
                .find(|mode| name.split(['-', '_']).any(|part| part == *mode))
                .map(str::to_owned)
        });
    let group_size = to_count(&section["group_size"]).unwrap_or(64).max(1);
    let size_bytes = counts
        .iter()
        .try_fold(0_u64, |sum, (dtype, count)| {
            Some(sum.saturating_add(count.saturating_mul(bits_of(dtype)?) / 8))
        })
        .filter(|size| *size > 0);
    let is_packed = counts.contains_key("U32");
    let dtype = counts
        .iter()
        .filter(|(dtype, _)| *dtype != "U32")
        .max_by_key(|(_, count)| **count)
        .map(|(dtype, _)| short(dtype));
    Facts {
        parameters: parameters(counts, bits, group_size),
        quantization: mode
            .or_else(|| {
                bits.filter(|_| is_packed || counts.is_empty())
                    .map(|bits| format!("{bits}-bit"))
            })
            .or(dtype),
        size_bytes,
    }
}

/// Packed values counted as what they stand for; their scales and biases are not parameters.
fn parameters(counts: &BTreeMap<String, u64>, bits: Option<u64>, group_size: u64) -> Option<u64> {
    if counts.is_empty() {
        return None;
    }
    let plain: u64 = counts
        .iter()
        .filter(|(dtype, _)| *dtype != "U32")
        .fold(0, |sum, (_, count)| sum.saturating_add(*count));
    match counts.get("U32") {
        None => Some(plain),
        Some(packed) => {
            let values = packed.saturating_mul(32) / bits.filter(|bits| *bits > 0)?;
            let scales = values.saturating_mul(2) / group_size;
            Some(values.saturating_add(plain.saturating_sub(scales)))
        }
    }
}

/// `4-bit` and `4bit`.
fn bits(text: &str) -> Option<u64> {
    let number = text.strip_suffix("bit")?.trim_end_matches('-');
    number.parse().ok().filter(|bits| (1..=16).contains(bits))
}

fn bits_of(dtype: &str) -> Option<u64> {
    Some(match dtype {
        "F64" | "I64" | "U64" => 64,
        "F32" | "I32" | "U32" => 32,
        "F16" | "BF16" | "I16" | "U16" => 16,
        "I8" | "U8" | "BOOL" | "F8_E4M3" | "F8_E5M2" | "F8_E8M0" => 8,
        "F4" => 4,
        _ => return None,
    })
}

fn short(dtype: &str) -> String {
    dtype.to_lowercase()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn counts(pairs: &[(&str, u64)]) -> BTreeMap<String, u64> {
        pairs
            .iter()
            .map(|(dtype, count)| ((*dtype).to_owned(), *count))
            .collect()
    }

    #[test]
    fn quantized_models_are_counted_as_they_were_made() {
        // 640 values of 4 bits in groups of 64: 80 words, 10 scales, 10 biases; 7 more values.
        let facts = facts(
            "Qwen3-0.6B-4bit",
            &[],
            &json!({"quantization_config": {"bits": 4, "group_size": 64}}),
            &counts(&[("U32", 80), ("BF16", 27)]),
        );
        assert_eq!(facts.parameters, Some(647));
        assert_eq!(facts.size_bytes, Some(80 * 4 + 27 * 2));
        assert_eq!(facts.quantization.as_deref(), Some("4-bit"));
    }

    #[test]
    fn names_and_tags_help_where_nothing_else_says() {
        let of = |name: &str, tags: &[String], counts: &_| facts(name, tags, &Value::Null, counts);
        let none = BTreeMap::new();
        let named = of("Qwen3-0.6B-8bit", &[], &none);
        assert_eq!(named.quantization.as_deref(), Some("8-bit"));
        assert_eq!((named.parameters, named.size_bytes), (None, None));
        let tagged = of("Qwen3", &["4-bit".to_owned()], &none);
        assert_eq!(tagged.quantization.as_deref(), Some("4-bit"));
        let modern = of("gpt-oss-20b-MXFP4-Q8", &[], &none);
        assert_eq!(modern.quantization.as_deref(), Some("mxfp4"));
        let plain = of("Qwen3-0.6B", &[], &counts(&[("BF16", 600)]));
        assert_eq!(plain.quantization.as_deref(), Some("bf16"));
        assert_eq!(plain.parameters, Some(600));
        assert_eq!(of("x", &[], &none), Facts::default());
    }
}
