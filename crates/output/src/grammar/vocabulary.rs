//! The tokens that a grammar chooses from, and the same as llguidance wants them.

use std::{collections::HashSet, fmt::Debug};

use llguidance::toktrie::{TokRxInfo, TokTrie, TokenId, TokenizerEnv};

/// The tokens of a model, by their ids.
pub trait Vocabulary: Debug {
    /// The highest id plus one.
    fn size(&self) -> usize;

    /// The bytes that a token stands for in the middle of a text; they need not be UTF-8. Empty for
    /// an id that stands for nothing.
    fn token_bytes(&self, id: u32) -> &[u8];

    /// The ids of control tokens, such as `<|im_end|>`, which are not text.
    fn special_ids(&self) -> Vec<u32>;

    /// The ids of the tokens that end an output.
    fn eos_ids(&self) -> &[u32];
}

/// Where a model has no end-of-sequence token.
const NO_TOKEN: TokenId = TokenId::MAX;

/// The tokens by their bytes. Special tokens are not text: they stand behind a byte that UTF-8 does
/// not have, and only rules that name them allow them.
pub(super) struct Tokens {
    trie: TokTrie,
}

impl Tokens {
    pub(super) fn new(vocabulary: &dyn Vocabulary) -> Self {
        let size = vocabulary.size() as u32;
        let special: HashSet<u32> = vocabulary.special_ids().into_iter().collect();
        let tokens: Vec<Vec<u8>> = (0..size)
            .map(|id| {
                let bytes = vocabulary.token_bytes(id);
                if special.contains(&id) {
                    [&[TokTrie::SPECIAL_TOKEN_MARKER], bytes].concat()
                } else {
                    bytes.to_vec()
                }
            })
            .collect();
        let eos: Vec<TokenId> = vocabulary
            .eos_ids()
            .iter()
            .copied()
            .filter(|id| *id < size)
            .collect();
        let info = TokRxInfo::new(size, eos.first().copied().unwrap_or(NO_TOKEN));
        let trie = TokTrie::from(&info, &tokens);
        Self {
            trie: if eos.is_empty() {
                trie
            } else {
                trie.with_eos_tokens(&eos)
            },
        }
    }
}

impl TokenizerEnv for Tokens {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, text: &[u8]) -> Vec<TokenId> {
        self.trie.greedy_tokenize(text)
    }

    /// The model chooses how to write what the grammar leaves no choice of, so the tokenizer's own
    /// way of cutting text need not be known here.
    fn tokenize_is_canonical(&self) -> bool {
        false
    }
}
