//! `POST /v1/chat/completions`.

use macmlx_inference::{
    ChatPrompt, FinishReason, GenerateRequest, GenerationEvent, InferenceError, Logprobs, Prompt,
    TokenLogprob, ToolCall, ToolCallPart,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    error, logprobs, messages, reasoning, refused, sampling, sampling::checked, stop, tools, usage,
};
use crate::{Context, Dialect, Endpoint, Error, Frame, Framing, StreamEncoder, Translation, json};

/// The route, as data for [`Endpoint`].
#[derive(Debug)]
pub struct ChatCompletions;

/// The body, types checked.
#[derive(Debug)]
pub struct Request {
    fields: Fields,
    sampling: sampling::Fields,
    stop: stop::Fields,
    reasoning: reasoning::Fields,
    tools: tools::Fields,
}

#[derive(Debug, Deserialize)]
struct Fields {
    model: String,
    messages: Vec<Value>,
    n: Option<i64>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    logprobs: Option<bool>,
    top_logprobs: Option<i64>,
    continue_final_message: Option<bool>,
    add_generation_prompt: Option<bool>,
}

#[derive(Debug, Deserialize)]
pub(super) struct StreamOptions {
    include_usage: Option<bool>,
}

impl StreamOptions {
    pub(super) fn wants_usage(options: Option<&Self>) -> bool {
        options.is_some_and(|options| options.include_usage == Some(true))
    }
}

impl Endpoint for ChatCompletions {
    type Request = Request;
    type Encoder = Encoder;

    const DIALECT: Dialect = Dialect::OpenAi;

    fn parse(body: &[u8]) -> Result<Request, Error> {
        let body = json::object(body)?;
        refused::check_chat(&body)?;
        Ok(Request {
            fields: json::fields(&body)?,
            sampling: json::fields(&body)?,
            stop: json::fields(&body)?,
            reasoning: json::fields(&body)?,
            tools: json::fields(&body)?,
        })
    }

    fn wants_stream(request: &Request) -> bool {
        request.fields.stream == Some(true)
    }

    fn translate(request: Request, context: Context) -> Result<Translation<Encoder>, Error> {
        let wants_stream = Self::wants_stream(&request);
        let fields = request.fields;
        let choices = checked("n", fields.n, 1..=128)?.unwrap_or(1) as u32;
        let wants_logprobs = fields.logprobs == Some(true);
        let top_logprobs = checked("top_logprobs", fields.top_logprobs, 0..=20)?.unwrap_or(0);
        if top_logprobs > 0 && !wants_logprobs {
            return Err(Error::invalid(
                "top_logprobs",
                "top_logprobs needs `logprobs` to be true",
            ));
        }
        let tools = request.tools.into_tools()?;
        let encoder = Encoder {
            context,
            wants_stream,
            wants_usage: StreamOptions::wants_usage(fields.stream_options.as_ref()),
            wants_logprobs,
            model: fields.model.clone(),
            choices: (0..choices).map(|_| Choice::default()).collect(),
            usage: Value::Null,
        };
        let (reasoning, template_kwargs) = request.reasoning.into_options()?;
        let conversation = messages::conversation(&fields.messages)?;
        let continue_final_message = conversation
            .is_continued(fields.continue_final_message, fields.add_generation_prompt)?;
        let request = GenerateRequest {
            model: fields.model,
            prompt: Prompt::Chat(ChatPrompt {
                messages: conversation.messages,
                tools: tools.definitions,
                tool_choice: tools.choice,
                single_tool_call: tools.is_one_call_at_most,
                template_kwargs,
                continue_final_message,
            }),
            sampling: request.sampling.into_params()?,
            stop: request.stop.into_conditions(1, None)?,
            logprobs: wants_logprobs.then_some(Logprobs {
                top: top_logprobs as u8,
                prompt: false,
            }),
            choices,
            reasoning,
        };
        Ok(Translation {
            requests: vec![request],
            encoder,
        })
    }
}

