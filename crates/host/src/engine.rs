//! Settings as the engine's options.

use macmlx_engine::{EngineOptions, KvQuantization};
use macmlx_inference::{ModelCard, ModelTask};
use macmlx_settings::Settings;

pub(crate) fn options(settings: &Settings) -> EngineOptions {
    EngineOptions {
        max_batch: settings.max_batch_size.max(1) as usize,
        prefill_chunk: settings.prefill_chunk_tokens.max(1) as usize,
        queue_limit: settings.max_waiting_requests as usize,
        dequantize_budget_bytes: Some(budget_bytes(settings)),
        memory_limit_bytes: settings
            .max_resident_memory_gb
            .map(|gb| (gb.max(0.0) * f64::from(1 << 30)) as u64),
        // Zero bits is how some clients write "not quantized".
        kv_quantization: settings
            .kv_bits
            .filter(|bits| *bits > 0)
            .map(|bits| KvQuantization {
                bits: i32::from(bits),
                group_size: i32::try_from(settings.kv_group_size).unwrap_or(i32::MAX),
                start: settings.kv_quantization_start as usize,
            }),
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
pub(crate) fn gpu_working_set_bytes(memory_bytes: u64) -> Option<u64> {
    cfg!(all(target_os = "macos", target_arch = "aarch64")).then_some(memory_bytes / 4 * 3)
}

fn budget_bytes(settings: &Settings) -> u64 {
    (settings.dequantize_budget_gb.max(0.0) * f64::from(1 << 30)) as u64
}

/// How a model's weights will be held once loaded, in words for a person.
pub(crate) fn weights_plan(settings: &Settings, card: &ModelCard) -> String {
    let stored = card.quantization.as_deref().unwrap_or("as stored");
    if cfg!(all(target_os = "macos", target_arch = "aarch64")) {
        return format!("{stored}, as in its files, on the GPU");
    }
    let Some(parameters) = card.parameters else {
        return "float32".into();
    };
    let float32_bytes = parameters * 4;
    let megabytes = float32_bytes.div_ceil(1_000_000);
    let is_quantized = !matches!(stored, "bf16" | "f16" | "f32");
    match (is_quantized, float32_bytes <= budget_bytes(settings)) {
        (false, _) => format!("float32 ({megabytes} MB)"),
        (true, true) => format!("{stored}, dequantized to float32 ({megabytes} MB)"),
        (true, false) => format!(
            "{stored}, computed in float32 (float32 weights would need {megabytes} MB, more than \
             dequantizeBudgetGB)"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_nobody_set_are_the_engines_own() {
        let expected = EngineOptions {
            dequantize_budget_bytes: Some(4 << 30),
            ..EngineOptions::default()
        };
        assert_eq!(options(&Settings::default()), expected);
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
    fn limits_are_handed_over() {
        let options = options(&Settings {
            kv_bits: Some(8),
            kv_group_size: 32,
            dequantize_budget_gb: 1.5,
            max_resident_memory_gb: Some(2.5),
            max_batch_size: 0,
            ..Settings::default()
        });
        assert_eq!(options.dequantize_budget_bytes, Some(3 << 29));
        assert_eq!(options.memory_limit_bytes, Some(5 << 29));
        assert_eq!(options.max_batch, 1);
        let quantization = options.kv_quantization.unwrap();
        assert_eq!((quantization.bits, quantization.group_size), (8, 32));
        let off = Settings {
            kv_bits: Some(0),
            ..Settings::default()
        };
        assert_eq!(super::options(&off).kv_quantization, None);
    }
}
