//! What a model needs around its weights to take prompts and give answers.

mod demands;

use std::{
    borrow::Cow,
    path::Path,
    sync::{Arc, OnceLock},
};

use macmlx_inference::{
    ChatPrompt, Grammar, InferenceError, InfillPrompt, ModelTraits, Prompt, ReasoningOptions,
    StopConditions, ToolChoice, ToolDefinition, ToolSupport,
};

use demands::{check_choice, unsupported};

use macmlx_output::{
    OutputParser, Tools,
    formats::{Format, Kind},
    grammar::{self, Constraint, GrammarCompiler, OutputGrammar},
};

use crate::{
    ChatTemplate, Detokenizer, FirstSpace, OutputStream, SpecialTokens, Tokenizer,
    infill::InfillTokens, output_formats::OutputFormats, output_stream::Stops, template::tell,
    tokenizer::Facts,
};

/// Tokenizer, chat template and output formats of one model.
#[derive(Debug)]
pub struct ChatModel {
    id: String,
    tokenizer: Arc<Tokenizer>,
    template: Option<ChatTemplate>,
    formats: OutputFormats,
    /// `None`: the model cannot fill in text.
    infill: Option<InfillTokens>,
    /// The compiler of grammars, made when a request first needs it.
    grammars: OnceLock<Result<GrammarCompiler, InferenceError>>,
}

/// A prompt ready for the engine, and how its output is to be read.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Rendered {
    /// Empty when the prompt came as tokens.
    pub text: String,
    pub tokens: Vec<u32>,
    /// The prompt ends inside a reasoning block.
    pub starts_in_reasoning: bool,
    formats: Vec<&'static dyn Format>,
    /// Offered to the model.
    tools: Tools,
    tool_choice: ToolChoice,
    /// True unless reasoning has been switched off or the prompt has it behind it.
    may_reason: bool,
    /// The output goes on from what the client has written of the answer.
    continues_message: bool,
    /// The end of `text` that its output goes on from: what opens a reasoning block or a message.
    pub opened: String,
    single_tool_call: bool,
    first_space: FirstSpace,
    /// Tokens that end the output, beside the model's own end tokens.
    pub end_tokens: Vec<u32>,
}

