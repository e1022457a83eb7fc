//! Log probabilities with the bytes of their tokens.

use macmlx_chat::Tokenizer;
use macmlx_inference::{LogprobCandidate, TokenLogprob};

use crate::sampling::LogprobRow;

/// A token's log probabilities with the tokens' bytes. Without a row the token was not drawn but
/// put there.
pub(crate) fn token_logprob(
    tokenizer: &Tokenizer,
    token: u32,
    row: Option<&LogprobRow>,
    top: u8,
) -> TokenLogprob {
    TokenLogprob {
        id: token,
        bytes: tokenizer.token_bytes(token).to_vec(),
        logprob: row.map(|row| row.chosen),
        top: row
            .into_iter()
            .flat_map(|row| row.top.iter().take(usize::from(top)))
            .map(|&(id, logprob)| LogprobCandidate {
                id,
                bytes: tokenizer.token_bytes(id).to_vec(),
                logprob,
            })
            .collect(),
    }
}
