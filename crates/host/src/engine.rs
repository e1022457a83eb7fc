//! Settings as the engine's options, and as what the engine will make of a machine and a model.

use macmlx_engine::EngineOptions;
use macmlx_fit::{Budget, Holding, KvQuantization, Machine, Precision, StoredWeights};
use macmlx_inference::{ModelCard, ModelTask};
use macmlx_settings::Settings;
use serde_json::Value;

pub(crate) fn options(settings: &Settings) -> EngineOptions {
    EngineOptions {
        max_batch: settings.max_batch_size.max(1) as usize,
        prefill_chunk: settings.prefill_chunk_tokens.max(1) as usize,
        queue_limit: settings.max_waiting_requests as usize,
        dequantize_budget_bytes: settings.dequantize_budget_bytes(),
        memory_limit_bytes: settings.max_resident_memory_bytes(),
        kv_quantization: kv_quantization(settings),
    }
}

/// What a machine with so much memory offers to models.
pub(crate) fn machine(memory_bytes: u64, settings: &Settings) -> Machine {
    let budget = match gpu_working_set_bytes(memory_bytes) {
        Some(bytes) => Budget::of_gpu(bytes),
        None => Budget::of_memory(memory_bytes),
    };
    Machine {
        budget: match settings.max_resident_memory_bytes() {
            Some(bytes) => budget.limit_to(bytes, "maxResidentMemoryGB of the settings"),
            None => budget,
        },
        precision: precision(settings),
        kv_quantization: kv_quantization(settings),
        prefill_chunk_tokens: settings.prefill_chunk_tokens.max(1),
        left_out: macmlx_models::left_out(),
    }
}

/// How a model's weights will be held once loaded, in words for a person. `config` is the model's
/// `config.json`.
pub(crate) fn weights_plan(settings: &Settings, card: &ModelCard, config: &Value) -> String {
    plan(precision(settings), card, config)
}

fn plan(precision: Precision, card: &ModelCard, config: &Value) -> String {
    let weights = StoredWeights {
        size_bytes: card.size_bytes,
        parameters: card.parameters,
    };
    let (holding, bytes) = weights.held(config, precision);
    let form = card.quantization.as_deref().unwrap_or("as stored");
    let plan = holding.describe(form, bytes);
    match (holding, card.parameters) {
        (Holding::Packed, Some(parameters)) => format!(
            "{plan}, since float32 weights would need {} MB, more than dequantizeBudgetGB",
            (parameters * 4).div_ceil(1_000_000)
        ),
        _ => plan,
    }
}

/// Whether models run on a GPU here.
const HAS_GPU: bool = cfg!(all(target_os = "macos", target_arch = "aarch64"));

fn precision(settings: &Settings) -> Precision {
    if HAS_GPU {
        Precision::Checkpoint
    } else {
        Precision::Float32 {
            dequantize_budget_bytes: settings.dequantize_budget_bytes(),
        }
    }
}

/// Whether the engine knows the architecture of a model, and its files are no larger than the
/// memory.
pub(crate) fn can_run(card: &ModelCard, memory_bytes: u64) -> bool {
    if card.size_bytes > memory_bytes {
        return false;
    }
    let is_known = |mut known: Box<dyn Iterator<Item = &'static str>>| {
        known.any(|model_type| model_type == card.model_type)
    };
    match card.task {
        ModelTask::Generate => is_known(Box::new(macmlx_models::model_types())),
        ModelTask::Embed | ModelTask::Rerank => is_known(Box::new(macmlx_models::encoder_types())),
    }
}

/// What the GPU of a machine may hold, where models run on one: what Metal recommends is about three
/// quarters of the memory.
fn gpu_working_set_bytes(memory_bytes: u64) -> Option<u64> {
    HAS_GPU.then_some(memory_bytes / 4 * 3)
}

fn kv_quantization(settings: &Settings) -> Option<KvQuantization> {
    // Zero bits is how some clients write "not quantized".
    let bits = settings.kv_bits.filter(|bits| *bits > 0)?;
    Some(KvQuantization {
        bits,
        group_size: settings.kv_group_size.max(1),
        start: settings.kv_quantization_start as usize,
    })
}

