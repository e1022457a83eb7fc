//! `/api/v0/chat/completions` and `/api/v0/completions`: OpenAI's endpoints, whose answers say how
//! fast they came and from what.

use std::{borrow::Cow, marker::PhantomData, time::Duration};

use macmlx_inference::{
    FinishReason, GenerationEvent, InferenceError, KeepAlive, ModelCard, Timings, Usage,
};
use serde::Serialize;
use serde_json::Value;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{AllOfBuilder, Ref, RefOr, Schema},
};

use super::Describing;
use crate::{
    Body, Context, Described, Dialect, Endpoint, Error, Frame, Framing, StreamEncoder, Translation,
    Vocabulary, json,
};

/// An endpoint whose answer is measured.
#[derive(Debug)]
pub struct Measured<E>(PhantomData<E>);

/// An answer and what was measured.
#[derive(Debug)]
pub struct Answer<T>(PhantomData<T>);

/// What stands beside an answer.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = lm_studio::Measurements)]
struct Measurements {
    stats: Stats,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_info: Option<ModelInfo>,
    runtime: Runtime,
}

/// How fast the answer came. Times are in seconds.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = lm_studio::Stats)]
struct Stats {
    tokens_per_second: f64,
    /// Without loading the model.
    time_to_first_token: f64,
    /// From the first token to the last.
    generation_time: f64,
    /// `eosFound`, `stopStringFound`, `maxPredictedTokensReached`, `contextLengthReached`,
    /// `toolCalls` or `userStopped`.
    stop_reason: &'static str,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = lm_studio::ModelInfo)]
struct ModelInfo {
    arch: String,
    quant: Option<String>,
    /// `mlx`.
    format: &'static str,
    context_length: Option<u32>,
}

/// What computed the answer.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = lm_studio::Runtime)]
struct Runtime {
    name: String,
    version: String,
    supported_formats: [&'static str; 1],
}

impl Runtime {
    /// `fingerprint`: program and version, with a dash between them.
    fn new(fingerprint: &str) -> Self {
        let (name, version) = fingerprint.split_once('-').unwrap_or((fingerprint, ""));
        Self {
            name: name.to_owned(),
            version: version.to_owned(),
            supported_formats: ["mlx"],
        }
    }
}

/// Tokens a second; zero where there was no time to measure.
pub(super) fn tokens_per_second(usage: &Usage, timings: &Timings) -> f64 {
    let seconds = timings.decode.as_secs_f64();
    if seconds > 0.0 {
        f64::from(usage.completion_tokens) / seconds
    } else {
        0.0
    }
}

/// From the request to the first token, without loading the model.
pub(super) fn time_to_first_token(timings: &Timings) -> Duration {
    timings.queue + timings.prefill
}

impl<E: Endpoint> Endpoint for Measured<E> {
    type Request = E::Request;
    type Encoder = Encoder<E::Encoder>;

    const DIALECT: Dialect = E::DIALECT;
    const VOCABULARY: Vocabulary = E::VOCABULARY;

    fn parse(body: Body<'_>) -> Result<E::Request, Error> {
        E::parse(body)
    }

    fn keep_alive(request: &E::Request) -> Option<KeepAlive> {
        E::keep_alive(request)
    }

    fn wants_stream(request: &E::Request) -> bool {
        E::wants_stream(request)
    }

    fn translate(
        request: E::Request,
        context: Context,
    ) -> Result<Translation<Self::Encoder>, Error> {
        let fingerprint = context.fingerprint.clone();
        let Translation { requests, encoder } = E::translate(request, context)?;
        let figures = Figures {
            has_limit: requests.first().is_some_and(|request| {
                request
                    .stop
                    .max_tokens
                    .is_some_and(|limit| limit < u32::MAX)
            }),
            runtime: Runtime::new(&fingerprint),
            model: None,
            stop_reason: "eosFound",
            stats: None,
        };
        let encoder = Encoder {
            inner: encoder,
            figures,
            held: Vec::new(),
        };
        Ok(Translation { requests, encoder })
    }
}

impl<E: Described> Described for Measured<E> {
    const SUMMARY: &'static str = E::SUMMARY;

