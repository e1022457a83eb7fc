//! `POST /api/v1/chat`: one turn of a conversation that the server keeps.

mod encoder;
mod reply;

use std::sync::LazyLock;

use macmlx_inference::{
    ChatPrompt, ContentPart, GenerateRequest, Image, ImageSource, KeepAlive, Message, Prompt,
    ReasoningOptions, Role, SamplingParameter, Spelling, StopConditions,
};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::residency::stay;
use crate::{
    Body, Context, Described, Dialect, Endpoint, Error, Translation, Vocabulary, json,
    sampling::{Numbers, Spelled},
    sentinel::ANSWER_TOKENS,
    words,
};

pub use self::{
    encoder::Encoder,
    reply::{ChatEvent, ChatResult},
};

/// The route, as data for [`Endpoint`].
#[derive(Debug)]
pub struct Chat;

/// The body, types checked. A field that is not listed here is refused.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = lm_studio::ChatRequest)]
pub struct Request {
    #[serde(flatten)]
    fields: Fields,
    #[serde(flatten)]
    sampling: ChatNumbers,
}

#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = lm_studio::ChatFields)]
struct Fields {
    model: String,
    /// A text, or a list of `{"type": "text" or "message", "content"}` and of
    /// `{"type": "image", "data_url"}`.
    input: Value,
    system_prompt: Option<String>,
    /// Only empty.
    integrations: Option<Vec<Value>>,
    stream: Option<bool>,
    /// -1 is no limit.
    max_output_tokens: Option<i64>,
    /// `off`, `on`, `low`, `medium` or `high`.
    reasoning: Option<String>,
    /// Tokens that prompt and answer may have together.
    context_length: Option<u32>,
    /// Default: true.
    store: Option<bool>,
    previous_response_id: Option<String>,
    /// Seconds that the model stays in memory after its last use.
    ttl: Option<Value>,
    /// The same in Ollama's word; `ttl` has the say.
    keep_alive: Option<Value>,
}

/// The five sampling parameters that LM Studio's API documents for this route.
#[derive(Debug)]
enum Names {}

impl Spelled for Names {
    const PREFIX: &str = "";
    const SCHEMA: &str = "lm_studio.SamplingNumbers";

    fn spell(row: &SamplingParameter) -> Option<Spelling> {
        let spelling = row.openai();
        match row.name {
            "temperature" | "top_p" | "top_k" | "min_p" => Some(spelling),
            "repetition_penalty" => Some(Spelling {
                name: "repeat_penalty",
                ..spelling
            }),
            _ => None,
        }
    }

    fn names() -> &'static [&'static str] {
        static NAMES: LazyLock<Vec<&str>> = LazyLock::new(Names::all);
        &NAMES
    }
}

// The schema's derive looks into generic types.
type ChatNumbers = Numbers<Names>;

const FIELDS: &[&str] = &[
    "model",
    "input",
    "system_prompt",
    "integrations",
    "stream",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "repeat_penalty",
    "max_output_tokens",
    "reasoning",
    "context_length",
    "store",
    "previous_response_id",
    "ttl",
    "keep_alive",
];

/// A part of the input.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Item {
    /// The pages of LM Studio call it both.
    #[serde(alias = "message")]
    Text {
        content: String,
    },
    Image {
        data_url: String,
    },
}

impl Request {
    pub fn wants_store(&self) -> bool {
        self.fields.store != Some(false)
    }

    /// The response that this one goes on from.
    pub fn previous(&self) -> Option<&str> {
        self.fields.previous_response_id.as_deref()
    }

    /// What a response that is not kept is answered with.
    pub fn not_kept(&self) -> Error {
        Error::NotKept {
            kind: "response",
            id: self.fields.previous_response_id.clone().unwrap_or_default(),
            param: Some("previous_response_id".into()),
        }
    }

    /// How long the model that answers is to stay in memory.
    fn stay(&self) -> Result<Option<KeepAlive>, Error> {
        stay(self.fields.ttl.as_ref(), self.fields.keep_alive.as_ref())
    }

    /// Tokens that prompt and answer may have together, where the client sets a limit.
    pub fn context_length(&self) -> Option<u32> {
        self.fields.context_length
    }

    /// What the backend is to do after `past`, which are the turns of the conversation so far.
    pub fn translate(
        self,
        past: Vec<Message>,
        context: &Context,
    ) -> Result<Translation<Encoder>, Error> {
        let said = self.read_input()?;
        let encoder = Encoder::new(
            context,
            self.fields.stream == Some(true),
            self.wants_store(),
            said.clone(),
        );
        // A later system prompt takes the place of an earlier one.
        let all = past.into_iter().chain(said);
        let (mut systems, turns): (Vec<_>, Vec<_>) =
            all.partition(|message| message.role == Role::System);
        let messages = systems.pop().into_iter().chain(turns).collect();
        let prompt = Prompt::Chat(ChatPrompt {
            messages,
            ..ChatPrompt::default()
        });
        let request = GenerateRequest {
            sampling: self.sampling.into_params()?,
            stop: StopConditions {
                max_tokens: ANSWER_TOKENS
                    .read("max_output_tokens", self.fields.max_output_tokens)?
                    .limit(),
                ..StopConditions::default()
            },
            reasoning: reasoning(self.fields.reasoning.as_deref())?,
            ..GenerateRequest::new(self.fields.model, prompt)
        };
        Ok(Translation {
            requests: vec![request],
            encoder,
        })
    }