impl ChatModel {
    /// Reads a model's folder. `id` is the model's name in errors.
    ///
    /// The output formats are those that the chat template shows, unless the folder's
    /// `macmlx.json` names others: `{"tool_format": "hermes", "reasoning_format": "none"}`.
    pub fn load(model_dir: &Path, id: &str) -> Result<Self, InferenceError> {
        let facts = Facts::read(model_dir, id)?;
        let tokenizer = Arc::new(Tokenizer::with_facts(model_dir, id, &facts)?);
        let template = ChatTemplate::load(model_dir, id, &facts)?;
        Ok(Self {
            formats: OutputFormats::load(model_dir, id, template.as_ref())?,
            id: id.into(),
            infill: InfillTokens::of(&tokenizer, &facts.infill, id),
            tokenizer,
            template,
            grammars: OnceLock::new(),
        })
    }

    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.tokenizer
    }

    /// `None`: the model can complete text but not chat.
    pub fn template(&self) -> Option<&ChatTemplate> {
        self.template.as_ref()
    }

    /// What the model can do.
    pub fn traits(&self) -> ModelTraits {
        let template = self.template.as_ref();
        ModelTraits {
            chat_template: template.map(|template| template.source(false).to_owned()),
            tools: self.tool_support(),
            reasons: self.formats.reasoning.is_some(),
            has_reasoning_switch: template.is_some_and(ChatTemplate::has_reasoning_switch),
            sees_images: false,
            fills_in: self.infill.is_some(),
        }
    }

    fn tool_support(&self) -> ToolSupport {
        match (&self.template, self.formats.tool_calls) {
            (Some(_), Some(format)) if format.is_told() => ToolSupport::Generic,
            (Some(template), Some(_)) if template.reads_tools() => ToolSupport::Native,
            _ => ToolSupport::None,
        }
    }

    /// How the model marks reasoning, if it does.
    pub fn reasoning_format(&self) -> Option<&'static dyn Format> {
        self.formats.reasoning
    }

    /// How the model writes tool calls, by its template or as it is told.
    pub fn tool_format(&self) -> Option<&'static dyn Format> {
        self.formats.tool_calls
    }

    /// Turns any prompt into tokens.
    pub fn prompt(
        &self,
        prompt: &Prompt,
        reasoning: &ReasoningOptions,
    ) -> Result<Rendered, InferenceError> {
        match prompt {
            Prompt::Chat(chat) => self.render(chat, reasoning),
            Prompt::Text(text) => Ok(Rendered::raw(
                text.clone(),
                self.tokenizer.encode(text, true)?,
            )),
            Prompt::Infill(gap) => self.fill_in(gap),
            Prompt::Tokens(tokens) => {
                let limit = self.tokenizer.vocab_size();
                match tokens.iter().find(|id| **id as usize >= limit) {
                    Some(id) => Err(InferenceError::InvalidRequest {
                        param: Some("prompt".into()),
                        message: format!(
                            "token {id} is not in the vocabulary, which has {limit} tokens"
                        ),
                    }),
                    None => Ok(Rendered::raw(String::new(), tokens.clone())),
                }
            }
        }
    }

    /// Puts a text with a gap into the order that the model was trained on.
    fn fill_in(&self, gap: &InfillPrompt) -> Result<Rendered, InferenceError> {
        let Some(infill) = &self.infill else {
            return Err(unsupported(
                &gap.param,
                format!(
                    "`{}` has no fill-in-the-middle tokens, so it cannot complete text before a \
                     suffix",
                    self.id
                ),
            ));
        };
        let tokens = infill.prompt(&self.tokenizer, gap)?;
        Ok(Rendered {
            end_tokens: infill.end_tokens().to_vec(),
            ..Rendered::raw(self.tokenizer.detokenize(&tokens), tokens)
        })
    }

    /// Renders a conversation by the chat template. What the model cannot honour is refused by
    /// name.
    pub fn render(
        &self,
        chat: &ChatPrompt,
        reasoning: &ReasoningOptions,
    ) -> Result<Rendered, InferenceError> {
        let Some(template) = &self.template else {
            return Err(unsupported(
                "messages",
                format!(
                    "`{}` has no chat template; use text completion, or put a chat_template.jinja \
                     into the model's folder",
                    self.id
                ),
            ));
        };
        let mut formats: Vec<&'static dyn Format> = self.formats.reasoning.into_iter().collect();
        let mut conversation = Cow::Borrowed(chat);
        if chat.offers_tools() {
            let format = self.check_tools(template)?;
            check_choice(chat)?;
            // One format may be of both kinds.
            formats.retain(|other| other.name() != format.name() || other.kind() != format.kind());
            formats.push(format);
            if format.is_told() {
                conversation = Cow::Owned(tell(chat));
            }
        }
        let reasoning = self.check_reasoning(template, chat, reasoning)?;
        self.check_images(&chat.messages)?;

        let text = template.render(&conversation, &reasoning)?;
        if let Some(format) = self.formats.tool_calls
            && formats.is_empty()
            && format.opened_by(&text).is_some()
        {
            // The template begins messages in it also where there is nothing to call.
            formats.push(format);
        }
        // A template that writes an empty block says that there is to be no reasoning.
        let has_reasoned = formats.iter().any(|format| {
            let close = format.close().filter(|_| format.kind() == Kind::Reasoning);
            close.is_some_and(|close| text.trim_end().ends_with(close))
        });
        let opened = self.find_opening(chat, &formats, &text);
        let starts_in_reasoning =
            OutputParser::new(&formats, Tools::default(), &opened).in_reasoning();
        let tokens = self.tokenizer.encode(&text, false)?;
        Ok(Rendered {
            text,
            tokens,
            starts_in_reasoning,
            formats,
            tools: Tools::new(chat.tools.clone()),
            tool_choice: chat.tool_choice.clone(),
            may_reason: reasoning.enabled != Some(false) && !has_reasoned,
            continues_message: chat.continue_final_message,
            opened,
            single_tool_call: chat.single_tool_call,
            first_space: if chat.continue_final_message {
                FirstSpace::Keep
            } else {
                FirstSpace::Strip
            },
            end_tokens: Vec::new(),
        })
    }

    /// What takes one sequence's tokens and gives its output. `answer`: what [`Self::constraint`]
    /// holds it to.
    pub fn output(
        &self,
        rendered: &Rendered,
        stop: &StopConditions,
        answer: Option<&Grammar>,
    ) -> OutputStream {
        let markers: Vec<&'static str> = rendered
            .formats
            .iter()
            .flat_map(|format| markers(*format))
            .collect();
        // Formats must see their markers, also where these are special tokens.
        let shown: Vec<u32> = self
            .tokenizer
            .special_ids()
            .filter(|id| {
                let bytes = self.tokenizer.token_bytes(*id);
                let text = std::str::from_utf8(bytes).unwrap_or_default();
                !text.is_empty() && markers.iter().any(|marker| marker.contains(text))
            })
            .collect();
        let mut stops = Stops {
            min_tokens: stop.min_tokens,
            ..Stops::default()
        };
        for sequence in &stop.sequences {
            let special = self
                .tokenizer
                .token_id(sequence)
                .filter(|id| self.tokenizer.is_special(*id));
            if let Some(id) = special {
                stops.tokens.push((id, sequence.clone()));
            } else if markers.iter().any(|marker| sequence.contains(marker)) {
                stops.raw.push(sequence.clone());
            } else {
                stops.visible.push(sequence.clone());
            }
        }
        let parser = OutputParser::new(&rendered.formats, rendered.tools.clone(), &rendered.opened);
        OutputStream::new(
            Detokenizer::new(
                Arc::clone(&self.tokenizer),
                SpecialTokens::Only(shown),
                rendered.first_space,
            ),
            if answer.is_some() {
                parser.in_form()
            } else {
                parser
            },
            stops,
            rendered.single_tool_call,
            rendered.reasoning_close(),
        )
    }

    /// What holds one sequence's output to the answer's grammar, to strict tools and to a call that
    /// must be made. `None`: the output may be anything. Slow for large grammars, and once for each
    /// model; clone it for further sequences.
    pub fn constraint(
        &self,
        rendered: &Rendered,
        answer: Option<&Grammar>,
    ) -> Result<Option<Constraint>, InferenceError> {
        if let (Some(grammar), true) = (answer, rendered.continues_message) {
            return Err(unsupported(
                &grammar.param,
                "an answer that the client has begun cannot be held to a grammar".into(),
            ));
        }
        let tools: Vec<ToolDefinition> = rendered.tools.iter().cloned().collect();
        let output = OutputGrammar {
            vocabulary: &*self.tokenizer,
            formats: &rendered.formats,
            tools: &tools,
            tool_choice: &rendered.tool_choice,
            single_tool_call: rendered.single_tool_call,
            opened: &rendered.opened,
            starts_in_reasoning: rendered.starts_in_reasoning,
            may_reason: rendered.may_reason,
            answer,
        };
        match self.compile(&output) {
            // The request has not asked for more than can be done.
            Err(_) if !output.is_asked_for() => Ok(None),
            constraint => constraint,
        }
    }

    fn compile(&self, output: &OutputGrammar<'_>) -> Result<Option<Constraint>, InferenceError> {
        let Some(lark) = grammar::lark(output)? else {
            return Ok(None);
        };
        let compiler = self
            .grammars
            .get_or_init(|| GrammarCompiler::new(&*self.tokenizer));
        let compiler = compiler.as_ref().map_err(Clone::clone)?;
        let asked = output.answer.filter(|grammar| grammar.param == lark.param);
        compiler
            .compile(lark.text, &lark.param)
            .map(Some)
            .map_err(|error| asked.and_then(grammar::refusal).unwrap_or(error))
    }

    /// The end of a prompt that belongs to the output. Only its very end counts, since users may
    /// write about markers, or the whole message that is continued.
    fn find_opening(
        &self,
        chat: &ChatPrompt,
        formats: &[&'static dyn Format],
        prompt: &str,
    ) -> String {
        let by_template = formats.iter().find_map(|format| format.opened_by(prompt));
        let by_message = || {
            let message = chat
                .messages
                .last()
                .filter(|_| chat.continue_final_message)?;
            find_open_marker(self.formats.reasoning?, &message.joined_text())
        };
        by_template.or_else(by_message).unwrap_or_default().into()
    }
}

