//! A model's chat template: a conversation to prompt text, as `transformers` renders it.

mod environment;
mod json;
mod python;
mod shape;
mod source;

use std::{collections::HashSet, fmt, path::Path};

use macmlx_inference::{
    ChatPrompt, InferenceError, Message, ReasoningOptions, Role, ToolChoice, ToolDefinition,
};
use minijinja::{
    Environment, context,
    value::{Serde, Value},
};
use serde_json::Map;

use crate::tokenizer::Facts;
use shape::Shape;

/// Variables of the prompt that a client's `template_kwargs` may not replace.
const RESERVED: [&str; 2] = ["messages", "tools"];

/// Names under which templates take the switch for reasoning.
const THINKING_SWITCHES: [&str; 2] = ["enable_thinking", "thinking"];

/// Marks where the last message ends, to cut the prompt there.
const END_OF_MESSAGE: &str = "\u{1}END-OF-MESSAGE\u{1}";

/// The compiled chat templates of a model: `default` and perhaps one for conversations with tools.
pub struct ChatTemplate {
    environment: Environment<'static>,
    default: Variant,
    tool_use: Option<Variant>,
    /// `bos_token` and the like, where the tokenizer has them.
    special_tokens: Vec<(&'static str, String)>,
}

impl fmt::Debug for ChatTemplate {
    /// Without the environment's functions and filters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatTemplate")
            .field("default", &self.default)
            .field("tool_use", &self.tool_use)
            .finish_non_exhaustive()
    }
}

/// One template and what is known of it.
#[derive(Debug)]
struct Variant {
    name: &'static str,
    source: String,
    /// Names it may look up.
    variables: HashSet<String>,
    shape: Shape,
}

impl Variant {
    fn reads(&self, variable: &str) -> bool {
        self.variables.contains(variable)
    }
}

impl ChatTemplate {
    /// Looks for `chat_template.jinja`, then `chat_template.json`, then the `chat_template` of
    /// `tokenizer_config.json`, and compiles it. `None`: the model has no template.
    pub(crate) fn load(
        model_dir: &Path,
        model: &str,
        facts: &Facts,
    ) -> Result<Option<Self>, InferenceError> {
        let Some(sources) = source::find(model_dir, model, &facts.tokenizer_config)? else {
            return Ok(None);
        };
        Self::compile(sources.default, sources.tool_use, facts.named_tokens())
            .map(Some)
            .map_err(|error| InferenceError::ModelLoad {
                model: model.into(),
                reason: format!("its chat template cannot be compiled: {error}"),
            })
    }

