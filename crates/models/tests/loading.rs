//! What a model folder may hold, and what is refused by name.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod folder;

use std::{collections::HashMap, fs};

use folder::mlx;
use macmlx_models::{
    ComputePolicy, LoadOptions, LoadedModel, ModelError,
    cache::{CacheOptions, KvQuantization},
    load,
};
use mlx_rs::{Array, ops};
use serde_json::{Value, json};

/// A generator to spoil.
struct Folder(folder::Folder);

impl Folder {
    fn of(fixture: &str) -> Self {
        Self(folder::Folder::of(&format!("fixtures/{fixture}")))
    }

    fn with(self, settings: Value) -> Self {
        Self(self.0.with(settings))
    }

    fn with_tensors(self, change: impl FnOnce(&mut HashMap<String, Array>)) -> Self {
        Self(self.0.with_tensors(change))
    }

    fn load(&self) -> Result<LoadedModel, ModelError> {
        load(&self.0.path, &LoadOptions::default())
    }

    #[track_caller]
    fn error(&self) -> String {
        self.load().expect_err("the folder is spoilt").to_string()
    }
}

fn zeros(shape: &[i32]) -> Array {
    ops::zeros::<f32>(shape).unwrap()
}

#[test]
fn every_wrong_key_is_named() {
    let _turn = mlx();
    let folder = Folder::of("llama").with_tensors(|tensors| {
        tensors.remove("model.norm.weight").unwrap();
        tensors.remove("model.layers.1.mlp.up_proj.weight").unwrap();
        tensors.insert(
            "model.layers.0.self_attn.q_proj.weight".to_owned(),
            zeros(&[3, 64]),
        );
        tensors.insert("model.layers.0.surprise".to_owned(), zeros(&[1]));
    });
    let error = folder.error();
    for part in [
        "`model.norm.weight` is missing",
        "`model.layers.1.mlp.up_proj.weight` is missing",
        "`model.layers.0.self_attn.q_proj.weight` has shape [3, 64] instead of [128, 64]",
        "`model.layers.0.surprise` is not used",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn keys_of_a_model_within_a_checkpoint_are_named_in_full() {
    let _turn = mlx();
    let folder = Folder::of("gemma3").with_tensors(|tensors| {
        let norm = "language_model.model.norm.weight";
        tensors.remove(norm).unwrap();
        let shape = [3, 64];
        tensors.insert(
            "language_model.model.layers.0.self_attn.q_norm.weight".to_owned(),
            zeros(&shape),
        );
        for surprise in ["language_model.surprise", "audio_tower.weight"] {
            tensors.insert(surprise.to_owned(), zeros(&[1]));
        }
    });
    let error = folder.error();
    for part in [
        "`language_model.model.norm.weight` is missing",
        "`language_model.model.layers.0.self_attn.q_norm.weight` has shape [3, 64] instead of [32]",
        "`language_model.surprise` is not used",
        "`audio_tower.weight` is not used",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn unused_tensors_that_exporters_write_are_ignored() {
    let _turn = mlx();
    let folder = Folder::of("llama").with_tensors(|tensors| {
        let frequencies = "model.layers.0.self_attn.rotary_emb.inv_freq";
        tensors.insert(frequencies.to_owned(), zeros(&[16]));
        tensors.insert("lm_head.weight".to_owned(), zeros(&[96, 64]));
    });
    folder.load().unwrap();
}

#[test]
fn a_head_of_its_own_is_used_unless_tied() {
    let _turn = mlx();
    let own_head = |tensors: &mut HashMap<String, Array>| {
        tensors.insert("lm_head.weight".to_owned(), zeros(&[96, 64]));
    };
    let folder = Folder::of("llama").with(json!({"tie_word_embeddings": false}));
    assert!(folder.error().contains("`lm_head.weight` is missing"));
    folder.with_tensors(own_head).load().unwrap();
}

#[test]
fn settings_that_would_change_the_output_are_refused() {
    let _turn = mlx();
    let scaling = |settings: Value| json!({ "rope_scaling": settings });
    let cases = [
        ("llama", json!({"hidden_act": "relu"}), "hidden_act = relu"),
        (
            "llama",
            scaling(json!({"type": "dynamic", "factor": 2.0})),
            "rope_type = dynamic",
        ),
        (
            "llama",
            scaling(json!({"rope_type": "linear"})),
            "rope_scaling.factor",
        ),
        (
            "qwen2",
            scaling(json!({"type": "yarn", "factor": 4.0, "attention_factor": 2.0})),
            "attention_factor = 2",
        ),
        (
            "qwen2",
            scaling(json!({"type": "yarn", "factor": 4.0, "truncate": false})),
            "truncate = false",
        ),
        (
            "phi3",
            scaling(json!({"type": "yarn", "factor": 4.0})),
            "type = yarn",
        ),
        (
            "phi3",
            scaling(json!({"type": "su", "long_factor": [1.0]})),
            "long_factor",
        ),
        (
            "gemma3_text",
            json!({"final_logit_softcapping": 30.0}),
            "final_logit_softcapping",
        ),
        (
            "gemma3_text",
            json!({"sliding_window_pattern": 2, "layer_types": ["full_attention"]}),
            "layer_types[0]",
        ),
        ("smollm3", json!({"no_rope_layers": [1]}), "no_rope_layers"),
        (
            "starcoder2",
            json!({"hidden_act": "mish"}),
            "hidden_act = mish",
        ),
        (
            "llama",
            json!({"layer_types": ["full_attention", "chunked"]}),
            "layer_types: chunked",
        ),
        (
            "llama-q4",
            json!({"quantization": {"bits": 4, "group_size": 32, "mode": "mxfp4"}}),
            "mode = mxfp4",
        ),
        (
            "llama-q4",
            json!({"quantization": {"bits": 7, "group_size": 32}}),
            "bits = 7",
        ),
        (
            "llama",
            json!({"quantization_config": {"quant_method": "gptq", "bits": 4}}),
            "quant_method = gptq",
        ),
    ];
    for (fixture, settings, named) in cases {
        let error = Folder::of(fixture).with(settings).load().expect_err(named);
        assert!(matches!(error, ModelError::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains(named), "{named}: {error}");
    }
}

#[test]
fn quantization_is_read_under_both_names() {
    let _turn = mlx();
    let settings = json!({"bits": 4, "group_size": 64});
    let folder =
        Folder::of("llama-q4").with(json!({"quantization": null, "quantization_config": settings}));
    let loaded = folder.load().unwrap();
    assert!(
        loaded.facts.weights.starts_with("4-bit"),
        "{}",
        loaded.facts.weights
    );
}

#[test]
fn a_layer_that_contradicts_its_settings_is_named() {
    let _turn = mlx();
    let wrong = json!({"bits": 8, "group_size": 64});
    let quantization = json!({
        "bits": 4, "group_size": 64, "model.layers.0.mlp.up_proj": wrong,
    });
    let error = Folder::of("llama-q4")
        .with(json!({"quantization": quantization}))
        .error();
    assert!(error.contains("model.layers.0.mlp.up_proj"), "{error}");
}

#[test]
fn other_architectures_and_incomplete_folders() {
    let _turn = mlx();
    let error = Folder::of("llama")
        .with(json!({"model_type": "mamba"}))
        .load();
    assert!(matches!(error, Err(ModelError::UnknownArchitecture(name)) if name == "mamba"));

    let folder = Folder::of("llama-sharded");
    fs::remove_file(folder.0.path.join("model-00002-of-00002.safetensors")).unwrap();
    assert!(folder.error().contains("model-00002-of-00002.safetensors"));

    let folder = Folder::of("llama");
    fs::write(
        folder.0.path.join("model.safetensors"),
        b"not a safetensors file",
    )
    .unwrap();
    assert!(matches!(folder.load(), Err(ModelError::WeightFile { .. })));
    fs::remove_file(folder.0.path.join("config.json")).unwrap();
    assert!(matches!(folder.load(), Err(ModelError::Read { .. })));
}

#[test]
fn facts_say_how_weights_are_held() {
    let _turn = mlx();
    let facts = |fixture: &str, compute, dequantize_budget_bytes| {
        let options = LoadOptions {
            compute,
            dequantize_budget_bytes,
        };
        load(&Folder::of(fixture).0.path, &options).unwrap().facts
    };
    let dequantized = facts("llama-q4", ComputePolicy::Float32, u64::MAX);
    assert!(
        dequantized
            .weights
            .starts_with("4-bit, dequantized to float32 (")
    );
    let quantized = facts("llama-q4", ComputePolicy::Float32, 0);
    assert!(
        quantized
            .weights
            .starts_with("4-bit, computed in float32 (")
    );
    assert!(dequantized.weights_bytes > 3 * quantized.weights_bytes);
    let half = facts("llama", ComputePolicy::Float32, 0);
    assert!(half.weights.starts_with("f16, converted to float32 ("));
    let kept = facts("qwen2", ComputePolicy::Checkpoint, 0);
    assert!(kept.weights.starts_with("bf16 ("));
    assert_eq!((kept.context_length, kept.vocab_size), (Some(512), 96));
    assert_eq!(kept.model_type, "qwen2");
    let nested = facts("gemma3", ComputePolicy::Checkpoint, 0);
    assert_eq!((nested.context_length, nested.vocab_size), (Some(512), 96));
}

#[test]
fn kv_quantization_that_does_not_fit_is_refused() {
    let _turn = mlx();
    let model = Folder::of("llama").load().unwrap().model;
    let cache = |bits, group_size| {
        let quantization = Some(KvQuantization {
            bits,
            group_size,
            start: 0,
        });
        model.new_cache(&CacheOptions { quantization })
    };
    assert!(cache(7, 32).unwrap_err().to_string().contains("7 bits"));
    assert!(
        cache(8, 48)
            .unwrap_err()
            .to_string()
            .contains("groups of 48")
    );
    let error = cache(8, 64).unwrap_err().to_string();
    assert!(error.contains("head dimension, 32"), "{error}");
}
