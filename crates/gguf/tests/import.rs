//! GGUF files made and judged by other people's code become MLX folders with the same values and
//! the same tokens.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking"
)]

use std::{
    collections::BTreeMap,
    fs,
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use half::{bf16, f16};
use macmlx_gguf::{Error, Imported, Options, import};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokenizers::Tokenizer;

const IMPORTABLE: [&str; 7] = [
    "llama_q4_1",
    "llama_q4_0",
    "llama_f16",
    "qwen2_q8_0",
    "qwen3_q4_0",
    "qwen3_f32",
    "gemma3_bf16",
];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/files")
        .join(name)
}

fn expected(name: &str) -> Value {
    json_file(&fixture(&format!("{name}.expected.json")))
}

fn json_file(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn import_fixture(name: &str, models: &Path) -> Result<Imported, Error> {
    let options = Options {
        file: fixture(&format!("{name}.gguf")),
        id: format!("test/{name}"),
        models: models.into(),
    };
    import(&options, &mut |_| ControlFlow::Continue(()))
}

struct Tensor {
    dtype: String,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

fn read_tensors(path: &Path) -> BTreeMap<String, Tensor> {
    let file = fs::read(path).unwrap();
    let length = u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
    let header: BTreeMap<String, Value> = serde_json::from_slice(&file[8..8 + length]).unwrap();
    let data = &file[8 + length..];
    header
        .into_iter()
        .filter(|(name, _)| name != "__metadata__")
        .map(|(name, entry)| {
            let number = |value: &Value| value.as_u64().unwrap() as usize;
            let offsets = &entry["data_offsets"];
            let tensor = Tensor {
                dtype: entry["dtype"].as_str().unwrap().into(),
                shape: entry["shape"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(number)
                    .collect(),
                bytes: data[number(&offsets[0])..number(&offsets[1])].to_vec(),
            };
            (name, tensor)
        })
        .collect()
}

fn floats(tensor: &Tensor) -> Vec<f32> {
    let halves = || tensor.bytes.as_chunks::<2>().0.iter().copied();
    match tensor.dtype.as_str() {
        "F16" => halves().map(|b| f16::from_le_bytes(b).to_f32()).collect(),
        "BF16" => halves().map(|b| bf16::from_le_bytes(b).to_f32()).collect(),
        "F32" => tensor
            .bytes
            .as_chunks::<4>()
            .0
            .iter()
            .map(|&b| f32::from_le_bytes(b))
            .collect(),
        other => panic!("{other} is not a float"),
    }
}

/// MLX's affine dequantization: `scale * q + bias`, lowest bits first.
fn dequantize(tensors: &BTreeMap<String, Tensor>, layer: &str, config: &Value) -> Vec<f32> {
    let quantization = match &config["quantization"][layer] {
        Value::Null => &config["quantization"],
        own => own,
    };
    let bits = quantization["bits"].as_u64().unwrap() as u32;
    let group = quantization["group_size"].as_u64().unwrap() as usize;
    let weight = &tensors[&format!("{layer}.weight")];
    let scales = floats(&tensors[&format!("{layer}.scales")]);
    let biases = floats(&tensors[&format!("{layer}.biases")]);
    assert_eq!(weight.dtype, "U32");
    weight
        .bytes
        .as_chunks::<4>()
        .0
        .iter()
        .flat_map(|&word| {
            let word = u32::from_le_bytes(word);
            (0..32 / bits).map(move |i| word >> (i * bits) & ((1 << bits) - 1))
        })
        .enumerate()
        .map(|(i, q)| scales[i / group] * q as f32 + biases[i / group])
        .collect()
}

#[test]
fn every_value_is_the_one_the_judge_reads() {
    for name in IMPORTABLE {
        let models = tempfile::tempdir().unwrap();
        let imported = import_fixture(name, models.path()).unwrap();
        let config = json_file(&imported.path.join("config.json"));
        let tensors = read_tensors(&imported.path.join("model.safetensors"));
        let expected = expected(name);
        let mut seen = 0;
        for (target, judged) in expected["tensors"].as_object().unwrap() {
            let full = match target.strip_suffix(".bias") {
                Some(_) => target.clone(),
                None => format!("{target}.weight"),
            };
            let tensor = &tensors[&full];
            let is_quantized = tensors.contains_key(&format!("{target}.scales"));
            let values = if is_quantized {
                dequantize(&tensors, target, &config)
            } else {
                assert_eq!(json!(tensor.shape), judged["shape"], "{name} {target}");
                floats(tensor)
            };
            seen += if is_quantized { 3 } else { 1 };
            let head: Vec<f32> = judged["head"]
                .as_array()
                .unwrap()
                .iter()
                .map(|value| value.as_f64().unwrap() as f32)
                .collect();
            assert_eq!(values[..4], head, "{name} {target}");
            let bytes: Vec<u8> = values
                .iter()
                .flat_map(|v| (v + 0.0).to_le_bytes())
                .collect();
            let digest = hex::encode(Sha256::digest(&bytes));
            assert_eq!(digest, judged["sha256"], "{name} {target}");
        }
        assert_eq!(seen, tensors.len(), "{name} has other tensors too");
    }
}

#[test]
fn text_becomes_the_judges_tokens_and_text_again() {
    for name in IMPORTABLE {
        let models = tempfile::tempdir().unwrap();
        let imported = import_fixture(name, models.path()).unwrap();
        let tokenizer = Tokenizer::from_file(imported.path.join("tokenizer.json")).unwrap();
        let expected = expected(name);
        let words = &expected["tokenizer"];
        for (index, text) in expected["texts"].as_array().unwrap().iter().enumerate() {
            let text = text.as_str().unwrap();
            let encoding = tokenizer.encode(text, true).unwrap();
            assert_eq!(
                json!(encoding.get_ids()),
                words["encoded"][index],
                "{name}: {text:?}"
            );
            let decoded = tokenizer.decode(encoding.get_ids(), true).unwrap();
            assert_eq!(json!(decoded), words["decoded"][index], "{name}: {text:?}");
        }
        if let Some(text) = words["marked"]["text"].as_str() {
            let encoding = tokenizer.encode(text, true).unwrap();
            assert_eq!(json!(encoding.get_ids()), words["marked"]["ids"], "{name}");
        }
    }
}

#[test]
fn configs_say_what_mlx_lm_reads() {
    let models = tempfile::tempdir().unwrap();
    let config = |name: &str| {
        let imported = import_fixture(name, models.path()).unwrap();
        json_file(&imported.path.join("config.json"))
    };
    let llama = config("llama_q4_1");
    assert_eq!(llama["model_type"], "llama");
    assert_eq!(llama["attention_bias"], true);
    assert_eq!(llama["tie_word_embeddings"], true);
    assert_eq!(llama["num_key_value_heads"], 2);
    assert_eq!(llama["rms_norm_eps"], 1e-5);
    assert_eq!(
        llama["quantization"],
        json!({
            "group_size": 32, "bits": 4, "mode": "affine",
            "model.embed_tokens": {"group_size": 32, "bits": 8, "mode": "affine"}
        })
    );
    assert_eq!(config("llama_q4_0")["tie_word_embeddings"], false);
    let scaled = config("llama_f16");
    assert_eq!(scaled["quantization"], Value::Null);
    assert_eq!(
        scaled["rope_scaling"],
        json!({
            "type": "llama3", "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
            "high_freq_factor": 4.0, "original_max_position_embeddings": 8192
        })
    );
    assert_eq!(config("qwen2_q8_0")["quantization"]["bits"], 8);
    let yarn = config("qwen3_q4_0");
    assert_eq!(yarn["rope_scaling"]["rope_type"], "yarn");
    assert_eq!(
        yarn["rope_scaling"]["original_max_position_embeddings"],
        2048
    );
    assert_eq!(yarn["head_dim"], 16);
    let gemma = config("gemma3_bf16");
    assert_eq!(gemma["model_type"], "gemma3_text");
    assert_eq!(gemma["sliding_window"], 512);
    assert_eq!(gemma["sliding_window_pattern"], 6);
    assert_eq!(gemma["query_pre_attn_scalar"], 16);
    assert_eq!(gemma["rope_scaling"]["factor"], 8.0);
    assert_eq!(gemma["torch_dtype"], "bfloat16");
    assert_eq!(config("qwen3_f32")["torch_dtype"], "float32");
}

#[test]
fn what_is_beside_the_weights_is_there_too() {
    let models = tempfile::tempdir().unwrap();
    let imported = import_fixture("llama_q4_1", models.path()).unwrap();
    let tokenizer = json_file(&imported.path.join("tokenizer_config.json"));
    assert!(
        tokenizer["chat_template"]
            .as_str()
            .unwrap()
            .contains("messages")
    );
    assert_eq!(tokenizer["bos_token"], "<|endoftext|>");
    let generation = json_file(&imported.path.join("generation_config.json"));
    assert_eq!(generation["eos_token_id"], json!([1, 0]));
    let bits = fs::read_dir(models.path()).unwrap().count();
    assert_eq!(bits, 1, "only the owner's folder is left");
}

#[test]
fn a_refusal_names_the_tensor_and_leaves_nothing() {
    let models = tempfile::tempdir().unwrap();
    let error = import_fixture("llama_q5_0", models.path()).unwrap_err();
    let message = error.to_string();
    assert!(message.contains("Q5_0"), "{message}");
    assert!(message.contains("blk.0.attn_q.weight"), "{message}");
    assert_eq!(fs::read_dir(models.path()).unwrap().count(), 0);
}

#[test]
fn a_file_cut_anywhere_is_refused_and_leaves_nothing() {
    let whole = fs::read(fixture("llama_q4_1.gguf")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let models = folder.path().join("models");
    let file = folder.path().join("cut.gguf");
    for tenths in 0..10 {
        fs::write(&file, &whole[..whole.len() * tenths / 10]).unwrap();
        let options = Options {
            file: file.clone(),
            id: "test/cut".into(),
            models: models.clone(),
        };
        let error = import(&options, &mut |_| ControlFlow::Continue(())).unwrap_err();
        assert!(
            matches!(error, Error::Damaged(_) | Error::NotGguf { .. }),
            "{error}"
        );
        assert!(!models.join("test/cut").exists());
    }
}

#[test]
fn a_stopped_import_leaves_nothing() {
    let models = tempfile::tempdir().unwrap();
    let options = Options {
        file: fixture("llama_q4_1.gguf"),
        id: "test/stopped".into(),
        models: models.path().into(),
    };
    let stopped = import(&options, &mut |progress| {
        if progress.done_bytes * 2 > progress.total_bytes {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    assert!(matches!(stopped, Err(Error::Stopped)));
    assert_eq!(fs::read_dir(models.path()).unwrap().count(), 0);
}

#[test]
fn an_existing_model_is_never_replaced() {
    let models = tempfile::tempdir().unwrap();
    import_fixture("llama_q4_1", models.path()).unwrap();
    assert!(matches!(
        import_fixture("llama_q4_1", models.path()),
        Err(Error::Exists { .. })
    ));
}

/// A fixture with further numbers among its metadata.
fn with_numbers(name: &str, numbers: &[(&str, u32)]) -> Vec<u8> {
    /// Where the first entry is, behind the signature, the version and two counts.
    const ENTRIES: usize = 24;
    const ALIGNMENT: usize = 32;
    let entry = |key: &str, number: u32| -> Vec<u8> {
        const UNSIGNED_32: u32 = 4;
        let length = (key.len() as u64).to_le_bytes();
        let kind = UNSIGNED_32.to_le_bytes();
        [&length, key.as_bytes(), &kind, &number.to_le_bytes()].concat()
    };
    let mut entries: Vec<u8> = numbers
        .iter()
        .flat_map(|(key, number)| entry(&format!("tokenizer.ggml.{key}"), *number))
        .collect();
    // Tensors stay where their alignment wants them.
    let filling = ALIGNMENT - (entries.len() + entry("x", 0).len()) % ALIGNMENT;
    entries.extend(entry(&"x".repeat(1 + filling), 0));
    let mut file = fs::read(fixture(&format!("{name}.gguf"))).unwrap();
    let count = u64::from_le_bytes(file[16..ENTRIES].try_into().unwrap());
    let count = count + numbers.len() as u64 + 1;
    file[16..ENTRIES].copy_from_slice(&count.to_le_bytes());
    file.splice(ENTRIES..ENTRIES, entries);
    file
}

#[test]
fn tokens_around_a_gap_are_named_as_the_file_names_them() {
    let models = tempfile::tempdir().unwrap();
    for (index, (numbers, named)) in [
        (
            &[
                ("fim_pre_token_id", 3),
                ("fim_suf_token_id", 4),
                ("fim_mid_token_id", 5),
                ("fim_pad_token_id", 6),
                ("fim_rep_token_id", 7),
                ("fim_sep_token_id", 8),
            ][..],
            &[
                ("prefix_token", 3),
                ("suffix_token", 4),
                ("middle_token", 5),
                ("fim_pad_token", 6),
                ("fim_rep_token", 7),
                ("fim_sep_token", 8),
            ][..],
        ),
        (
            &[
                ("prefix_token_id", 3),
                ("suffix_token_id", 4),
                ("middle_token_id", 5),
            ],
            &[
                ("prefix_token", 3),
                ("suffix_token", 4),
                ("middle_token", 5),
            ],
        ),
        (
            &[("fim_pre_token_id", 3), ("prefix_token_id", 4)],
            &[("prefix_token", 3)],
        ),
        (&[("fim_pre_token_id", u32::MAX)], &[]),
        (&[], &[]),
    ]
    .into_iter()
    .enumerate()
    {
        let file = models.path().join(format!("{index}.gguf"));
        fs::write(&file, with_numbers("qwen2_q8_0", numbers)).unwrap();
        let options = Options {
            file,
            id: format!("test/{index}"),
            models: models.path().into(),
        };
        let imported = import(&options, &mut |_| ControlFlow::Continue(())).unwrap();
        let tokenizer = Tokenizer::from_file(imported.path.join("tokenizer.json")).unwrap();
        let config = json_file(&imported.path.join("tokenizer_config.json"));
        let expected: Vec<_> = named
            .iter()
            .map(|(name, id)| (*name, json!(tokenizer.id_to_token(*id).unwrap())))
            .collect();
        let fields = config.as_object().unwrap().iter();
        let found: Vec<_> = fields
            .filter(|(name, _)| {
                name.starts_with("fim_")
                    || ["prefix_token", "suffix_token", "middle_token"].contains(&name.as_str())
            })
            .map(|(name, token)| (name.as_str(), token.clone()))
            .collect();
        assert_eq!(found, expected, "{numbers:?}");
    }
}