/// Builds `chat.completion.chunk` frames or one `chat.completion`.
#[derive(Debug)]
pub struct Encoder {
    context: Context,
    wants_stream: bool,
    wants_usage: bool,
    wants_logprobs: bool,
    model: String,
    choices: Vec<Choice>,
    usage: Value,
}

/// What is known of one choice. Text is kept only for a reply that is not streamed.
#[derive(Debug, Default)]
struct Choice {
    content: String,
    reasoning: String,
    tool_calls: Vec<ToolCall>,
    logprobs: Vec<Value>,
    calls: u32,
    finish_reason: Option<&'static str>,
}

/// A bit of a choice, on its way into a frame or the reply.
enum Piece {
    Content(String, Vec<Value>),
    Reasoning(String),
    Call(ToolCallPart),
}

impl Encoder {
    fn piece(&mut self, index: u32, piece: Piece) -> Vec<Frame> {
        let Some(choice) = self.choices.get_mut(index as usize) else {
            return Vec::new();
        };
        if matches!(piece, Piece::Call(ToolCallPart::Start { .. })) {
            choice.calls += 1;
        }
        if !self.wants_stream {
            match piece {
                Piece::Content(text, mut entries) => {
                    choice.content.push_str(&text);
                    choice.logprobs.append(&mut entries);
                }
                Piece::Reasoning(text) => choice.reasoning.push_str(&text),
                Piece::Call(ToolCallPart::Start { id, name }) => choice.tool_calls.push(ToolCall {
                    id,
                    name,
                    arguments: String::new(),
                }),
                Piece::Call(ToolCallPart::Arguments(text)) => {
                    if let Some(call) = choice.tool_calls.last_mut() {
                        call.arguments.push_str(&text);
                    }
                }
                Piece::Call(ToolCallPart::End) => {}
            }
            return Vec::new();
        }
        match piece {
            Piece::Content(text, entries) => {
                let logprobs = self
                    .wants_logprobs
                    .then(|| json!({"content": entries, "refusal": null}));
                vec![self.chunk(index, &json!({"content": text}), logprobs.as_ref(), None)]
            }
            Piece::Reasoning(text) => {
                vec![self.chunk(index, &json!({"reasoning_content": text}), None, None)]
            }
            Piece::Call(part) => {
                let call = match part {
                    ToolCallPart::Start { id, name } => json!({
                        "index": choice.calls - 1,
                        "id": id,
                        "type": "function",
                        "function": {"name": name, "arguments": ""},
                    }),
                    ToolCallPart::Arguments(text) => json!({
                        "index": choice.calls.saturating_sub(1),
                        "function": {"arguments": text},
                    }),
                    ToolCallPart::End => return Vec::new(),
                };
                vec![self.chunk(index, &json!({"tool_calls": [call]}), None, None)]
            }
        }
    }

    fn text(&mut self, index: u32, text: String, tokens: &[TokenLogprob]) -> Vec<Frame> {
        let entries = if self.wants_logprobs {
            logprobs::chat_entries(tokens)
        } else {
            Vec::new()
        };
        if text.is_empty() && entries.is_empty() {
            return Vec::new();
        }
        self.piece(index, Piece::Content(text, entries))
    }

    fn finish(&mut self, index: u32, reason: FinishReason) -> Vec<Frame> {
        let Some(choice) = self.choices.get_mut(index as usize) else {
            return Vec::new();
        };
        let reason = match reason {
            FinishReason::Stop | FinishReason::Cancelled if choice.calls > 0 => "tool_calls",
            FinishReason::Stop | FinishReason::Cancelled => "stop",
            FinishReason::Length => "length",
            FinishReason::ToolCalls => "tool_calls",
        };
        choice.finish_reason = Some(reason);
        if self.wants_stream {
            vec![self.chunk(index, &json!({}), None, Some(reason))]
        } else {
            Vec::new()
        }
    }

