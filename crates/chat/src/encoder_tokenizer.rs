//! What an encoder is given: texts and pairs of a query and a document, arranged as its own files
//! ask for it and no longer than it takes.

use std::{path::Path, sync::Arc};

use macmlx_inference::{InferenceError, ModelTask, Overflow};
use serde_json::Value;

use crate::{
    ChatModel, EncoderTokens, Tokenizer,
    template::PairFrame,
    tokenizer::{Segment, read_json},
};

/// The instruction of Qwen3's rerankers where the request has none, as their model cards have it.
const QWEN3_INSTRUCTION: &str =
    "Given a web search query, retrieve relevant passages that answer the query";

/// Turns texts into what one encoder reads.
#[derive(Debug)]
pub struct EncoderTokenizer {
    id: String,
    tokenizer: Arc<Tokenizer>,
    /// Written before each text that is embedded.
    prompt: String,
    /// Around a query and a document. `None`: the tokenizer's own special tokens.
    frame: Option<PairFrame>,
    answers: Option<AnswerTokens>,
    /// Tokens a text may have, special ones included.
    limit: usize,
}

/// The tokens by which a decoder says whether a document answers a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerTokens {
    pub yes: u32,
    pub no: u32,
}

impl EncoderTokenizer {
    /// Reads what the files in a model's folder say beside its tokenizer. `limit` is the number of
    /// tokens the model takes.
    pub fn load(
        model_dir: &Path,
        id: &str,
        task: ModelTask,
        chat: &ChatModel,
        limit: u32,
    ) -> Result<Self, InferenceError> {
        let files = Files {
            folder: model_dir,
            id,
        };
        let prompt = files.default_prompt()?;
        let tokenizer = chat.tokenizer().clone();
        let mut loaded = Self {
            id: id.to_owned(),
            tokenizer,
            prompt: String::new(),
            frame: None,
            answers: None,
            limit: limit as usize,
        };
        if task != ModelTask::Rerank {
            loaded.prompt = prompt.unwrap_or_default();
            return Ok(loaded);
        }
        let config = files.read("config.json")?;
        loaded.frame = match chat.template() {
            Some(template) => template
                .pair_frame(prompt.as_deref())
                .map_err(|reason| files.unusable(reason))?,
            None => None,
        };
        if loaded.frame.is_none() && config["model_type"] == "qwen3" {
            loaded.frame = Some(qwen3_frame(prompt.as_deref().unwrap_or(QWEN3_INSTRUCTION)));
        }
        let has_head = config["architectures"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .any(|name| name.ends_with("ForSequenceClassification"));
        if loaded.frame.is_some() && !has_head {
            loaded.answers = Some(files.answers(&loaded.tokenizer)?);
        }
        Ok(loaded)
    }

    /// The tokens that a reranker without a head of its own answers with.
    pub fn answers(&self) -> Option<AnswerTokens> {
        self.answers
    }

    /// A text to be embedded, of which `most` tokens are read. `param` is its place in the request.
    pub fn text(
        &self,
        text: &str,
        most: Option<u32>,
        overflow: Overflow,
        param: &str,
    ) -> Result<EncoderTokens, InferenceError> {
        let mut segment = if self.prompt.is_empty() {
            self.tokenizer.segment(text)?
        } else {
            self.tokenizer.segment(&format!("{}{text}", self.prompt))?
        };
        let special = self.tokenizer.count_special_tokens(false);
        if let Some(most) = most {
            let most = most as usize;
            if most <= special {
                return Err(nothing_left(param, most));
            }
            shorten(&mut segment, most - special);
        }
        self.fit(&mut segment, special, overflow, param)?;
        let tokens = self.tokenizer.join(segment, None)?;
        if tokens.ids.is_empty() {
            return Err(invalid(param, format!("`{param}` is empty")));
        }
        Ok(tokens)
    }

    /// Ids as they came, of which `most` are read, checked against nothing but the length.
    pub fn tokens(
        &self,
        mut ids: Vec<u32>,
        most: Option<u32>,
        overflow: Overflow,
        param: &str,
    ) -> Result<EncoderTokens, InferenceError> {
        if ids.is_empty() {
            return Err(invalid(param, format!("`{param}` is empty")));
        }
        ids.truncate(most.map_or(usize::MAX, |most| most as usize));
        if ids.len() > self.limit {
            match overflow {
                Overflow::Refuse => return Err(self.too_long(param, ids.len())),
                Overflow::Truncate => ids.truncate(self.limit),
            }
        }
        Ok(EncoderTokens {
            ids,
            second_segment: None,
        })
    }

    /// The query with each of the documents, of which the ends are cut off where that is wanted:
    /// after `most` tokens, where the pair has `pair_most`, and where the model's limit is.
    pub fn pairs(
        &self,
        query: &str,
        documents: &[String],
        most: Option<u32>,
        pair_most: Option<u32>,
        overflow: Overflow,
    ) -> Result<Vec<EncoderTokens>, InferenceError> {
        let most = Most {
            document: most.map_or(usize::MAX, |most| most as usize),
            pair: pair_most.map_or(usize::MAX, |most| most as usize),
        };
        match &self.frame {
            Some(frame) => self.frame_pairs(frame, query, documents, &most, overflow),
            None => self.join_pairs(query, documents, &most, overflow),
        }
    }

    fn join_pairs(
        &self,
        query: &str,
        documents: &[String],
        most: &Most,
        overflow: Overflow,
    ) -> Result<Vec<EncoderTokens>, InferenceError> {
        let first = self.tokenizer.segment(query)?;
        let taken = first.len() + self.tokenizer.count_special_tokens(true);
        let room = self.leave_room(taken, most)?;
        let join = |(index, document): (usize, &String)| {
            let mut second = self.tokenizer.segment(document)?;
            shorten(&mut second, room);
            self.fit(&mut second, taken, overflow, &place(index))?;
            self.tokenizer.join(first.clone(), Some(second))
        };
        documents.iter().enumerate().map(join).collect()
    }

    fn frame_pairs(
        &self,
        frame: &PairFrame,
        query: &str,
        documents: &[String],
        most: &Most,
        overflow: Overflow,
    ) -> Result<Vec<EncoderTokens>, InferenceError> {
        let head = format!("{}{query}{}", frame.before, frame.between);
        let after = self.tokenizer.encode(&frame.after, false)?;
        // Where the document begins, its first letters may share a token with what stands before.
        let before = self.tokenizer.segment(&head)?.len();
        let taken = before + after.len();
        let room = self.leave_room(taken, most)?;
        let join = |(index, document): (usize, &String)| {
            let mut segment = self.tokenizer.segment(&format!("{head}{document}"))?;
            shorten(&mut segment, before.saturating_add(room));
            self.fit(&mut segment, after.len(), overflow, &place(index))?;
            let mut ids = segment.into_ids();
            ids.extend(&after);
            Ok(EncoderTokens {
                ids,
                second_segment: None,
            })
        };
        documents.iter().enumerate().map(join).collect()
    }

    /// Cuts a text that is too long together with the `taken` tokens around it, or refuses it.
    fn fit(
        &self,
        segment: &mut Segment,
        taken: usize,
        overflow: Overflow,
        param: &str,
    ) -> Result<(), InferenceError> {
        let tokens = segment.len() + taken;
        if tokens <= self.limit {
            return Ok(());
        }
        match overflow {
            Overflow::Refuse => Err(self.too_long(param, tokens)),
            Overflow::Truncate => {
                segment.truncate(self.limit.saturating_sub(taken));
                Ok(())
            }
        }
    }

    /// Cutting documents helps only where the query leaves something of them. Returns how many tokens
    /// of a document the client wants to be read.
    fn leave_room(&self, taken: usize, most: &Most) -> Result<usize, InferenceError> {
        if taken >= self.limit {
            Err(self.too_long("query", taken))
        } else if taken >= most.pair {
            Err(nothing_left("documents", most.pair))
        } else {
            Ok(most.document.min(most.pair - taken))
        }
    }

    fn too_long(&self, param: &str, tokens: usize) -> InferenceError {
        invalid(
            param,
            format!(
                "`{param}` has {tokens} tokens, special ones included, but `{}` takes {}; shorten it",
                self.id, self.limit
            ),
        )
    }
}

/// How many tokens a client wants to be read; the largest number is no limit.
struct Most {
    document: usize,
    /// Those of the query and of a document together, special ones included.
    pair: usize,
}

/// Refuses a limit that leaves nothing to be read.
fn nothing_left(param: &str, most: usize) -> InferenceError {
    invalid(
        param,
        format!(
            "with at most {most} tokens, special ones and the query included, nothing of `{param}` \
             is left to be read"
        ),
    )
}

/// Cuts off what comes after `most` tokens.
fn shorten(segment: &mut Segment, most: usize) {
    if segment.len() > most {
        segment.truncate(most);
    }
}

/// Where a document stands in a request.
fn place(index: usize) -> String {
    format!("documents[{index}]")
}

/// A conversation in which the assistant is about to say yes or no, having thought nothing.
fn qwen3_frame(instruction: &str) -> PairFrame {
    PairFrame {
        before: format!(
            "<|im_start|>system\nJudge whether the Document meets the requirements based on the \
             Query and the Instruct provided. Note that the answer can only be \"yes\" or \
             \"no\".<|im_end|>\n<|im_start|>user\n<Instruct>: {instruction}\n<Query>: "
        ),
        between: "\n<Document>: ".into(),
        after: "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n".into(),
    }
}

/// The files beside a tokenizer.
struct Files<'a> {
    folder: &'a Path,
    id: &'a str,
}

