//! Unknown words that look like a slip of one that would change the answer.

use super::{Api, Use};
use crate::Error;

/// Shorter words are too near to each other.
const SHORTEST: usize = 5;

/// Refuses `name` where it is one letter away from a word that the route does something with, or
/// such a word with capitals or other hyphens.
pub(super) fn check(api: Api, name: &str, path: &str) -> Result<(), Error> {
    let meant = api
        .words()
        .filter(|word| !matches!(word.used(api), Use::Harmless(_)))
        .flat_map(|word| word.names)
        .find(|word| is_slip(name, word));
    match meant {
        Some(meant) => Err(Error::unsupported(
            path,
            format!("it is not known here; is `{meant}` meant?"),
        )),
        None => Ok(()),
    }
}

fn is_slip(name: &str, word: &str) -> bool {
    fold(name) == fold(word)
        || format!("{word}s") == name
        || format!("{name}s") == word
        || (name.len().min(word.len()) >= SHORTEST && is_one_edit_away(name, word))
}

fn fold(name: &str) -> String {
    let letters = name.chars().filter(|letter| letter.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// Whether one letter more, less or other, or two letters in turn, make one of the other.
fn is_one_edit_away(one: &str, other: &str) -> bool {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let (short, long) = if one.len() <= other.len() {
        (&one, &other)
    } else {
        (&other, &one)
    };
    if long.len() - short.len() > 1 {
        return false;
    }
    let same = short.iter().zip(long).take_while(|(a, b)| a == b).count();
    let (short, long) = (&short[same..], &long[same..]);
    if short.len() < long.len() {
        return *short == long[1..];
    }
    match (short, long) {
        ([], []) => true,
        ([a, b, rest @ ..], [c, d, others @ ..]) if (a, b) == (d, c) => rest == others,
        ([_, rest @ ..], [_, others @ ..]) => rest == others,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_told_from_other_words() {
        for (name, word) in [
            ("temprature", "temperature"),
            ("temperatrue", "temperature"),
            ("temperature_", "temperature"),
            ("maxTokens", "max_tokens"),
            ("max-tokens", "max_tokens"),
            ("max_token", "max_tokens"),
            ("stops", "stop"),
            ("tool", "tools"),
        ] {
            assert!(is_slip(name, word), "{name}");
        }
        for (name, word) in [
            ("step", "stop"),
            ("temp", "temperature"),
            ("max_tokens_total", "max_tokens"),
            ("model_id", "model"),
        ] {
            assert!(!is_slip(name, word), "{name}");
        }
    }
}