    fn compile(
        default: String,
        tool_use: Option<String>,
        special_tokens: Vec<(&'static str, String)>,
    ) -> Result<Self, minijinja::Error> {
        let mut environment = environment::new()?;
        let mut variant = |name, source: String| {
            environment.add_template_owned(name, source::without_generation_tags(&source))?;
            let variables = environment.get_template(name)?.undeclared_variables(false);
            Ok::<_, minijinja::Error>(Variant {
                name,
                source,
                variables,
                shape: Shape::default(),
            })
        };
        let default = variant("chat_template", default)?;
        let tool_use = tool_use
            .map(|source| variant("tool_use", source))
            .transpose()?;
        let mut template = Self {
            environment,
            default,
            tool_use,
            special_tokens,
        };
        let shape =
            Shape::probe(|messages, tools| template.probe(&template.default, messages, tools));
        template.default.shape = shape;
        if let Some(variant) = &template.tool_use {
            let shape = Shape::probe(|messages, tools| template.probe(variant, messages, tools));
            if let Some(variant) = &mut template.tool_use {
                variant.shape = shape;
            }
        }
        Ok(template)
    }

    /// Text of the template used for a conversation, to recognise output formats by.
    pub fn source(&self, with_tools: bool) -> &str {
        &self.variant(with_tools).source
    }

    /// Whether tools offered to the model appear in the prompt.
    pub fn reads_tools(&self) -> bool {
        self.variant(true).reads("tools")
    }

    /// Whether reasoning can be switched on and off.
    pub fn has_reasoning_switch(&self) -> bool {
        THINKING_SWITCHES
            .iter()
            .any(|switch| self.default.reads(switch))
    }

    /// Renders a conversation up to where the model goes on. Checks neither tools nor reasoning
    /// options against what the template can do.
    pub fn render(
        &self,
        prompt: &ChatPrompt,
        reasoning: &ReasoningOptions,
    ) -> Result<String, InferenceError> {
        if let Some(key) = RESERVED
            .iter()
            .find(|key| prompt.template_kwargs.contains_key(**key))
        {
            return Err(InferenceError::InvalidRequest {
                param: Some("chat_template_kwargs".into()),
                message: format!("`chat_template_kwargs` cannot replace `{key}`"),
            });
        }
        let tools: &[ToolDefinition] = if prompt.tool_choice == ToolChoice::None {
            &[]
        } else {
            &prompt.tools
        };
        let variant = self.variant(!tools.is_empty());
        let mut messages = variant.shape.messages(&prompt.messages);
        if prompt.continue_final_message {
            mark_end(&prompt.messages, &mut messages)?;
        }
        let mut variables = Map::new();
        for switch in THINKING_SWITCHES {
            if let (Some(enabled), true) = (reasoning.enabled, variant.reads(switch)) {
                variables.insert(switch.into(), enabled.into());
            }
        }
        if let Some(effort) = &reasoning.effort {
            variables.insert("reasoning_effort".into(), effort.as_str().into());
        }
        variables.extend(prompt.template_kwargs.clone());
        let text = self
            .render_variant(
                variant,
                &messages,
                &shape::tools(tools),
                !prompt.continue_final_message,
                &variables,
            )
            .map_err(|error| InferenceError::Template {
                message: environment::words(&error),
            })?;
        if prompt.continue_final_message {
            return cut_at_mark(&text);
        }
        Ok(text)
    }

    fn variant(&self, with_tools: bool) -> &Variant {
        match &self.tool_use {
            Some(variant) if with_tools => variant,
            _ => &self.default,
        }
    }

    fn probe(
        &self,
        variant: &Variant,
        messages: &[serde_json::Value],
        tools: &[serde_json::Value],
    ) -> Option<String> {
        self.render_variant(variant, messages, tools, true, &Map::new())
            .ok()
    }

    fn render_variant(
        &self,
        variant: &Variant,
        messages: &[serde_json::Value],
        tools: &[serde_json::Value],
        add_generation_prompt: bool,
        variables: &Map<String, serde_json::Value>,
    ) -> Result<String, minijinja::Error> {
        let special_tokens = Value::from_pairs(
            self.special_tokens
                .iter()
                .map(|(name, text)| (*name, text.as_str())),
        );
        // `transformers` passes `none` for tools and documents that are not given.
        let tools = (!tools.is_empty()).then(|| Value::from(Serde(tools)));
        let standard = context! {
            messages => Value::from(Serde(messages)),
            tools => tools,
            documents => None::<Value>,
            add_generation_prompt => add_generation_prompt,
        };
        self.environment
            .get_template(variant.name)?
            .render(context! {
                ..Value::from(Serde(variables)),
                ..standard,
                ..special_tokens
            })
    }
}

/// Puts the mark after the text of the final message.
fn mark_end(messages: &[Message], values: &mut [serde_json::Value]) -> Result<(), InferenceError> {
    let (Some(message), Some(value)) = (messages.last(), values.last_mut()) else {
        return Err(cannot_continue("there is no message to continue"));
    };
    if message.role != Role::Assistant || !message.tool_calls.is_empty() {
        return Err(cannot_continue(
            "only a final assistant message without tool calls can be continued",
        ));
    }
    let text = message.joined_text() + END_OF_MESSAGE;
    value["content"] = match &value["content"] {
        serde_json::Value::Array(_) => serde_json::json!([{"type": "text", "text": text}]),
        _ => text.into(),
    };
    Ok(())
}

fn cut_at_mark(text: &str) -> Result<String, InferenceError> {
    text.rfind(END_OF_MESSAGE)
        .map(|end| text[..end].to_owned())
        .ok_or_else(|| cannot_continue("the chat template leaves the final message out"))
}

fn cannot_continue(reason: &str) -> InferenceError {
    InferenceError::InvalidRequest {
        param: Some("continue_final_message".into()),
        message: format!("the final message cannot be continued: {reason}"),
    }
}
