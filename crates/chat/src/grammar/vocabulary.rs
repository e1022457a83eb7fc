//! A tokenizer's vocabulary as llguidance wants it.

use llguidance::toktrie::{TokRxInfo, TokTrie, TokenId, TokenizerEnv};

use crate::Tokenizer;

/// Where a model has no end-of-sequence token.
const NO_TOKEN: TokenId = TokenId::MAX;

/// The tokens by their bytes. Special tokens are not text: they stand behind a byte that UTF-8 does
/// not have, and only rules that name them allow them.
pub(super) struct Vocabulary {
    trie: TokTrie,
}

impl Vocabulary {
    pub(super) fn new(tokenizer: &Tokenizer) -> Self {
        let size = tokenizer.vocab_size() as u32;
        let tokens: Vec<Vec<u8>> = (0..size)
            .map(|id| {
                let bytes = tokenizer.token_bytes(id);
                if tokenizer.is_special(id) {
                    [&[TokTrie::SPECIAL_TOKEN_MARKER], bytes].concat()
                } else {
                    bytes.to_vec()
                }
            })
            .collect();
        let eos: Vec<TokenId> = tokenizer
            .eos_token_ids()
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

impl TokenizerEnv for Vocabulary {
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