impl Rendered {
    /// Text that makes the model stop thinking and go on with what it is to do.
    fn reasoning_close(&self) -> Option<&'static str> {
        let must_call = matches!(
            self.tool_choice,
            ToolChoice::Required | ToolChoice::Named(_)
        ) && !self.tools.is_empty();
        self.formats.iter().find_map(|format| {
            if must_call {
                format.reasoning_close_before_call()
            } else {
                format.reasoning_close()
            }
        })
    }

    /// A prompt whose output is text as it stands.
    fn raw(text: String, tokens: Vec<u32>) -> Self {
        Self {
            text,
            tokens,
            starts_in_reasoning: false,
            formats: Vec::new(),
            tools: Tools::default(),
            tool_choice: ToolChoice::None,
            may_reason: false,
            continues_message: false,
            opened: String::new(),
            single_tool_call: false,
            first_space: FirstSpace::Keep,
            end_tokens: Vec::new(),
        }
    }
}

/// All strings a format gives a meaning to.
fn markers(format: &dyn Format) -> Vec<&'static str> {
    let open = format.open().iter().chain(format.silent()).copied();
    open.chain(format.close())
        .chain(format.inner_markers())
        .collect()
}

/// The marker of a reasoning block that a message leaves open.
fn find_open_marker(format: &dyn Format, text: &str) -> Option<&'static str> {
    let close = format.close()?;
    let mut markers = format.open().iter().copied();
    markers.find(|open| text.rfind(open) > text.rfind(close))
}
