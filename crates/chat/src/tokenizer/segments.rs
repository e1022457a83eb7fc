//! Texts and pairs of texts with the special tokens around them, cut to a length.

use macmlx_inference::InferenceError;
use tokenizers::{Encoding, PostProcessor, TruncationDirection};

use super::Tokenizer;

/// A tokenized text without special tokens, on its own or one of a pair.
#[derive(Debug, Clone)]
pub(crate) struct Segment(Encoding);

/// What an encoder reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncoderTokens {
    /// Ids of the tokens, with special tokens.
    pub ids: Vec<u32>,
    /// First token of the second text of a pair, where the tokenizer marks it.
    pub second_segment: Option<usize>,
}

impl Segment {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn into_ids(self) -> Vec<u32> {
        self.0.get_ids().to_vec()
    }

    /// Cuts the end off.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.0.truncate(length, 0, TruncationDirection::Right);
        // The rest comes along in pieces, each of which would get special tokens, too.
        self.0.take_overflowing();
    }
}

impl Tokenizer {
    /// Tokenizes a text for [`Self::join`]. Special tokens written in it are recognised.
    pub(crate) fn segment(&self, text: &str) -> Result<Segment, InferenceError> {
        self.inner
            .encode_fast(text, false)
            .map(Segment)
            .map_err(|error| failed(&error))
    }

    /// Special tokens that [`Self::join`] adds.
    pub(crate) fn count_special_tokens(&self, is_pair: bool) -> usize {
        self.inner
            .get_post_processor()
            .map_or(0, |processor| processor.added_tokens(is_pair))
    }

    /// One text or two with special tokens, as the tokenizer's post-processor puts them.
    pub(crate) fn join(
        &self,
        first: Segment,
        second: Option<Segment>,
    ) -> Result<EncoderTokens, InferenceError> {
        let joined = self
            .inner
            .post_process(first.0, second.map(|segment| segment.0), true)
            .map_err(|error| failed(&error))?;
        Ok(EncoderTokens {
            ids: joined.get_ids().to_vec(),
            second_segment: joined
                .get_type_ids()
                .iter()
                .position(|type_id| *type_id == 1),
        })
    }
}

fn failed(error: &tokenizers::Error) -> InferenceError {
    InferenceError::Engine {
        message: format!("the tokenizer failed: {error}"),
    }
}
