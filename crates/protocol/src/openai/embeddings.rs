//! `POST /v1/embeddings`.
//!
//! Empty texts are taken, unlike by OpenAI: `LangChain` sends one where a document is blank, indexers
//! send them among others, and every other local server answers them.

use base64::{Engine, engine::general_purpose::STANDARD};
use macmlx_inference::{EmbedRequest, Embeddings, EncoderInput, KeepAlive, Overflow};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{texts, truncation, usage::PromptUsage};
use crate::{
    Body, Context, Dialect, Encoding, Error, Vocabulary, json, keep_alive,
    sentinel::DIMENSIONS,
    vector::normalize,
    words::{self, Api, Renamed},
};

/// Inputs of one request.
const MAX_INPUTS: usize = 2048;
/// The body, types checked.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = openai::EmbeddingRequest)]
pub struct Request {
    #[serde(flatten)]
    fields: Fields,
    #[serde(flatten)]
    truncation: truncation::Fields,
    #[serde(flatten)]
    length: LengthFields,
    #[serde(flatten)]
    keep_alive: keep_alive::Fields,
    #[serde(skip)]
    #[schema(ignore)]
    renamed: Renamed,
}

#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = openai::EmbeddingFields)]
struct Fields {
    model: String,
    /// A text, tokens, or a list of either.
    input: Value,
    encoding_format: Option<EncodingFormat>,
    /// Features of each vector, which is cut and scaled to length 1 again; 0: all.
    dimensions: Option<i64>,
}

/// How a vector is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = openai::EncodingFormat)]
enum EncodingFormat {
    /// An array of numbers.
    #[default]
    Float,
    /// The numbers' own four bytes each, the lowest first.
    Base64,
}

/// What others call vectors of length 1.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = openai::EmbeddingLength)]
struct LengthFields {
    /// Only true (text-embeddings-inference).
    normalize: Option<bool>,
    /// Only true (Jina).
    normalized: Option<bool>,
    /// Only true (vLLM).
    use_activation: Option<bool>,
    /// Only 2, the Euclidean norm (llama.cpp).
    embd_normalize: Option<i64>,
}

impl LengthFields {
    /// Whether vectors of length 1 are asked for.
    fn is_one(&self) -> Result<bool, Error> {
        let wishes = [
            ("normalize", self.normalize),
            ("normalized", self.normalized),
            ("use_activation", self.use_activation),
            ("embd_normalize", self.embd_normalize.map(|norm| norm == 2)),
        ];
        match wishes.iter().find(|(_, wish)| *wish == Some(false)) {
            Some((name, _)) => Err(Error::unsupported(
                *name,
                "vectors have the length that the model's own files give them, or 1",
            )),
            None => Ok(wishes.iter().any(|(_, wish)| *wish == Some(true))),
        }
    }
}

impl Encoding for Request {
    type Question = EmbedRequest;
    type Reply = EmbeddingList;

    const DIALECT: Dialect = Dialect::OpenAi;
    const VOCABULARY: Vocabulary = Vocabulary::shared(Api::Embeddings);
    const SUMMARY: &'static str = "Turn texts into vectors";

    fn parse(body: Body<'_>) -> Result<Self, Error> {
        let words::Body { value, renamed } = words::read(Self::VOCABULARY, body.bytes)?;
        let read = || {
            Ok(Self {
                fields: json::fields(&value)?,
                truncation: json::fields(&value)?,
                length: json::fields(&value)?,
                keep_alive: keep_alive::Fields::read(&value)?,
                renamed: renamed.clone(),
            })
        };
        renamed.name(read())
    }

    fn keep_alive(&self) -> Option<KeepAlive> {
        self.keep_alive.wish()
    }

    fn question(&self) -> Result<EmbedRequest, Error> {
        self.renamed.name(self.read_question())
    }

    fn reply(self, answer: Embeddings, _context: &Context) -> EmbeddingList {
        let format = self.fields.encoding_format.unwrap_or_default();
        let has_length_one = self.length.is_one().unwrap_or_default();
        EmbeddingList {
            object: "list",
            data: answer
                .vectors
                .into_iter()
                .enumerate()
                .map(|(index, mut vector)| {
                    if has_length_one {
                        normalize(&mut vector);
                    }
                    Embedding {
                        object: "embedding",
                        index,
                        embedding: format.write(vector),
                    }
                })
                .collect(),
            model: answer.model,
            usage: PromptUsage::new(answer.prompt_tokens),
        }
    }
}

impl Request {
    /// What is asked, in the words of the route.
    fn read_question(&self) -> Result<EmbedRequest, Error> {
        self.length.is_one()?;
        let dimensions = DIMENSIONS.read("dimensions", self.fields.dimensions)?;
        Ok(EmbedRequest {
            model: self.fields.model.clone(),
            inputs: texts::read(
                &self.fields.input,
                "input",
                MAX_INPUTS,
                EncoderInput::Text,
                EncoderInput::Tokens,
            )?,
            token_limit: self.truncation.token_limit()?,
            overflow: self.truncation.overflow(Overflow::Refuse)?,
            dimensions: dimensions.of(),
        })
    }
}

