//! A request that has been checked and tokenized.

use std::sync::{Arc, Once};

use macmlx_chat::{EncoderTokenizer, EncoderTokens};
use macmlx_inference::{EmbedRequest, EncoderInput, InferenceError, RerankRequest};

use crate::{
    job::{check_tokens, invalid},
    profile::Profile,
};

/// Tokens of another tokenizer look like any others, so that only the log can tell of them, and it
/// tells once.
static WARNED_OF_TOKENS: Once = Once::new();

/// Texts of one request, as the model reads them.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) profile: Arc<Profile>,
    pub(crate) texts: Vec<EncoderTokens>,
    /// Features that are wanted of each vector.
    pub(crate) dimensions: Option<u32>,
}

impl Draft {
    /// Checks and tokenizes; slow for many texts.
    pub(crate) fn embed_blocking(
        profile: Arc<Profile>,
        request: EmbedRequest,
    ) -> Result<Self, InferenceError> {
        if request.inputs.is_empty() {
            return Err(invalid("input", "`input` is empty; send at least one text"));
        }
        if request.dimensions == Some(0) {
            return Err(invalid("dimensions", "`dimensions` must be at least 1"));
        }
        let encoder = tokenizer(&profile)?;
        let is_one = request.inputs.len() == 1;
        let texts = request.inputs.into_iter().enumerate();
        let texts = texts
            .map(|(index, input)| {
                let param = if is_one {
                    "input".to_owned()
                } else {
                    format!("input[{index}]")
                };
                match input {
                    EncoderInput::Text(text) => {
                        encoder.text(&text, request.token_limit, request.overflow, &param)
                    }
                    EncoderInput::Tokens(ids) => {
                        WARNED_OF_TOKENS.call_once(|| {
                            tracing::warn!(
                                "texts to embed came as tokens, which are read as the model's own; \
                                 if vectors look wrong, have the client send text (LangChain: \
                                 check_embedding_ctx_length=False)"
                            );
                        });
                        check_tokens(&param, ids.iter().copied(), profile.vocab_size)
                            .map_err(|error| of_another_tokenizer(&error, &param))?;
                        encoder.tokens(ids, request.token_limit, request.overflow, &param)
                    }
                }
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            texts,
            dimensions: request.dimensions,
            profile,
        })
    }

    /// Checks and tokenizes; slow for many documents.
    pub(crate) fn rerank_blocking(
        profile: Arc<Profile>,
        request: &RerankRequest,
    ) -> Result<Self, InferenceError> {
        if request.documents.is_empty() {
            return Err(invalid(
                "documents",
                "`documents` is empty; send at least one",
            ));
        }
        let pairs = tokenizer(&profile)?.pairs(
            &request.query,
            &request.documents,
            request.document_tokens,
            request.token_limit,
            request.overflow,
        )?;
        Ok(Self {
            texts: pairs,
            dimensions: None,
            profile,
        })
    }

    pub(crate) fn prompt_tokens(&self) -> u32 {
        self.texts.iter().map(|text| text.ids.len() as u32).sum()
    }
}

/// Says what to do about tokens that the model does not have: clients of `OpenAI` count with that
/// one's tokenizer.
fn of_another_tokenizer(error: &InferenceError, param: &str) -> InferenceError {
    invalid(
        param,
        &format!(
            "{error}; these are tokens of another tokenizer: send text (LangChain does with \
             `check_embedding_ctx_length=False`)"
        ),
    )
}

fn tokenizer(profile: &Profile) -> Result<&EncoderTokenizer, InferenceError> {
    profile.encoder.as_ref().ok_or(InferenceError::Engine {
        message: "an encoder without its tokenizer".into(),
    })
}
