//! Estimates for published models on machines of several sizes.

use serde_json::{Value, json};

use crate::*;

const GB: u64 = 1 << 30;

fn mac(memory_gb: u64) -> Machine {
    Machine {
        budget: Budget::of_gpu(memory_gb * GB * 3 / 4),
        precision: Precision::Checkpoint,
        kv_quantization: None,
        prefill_chunk_tokens: 512,
        left_out: LeftOut::from([(
            "gemma3".to_owned(),
            json!({"text_config": {
                "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
                "sliding_window": 512, "sliding_window_pattern": 6
            }}),
        )]),
    }
}

fn pc(memory_gb: u64) -> Machine {
    Machine {
        budget: Budget::of_memory(memory_gb * GB),
        precision: Precision::Float32 {
            dequantize_budget_bytes: 4 * GB,
        },
        ..mac(memory_gb)
    }
}

fn fit(config: &Value, weights: StoredWeights, tokens: u32, machine: &Machine) -> Fit {
    let question = Question {
        config,
        weights,
        generates: true,
        context_tokens: Some(tokens),
        other_models_bytes: 0,
    };
    estimate(&question, machine)
}

fn stored(size_bytes: u64, parameters: u64) -> StoredWeights {
    StoredWeights {
        size_bytes,
        parameters: Some(parameters),
    }
}

/// Configs as the models' makers published them, cut to what matters here.
fn qwen3_4b() -> Value {
    json!({
        "model_type": "qwen3", "hidden_size": 2560, "intermediate_size": 9728, "num_hidden_layers": 36,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151_936,
        "max_position_embeddings": 40960, "sliding_window": null, "torch_dtype": "bfloat16",
        "quantization": {"group_size": 64, "bits": 4}
    })
}

fn llama_31_8b() -> Value {
    json!({
        "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
        "vocab_size": 128_256, "max_position_embeddings": 131_072, "torch_dtype": "bfloat16"
    })
}

fn gemma3_4b() -> Value {
    json!({
        "model_type": "gemma3",
        "text_config": {
            "model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240,
            "num_hidden_layers": 34, "sliding_window": 1024, "max_position_embeddings": 131_072
        }
    })
}

fn gpt_oss_20b() -> Value {
    let kinds: Vec<&str> = (0..24)
        .map(|layer| ["sliding_attention", "full_attention"][layer % 2])
        .collect();
    json!({
        "model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880,
        "num_hidden_layers": 24, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,
        "sliding_window": 128, "layer_types": kinds, "num_experts_per_tok": 4,
        "max_position_embeddings": 131_072
    })
}

fn deepseek_v3() -> Value {
    json!({
        "model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432,
        "moe_intermediate_size": 2048, "num_experts_per_tok": 8, "num_hidden_layers": 61,
        "num_attention_heads": 128, "num_key_value_heads": 128, "kv_lora_rank": 512,
        "qk_rope_head_dim": 64, "v_head_dim": 128, "max_position_embeddings": 163_840
    })
}

fn qwen3_next() -> Value {
    json!({
        "model_type": "qwen3_next", "hidden_size": 2048, "num_hidden_layers": 48,
        "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256,
        "full_attention_interval": 4, "linear_num_value_heads": 32, "linear_key_head_dim": 128,
        "linear_value_head_dim": 128, "max_position_embeddings": 262_144
    })
}

fn smollm2_135m() -> Value {
    json!({
        "model_type": "llama", "hidden_size": 576, "intermediate_size": 1536,
        "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3,
        "vocab_size": 49152, "max_position_embeddings": 8192,
        "quantization": {"group_size": 32, "bits": 4}
    })
}

#[test]
fn the_kv_cache_of_known_models() {
    // Bytes for each token of a layer, times the rows that the layer holds.
    for (config, tokens, expected) in [
        (qwen3_4b(), 4096, 4096 * 36 * 2 * 8 * 128 * 2),
        // Heads of 4096 / 32; rows come in steps of 256.
        (llama_31_8b(), 1000, 1024 * 32 * 2 * 8 * 128 * 2),
        (gemma3_4b(), 8192, (5 * 8192 + 29 * 1024) * 2 * 4 * 256 * 2),
        (gemma3_4b(), 512, 34 * 512 * 2 * 4 * 256 * 2),
        (gpt_oss_20b(), 8192, 12 * (8192 + 256) * 2 * 8 * 64 * 2),
        (deepseek_v3(), 4096, 4096 * 61 * (512 + 64) * 2),
        (
            qwen3_next(),
            4096,
            12 * 4096 * 2 * 2 * 256 * 2 + 36 * 32 * 128 * 128 * 4,
        ),
    ] {
        let fit = fit(&config, stored(GB, GB), tokens, &mac(512));
        assert_eq!(fit.kv_cache_bytes, expected, "{}", config["model_type"]);
    }
}

#[test]
fn layers_that_share_a_cache_have_none() {
    let mut config = qwen3_4b();
    config["num_kv_shared_layers"] = json!(6);
    let fit = fit(&config, stored(GB, GB), 4096, &mac(64));
    assert_eq!(fit.kv_cache_bytes, 4096 * 30 * 2 * 8 * 128 * 2);
}

#[test]
fn a_window_that_no_layer_refers_to_is_not_applied() {
    let mut config = llama_31_8b();
    config["sliding_window"] = json!(4096);
    let with = fit(&config, stored(GB, GB), 32768, &mac(64));
    let without = fit(&llama_31_8b(), stored(GB, GB), 32768, &mac(64));
    assert_eq!(with.kv_cache_bytes, without.kv_cache_bytes);
}

