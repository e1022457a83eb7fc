//! A model's chat template: a conversation to prompt text, as `transformers` renders it.

mod environment;
mod json;
mod metered;
mod methods;
mod pair;
mod probe;
mod python;
mod reasoning;
mod room;
mod shape;
mod source;
mod told;
mod turns;

use std::{borrow::Cow, collections::HashSet, fmt, path::Path};

use macmlx_inference::{
    ChatPrompt, ContentPart, InferenceError, Message, ReasoningOptions, Role, ToolDefinition,
};
use minijinja::{
    Environment, context,
    value::{Serde, Value},
};
use serde_json::Map;

use crate::tokenizer::Facts;
pub(crate) use pair::PairFrame;
use probe::Probe;
use reasoning::Reasoning;
use shape::Shape;
pub(crate) use told::tell;

/// Variables of the prompt that a client's `template_kwargs` may not replace.
const RESERVED: [&str; 2] = ["messages", "tools"];

/// Marks where the last message ends, to cut the prompt there. Some templates know it by this text,
/// which is that of `transformers`.
const END_OF_MESSAGE: &str = "CONTINUE_FINAL_MESSAGE_TAG ";

/// The compiled chat templates of a model: `default` and perhaps one for conversations with tools.
pub struct ChatTemplate {
    environment: Environment<'static>,
    default: Variant,
    tool_use: Option<Variant>,
    /// `bos_token` and the like, where the tokenizer has them.
    special_tokens: Vec<(&'static str, String)>,
}

impl fmt::Debug for ChatTemplate {
    /// Leaves out the environment's functions and filters.
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
    /// Names it may look up, but those it assigns to as well.
    variables: HashSet<String>,
    /// Tools offered to the model change the prompt.
    shows_tools: bool,
    /// How it takes conversations that are offered no tools.
    plain: Shape,
    /// How it takes conversations with tools.
    with_tools: Shape,
    reasoning: Reasoning,
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
        Self::compile(
            model,
            sources.default,
            sources.tool_use,
            facts.named_tokens(),
        )
        .map(Some)
    }

