//! `POST /infill`, as llama.cpp's server has it: what stands around a gap comes in fields of its
//! own, other files with it, and the reply is that of its `/completion`.

mod encoder;
mod indentation;
mod reply;

use macmlx_inference::{GenerateRequest, InfillFile, InfillPrompt, KeepAlive, Logprobs, Prompt};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{grammar, sampling::Sampling, sampling::check_range, stop};
use crate::{
    Body, Context, Described, Dialect, Endpoint, Error, Translation, Vocabulary, json, keep_alive,
    words::{self, Api, Renamed},
};

pub use self::{
    encoder::Encoder,
    reply::{Completion, Piece},
};
use self::{encoder::Wanted, indentation::Indentation};

/// The route, as data for [`Endpoint`].
#[derive(Debug)]
pub struct Infill;

/// The body, types checked.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = openai::InfillRequest)]
pub struct Request {
    #[serde(flatten)]
    fields: Fields,
    #[serde(flatten)]
    sampling: Sampling,
    #[serde(flatten)]
    stop: stop::Fields,
    #[serde(flatten)]
    length: stop::Length,
    #[serde(flatten)]
    grammar: grammar::Fields,
    #[serde(flatten)]
    keep_alive: keep_alive::Fields,
    #[serde(skip)]
    #[schema(ignore)]
    renamed: Renamed,
}

#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = openai::Infill)]
struct Fields {
    /// None: the model that answers where none is named.
    model: Option<String>,
    input_prefix: String,
    input_suffix: String,
    /// Other files, or pieces of them.
    input_extra: Option<Vec<File>>,
    /// What the gap begins with.
    prompt: Option<String>,
    stream: Option<bool>,
    /// Alternatives for each token, 0 to 20; 0 reports none.
    n_probs: Option<i64>,
    /// Spaces and tabs that each line must begin with; one with fewer ends the answer.
    n_indent: Option<i64>,
    /// Fields of the reply to be told, with `/` between the names of nested ones; empty: all.
    #[serde(rename = "response_fields")]
    wanted_parts: Option<Vec<String>>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = openai::InfillFile)]
struct File {
    filename: Option<String>,
    text: String,
}

impl Described for Infill {
    const SUMMARY: &'static str = "Fill a gap in a text";

    type Body = Request;
    type Answer = Completion;
    type Event = Piece;
}

impl Endpoint for Infill {
    type Request = Request;
    type Encoder = Encoder;

    const DIALECT: Dialect = Dialect::OpenAi;
    const VOCABULARY: Vocabulary = Vocabulary::shared(Api::Infill);

    fn parse(body: Body<'_>) -> Result<Request, Error> {
        let words::Body { value, renamed } = words::read(Self::VOCABULARY, body.bytes)?;
        renamed.clone().name(Request::read(&value, renamed))
    }

    fn keep_alive(request: &Request) -> Option<KeepAlive> {
        request.keep_alive.wish()
    }

    fn wants_stream(request: &Request) -> bool {
        request.fields.stream == Some(true)
    }

    fn translate(request: Request, _: Context) -> Result<Translation<Encoder>, Error> {
        let renamed = request.renamed.clone();
        renamed.translation(request.translate())
    }
}

impl Request {
    fn read(body: &Value, renamed: Renamed) -> Result<Self, Error> {
        Ok(Self {
            fields: json::fields(body)?,
            sampling: Sampling::read(body)?,
            stop: json::fields(body)?,
            length: json::fields(body)?,
            grammar: grammar::Fields::read(body)?,
            keep_alive: keep_alive::Fields::read(body)?,
            renamed,
        })
    }

    /// Whether the client has said which model it means.
    pub fn names_model(&self) -> bool {
        self.fields.model.is_some()
    }

    /// Says which model is meant.
    pub fn name_model(&mut self, id: &str) {
        self.fields.model = Some(id.to_owned());
    }

    fn translate(self) -> Result<Translation<Encoder>, Error> {
        let wants_stream = Infill::wants_stream(&self);
        let fields = self.fields;
        let top = check_range("n_probs", fields.n_probs, 0..=20)?.filter(|top| *top > 0);
        let indentation = check_range("n_indent", fields.n_indent, 0..)?.unwrap_or(0) as usize;
        let stop = self.stop.into_conditions(self.length.limit(0)?)?;
        let gap = InfillPrompt {
            prefix: fields.input_prefix,
            suffix: fields.input_suffix,
            start: fields.prompt.unwrap_or_default(),
            files: fields
                .input_extra
                .unwrap_or_default()
                .into_iter()
                .map(InfillFile::from)
                .collect(),
            param: "input_suffix".into(),
        };
        let model = fields.model.unwrap_or_default();
        let encoder = Encoder::new(
            model.clone(),
            Wanted {
                stream: wants_stream,
                probabilities: top.is_some(),
                has_limit: stop.max_tokens.is_some(),
                fields: fields.wanted_parts.unwrap_or_default(),
            },
            Indentation::new(indentation),
        );
        let request = GenerateRequest {
            sampling: self.sampling.into_params()?,
            stop,
            logprobs: top.map(|top| Logprobs {
                top: top as u8,
                prompt: false,
            }),
            grammar: self.grammar.into_grammar()?,
            ..GenerateRequest::new(model, Prompt::Infill(gap))
        };
        Ok(Translation {
            requests: vec![request],
            encoder,
        })
    }
}

impl From<File> for InfillFile {
    fn from(file: File) -> Self {
        Self {
            name: file.filename.unwrap_or_default(),
            text: file.text,
        }
    }
}
