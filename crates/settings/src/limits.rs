//! What the values of settings must be beyond their type.

use serde_json::{Map, Value};

use crate::Settings;

/// The first of the changed keys whose value cannot be honoured, and why.
pub(crate) fn broken(
    settings: &Settings,
    changes: &Map<String, Value>,
) -> Option<(String, String)> {
    changes
        .keys()
        .find_map(|key| Some((key.clone(), reason(settings, key)?.to_owned())))
}

fn reason(settings: &Settings, key: &str) -> Option<&'static str> {
    let (is_good, reason) = match key {
        "serverHost" => (
            !settings.server_host.trim().is_empty(),
            "it is a name or an address, such as 127.0.0.1",
        ),
        "hfEndpoint" => (
            ["http://", "https://"]
                .iter()
                .any(|scheme| settings.hf_endpoint.starts_with(scheme)),
            "it is a URL that begins with https:// or http://",
        ),
        "maxBatchSize" => (settings.max_batch_size > 0, "it is at least 1"),
        "prefillChunkTokens" => (settings.prefill_chunk_tokens > 0, "it is at least 1"),
        "dequantizeBudgetGB" => (
            settings.dequantize_budget_gb >= 0.0,
            "it is 0 or a number of gigabytes",
        ),
        // Zero bits is how some clients write "not quantized".
        "kvBits" => (
            matches!(settings.kv_bits, None | Some(0 | 4 | 8)),
            "it is 4 or 8, or null for the model's own precision",
        ),
        "kvGroupSize" => (
            matches!(settings.kv_group_size, 32 | 64 | 128),
            "it is 32, 64 or 128",
        ),
        "maxResidentMemoryGB" => (
            settings.max_resident_memory_gb.is_none_or(|gb| gb > 0.0),
            "it is a number of gigabytes, or null to leave it to the engine",
        ),
        _ => return None,
    };
    (!is_good).then_some(reason)
}
