//! What is asked, and how it is put before a model.

use serde_json::Value;

use super::{
    Api::{Chat, Completions, Infill, Messages, OllamaChat, OllamaGenerate, Responses},
    GENERATING, OLLAMA, TEXT, V1, Word,
    value::{is_empty, is_false, is_true, is_zero, never},
    word,
};

const AS_IT_STANDS: &str = "a prompt is completed as it stands; use /v1/chat/completions";
const INTO_A_MESSAGE: &str = "put it into a message";
const OWN_TEMPLATE: &str = "the model's own chat template is used";
const USE_COMPLETIONS: &str = "use /v1/completions";
const USE_INFILL: &str = "use /infill";
const INTO_THE_BODY: &str = "put its fields into the body itself";
const NOT_SHORTENED: &str = "prompts are not shortened, but by `truncate_prompt_tokens` of /v1/chat/completions and \
     /v1/completions";
/// Routes that can read the end of a prompt alone.
const CUTTING: &[super::Api] = &[Chat, Completions];
const ALL_OF_IT: &str = "nothing of it is kept for this route; send all of the conversation";

pub(super) const WORDS: &[Word] = &[
    word(&["model"]).read(GENERATING, &["model"]),
    word(&["messages"])
        .read(&[Chat, Messages, OllamaChat], &["messages"])
        .refused(TEXT, "use `prompt`, or /v1/chat/completions")
        .refused(&[Responses], "use `input`")
        .refused(&[OllamaGenerate], "use `prompt`, or /api/chat"),
    word(&["prompt"])
        .read(&[Completions, Infill, OllamaGenerate], &["prompt"])
        .refused(&[Chat], "use `messages`, or /v1/completions")
        .refused(
            &[Responses],
            "there are no stored prompt templates; send `instructions` and `input`",
        )
        .refused(&[Messages], "use `messages`")
        .refused(&[OllamaChat], "use `messages`, or /api/generate"),
    word(&["input"])
        .read(&[Responses], &["input"])
        .refused(&[Chat, Messages, OllamaChat], "use `messages`")
        .refused(&[Completions, Infill, OllamaGenerate], "use `prompt`"),
    word(&["inputs", "contents", "input_ids", "chat_history"])
        .refused(&[Chat, Messages, OllamaChat], "use `messages`")
        .refused(&[Responses], "use `input`")
        .refused(&[Completions, Infill, OllamaGenerate], "use `prompt`"),
    word(&["system", "system_prompt", "system_instruction"])
        .read(&[Chat, Messages, OllamaChat, OllamaGenerate], &["system"])
        .read(&[Responses], &["instructions"])
        .refused(TEXT, AS_IT_STANDS),
    word(&["instructions"])
        .read(&[Chat, Messages, OllamaChat, OllamaGenerate], &["system"])
        .read(&[Responses], &["instructions"])
        .refused(TEXT, AS_IT_STANDS),
    word(&["images"])
        .read(&[OllamaGenerate], &["images"])
        .refused(
            &[Chat, Completions, Infill, Responses, Messages, OllamaChat],
            INTO_A_MESSAGE,
        ),
    word(&["image", "image_data", "video", "videos", "documents"])
        .refused(GENERATING, INTO_A_MESSAGE),
    word(&["context"])
        .read(&[OllamaGenerate], &["context"])
        .refused(
            &[Chat, Completions, Infill, Responses, Messages, OllamaChat],
            "it is of /api/generate; send all of the conversation",
        ),
    word(&["raw"])
        .read(&[OllamaGenerate], &["raw"])
        .harmless(TEXT, "a prompt is completed as it stands")
        .refused(&[Chat, Responses, Messages, OllamaChat], USE_COMPLETIONS),
    word(&["suffix"])
        .read(&[Completions, OllamaGenerate], &["suffix"])
        .read(&[Infill], &["input_suffix"])
        .refused(&[Chat, Responses, Messages, OllamaChat], USE_COMPLETIONS),
    word(&["input_suffix"])
        .read(&[Completions, OllamaGenerate], &["suffix"])
        .read(&[Infill], &["input_suffix"])
        .refused(&[Chat, Responses, Messages, OllamaChat], USE_INFILL),
    word(&["input_prefix"])
        .refused(GENERATING, USE_INFILL)
        .read(&[Infill], &["input_prefix"])
        .unless(is_empty),
    word(&["input_extra"])
        .refused(GENERATING, USE_INFILL)
        .read(&[Infill], &["input_extra"])
        .unless(is_empty),
    word(&["template"])
        .read(&[OllamaGenerate], &["template"])
        .refused(
            &[Chat, Completions, Infill, Responses, Messages, OllamaChat],
            OWN_TEMPLATE,
        ),
    word(&[
        "chat_template",
        "role_mapping",
        "instruction_template",
        "chat_template_str",
    ])
    .refused(GENERATING, OWN_TEMPLATE)
    .unless(is_empty),
    word(&["echo", "return_full_text"])
        .read(&[Completions], &["echo"])
        .refused(
            &[
                Chat,
                Infill,
                Responses,
                Messages,
                OllamaChat,
                OllamaGenerate,
            ],
            USE_COMPLETIONS,
        )
        .unless(is_false),
    word(&["continue_final_message"])
        .read(&[Chat], &["continue_final_message"])
        .refused(
            &[Messages, OllamaChat],
            "an answer that the last turn begins is gone on with",
        )
        .refused(
            &[Completions, Infill, Responses, OllamaGenerate],
            "use /v1/chat/completions",
        )
        .unless(is_false),
    word(&["add_generation_prompt"])
        .read(&[Chat], &["add_generation_prompt"])
        .refused(
            &[
                Completions,
                Infill,
                Responses,
                Messages,
                OllamaChat,
                OllamaGenerate,
            ],
            "use /v1/chat/completions, or /v1/completions for a prompt as it stands",
        )
        .unless(is_true),
    word(&["add_special_tokens"])
        .refused(GENERATING, OWN_TEMPLATE)
        .unless(is_false)
        .refused(TEXT, "prompts begin as the tokenizer wants them to"),
    word(&["add_bos_token"])
        .refused(GENERATING, "prompts begin as the tokenizer wants them to")
        .unless(is_true),
    word(&["prompt_embeds", "input_embeds"])
        .refused(GENERATING, "prompts are text or tokens")
        .unless(is_empty),
    word(&["mm_processor_kwargs", "media_io_kwargs", "session_params"])
        .refused(GENERATING, "there is nothing like it here")
        .unless(is_empty),
    word(&["truncate"])
        .refused(GENERATING, NOT_SHORTENED)
        .rewritten(CUTTING, |truncate| {
            // A number is text-generation-inference's, a switch is Ollama's.
            Ok(if truncate.is_boolean() {
                Vec::new()
            } else {
                vec![("truncate_prompt_tokens", truncate.clone())]
            })
        })
        .unless(Value::is_boolean),
    word(&["truncate_prompt_tokens"])
        .refused(GENERATING, NOT_SHORTENED)
        .read(CUTTING, &["truncate_prompt_tokens"])
        // The model's own limit, beyond which a prompt is refused anyway.
        .unless(|tokens| tokens.as_f64() == Some(-1.0)),
    word(&["truncation_side"])
        .harmless(GENERATING, "nothing is cut off")
        .read(CUTTING, &["truncation_side"]),
    word(&["truncation_length", "max_prompt_tokens"])
        .refused(GENERATING, NOT_SHORTENED)
        .unless(never),
    word(&["truncation"])
        .refused(GENERATING, NOT_SHORTENED)
        .unless(|truncation| truncation == "auto" || truncation == "disabled"),
    word(&["previous_response_id"])
        .refused(GENERATING, ALL_OF_IT)
        .read(&[Responses], &["previous_response_id"]),
    word(&["conversation"])
        .refused(GENERATING, ALL_OF_IT)
        .read(&[Responses], &["conversation"]),
    word(&["thread"]).refused(GENERATING, "no conversations are kept here; send all of it"),
    word(&["compaction"]).refused(
        GENERATING,
        "the server does not summarise; ask for a summary in a message",
    ),
    word(&["context_management"])
        .read(&[Messages], &["context_management"])
        .refused(
            &[
                Chat,
                Completions,
                Infill,
                Responses,
                OllamaChat,
                OllamaGenerate,
            ],
            "conversations are not compacted by the server",
        ),
    word(&["container"])
        .refused(GENERATING, "there is no container to run skills in")
        .harmless(&[Messages], "its skills are refused where they are")
        .unless(|container| container.is_string() || is_empty(container)),
    word(&[
        "extra_body",
        "sampling_params",
        "parameters",
        "generation_config",
    ])
    .refused(GENERATING, INTO_THE_BODY)
    .unless(is_empty),
    word(&["options"])
        .read(OLLAMA, &["options"])
        .refused(V1, "it is an object with options of Ollama")
        .unless(is_empty),
    word(&["_debug_render_only"])
        .read(OLLAMA, &["_debug_render_only"])
        .refused(V1, "prompts are not shown")
        .unless(is_false),
    word(&["rope_frequency_base", "rope_frequency_scale"])
        .refused(GENERATING, "a model's rope is as its own files have it")
        .unless(is_zero),
    word(&["top_n", "query"]).refused(GENERATING, "use /v1/rerank"),
];