    fn chunk(
        &self,
        index: u32,
        delta: &Value,
        logprobs: Option<&Value>,
        finish_reason: Option<&str>,
    ) -> Frame {
        self.envelope(&json!([{
            "index": index,
            "delta": delta,
            "logprobs": logprobs,
            "finish_reason": finish_reason,
        }]))
    }

    fn envelope(&self, choices: &Value) -> Frame {
        let mut chunk = json!({
            "id": self.id(),
            "object": "chat.completion.chunk",
            "created": self.context.created_unix,
            "model": self.model,
            "system_fingerprint": self.context.fingerprint,
            "choices": choices,
        });
        if self.wants_usage {
            chunk["usage"] = self.usage.clone();
        }
        Frame::data(chunk.to_string())
    }

    fn id(&self) -> String {
        format!("chatcmpl-{}", self.context.id)
    }
}

impl StreamEncoder for Encoder {
    const FRAMING: Framing = Framing::Sse;

    fn encode(&mut self, _prompt: usize, event: GenerationEvent) -> Vec<Frame> {
        match event {
            GenerationEvent::Started { model, .. } => {
                self.model = model;
                if !self.wants_stream {
                    return Vec::new();
                }
                let delta = json!({"role": "assistant", "content": ""});
                (0..self.choices.len() as u32)
                    .map(|index| self.chunk(index, &delta, None, None))
                    .collect()
            }
            GenerationEvent::Prefill { .. } | GenerationEvent::PromptLogprobs { .. } => Vec::new(),
            GenerationEvent::Text {
                choice,
                text,
                tokens,
            } => self.text(choice, text, &tokens),
            // `logprobs.content` is about the content: tokens of thinking are left out.
            GenerationEvent::Reasoning { choice, text, .. } => {
                if text.is_empty() {
                    return Vec::new();
                }
                self.piece(choice, Piece::Reasoning(text))
            }
            GenerationEvent::ToolCall { choice, part, .. } => self.piece(choice, Piece::Call(part)),
            GenerationEvent::Finished { choice, reason, .. } => self.finish(choice, reason),
            GenerationEvent::Completed { usage, .. } => {
                self.usage = usage::usage(&usage);
                let mut frames = Vec::new();
                if self.wants_stream {
                    if self.wants_usage {
                        frames.push(self.envelope(&json!([])));
                    }
                    frames.push(Frame::data("[DONE]"));
                }
                frames
            }
        }
    }

    fn encode_error(&mut self, error: &InferenceError) -> Vec<Frame> {
        vec![Frame::data(error::mid_stream(error).to_string())]
    }

    fn into_body(self) -> Value {
        let id = self.id();
        let wants_logprobs = self.wants_logprobs;
        let choices: Vec<Value> = self
            .choices
            .into_iter()
            .enumerate()
            .map(|(index, choice)| choice.into_value(index, wants_logprobs))
            .collect();
        json!({
            "id": id,
            "object": "chat.completion",
            "created": self.context.created_unix,
            "model": self.model,
            "system_fingerprint": self.context.fingerprint,
            "choices": choices,
            "usage": self.usage,
        })
    }
}

impl Choice {
    fn into_value(self, index: usize, wants_logprobs: bool) -> Value {
        let content = if self.content.is_empty() && !self.tool_calls.is_empty() {
            Value::Null
        } else {
            self.content.into()
        };
        let mut message = json!({"role": "assistant", "content": content, "refusal": null});
        if !self.reasoning.is_empty() {
            message["reasoning_content"] = self.reasoning.into();
        }
        if !self.tool_calls.is_empty() {
            message["tool_calls"] = self.tool_calls.iter().map(tool_call).collect();
        }
        let logprobs = wants_logprobs.then(|| json!({"content": self.logprobs, "refusal": null}));
        json!({
            "index": index,
            "message": message,
            "logprobs": logprobs,
            "finish_reason": self.finish_reason.unwrap_or("stop"),
        })
    }
}

fn tool_call(call: &ToolCall) -> Value {
    json!({
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    })
}