    /// The turns that this request adds.
    fn read_input(&self) -> Result<Vec<Message>, Error> {
        let items = match &self.fields.input {
            Value::String(text) => vec![Item::Text {
                content: text.clone(),
            }],
            Value::Array(items) => items
                .iter()
                .enumerate()
                .map(|(index, item)| json::fields_at(item, &format!("input[{index}]")))
                .collect::<Result<_, _>>()?,
            _ => {
                return Err(Error::invalid(
                    "input",
                    "input is a text or a list of texts and images",
                ));
            }
        };
        if items.is_empty() {
            return Err(Error::invalid("input", "input is empty"));
        }
        let system = self
            .fields
            .system_prompt
            .as_deref()
            .filter(|text| !text.is_empty());
        let mut said: Vec<Message> = system
            .map(|text| Message::text(Role::System, text))
            .into_iter()
            .collect();
        let parts = items
            .into_iter()
            .enumerate()
            .map(|(index, item)| match item {
                Item::Text { content } => Ok(ContentPart::Text(content)),
                Item::Image { data_url } => image(&data_url, index),
            });
        said.push(Message {
            content: parts.collect::<Result<_, _>>()?,
            ..Message::text(Role::User, "")
        });
        Ok(said)
    }
}

fn image(data_url: &str, index: usize) -> Result<ContentPart, Error> {
    let param = format!("input[{index}].data_url");
    let inline = data_url
        .strip_prefix("data:")
        .and_then(|rest| rest.split_once(";base64,"));
    match inline {
        Some((media_type, data)) => Ok(ContentPart::Image(Image {
            source: ImageSource::Inline {
                media_type: media_type.to_owned(),
                data: data.to_owned(),
            },
            param,
        })),
        None => Err(Error::invalid(
            param,
            "an image is a data URL, `data:image/png;base64,…`",
        )),
    }
}

/// A model that cannot do what is asked for refuses it.
fn reasoning(wanted: Option<&str>) -> Result<ReasoningOptions, Error> {
    let (enabled, effort) = match wanted {
        None => return Ok(ReasoningOptions::default()),
        Some("off") => (false, None),
        Some("on") => (true, None),
        Some(effort @ ("low" | "medium" | "high")) => (true, Some(effort.to_owned())),
        Some(other) => {
            return Err(Error::invalid(
                "reasoning",
                format!("reasoning is off, on, low, medium or high, not `{other}`"),
            ));
        }
    };
    Ok(ReasoningOptions {
        enabled: Some(enabled),
        effort,
        ..ReasoningOptions::default()
    })
}

impl Described for Chat {
    const SUMMARY: &'static str = "Answer the next turn of a conversation that is kept here";

    type Body = Request;
    type Answer = ChatResult;
    type Event = ChatEvent;
}

impl Endpoint for Chat {
    type Request = Request;
    type Encoder = Encoder;

    const DIALECT: Dialect = Dialect::LmStudio;
    const VOCABULARY: Vocabulary = Vocabulary::own(FIELDS);

    fn parse(body: Body<'_>) -> Result<Request, Error> {
        let body = words::read(Self::VOCABULARY, body.bytes)?.value;
        let request = Request {
            fields: json::fields(&body)?,
            sampling: json::fields(&body)?,
        };
        if request
            .fields
            .integrations
            .as_ref()
            .is_some_and(|integrations| !integrations.is_empty())
        {
            return Err(Error::unsupported(
                "integrations",
                "no tools are run for clients; send `tools` to `/v1/chat/completions` and run them \
                 yourself",
            ));
        }
        request.stay()?;
        if request
            .previous()
            .is_some_and(|id| !id.starts_with("resp_"))
        {
            return Err(Error::invalid(
                "previous_response_id",
                "previous_response_id begins with `resp_`",
            ));
        }
        Ok(request)
    }

    fn keep_alive(request: &Request) -> Option<KeepAlive> {
        request.stay().ok().flatten()
    }

    fn wants_stream(request: &Request) -> bool {
        request.fields.stream == Some(true)
    }

    /// Of a request that goes on from nothing.
    fn translate(request: Request, context: Context) -> Result<Translation<Encoder>, Error> {
        request.translate(Vec::new(), &context)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(body: &Value) -> String {
        let parsed = Chat::parse(Body::json(body.to_string().as_bytes()));
        let context = Context {
            id: "1".into(),
            created_unix: 0,
            fingerprint: String::new(),
        };
        parsed
            .and_then(|request| Chat::translate(request, context))
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn what_cannot_be_honoured_is_refused_by_name() {
        for (field, value) in [
            ("integrations", json!(["mcp/playwright"])),
            ("messages", json!([])),
            ("max_tokens", json!(5)),
            ("temperature", json!(-1)),
            ("top_p", json!(2)),
            ("repeat_penalty", json!(0)),
            ("reasoning", json!("lots")),
            ("max_output_tokens", json!(0)),
            ("previous_response_id", json!("chat_1")),
            ("input", json!([])),
            ("input", json!(5)),
            ("ttl", json!("soon")),
            ("keep_alive", json!([])),
        ] {
            let mut body = json!({"model": "small", "input": "Hi"});
            body[field] = value;
            assert!(refused(&body).contains(field), "{body}: {}", refused(&body));
        }
        let image = json!({"model": "small", "input": [{"type": "image", "data_url": "http://a"}]});
        assert!(refused(&image).contains("data URL"));
        let strange = json!({"model": "small", "input": [{"type": "video"}]});
        assert!(
            refused(&strange).contains("input[0]"),
            "{}",
            refused(&strange)
        );
    }
}