    type Body = E::Body;
    type Answer = Answer<E::Answer>;
    type Event = E::Event;
}

/// OpenAI's encoder and what it does not tell.
#[derive(Debug)]
pub struct Encoder<I> {
    inner: I,
    figures: Figures,
    /// Frames that end a choice: the last one of a stream tells the figures, which come after it.
    held: Vec<Frame>,
}

/// What is known of an answer beside its text.
#[derive(Debug)]
struct Figures {
    /// The client set a limit for the tokens of the answer.
    has_limit: bool,
    runtime: Runtime,
    model: Option<ModelInfo>,
    stop_reason: &'static str,
    /// Once the answer is complete.
    stats: Option<Stats>,
}

impl Figures {
    fn note(&mut self, event: &GenerationEvent) {
        match event {
            GenerationEvent::Finished {
                choice: 0,
                reason,
                stop_sequence,
            } => {
                self.stop_reason = match reason {
                    FinishReason::Stop if stop_sequence.is_some() => "stopStringFound",
                    FinishReason::Stop => "eosFound",
                    FinishReason::Length if self.has_limit => "maxPredictedTokensReached",
                    FinishReason::Length => "contextLengthReached",
                    FinishReason::ToolCalls => "toolCalls",
                    FinishReason::Cancelled => "userStopped",
                };
            }
            GenerationEvent::Completed { usage, timings } => {
                self.stats = Some(Stats {
                    tokens_per_second: tokens_per_second(usage, timings),
                    time_to_first_token: time_to_first_token(timings).as_secs_f64(),
                    generation_time: timings.decode.as_secs_f64(),
                    stop_reason: self.stop_reason,
                });
            }
            _ => {}
        }
    }

    /// Puts what was measured beside an answer.
    fn add_stats(&self, mut answer: Value) -> Value {
        if let (Some(stats), Value::Object(answer)) = (&self.stats, &mut answer) {
            let measurements = json::value(&Measurements {
                stats: stats.clone(),
                model_info: self.model.clone(),
                runtime: self.runtime.clone(),
            });
            if let Value::Object(measurements) = measurements {
                answer.extend(measurements);
            }
        }
        answer
    }
}

impl<I: StreamEncoder> StreamEncoder for Encoder<I> {
    const FRAMING: Framing = I::FRAMING;

    /// The last chunk tells the figures: that of the usage where a client asks for it, else the one
    /// that ends the last choice.
    fn encode(&mut self, prompt: usize, event: GenerationEvent) -> Vec<Frame> {
        self.figures.note(&event);
        let ends_choice = matches!(event, GenerationEvent::Finished { .. });
        let is_complete = matches!(event, GenerationEvent::Completed { .. });
        let frames = self.inner.encode(prompt, event);
        if ends_choice {
            return std::mem::replace(&mut self.held, frames);
        }
        let mut frames: Vec<Frame> = self.held.drain(..).chain(frames).collect();
        if is_complete {
            let mut chunks = frames.iter_mut().rev().filter_map(|frame| match frame {
                Frame::Data { data, .. } => {
                    let chunk: Value = serde_json::from_str(data).ok()?;
                    chunk.is_object().then_some((data, chunk))
                }
                Frame::Comment(_) => None,
            });
            if let Some((data, chunk)) = chunks.next() {
                *data = self.figures.add_stats(chunk).to_string();
            }
        }
        frames
    }

    fn encode_error(&mut self, error: &InferenceError) -> Vec<Frame> {
        let failed = self.inner.encode_error(error);
        self.held.drain(..).chain(failed).collect()
    }

    fn heartbeat(&mut self) -> Vec<Frame> {
        self.inner.heartbeat()
    }

    fn into_body(self) -> Value {
        self.figures.add_stats(self.inner.into_body())
    }
}

impl<I: StreamEncoder> Describing for Encoder<I> {
    fn describe(&mut self, card: &ModelCard) {
        self.figures.model = Some(ModelInfo {
            arch: card.model_type.clone(),
            quant: card.quantization.clone(),
            format: "mlx",
            context_length: card.context_length,
        });
    }
}

impl<T: ToSchema> PartialSchema for Answer<T> {
    fn schema() -> RefOr<Schema> {
        AllOfBuilder::new()
            .item(Ref::from_schema_name(T::name()))
            .item(Ref::from_schema_name(Measurements::name()))
            .into()
    }
}

impl<T: ToSchema> ToSchema for Answer<T> {
    fn name() -> Cow<'static, str> {
        format!("lm_studio.{}", T::name()).into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        T::schemas(schemas);
        Measurements::schemas(schemas);
        schemas.push((T::name().into_owned(), T::schema()));
        schemas.push((Measurements::name().into_owned(), Measurements::schema()));
    }
}
