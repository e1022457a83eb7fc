//! Whether a grammar takes a text as a whole output.

use macmlx_chat::{Constraint, Tokenizer};

pub(crate) fn accepts(mut constraint: Constraint, tokenizer: &Tokenizer, text: &str) -> bool {
    for id in tokenizer.encode(text, false).unwrap() {
        if constraint.is_complete() || constraint.advance(id).is_err() {
            return false;
        }
    }
    constraint.is_complete() || {
        let allowed = constraint.allowed().unwrap();
        let mut eos = tokenizer.eos_token_ids().iter();
        eos.any(|id| allowed[*id as usize])
    }
}