#[cfg(test)]
mod tests {
    use macmlx_fit::Question;
    use serde_json::json;

    use super::*;

    #[test]
    fn limits_nobody_set_are_the_engines_own() {
        assert_eq!(options(&Settings::default()), EngineOptions::default());
    }

    #[test]
    fn a_model_runs_if_it_is_known_and_fits() {
        let card = ModelCard {
            size_bytes: 100,
            ..ModelCard::scripted("org/m")
        };
        assert!(can_run(&card, 100));
        assert!(!can_run(&card, 99));
        for (task, is_known) in [
            (ModelTask::Generate, false),
            (ModelTask::Embed, true),
            (ModelTask::Rerank, true),
        ] {
            let bert = ModelCard {
                model_type: "bert".into(),
                task,
                ..card.clone()
            };
            assert_eq!(can_run(&bert, 100), is_known, "{task:?}");
        }
    }

    #[test]
    fn estimates_know_what_configs_leave_out() {
        let machine = machine(64 << 30, &Settings::default());
        let config = json!({"model_type": "gemma3", "text_config": {"num_hidden_layers": 6}});
        let question = Question {
            config: &config,
            weights: StoredWeights {
                size_bytes: 0,
                parameters: None,
            },
            generates: true,
            context_tokens: Some(1024),
            other_models_bytes: 0,
        };
        // Five layers of six see 512 tokens; each keeps keys and values of 4 heads of 256.
        let value_bytes = if HAS_GPU { 2 } else { 4 };
        let expected = (5 * 512 + 1024) * 2 * 4 * 256 * value_bytes;
        let estimate = macmlx_fit::estimate(&question, &machine);
        assert_eq!(estimate.kv_cache_bytes, expected);
    }

    #[test]
    fn limits_are_handed_over() {
        let settings = Settings {
            kv_bits: Some(8),
            kv_group_size: 32,
            kv_quantization_start: 100,
            dequantize_budget_gb: 1.5,
            max_resident_memory_gb: Some(2.5),
            max_batch_size: 0,
            ..Settings::default()
        };
        let options = options(&settings);
        assert_eq!(options.dequantize_budget_bytes, 3 << 29);
        assert_eq!(options.memory_limit_bytes, Some(5 << 29));
        assert_eq!(options.max_batch, 1);
        let quantization = Some(KvQuantization {
            bits: 8,
            group_size: 32,
            start: 100,
        });
        assert_eq!(options.kv_quantization, quantization);
        let machine = machine(64 << 30, &settings);
        assert_eq!(machine.kv_quantization, quantization);
        assert_eq!(machine.budget.bytes, 5 << 29);
        assert!(machine.budget.source.contains("maxResidentMemoryGB"));
        let off = Settings {
            kv_bits: Some(0),
            ..Settings::default()
        };
        assert_eq!(super::options(&off).kv_quantization, None);
        assert_eq!(super::machine(64 << 30, &off).kv_quantization, None);
    }

    #[test]
    fn a_plan_says_what_a_setting_would_change() {
        let card = ModelCard {
            size_bytes: 6_000_000,
            quantization: Some("4-bit".into()),
            parameters: Some(10_000_000),
            ..ModelCard::scripted("org/m")
        };
        let config = json!({"quantization": {"bits": 4, "group_size": 32}});
        for (dequantize_budget_bytes, expected) in [
            (40_000_000, "4-bit, dequantized to float32 (40 MB)"),
            (
                39_999_999,
                "4-bit, computed in float32 (7 MB), since float32 weights would need 40 MB, more \
                 than dequantizeBudgetGB",
            ),
        ] {
            let precision = Precision::Float32 {
                dequantize_budget_bytes,
            };
            assert_eq!(plan(precision, &card, &config), expected);
        }
        assert_eq!(plan(Precision::Checkpoint, &card, &config), "4-bit (6 MB)");
    }
}
