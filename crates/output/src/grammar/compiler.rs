//! Turns the text of a grammar into the state of one sequence in it.

use std::{collections::VecDeque, fmt, panic::AssertUnwindSafe, sync::Arc};

use llguidance::{
    Matcher, ParserFactory, api::TopLevelGrammar, panic_utils::catch_unwind, toktrie::TokEnv,
};
use macmlx_inference::InferenceError;
use parking_lot::Mutex;

use super::{
    brief,
    vocabulary::{Tokens, Vocabulary},
};

/// Compiled grammars that are kept: agents send the same tools and schemas again and again.
const KEPT: usize = 16;

/// Compiles grammars for one vocabulary.
pub struct GrammarCompiler {
    factory: ParserFactory,
    /// Least recently used first.
    kept: Mutex<VecDeque<(String, Matcher)>>,
}

impl fmt::Debug for GrammarCompiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrammarCompiler").finish_non_exhaustive()
    }
}

impl GrammarCompiler {
    /// Slow for large vocabularies: a tenth of a second or so.
    pub fn new(vocabulary: &dyn Vocabulary) -> Result<Self, InferenceError> {
        let tokens: TokEnv = Arc::new(Tokens::new(vocabulary));
        let mut factory =
            ParserFactory::new_simple(&tokens).map_err(|error| InferenceError::Engine {
                message: format!("the vocabulary cannot be constrained: {error}"),
            })?;
        factory.quiet();
        factory.limits_mut().verbose_errors = false;
        Ok(Self {
            factory,
            kept: Mutex::default(),
        })
    }

    /// The beginning of a grammar, ready for one sequence. `param` is what asked for it, for errors.
    /// Slow for large grammars.
    pub fn compile(&self, lark: String, param: &str) -> Result<Constraint, InferenceError> {
        let mut kept = self.kept.lock();
        let found = kept.iter().position(|(text, _)| *text == lark);
        let entry = if let Some(entry) = found.and_then(|index| kept.remove(index)) {
            entry
        } else {
            drop(kept);
            let matcher = self.parse(&lark, param)?;
            kept = self.kept.lock();
            (lark, matcher)
        };
        let matcher = entry.1.clone();
        kept.push_back(entry);
        if kept.len() > KEPT {
            kept.pop_front();
        }
        Ok(Constraint {
            matcher,
            vocab_size: self.factory.tok_env().tok_trie().vocab_size(),
        })
    }

    fn parse(&self, lark: &str, param: &str) -> Result<Matcher, InferenceError> {
        let parser = catch_unwind(AssertUnwindSafe(|| {
            self.factory
                .create_parser(TopLevelGrammar::from_lark(lark.to_owned()))
        }));
        let refuse = |reason: String| InferenceError::Unsupported {
            param: param.to_owned(),
            reason,
        };
        let parser = parser.map_err(|error| refuse(in_words(&error.to_string())))?;
        let matcher = Matcher::new(Ok(parser));
        match matcher.get_error() {
            Some(error) => Err(refuse(in_words(&error))),
            None => Ok(matcher),
        }
    }
}

fn in_words(error: &str) -> String {
    format!("the grammar cannot be used: {}", brief(error))
}

/// Where one sequence is in its grammar.
pub struct Constraint {
    matcher: Matcher,
    vocab_size: usize,
}

impl fmt::Debug for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Constraint")
            .field("is_complete", &self.is_complete())
            .finish_non_exhaustive()
    }
}

impl Clone for Constraint {
    /// Clones share what the lexer has learnt.
    fn clone(&self) -> Self {
        Self {
            matcher: self.matcher.clone(),
            vocab_size: self.vocab_size,
        }
    }
}

impl Constraint {
    /// Whether each token of the tokenizer's vocabulary may come next; models have rows beyond it,
    /// which may not. Takes from microseconds to milliseconds.
    pub fn allowed(&mut self) -> Result<Vec<bool>, InferenceError> {
        let mask = self.matcher.compute_mask_or_eos().map_err(broken)?;
        let mut allowed = vec![false; self.vocab_size];
        mask.iter_set_entries(|token| {
            if let Some(slot) = allowed.get_mut(token) {
                *slot = true;
            }
        });
        Ok(allowed)
    }

    /// Takes the token that came.
    pub fn advance(&mut self, token: u32) -> Result<(), InferenceError> {
        self.matcher.consume_token(token).map_err(broken)
    }

    /// Nothing can follow: the output is whole.
    pub fn is_complete(&self) -> bool {
        self.matcher.is_stopped() && self.matcher.stop_reason().is_ok()
    }
}

fn broken(error: impl fmt::Display) -> InferenceError {
    InferenceError::InvalidOutput {
        message: brief(&error.to_string()).to_owned(),
    }
}
