//! `POST /api/embed`.

use macmlx_inference::{EmbedRequest, Embeddings, EncoderInput, KeepAlive, Overflow};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{
    answer::nanoseconds,
    embedding::{self, Embedding},
    generation::Residency,
};
use crate::{
    Body, Context, Dialect, Encoding, Error, Vocabulary, json,
    sentinel::DIMENSIONS_OF_OLLAMA,
    vector::normalize,
    words::{self, Api},
};

/// The body, types checked.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ollama::EmbedRequest)]
pub struct Request {
    #[serde(flatten)]
    embedding: embedding::Fields,
    #[serde(flatten)]
    fields: Fields,
}

/// How `input` is written; it is read by hand, so that a refusal names the text.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ollama::EmbedInput)]
#[serde(untagged)]
#[expect(dead_code, reason = "for the document of the routes")]
enum Texts {
    One(String),
    Several(Vec<String>),
}

#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ollama::EmbedFields)]
struct Fields {
    /// A text or several. None: the model is loaded or unloaded.
    #[schema(value_type = Option<Texts>)]
    input: Option<Value>,
    /// The end of a text that is too long is cut off rather than the text refused. Default: true.
    truncate: Option<bool>,
    /// Features of each vector, which is cut and scaled to length 1 again; 0 and more than there
    /// are: all.
    dimensions: Option<i64>,
}

impl Fields {
    /// None: all.
    fn dimensions(&self) -> Result<Option<u32>, Error> {
        let dimensions = DIMENSIONS_OF_OLLAMA.read("dimensions", self.dimensions)?;
        Ok(dimensions.of())
    }

    fn texts(&self) -> Result<Vec<String>, Error> {
        match &self.input {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::String(text)) if text.is_empty() => Ok(Vec::new()),
            Some(Value::String(text)) => Ok(vec![text.clone()]),
            Some(texts @ Value::Array(_)) => json::fields_at(texts, "input"),
            Some(_) => Err(Error::invalid(
                "input",
                "input must be a string or an array of strings",
            )),
        }
    }
}

impl Request {
    fn read(body: &Value) -> Result<Self, Error> {
        let request = Self {
            embedding: embedding::Fields::read(body)?,
            fields: json::fields(body)?,
        };
        request.fields.texts()?;
        request.fields.dimensions()?;
        Ok(request)
    }
}

impl Encoding for Request {
    type Question = EmbedRequest;
    type Reply = Reply;

    const DIALECT: Dialect = Dialect::Ollama;
    const VOCABULARY: Vocabulary = Vocabulary::shared(Api::OllamaEmbed);
    const SUMMARY: &'static str = "Turn texts into vectors";

    fn parse(body: Body<'_>) -> Result<Self, Error> {
        let words::Body { value, renamed } = words::read(Self::VOCABULARY, body.bytes)?;
        renamed.name(Self::read(&value))
    }

    fn keep_alive(&self) -> Option<KeepAlive> {
        self.embedding.keep_alive()
    }

    fn question(&self) -> Result<EmbedRequest, Error> {
        let texts = self.fields.texts()?;
        Ok(EmbedRequest {
            model: self.embedding.model(),
            inputs: texts.into_iter().map(EncoderInput::Text).collect(),
            token_limit: None,
            overflow: match self.fields.truncate {
                None | Some(true) => Overflow::Truncate,
                Some(false) => Overflow::Refuse,
            },
            // Cut below, since Ollama takes more than there are for all.
            dimensions: None,
        })
    }

    fn reply(self, answer: Embeddings, _context: &Context) -> Reply {
        let dimensions = self.fields.dimensions().ok().flatten();
        let mut embeddings = answer.vectors;
        for vector in &mut embeddings {
            if let Some(count) = dimensions {
                vector.truncate(count as usize);
            }
            normalize(vector);
        }
        Reply {
            model: answer.model,
            embeddings,
            metrics: Some(Metrics {
                total_duration: nanoseconds(answer.timings.total),
                load_duration: nanoseconds(answer.timings.load),
                prompt_eval_count: answer.prompt_tokens,
            }),
        }
    }
}

impl Embedding for Request {
    fn residency(&self) -> Option<Residency> {
        let is_empty = self.fields.texts().is_ok_and(|texts| texts.is_empty());
        is_empty.then(|| self.embedding.residency())
    }

    fn residency_reply(model: String) -> Reply {
        Reply {
            model,
            embeddings: Vec::new(),
            metrics: None,
        }
    }
}

/// The answer.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ollama::EmbedReply)]
pub struct Reply {
    model: String,
    /// Vectors of length 1, in the order of the inputs.
    embeddings: Vec<Vec<f32>>,
    #[serde(flatten)]
    metrics: Option<Metrics>,
}

/// Times in nanoseconds and tokens of all inputs together.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ollama::EmbedMetrics)]
struct Metrics {
    total_duration: u64,
    load_duration: u64,
    prompt_eval_count: u32,
}