#[test]
fn a_quantized_kv_cache_spares_the_windows() {
    let quantized_from = |start| Machine {
        kv_quantization: Some(KvQuantization {
            bits: 4,
            group_size: 64,
            start,
        }),
        ..mac(64)
    };
    let machine = quantized_from(4096);
    // 4 bits a value and, for each 64, a scale and a bias of two bytes.
    let values = 4096 * 36 * 2 * 8 * 128;
    let full = fit(&qwen3_4b(), stored(GB, GB), 4096, &machine);
    assert_eq!(full.kv_cache_bytes, values / 2 + values / 64 * 4);
    let short = fit(&qwen3_4b(), stored(GB, GB), 4095, &machine);
    assert_eq!(short.kv_cache_bytes, values * 2, "it starts later");
    let mixed = fit(&gpt_oss_20b(), stored(GB, GB), 8192, &machine);
    let values = 12 * 8192 * 2 * 8 * 64;
    let windows = 12 * 256 * 2 * 8 * 64 * 2;
    assert_eq!(mixed.kv_cache_bytes, values / 2 + values / 64 * 4 + windows);
}

#[test]
fn weights_as_each_machine_holds_them() {
    let four_bit = stored(2_263_000_000, 4_022_000_000);
    let on_gpu = fit(&qwen3_4b(), four_bit, 4096, &mac(16));
    assert_eq!(on_gpu.weights_bytes, 2_263_000_000);
    // Float32 would take 16 GB: more than the budget, so the words stay packed.
    let packed = fit(&qwen3_4b(), four_bit, 4096, &pc(32));
    let scales = 2_263_000_000 - 2_011_000_000;
    assert_eq!(packed.weights_bytes, 2_011_000_000 + 2 * scales);
    let small = fit(
        &smollm2_135m(),
        stored(88_000_000, 134_515_008),
        4096,
        &pc(8),
    );
    assert_eq!(small.weights_bytes, 4 * 134_515_008);
    let half = fit(&llama_31_8b(), stored(16 * GB, 8 * GB), 4096, &pc(64));
    assert_eq!(half.weights_bytes, 32 * GB);
}

#[test]
fn parameters_nobody_counted_are_told_from_the_files() {
    let weights = |size_bytes| StoredWeights {
        size_bytes,
        parameters: None,
    };
    // 4.5 bits a parameter.
    let quantized = fit(&qwen3_4b(), weights(450_000_000), 4096, &pc(32));
    assert_eq!(quantized.weights_bytes, 3_200_000_000);
    let half = fit(&llama_31_8b(), weights(16 * GB), 4096, &pc(64));
    assert_eq!(half.weights_bytes, 32 * GB);
}

#[test]
fn verdicts() {
    let config = qwen3_4b();
    let weights = stored(2_263_000_000, 4_022_000_000);
    for (memory_gb, tokens, expected) in [
        (16, 8192, Verdict::Fits),
        (8, 24576, Verdict::Tight),
        (8, 32768, Verdict::No),
        (4, 4096, Verdict::Tight),
        (2, 4096, Verdict::No),
    ] {
        let fit = fit(&config, weights, tokens, &mac(memory_gb));
        assert_eq!(fit.verdict, expected, "{memory_gb} GB, {tokens}: {fit:?}");
        assert_eq!(
            fit.needed_bytes,
            fit.weights_bytes + fit.kv_cache_bytes + fit.scratch_bytes
        );
    }
}

#[test]
fn other_models_and_limits_count() {
    let config = qwen3_4b();
    let question = Question {
        config: &config,
        weights: stored(2_263_000_000, 4_022_000_000),
        generates: true,
        context_tokens: None,
        other_models_bytes: 8 * GB,
    };
    let fit = estimate(&question, &mac(16));
    assert_eq!(fit.context_tokens, DEFAULT_CONTEXT_TOKENS);
    assert_eq!(fit.other_models_bytes, 8 * GB);
    assert_ne!(fit.verdict, Verdict::Fits);
    let own = pc(64).budget;
    assert_eq!(own.source, "75 % of 64 GB memory");
    assert_eq!(own.clone().limit_to(1 << 40, "a limit"), own);
    let limited = own.limit_to(3 * GB, "a limit");
    assert_eq!(
        (limited.bytes, limited.source.as_str()),
        (3 * GB, "a limit")
    );
}

#[test]
fn context_beyond_the_models_own_is_not_counted() {
    let fit = fit(&smollm2_135m(), stored(GB, GB), 1_000_000, &mac(64));
    assert_eq!(fit.context_tokens, 8192);
}

#[test]
fn strange_configs_yield_the_weights_alone() {
    for config in [
        json!(null),
        json!({}),
        json!({"num_hidden_layers": "many", "hidden_size": -1, "layer_types": "all"}),
    ] {
        let fit = fit(&config, stored(GB, GB / 2), 8192, &mac(16));
        assert_eq!((fit.weights_bytes, fit.kv_cache_bytes), (GB, 0));
    }
    // Nothing overflows.
    let huge = u64::MAX;
    let config = json!({
        "num_hidden_layers": huge, "hidden_size": huge, "num_attention_heads": huge,
        "head_dim": huge, "intermediate_size": huge, "vocab_size": huge, "kv_lora_rank": 0,
        "sliding_window": huge, "sliding_window_pattern": huge
    });
    let fit = fit(&config, stored(huge, huge), u32::MAX, &mac(16));
    assert_eq!(fit.verdict, Verdict::No);
}

#[test]
fn encoders_keep_no_keys_and_values() {
    let config = qwen3_4b();
    let question = Question {
        config: &config,
        weights: stored(GB, 500_000_000),
        generates: false,
        context_tokens: None,
        other_models_bytes: 0,
    };
    assert_eq!(estimate(&question, &mac(16)).kv_cache_bytes, 0);
}