impl Files<'_> {
    /// `Null` where there is no such file.
    fn read(&self, name: &str) -> Result<Value, InferenceError> {
        Ok(read_json(self.folder, name, self.id)?.unwrap_or_default())
    }

    fn unusable(&self, reason: String) -> InferenceError {
        InferenceError::ModelLoad {
            model: self.id.to_owned(),
            reason,
        }
    }

    /// The prompt that sentence-transformers uses when none is named.
    fn default_prompt(&self) -> Result<Option<String>, InferenceError> {
        const FILE: &str = "config_sentence_transformers.json";
        let file = self.read(FILE)?;
        let Some(name) = file["default_prompt_name"].as_str() else {
            return Ok(None);
        };
        match file["prompts"][name].as_str() {
            Some(prompt) => Ok(Some(prompt.to_owned())),
            None => Err(self.unusable(format!(
                "`default_prompt_name` in {FILE} is `{name}`, which is none of its `prompts`"
            ))),
        }
    }

    /// Those that a score module names, else the words.
    fn answers(&self, tokenizer: &Tokenizer) -> Result<AnswerTokens, InferenceError> {
        let modules = self.read("modules.json")?;
        let score = modules.as_array().into_iter().flatten().find_map(|module| {
            let class = module["type"].as_str()?.rsplit('.').next()?;
            matches!(class, "LogitScore" | "CausalScoreHead").then(|| module["path"].as_str())?
        });
        let Some(path) = score else {
            let token = |text: &str| {
                tokenizer.token_id(text).ok_or_else(|| {
                    self.unusable(format!(
                        "it has no score head, and its tokenizer no token `{text}` to score by"
                    ))
                })
            };
            return Ok(AnswerTokens {
                yes: token("yes")?,
                no: token("no")?,
            });
        };
        let file = format!("{path}/config.json");
        let config = self.read(&file)?;
        let token = |key: &str| {
            config[key]
                .as_u64()
                .and_then(|id| u32::try_from(id).ok())
                .ok_or_else(|| {
                    self.unusable(format!(
                        "{file} has no `{key}`; only scores of two tokens, one for and one against, \
                         are supported"
                    ))
                })
        };
        Ok(AnswerTokens {
            yes: token("true_token_id")?,
            no: token("false_token_id")?,
        })
    }
}

fn invalid(param: &str, message: String) -> InferenceError {
    InferenceError::InvalidRequest {
        param: Some(param.into()),
        message,
    }
}