impl EncodingFormat {
    fn write(self, vector: Vec<f32>) -> Features {
        match self {
            Self::Float => Features::Numbers(vector),
            Self::Base64 => {
                let bytes: Vec<u8> = vector.into_iter().flat_map(f32::to_le_bytes).collect();
                Features::Base64(STANDARD.encode(bytes))
            }
        }
    }
}

/// The answer.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = openai::EmbeddingList)]
pub struct EmbeddingList {
    object: &'static str,
    /// The vectors, in the order of the inputs.
    data: Vec<Embedding>,
    model: String,
    usage: PromptUsage,
}

/// The vector of one input.
#[expect(clippy::struct_field_names, reason = "the names are OpenAI's")]
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = openai::Embedding)]
struct Embedding {
    object: &'static str,
    index: usize,
    embedding: Features,
}

/// A vector as `encoding_format` wants it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = openai::EmbeddingFeatures)]
enum Features {
    Numbers(Vec<f32>),
    Base64(String),
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn question(body: &Value) -> Result<EmbedRequest, Error> {
        Request::parse(Body::json(body.to_string().as_bytes()))?.question()
    }

    fn named(error: Error) -> String {
        match error {
            Error::Invalid { param, .. } => param.unwrap_or_default(),
            Error::Unsupported { param, .. } => param,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_would_change_the_vectors_is_refused_by_name() {
        for (name, value) in [
            ("normalize", json!(false)),
            ("normalized", json!(false)),
            ("use_activation", json!(false)),
            ("embd_normalize", json!(-1)),
            ("add_special_tokens", json!(false)),
            ("prompt_name", json!("query")),
            ("input_type", json!("search_query")),
            ("task", json!("retrieval.query")),
            ("output_dimension", json!(-1)),
            ("embedding_types", json!(["float", "int8"])),
            ("output_dtype", json!("binary")),
            ("endianness", json!("big")),
            ("late_chunking", json!(true)),
            ("encoding_format", json!("hex")),
            ("dimensions", json!(-1)),
            ("dimensions", json!("many")),
            ("truncate_prompt_tokens", json!(0)),
        ] {
            let body = json!({"model": "m", "input": "a", name: value});
            assert_eq!(named(question(&body).unwrap_err()), name, "{value}");
        }
        assert_eq!(
            named(question(&json!({"input": "a"})).unwrap_err()),
            "model"
        );
        assert_eq!(
            named(question(&json!({"model": "m"})).unwrap_err()),
            "input"
        );
    }

    #[test]
    fn what_changes_nothing_is_taken() {
        let body = json!({
            "model": "m", "input": "a", "user": "u", "encoding_format": null, "dimensions": 0,
            "add_special_tokens": true, "embedding_type": "float", "embedding_types": ["float"],
            "endianness": "little", "late_chunking": false, "input_type": null, "task": "",
            "priority": 0, "something_new": 1,
        });
        let request = question(&body).unwrap();
        assert_eq!(request.overflow, Overflow::Refuse);
        assert_eq!(request.dimensions, None);
    }

    fn reply(body: &Value, vector: Vec<f32>) -> Value {
        let request = Request::parse(Body::json(body.to_string().as_bytes())).unwrap();
        let answer = Embeddings {
            vectors: vec![vector],
            ..Embeddings::default()
        };
        let context = Context {
            id: String::new(),
            created_unix: 0,
            fingerprint: String::new(),
        };
        let text = json::text(&request.reply(answer, &context));
        serde_json::from_str::<Value>(&text).unwrap()["data"][0]["embedding"].clone()
    }

    #[test]
    fn numbers_are_as_short_as_they_can_be() {
        let body = json!({"model": "m", "input": "a"});
        assert_eq!(reply(&body, vec![0.1, -2.0]).to_string(), "[0.1,-2.0]");
    }

    #[test]
    fn bytes_are_little_endian() {
        let body = json!({"model": "m", "input": "a", "encoding_format": "base64"});
        assert_eq!(reply(&body, vec![1.0, -2.0]), "AACAPwAAAMA=");
    }

    #[test]
    fn length_one_is_given_to_those_who_ask() {
        for (name, value) in [
            ("normalize", json!(true)),
            ("normalized", json!(true)),
            ("use_activation", json!(true)),
            ("embd_normalize", json!(2)),
        ] {
            let body = json!({"model": "m", "input": "a", name: value});
            assert_eq!(reply(&body, vec![3.0, 4.0]), json!([0.6, 0.8]), "{name}");
        }
        let body = json!({"model": "m", "input": "a"});
        assert_eq!(reply(&body, vec![3.0, 4.0]), json!([3.0, 4.0]));
    }
}
