//! What is embedded or ranked.

use serde_json::Value;

use super::{
    Api::{Embeddings, OllamaEmbed, OllamaEmbeddings, Rerank},
    Word, harmless,
    value::{is_empty, is_false, is_true, is_zero, never},
    word,
};

const ALL: &[super::Api] = &[Embeddings, Rerank, OllamaEmbed, OllamaEmbeddings];
const EMBEDDING: &[super::Api] = &[Embeddings, OllamaEmbed, OllamaEmbeddings];
const OLLAMA: &[super::Api] = &[OllamaEmbed, OllamaEmbeddings];

const OWN_LENGTH: &str = "vectors have the length that the model's own files give them, or 1";
const NO_PROMPTS: &str = "nothing is put before a text; write the instruction into it";
const FLOATS: &str = "numbers are floats";
const OF_OPENAI: &str = "use /v1/embeddings";
const WHOLE: &str = "a document is scored as a whole, cut where the model's limit is";
const NOT_RANKED: &str = "use /v1/rerank";
const NOT_EMBEDDED: &str = "use `query` and `documents`, or /v1/embeddings";
const NO_LENGTH: &str = "documents are ranked, not turned into vectors";
const AS_TRAINED: &str = "query and document are arranged as the model was trained";

pub(super) const WORDS: &[Word] = &[
    word(&["model"]).read(ALL, &["model"]),
    word(&["input"])
        .read(&[Embeddings, OllamaEmbed], &["input"])
        .refused(&[OllamaEmbeddings], "use `prompt`, or /api/embed")
        .refused(&[Rerank], NOT_EMBEDDED),
    word(&["prompt"])
        .read(&[OllamaEmbeddings], &["prompt"])
        .refused(&[Embeddings, OllamaEmbed], "use `input`")
        .refused(&[Rerank], NOT_EMBEDDED),
    word(&["inputs", "text", "content", "messages", "items", "contents"])
        .refused(&[Embeddings, OllamaEmbed], "only `input` is embedded")
        .refused(&[OllamaEmbeddings], "only `prompt` is embedded")
        .refused(&[Rerank], NOT_EMBEDDED),
    word(&["query"])
        .read(&[Rerank], &["query"])
        .refused(EMBEDDING, NOT_RANKED),
    word(&["texts"])
        .refused(&[Rerank], "use `documents`")
        .refused(&[Embeddings, OllamaEmbed], "use `input`")
        .refused(&[OllamaEmbeddings], "use `prompt`, or /api/embed"),
    word(&["documents"])
        .read(&[Rerank], &["documents"])
        .refused(EMBEDDING, NOT_RANKED),
    word(&["top_n", "top_k"])
        .read(&[Rerank], &["top_n"])
        .harmless(EMBEDDING, "nothing is ranked"),
    word(&["max_tokens_per_doc", "max_doc_length"])
        .read(&[Rerank], &["max_tokens_per_doc"])
        .harmless(EMBEDDING, "nothing is ranked"),
    word(&["max_tokens_per_query", "max_query_length"])
        .refused(&[Rerank], WHOLE)
        .harmless(EMBEDDING, "nothing is ranked")
        .unless(never),
    word(&["return_documents"])
        .read(&[Rerank], &["return_documents"])
        .harmless(EMBEDDING, "nothing is ranked"),
    word(&["rank_fields"])
        .read(&[Rerank], &["rank_fields"])
        .harmless(EMBEDDING, "nothing is ranked"),
    word(&["dimensions"])
        .read(&[Embeddings, OllamaEmbed], &["dimensions"])
        .refused(&[OllamaEmbeddings], "use /api/embed")
        .refused(&[Rerank], NO_LENGTH),
    word(&["output_dimension", "output_dimensionality"])
        .read(&[Embeddings, OllamaEmbed], &["dimensions"])
        .refused(&[OllamaEmbeddings], "use `dimensions` of /api/embed")
        .refused(&[Rerank], NO_LENGTH),
    word(&["encoding_format"])
        .read(&[Embeddings], &["encoding_format"])
        .refused(OLLAMA, OF_OPENAI)
        .harmless(&[Rerank], "scores are numbers")
        .unless(is_float),
    word(&["normalize"])
        .read(&[Embeddings], &["normalize"])
        .refused(OLLAMA, OWN_LENGTH)
        .harmless(&[Rerank], "there are no vectors")
        .unless(is_true),
    word(&["normalized"])
        .read(&[Embeddings], &["normalized"])
        .refused(OLLAMA, OWN_LENGTH)
        .harmless(&[Rerank], "there are no vectors")
        .unless(is_true),
    word(&["use_activation"])
        .read(&[Embeddings], &["use_activation"])
        .refused(OLLAMA, OWN_LENGTH)
        .refused(&[Rerank], "scores are from 0 to 1")
        .unless(is_true),
    word(&["embd_normalize"])
        .read(&[Embeddings], &["embd_normalize"])
        .refused(OLLAMA, OWN_LENGTH)
        .harmless(&[Rerank], "there are no vectors")
        .unless(|norm| norm.as_f64() == Some(2.0)),
    word(&["raw_scores"])
        .refused(&[Rerank], "scores are from 0 to 1")
        .harmless(EMBEDDING, "nothing is ranked")
        .unless(is_false),
    word(&["add_special_tokens"])
        .refused(
            ALL,
            "texts get the special tokens they were trained with; tokens stand as they are",
        )
        .unless(is_true),
    word(&[
        "prompt_name",
        "instruction",
        "input_type",
        "task",
        "task_type",
        "prefix",
    ])
    .refused(EMBEDDING, NO_PROMPTS)
    .refused(
        &[Rerank],
        "a model's own instruction is used; write yours into `query`",
    )
    .unless(is_empty),
    word(&["chat_template"])
        .refused(ALL, AS_TRAINED)
        .unless(is_empty),
    word(&["embedding_type", "output_dtype", "embed_dtype"])
        .refused(EMBEDDING, FLOATS)
        .harmless(&[Rerank], "there are no vectors")
        .unless(is_float),
    word(&["embedding_types"])
        .refused(EMBEDDING, FLOATS)
        .harmless(&[Rerank], "there are no vectors")
        .unless(|types| {
            types
                .as_array()
                .is_some_and(|types| types.iter().all(is_float))
        }),
    word(&["endianness"])
        .refused(EMBEDDING, "the lowest byte comes first")
        .harmless(&[Rerank], "there are no vectors")
        .unless(|end| end == "little" || end == "native"),
    word(&["late_chunking"])
        .refused(EMBEDDING, "each input is embedded by itself")
        .harmless(&[Rerank], "there are no vectors")
        .unless(is_false),
    word(&["return_multivector"])
        .refused(EMBEDDING, "each input has one vector")
        .harmless(&[Rerank], "there are no vectors")
        .unless(is_false),
    word(&["return_embeddings"])
        .refused(&[Rerank], "use /v1/embeddings")
        .harmless(EMBEDDING, "vectors are the answer")
        .unless(is_false),
    word(&["max_length"])
        .refused(ALL, "use `truncate`")
        .unless(never),
    word(&["max_chunks_per_doc"])
        .read(&[Rerank], &["max_chunks_per_doc"])
        .harmless(EMBEDDING, "nothing is ranked"),
    word(&["overlap_tokens"])
        .refused(&[Rerank], WHOLE)
        .harmless(EMBEDDING, "nothing is ranked")
        .unless(is_zero),
    word(&["truncate"])
        .read(&[Embeddings, Rerank, OllamaEmbed], &["truncate"])
        .refused(&[OllamaEmbeddings], "use /api/embed")
        .unless(is_false),
    word(&["truncation"])
        .read(&[Embeddings, Rerank], &["truncation"])
        .read(&[OllamaEmbed], &["truncate"])
        .refused(&[OllamaEmbeddings], "use /api/embed")
        .unless(is_false),
    word(&["truncate_prompt_tokens"])
        .read(&[Embeddings, Rerank], &["truncate_prompt_tokens"])
        .refused(OLLAMA, "use `truncate` of /api/embed")
        .unless(|tokens| tokens.as_f64() == Some(-1.0)),
    word(&["truncation_side", "truncation_direction"])
        .read(&[Embeddings, Rerank], &["truncation_side"])
        .refused(OLLAMA, "it is the end of a text that is cut off")
        .unless(is_right),
    word(&["adapters", "adapter", "lora"])
        .refused(ALL, "adapters cannot be chosen for a request")
        .unless(is_empty),
    word(&["keep_alive", "ttl"]).read(ALL, &["keep_alive"]),
    harmless(&["options"], "of Ollama's own runner"),
    harmless(&["user", "priority", "metadata"], "who asks, and how soon"),
];

fn is_right(side: &Value) -> bool {
    side.as_str()
        .is_some_and(|side| side.eq_ignore_ascii_case("right"))
}

fn is_float(value: &Value) -> bool {
    value == "float" || value == "float32"
}
