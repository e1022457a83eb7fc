//! Hints, bookkeeping and switches of other servers' machinery: what changes no answer.

use super::{Word, harmless};

pub(super) const WORDS: &[Word] = &[
    harmless(&["stream", "stream_options"], "the same answer in pieces"),
    harmless(
        &[
            "user",
            "user_id",
            "session_id",
            "metadata",
            "client_metadata",
            "safety_identifier",
        ],
        "who asks",
    ),
    harmless(
        &[
            "request_id",
            "rid",
            "betas",
            "diagnostics",
            "safeguards",
            "name",
        ],
        "labels of the request",
    ),
    harmless(
        &[
            "service_tier",
            "inference_geo",
            "speed",
            "priority",
            "timeout",
        ],
        "where and how soon",
    ),
    harmless(
        &["store", "include"],
        "what is kept, and what is told beside the answer",
    ),
    harmless(
        &["verbosity"],
        "a wish that models from elsewhere were trained for",
    ),
    harmless(
        &["max_tool_calls", "plugins"],
        "tools that a provider would run",
    ),
    harmless(
        &[
            "prompt_cache_key",
            "prompt_cache_retention",
            "prompt_cache_options",
            "cache_control",
            "cache_prompt",
            "cache_salt",
            "extra_key",
            "n_cache_reuse",
            "id_slot",
            "slot_id",
            "n_keep",
            "num_keep",
            "n_discard",
        ],
        "where a prompt is cached",
    ),
    harmless(&["keep_alive", "ttl"], "how long the model stays in memory"),
    harmless(
        &["models", "provider", "route", "transforms", "usage"],
        "how a gateway finds its way",
    ),
    harmless(
        &["timings_per_token", "return_progress", "log_metrics"],
        "measurements beside the answer",
    ),
    harmless(
        &[
            "draft_model",
            "num_draft_tokens",
            "draft_num_predict",
            "speculative.n_max",
            "speculative.n_min",
            "speculative.p_min",
            "backend_sampling",
            "prefill_step_size",
            "kv_group_size",
            "quantized_kv_start",
            "guided_decoding_backend",
            "kv_transfer_params",
            "data_parallel_rank",
            "bootstrap_host",
            "bootstrap_port",
            "bootstrap_room",
        ],
        "how the same answer is computed",
    ),
    harmless(
        &[
            "num_ctx",
            "n_ctx",
            "context_length",
            "num_batch",
            "num_gpu",
            "main_gpu",
            "num_thread",
            "num_gqa",
            "use_mmap",
            "use_mlock",
            "low_vram",
            "numa",
            "f16_kv",
            "vocab_only",
            "logits_all",
            "embedding_only",
        ],
        "every model has its whole context and all of the device",
    ),
    harmless(
        &["smoothing_curve", "adaptive_decay"],
        "they mean nothing without the sampler that is refused",
    ),
];