    /// Compiles the template of `model` and the one for conversations with tools, where that is
    /// another. `special_tokens` are variables like `bos_token`.
    pub fn compile(
        model: &str,
        default: String,
        tool_use: Option<String>,
        special_tokens: Vec<(&'static str, String)>,
    ) -> Result<Self, InferenceError> {
        let unusable = |reason: String| InferenceError::ModelLoad {
            model: model.into(),
            reason: format!("its chat template cannot be compiled: {reason}"),
        };
        for source in [Some(&default), tool_use.as_ref()].into_iter().flatten() {
            room::check(source).map_err(unusable)?;
        }
        room::with_stack(|| Self::compile_and_probe(default, tool_use, special_tokens))
            .map_err(|error| unusable(error.to_string()))?
            .map_err(|error| unusable(error.to_string()))
    }

    fn compile_and_probe(
        default: String,
        tool_use: Option<String>,
        special_tokens: Vec<(&'static str, String)>,
    ) -> Result<Self, minijinja::Error> {
        let mut environment = environment::new()?;
        environment.set_fuel(Some(environment::PROBE_FUEL));
        let mut variant = |name, source: String| {
            environment.add_template_owned(name, source::without_generation_tags(&source))?;
            let variables = environment.get_template(name)?.undeclared_variables(false);
            Ok::<_, minijinja::Error>(Variant {
                name,
                source,
                variables,
                shows_tools: false,
                plain: Shape::default(),
                with_tools: Shape::default(),
                reasoning: Reasoning::default(),
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
        template.default = template.probe(&template.default);
        template.tool_use = template
            .tool_use
            .as_ref()
            .map(|variant| template.probe(variant));
        template.environment.set_fuel(Some(environment::FUEL));
        Ok(template)
    }

    /// Text of the template used for a conversation, to recognise output formats by.
    pub fn source(&self, with_tools: bool) -> &str {
        &self.variant(with_tools).source
    }

    /// Whether tools offered to the model change the prompt.
    pub fn reads_tools(&self) -> bool {
        self.variant(true).shows_tools
    }

    /// Whether a model would read of tools that are told in words.
    pub(crate) fn shows_told_tools(&self) -> bool {
        let chat = ChatPrompt {
            messages: vec![Message::text(Role::User, "Hello")],
            tools: vec![probe::tool()],
            ..ChatPrompt::default()
        };
        let text = self.render(&told::tell(&chat), &ReasoningOptions::default());
        text.is_ok_and(|text| text.contains(&chat.tools[0].name) && text.contains("Hello"))
    }

    /// Whether reasoning can be switched on and off.
    pub fn has_reasoning_switch(&self) -> bool {
        self.default.reasoning.has_switch()
    }

    /// Renders a conversation up to where the model goes on. Checks neither tools nor reasoning
    /// options against what the template can do.
    pub fn render(
        &self,
        prompt: &ChatPrompt,
        reasoning: &ReasoningOptions,
    ) -> Result<String, InferenceError> {
        let variables = self.variables(prompt, reasoning)?;
        let variant = self.variant(prompt.offers_tools());
        let text = room::with_stack(|| {
            self.render_variables(variant, &variables)
                .map_err(|error| environment::words(&error))
        })
        .unwrap_or_else(|error| Err(error.to_string()))
        .map_err(|message| InferenceError::Template { message })?;
        if prompt.continue_final_message {
            return cut_at_mark(&text);
        }
        Ok(text)
    }

    /// What a conversation is to the template: `messages`, `tools` and everything else it is
    /// rendered with, beside the special tokens.
    pub fn variables(
        &self,
        prompt: &ChatPrompt,
        reasoning: &ReasoningOptions,
    ) -> Result<Map<String, serde_json::Value>, InferenceError> {
        if let Some(key) = RESERVED
            .iter()
            .find(|key| prompt.template_kwargs.contains_key(**key))
        {
            return Err(InferenceError::InvalidRequest {
                param: Some("chat_template_kwargs".into()),
                message: format!("`chat_template_kwargs` cannot replace `{key}`"),
            });
        }
        let with_tools = prompt.offers_tools();
        let variant = self.variant(with_tools);
        let mut messages = Cow::Borrowed(prompt.messages.as_slice());
        if prompt.continue_final_message {
            mark_end(messages.to_mut())?;
        }
        let shape = if with_tools {
            variant.with_tools
        } else {
            variant.plain
        };
        let tools: &[ToolDefinition] = if with_tools { &prompt.tools } else { &[] };
        let mut variables = standard(
            shape.messages(&messages),
            shape::tools(tools),
            !prompt.continue_final_message,
        );
        variables.extend(variant.reasoning.variables(reasoning));
        variables.extend(prompt.template_kwargs.clone());
        Ok(variables)
    }

    fn variant(&self, with_tools: bool) -> &Variant {
        match &self.tool_use {
            Some(variant) if with_tools => variant,
            _ => &self.default,
        }
    }

    /// The variant with what rendering it shows of it.
    fn probe(&self, variant: &Variant) -> Variant {
        let render = |variables: &Map<String, serde_json::Value>| {
            self.render_variables(variant, variables).ok()
        };
        let offered = shape::tools(&[probe::tool()]);
        let shape = |tools: &[serde_json::Value]| {
            Probe(|messages| render(&standard(messages, tools.to_vec(), true))).shape()
        };
        let plain = shape(&[]);
        let with_tools = shape(&offered);
        let question = [Message::text(Role::User, "Hello")];
        let reasoning = Reasoning::probe(&variant.source, &variant.variables, |given| {
            let mut variables = standard(plain.messages(&question), Vec::new(), true);
            variables.extend(given.clone());
            render(&variables)
        });
        let with = |tools| render(&standard(with_tools.messages(&question), tools, true));
        let shows_tools = with(offered.clone()).map_or_else(
            || variant.variables.contains("tools"),
            |text| Some(text) != with(Vec::new()),
        );
        Variant {
            name: variant.name,
            source: variant.source.clone(),
            variables: variant.variables.clone(),
            shows_tools,
            plain,
            with_tools,
            reasoning,
        }
    }

    fn render_variables(
        &self,
        variant: &Variant,
        variables: &Map<String, serde_json::Value>,
    ) -> Result<String, minijinja::Error> {
        let special_tokens = Value::from_pairs(
            self.special_tokens
                .iter()
                .map(|(name, text)| (*name, text.as_str())),
        );
        self.environment
            .get_template(variant.name)?
            .render(context! {
                ..Value::from(Serde(variables)),
                ..special_tokens
            })
    }
}

/// What every template is given. `transformers` passes `none` for tools and documents that are not
/// given.
fn standard(
    messages: Vec<serde_json::Value>,
    tools: Vec<serde_json::Value>,
    add_generation_prompt: bool,
) -> Map<String, serde_json::Value> {
    let tools = if tools.is_empty() {
        serde_json::Value::Null
    } else {
        tools.into()
    };
    [
        ("messages", messages.into()),
        ("tools", tools),
        ("documents", serde_json::Value::Null),
        ("add_generation_prompt", add_generation_prompt.into()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into_iter()
    .collect()
}

/// Puts the mark after the text of the final message.
fn mark_end(messages: &mut [Message]) -> Result<(), InferenceError> {
    let Some(message) = messages.last_mut() else {
        return Err(cannot_continue("there is no message to continue"));
    };
    if message.role != Role::Assistant || !message.tool_calls.is_empty() {
        return Err(cannot_continue(
            "only a final assistant message without tool calls can be continued",
        ));
    }
    message
        .content
        .push(ContentPart::Text(END_OF_MESSAGE.into()));
    Ok(())
}

/// The text before the mark. Where the template trims what a message says, so is the mark, and so
/// must be the text before it.
fn cut_at_mark(text: &str) -> Result<String, InferenceError> {
    let end = text.rfind(END_OF_MESSAGE.trim_end());
    end.map(|end| {
        let before = &text[..end];
        let keeps_spaces = text[end..].starts_with(END_OF_MESSAGE);
        let before = if keeps_spaces {
            before
        } else {
            before.trim_end()
        };
        before.to_owned()
    })
    .ok_or_else(|| cannot_continue("the chat template leaves the final message out"))
}

fn cannot_continue(reason: &str) -> InferenceError {
    InferenceError::InvalidRequest {
        param: Some("continue_final_message".into()),
        message: format!("the final message cannot be continued: {reason}"),
    }
}
