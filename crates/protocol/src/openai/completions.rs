//! `POST /v1/completions`, in the shape of `text_completion`.

mod encoder;
mod reply;

use macmlx_inference::{GenerateRequest, InfillPrompt, KeepAlive, Logprobs, Prompt};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use self::encoder::{Echo, Wanted};
use super::{
    chat_completions::StreamOptions, grammar, prompt_limit, sampling, sampling::check_range, stop,
    texts,
};
use crate::{
    Body, Context, Described, Dialect, Endpoint, Error, Translation, Vocabulary, json, keep_alive,
    words::{self, Api, Renamed},
};

pub use self::{encoder::Encoder, reply::TextCompletion};

/// OpenAI's default for this endpoint.
const DEFAULT_MAX_TOKENS: u32 = 16;
const MAX_PROMPTS: usize = 1024;

/// The route, as data for [`Endpoint`].
#[derive(Debug)]
pub struct Completions;

/// The body, types checked.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = openai::CompletionRequest)]
pub struct Request {
    #[serde(flatten)]
    fields: Fields,
    #[serde(flatten)]
    sampling: sampling::Sampling,
    #[serde(flatten)]
    prompt_limit: prompt_limit::Fields,
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
#[schema(as = openai::Completion)]
struct Fields {
    model: String,
    /// Text, tokens, or a list of either.
    prompt: Value,
    /// Text after the one to be completed: the model fills in what is between them.
    suffix: Option<String>,
    n: Option<i64>,
    best_of: Option<i64>,
    echo: Option<bool>,
    /// Alternatives for each token; 0 reports the sampled token alone.
    logprobs: Option<i64>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
}

impl Described for Completions {
    const SUMMARY: &'static str = "Continue a text";

    type Body = Request;
    type Answer = TextCompletion;
    type Event = TextCompletion;
}

impl Endpoint for Completions {
    type Request = Request;
    type Encoder = Encoder;

    const DIALECT: Dialect = Dialect::OpenAi;
    const VOCABULARY: Vocabulary = Vocabulary::shared(Api::Completions);

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

    fn translate(request: Request, context: Context) -> Result<Translation<Encoder>, Error> {
        request
            .renamed
            .clone()
            .translation(request.translate(context))
    }
}

impl Request {
    fn read(body: &Value, renamed: Renamed) -> Result<Self, Error> {
        Ok(Self {
            fields: json::fields(body)?,
            sampling: sampling::Sampling::read(body)?,
            prompt_limit: json::fields(body)?,
            stop: json::fields(body)?,
            length: json::fields(body)?,
            grammar: grammar::Fields::read(body)?,
            keep_alive: keep_alive::Fields::read(body)?,
            renamed,
        })
    }

    fn translate(self, context: Context) -> Result<Translation<Encoder>, Error> {
        let request = self;
        let wants_stream = Completions::wants_stream(&request);
        let fields = request.fields;
        let prompts = texts::read(
            &fields.prompt,
            "prompt",
            MAX_PROMPTS,
            Prompt::Text,
            Prompt::Tokens,
        )?;
        let prompts = match fields.suffix.filter(|suffix| !suffix.is_empty()) {
            Some(suffix) => before(&suffix, prompts)?,
            None => prompts,
        };
        let choices = check_range("n", fields.n, 1..=128)?.unwrap_or(1) as u32;
        if fields
            .best_of
            .is_some_and(|best_of| best_of != i64::from(choices))
        {
            return Err(Error::unsupported(
                "best_of",
                "choices are not ranked; use `n`",
            ));
        }
        let top = check_range("logprobs", fields.logprobs, 0..=5)?.map(|top| top as u8);
        let echo = fields.echo == Some(true);
        let fills_in = matches!(prompts.first(), Some(Prompt::Infill(_)));
        if fills_in && echo && top.is_some() {
            return Err(Error::unsupported(
                "echo",
                "a model that fills in reads the prompt in another order, so its tokens have no \
                 log probabilities of their own; leave out `logprobs`",
            ));
        }
        let sampling = request.sampling.into_params()?;
        let grammar = request.grammar.into_grammar()?;
        let prompt_limit = match request.prompt_limit.limit()? {
            Some(u32::MAX) if fills_in => None,
            Some(_) if fills_in => {
                return Err(Error::unsupported(
                    "truncate_prompt_tokens",
                    "what stands around a gap is read as a whole",
                ));
            }
            limit => limit,
        };
        // An echo alone is a way to score a prompt, and llama.cpp has a count for reading it alone.
        let reads_alone = request
            .renamed
            .is_from("max_completion_tokens", "n_predict");
        let least = i64::from(!echo && !reads_alone);
        let max_tokens = request.length.limit(least)?.unwrap_or(DEFAULT_MAX_TOKENS);
        let stop = request.stop.into_conditions(Some(max_tokens))?;
        let encoder = Encoder::new(
            context,
            fields.model.clone(),
            Wanted {
                stream: wants_stream,
                usage: StreamOptions::wants_usage(fields.stream_options.as_ref()),
                top,
                choices,
            },
            prompts
                .iter()
                .map(|prompt| Echo::of(prompt, echo, top))
                .collect(),
        );
        let requests = prompts
            .into_iter()
            .zip(encoder.echoes())
            .map(|(prompt, prompt_echo)| GenerateRequest {
                model: fields.model.clone(),
                logprobs: logprobs(top, prompt_echo),
                prompt,
                prompt_limit,
                sampling: sampling.clone(),
                stop: stop.clone(),
                choices,
                grammar: grammar.clone(),
                ..GenerateRequest::new(String::new(), Prompt::Text(String::new()))
            })
            .collect();
        Ok(Translation { requests, encoder })
    }
}

/// The prompts, each with what comes after its gap.
fn before(suffix: &str, prompts: Vec<Prompt>) -> Result<Vec<Prompt>, Error> {
    prompts
        .into_iter()
        .map(|prompt| match prompt {
            Prompt::Text(prefix) => Ok(Prompt::Infill(InfillPrompt {
                prefix,
                suffix: suffix.to_owned(),
                param: "suffix".into(),
                ..InfillPrompt::default()
            })),
            Prompt::Tokens(_) | Prompt::Chat(_) | Prompt::Infill(_) => Err(Error::unsupported(
                "suffix",
                "a prompt of tokens is completed as it stands; send it as text",
            )),
        })
        .collect()
}

fn logprobs(top: Option<u8>, echo: &Echo) -> Option<Logprobs> {
    let prompt = matches!(echo, Echo::OfTokens);
    (top.is_some() || prompt).then(|| Logprobs {
        top: top.unwrap_or(0),
        prompt,
    })
}
