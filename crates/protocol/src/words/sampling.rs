//! How tokens are drawn.

use std::sync::LazyLock;

use macmlx_inference::SamplingParameter;

use super::{
    Api::{Chat, Completions, Infill, Messages, OllamaChat, OllamaGenerate, Responses},
    GENERATING, Nothing, OLLAMA, OPENAI, V1, Word,
    value::{is_empty, is_false, is_not_positive, is_one, is_true, is_zero},
    word,
};

const NO_SAMPLER: &str = "this sampler is not available";
const NO_BEAMS: &str = "there is no beam search";
const NO_BANS: &str = "words cannot be banned; `logit_bias` of /v1 bans tokens";
const NO_OPTION: &str = "Ollama's options have no such thing; use /v1/chat/completions";
const OTHER_ROUTE: &str = "log probabilities are told as `logprobs` and `top_logprobs`";

/// The parameters that are one number, from their table.
pub(super) fn numbers() -> &'static [Word] {
    static NUMBERS: LazyLock<Vec<Word>> =
        LazyLock::new(|| SamplingParameter::ALL.iter().map(number).collect());
    &NUMBERS
}

fn number(row: &'static SamplingParameter) -> Word {
    let names = [row.name].into_iter().chain(row.aliases.iter().copied());
    // The table is made once and lives as long as those below.
    let word = Word {
        nothing: Nothing::Parameter(row),
        ..word(names.collect::<Vec<_>>().leak())
    }
    .read(V1, vec![row.name].leak());
    match (row.ollama, row.only_with) {
        (Some(option), _) => {
            let place: &'static str = format!("options.{}", option.name).leak();
            word.read(OLLAMA, vec![place].leak())
        }
        (None, Some(_)) => word.harmless(OLLAMA, "it means nothing by itself"),
        (None, None) => word.refused(OLLAMA, NO_OPTION),
    }
}

pub(super) const WORDS: &[Word] = &[
    word(&[
        "repetition_context_size",
        "repeat_last_n",
        "penalty_last_n",
        "repetition_penalty_range",
    ])
    .read(V1, &["repetition_context_size"])
    .read(OLLAMA, &["options.repeat_last_n"]),
    word(&["presence_context_size"])
        .read(V1, &["presence_context_size"])
        .refused(OLLAMA, NO_OPTION),
    word(&["frequency_context_size"])
        .read(V1, &["frequency_context_size"])
        .refused(OLLAMA, NO_OPTION),
    word(&["seed", "random_seed", "sampling_seed"])
        .read(V1, &["seed"])
        .read(OLLAMA, &["options.seed"]),
    word(&["logit_bias"])
        .read(V1, &["logit_bias"])
        .refused(OLLAMA, NO_OPTION),
    word(&["xtc_probability"])
        .read(V1, &["xtc_probability"])
        .refused(OLLAMA, NO_OPTION)
        .unless(is_zero),
    word(&["xtc_threshold"])
        .read(V1, &["xtc_threshold"])
        .harmless(OLLAMA, "it means nothing without `xtc_probability`"),
    word(&["dry_multiplier"])
        .read(V1, &["dry_multiplier"])
        .refused(OLLAMA, NO_OPTION)
        .unless(is_zero),
    word(&["dry_base"])
        .read(V1, &["dry_base"])
        .harmless(OLLAMA, WITHOUT_DRY),
    word(&["dry_allowed_length"])
        .read(V1, &["dry_allowed_length"])
        .harmless(OLLAMA, WITHOUT_DRY),
    word(&["dry_sequence_breakers"])
        .read(V1, &["dry_sequence_breakers"])
        .harmless(OLLAMA, WITHOUT_DRY),
    word(&["dry_penalty_last_n"])
        .read(V1, &["dry_penalty_last_n"])
        .harmless(OLLAMA, WITHOUT_DRY),
    word(&["dynamic_temperature", "temperature_last"])
        .refused(GENERATING, NO_SAMPLER)
        .unless(is_false),
    word(&["adaptive_target"])
        .refused(GENERATING, NO_SAMPLER)
        .unless(is_not_positive),
    word(&["tfs_z", "tfs"])
        .refused(GENERATING, NO_SAMPLER)
        .unless(is_one),
    word(&[
        "top_a",
        "smoothing_factor",
        "penalty_alpha",
        "epsilon_cutoff",
        "eta_cutoff",
        "no_repeat_ngram_size",
        "encoder_no_repeat_ngram_size",
    ])
    .refused(GENERATING, NO_SAMPLER)
    .unless(is_zero),
    word(&["guidance_scale", "cfg_scale", "encoder_repetition_penalty"])
        .refused(GENERATING, NO_SAMPLER)
        .unless(is_one),
    word(&["negative_prompt"])
        .refused(GENERATING, NO_SAMPLER)
        .unless(is_empty),
    word(&["repetition_detection"])
        .refused(GENERATING, NO_SAMPLER)
        .unless(is_empty),
    word(&["penalize_newline", "penalize_nl"])
        .refused(GENERATING, "penalties count every token")
        .unless(is_true),
    word(&["do_sample"])
        .refused(GENERATING, "a `temperature` of 0 draws the likeliest token")
        .unless(is_true),
    word(&[
        "samplers",
        "sampler_order",
        "sampler_priority",
        "sampler_seq",
    ])
    .refused(GENERATING, "the order of samplers is fixed")
    .harmless(
        &[Infill],
        "editors name those that their parameters ask for anyway",
    )
    .unless(is_empty),
    word(&[
        "bad_words",
        "bad_words_ids",
        "banned_tokens",
        "banned_strings",
        "custom_token_bans",
        "suppress_tokens",
        "begin_suppress_tokens",
        "sequence_bias",
    ])
    .refused(GENERATING, NO_BANS)
    .unless(is_empty),
    word(&["allowed_token_ids", "force_words_ids"])
        .refused(GENERATING, "tokens cannot be limited to a list")
        .unless(is_empty),
    word(&[
        "logits_processors",
        "logits_processor",
        "custom_logit_processor",
        "custom_params",
        "vllm_xargs",
    ])
    .refused(GENERATING, "processors cannot be sent in")
    .unless(is_empty),
    word(&["use_beam_search", "early_stopping"])
        .refused(GENERATING, NO_BEAMS)
        .unless(is_false),
    word(&["length_penalty", "num_beams", "num_beam_groups"])
        .refused(GENERATING, NO_BEAMS)
        .unless(is_one),
    word(&["diversity_penalty"])
        .refused(GENERATING, NO_BEAMS)
        .unless(is_zero),
    word(&["watermark"])
        .refused(GENERATING, "answers are not watermarked")
        .unless(is_false),
    word(&[
        "adapters",
        "adapter",
        "adapter_id",
        "adapter_path",
        "lora",
        "loras",
        "lora_path",
        "lora_request",
    ])
    .refused(GENERATING, "adapters cannot be chosen for a request")
    .unless(is_empty),
    word(&["kv_bits", "max_kv_size"])
        .refused(
            GENERATING,
            "the form of the KV cache cannot be chosen for a request",
        )
        .unless(is_zero),
    word(&["n", "num_return_sequences", "candidate_count"])
        .read(&[Chat, Completions], &["n"])
        .refused(
            &[Infill, Responses, Messages, OllamaChat, OllamaGenerate],
            "one answer is given; /v1/chat/completions gives several",
        )
        .unless(is_one),
    word(&["best_of"])
        .read(&[Completions], &["best_of"])
        .refused(
            &[
                Chat,
                Infill,
                Responses,
                Messages,
                OllamaChat,
                OllamaGenerate,
            ],
            "choices are not ranked; use `n` of /v1/chat/completions",
        )
        .unless(is_one),
    word(&["logprobs"])
        .read(OPENAI, &["logprobs"])
        .refused(&[Infill], "give the number as `n_probs`")
        .read(OLLAMA, &["logprobs"])
        .refused(
            &[Messages],
            "log probabilities are told by /v1/chat/completions",
        ),
    word(&["top_logprobs"])
        .read(
            &[Chat, Responses, OllamaChat, OllamaGenerate],
            &["top_logprobs"],
        )
        .refused(&[Completions], "give the number as `logprobs`")
        .refused(&[Infill], "give the number as `n_probs`")
        .refused(
            &[Messages],
            "log probabilities are told by /v1/chat/completions",
        )
        .unless(is_zero),
    word(&["n_probs"])
        .rewritten(&[Chat, OllamaChat, OllamaGenerate], |count| {
            let top = if is_zero(count) {
                return Ok(Vec::new());
            } else {
                count.clone()
            };
            Ok(vec![("logprobs", true.into()), ("top_logprobs", top)])
        })
        .rewritten(&[Completions], |count| {
            Ok(if is_zero(count) {
                Vec::new()
            } else {
                vec![("logprobs", count.clone())]
            })
        })
        .rewritten(&[Responses], |count| {
            Ok(vec![("top_logprobs", count.clone())])
        })
        .read(&[Infill], &["n_probs"])
        .refused(
            &[Messages],
            "log probabilities are told by /v1/chat/completions",
        )
        .unless(is_zero),
    word(&["top_n_tokens", "top_logprobs_num"])
        .refused(GENERATING, OTHER_ROUTE)
        .unless(is_zero),
    word(&[
        "details",
        "decoder_input_details",
        "return_logprob",
        "post_sampling_probs",
    ])
    .refused(GENERATING, OTHER_ROUTE)
    .unless(is_false),
    word(&["token_ids_logprob", "logprob_token_ids"])
        .refused(GENERATING, OTHER_ROUTE)
        .unless(is_empty),
    word(&["prompt_logprobs"])
        .refused(GENERATING, "use `echo` with `logprobs` of /v1/completions")
        .unless(super::value::never),
];

const WITHOUT_DRY: &str = "it means nothing without `dry_multiplier`";
