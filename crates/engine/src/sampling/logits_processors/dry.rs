//! Penalizes tokens that would continue a passage the sequence has had before (DRY, "don't repeat
//! yourself").
//!
//! The rule is that of the sampler's author, as in text-generation-webui and llama.cpp: when the
//! last `n` tokens also stand earlier and were followed there by token `t`, then `t` loses
//! `multiplier * base^(n - allowed_length)`, with the largest such `n`.

use std::collections::HashMap;

use macmlx_inference::Dry;
use mlx_rs::{Array, ops::indexing::scatter_add_single};

use super::{LogitsProcessor, Setup, Step};
use crate::{error::Result, sampling::row::TokenText};

pub(super) struct DryPenalty {
    options: Dry,
    breakers: Breakers,
    /// One flag for each token of the history: true if a sequence breaker ends in it.
    breaks: Vec<bool>,
}

impl DryPenalty {
    pub(super) fn make(setup: &Setup<'_>) -> Option<Box<dyn LogitsProcessor>> {
        let options = setup.parameters.dry.clone()?;
        let breakers = Breakers::new(&options.sequence_breakers, setup.text);
        Some(Box::new(Self {
            options,
            breakers,
            breaks: Vec::new(),
        }))
    }
}

impl LogitsProcessor for DryPenalty {
    fn process(&mut self, logits: Array, step: &Step<'_>) -> Result<Array> {
        for &token in &step.history[self.breaks.len()..] {
            self.breaks.push(self.breakers.feed(token));
        }
        let window = self
            .options
            .window
            .map_or(usize::MAX, |window| window as usize);
        let start = step.history.len().saturating_sub(window);
        let run_limit = self.breaks[start..]
            .iter()
            .rev()
            .take_while(|&&breaks| !breaks)
            .count();
        let allowed = self.options.allowed_length as usize;
        let penalties: Vec<(u32, f32)> = runs(&step.history[start..], run_limit)
            .into_iter()
            .filter(|&(token, length)| length >= allowed && !self.breakers.is_in(token))
            .map(|(token, length)| (token, penalty(&self.options, length - allowed)))
            .collect();
        if penalties.is_empty() {
            return Ok(logits);
        }
        let count = penalties.len() as i32;
        let tokens: Vec<u32> = penalties.iter().map(|&(token, _)| token).collect();
        let amounts: Vec<f32> = penalties.iter().map(|&(_, amount)| -amount).collect();
        Ok(scatter_add_single(
            &logits,
            Array::from_slice(&tokens, &[count]),
            Array::from_slice(&amounts, &[count, 1, 1]),
            1,
        )?)
    }

    fn needs_history(&self) -> bool {
        true
    }
}

fn penalty(options: &Dry, excess: usize) -> f32 {
    // A ban rather than infinity, which would make a row of equals out of it.
    (options.multiplier * options.base.powi(excess.min(1 << 20) as i32)).min(1e9)
}

/// For each token that followed an earlier copy of the last tokens: the longest copy's length, at
/// least 1 and at most `limit`.
///
/// Linear in the history: `Z` values of the reversed history (Gusfield) are the lengths by which
/// the end of each prefix agrees with the end of the whole.
fn runs(history: &[u32], limit: usize) -> HashMap<u32, usize> {
    let length = history.len();
    let mut longest = HashMap::new();
    if limit == 0 {
        return longest;
    }
    let at = |index: usize| history[length - 1 - index];
    let mut z = vec![0_usize; length];
    let (mut left, mut right) = (0, 0);
    for index in 1..length {
        if index < right {
            z[index] = z[index - left].min(right - index);
        }
        while index + z[index] < length && at(z[index]) == at(index + z[index]) {
            z[index] += 1;
        }
        if index + z[index] > right {
            (left, right) = (index, index + z[index]);
        }
        let run = z[index].min(limit);
        if run > 0 {
            let follower: &mut usize = longest.entry(at(index - 1)).or_default();
            *follower = run.max(*follower);
        }
    }
    longest
}

/// Finds sequence breakers in the text of a growing sequence.
struct Breakers {
    words: Vec<Vec<u8>>,
    /// The last bytes of the text, one less than the longest breaker has.
    tail: Vec<u8>,
    text: TokenText,
}

impl Breakers {
    fn new(breakers: &[String], text: &TokenText) -> Self {
        Self {
            words: breakers
                .iter()
                .filter(|breaker| !breaker.is_empty())
                .map(|breaker| breaker.as_bytes().to_vec())
                .collect(),
            tail: Vec::new(),
            text: text.clone(),
        }
    }

    /// Appends a token; whether a breaker ends in its text.
    fn feed(&mut self, token: u32) -> bool {
        let Some(longest) = self.words.iter().map(Vec::len).max() else {
            return false;
        };
        let before = self.tail.len();
        self.tail.extend((self.text)(token));
        let ends_inside = self.words.iter().any(|breaker| {
            self.tail
                .windows(breaker.len())
                .enumerate()
                .any(|(start, window)| start + breaker.len() > before && window == breaker)
        });
        let surplus = self.tail.len().saturating_sub(longest - 1);
        self.tail.drain(..surplus);
        ends_inside
    }

    /// Whether the token's own text has a breaker.
    fn is_in(&self, token: u32) -> bool {
        if self.words.is_empty() {
            return false;
        }
        let text = (self.text)(token);
        self.words
            .iter()
            .any(|breaker| text.windows(breaker.len()).any(|window| window == breaker))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// The definition, word by word.
    fn runs_by_definition(history: &[u32], limit: usize) -> HashMap<u32, usize> {
        let mut longest = HashMap::new();
        for end in 1..history.len() {
            let run = history[..end]
                .iter()
                .rev()
                .zip(history.iter().rev())
                .take_while(|(a, b)| a == b)
                .count()
                .min(limit);
            if run > 0 {
                let entry: &mut usize = longest.entry(history[end]).or_default();
                *entry = run.max(*entry);
            }
        }
        longest
    }

    #[test]
    fn runs_agree_with_the_definition() {
        let mut state = 1_u64;
        for round in 0..500_usize {
            let history: Vec<u32> = (0..round % 40)
                .map(|_| {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    (state >> 62) as u32
                })
                .collect();
            for limit in [0, 1, 3, 100] {
                let expected = if limit == 0 {
                    HashMap::new()
                } else {
                    runs_by_definition(&history, limit)
                };
                assert_eq!(runs(&history, limit), expected, "{history:?} {limit}");
            }
        }
    }

    #[test]
    fn breakers_across_and_inside_tokens() {
        let text: TokenText = Arc::new(|token| match token {
            0 => b"a*".to_vec(),
            1 => b"*b".to_vec(),
            2 => b"x\ny".to_vec(),
            _ => b"z".to_vec(),
        });
        let mut breakers = Breakers::new(&["**".into(), "\n".into(), String::new()], &text);
        let found: Vec<bool> = [3, 0, 1, 3, 1, 2, 0, 3]
            .map(|token| breakers.feed(token))
            .into();
        assert_eq!(
            found,
            [false, false, true, false, false, true, false, false]
        );
        assert!(breakers.is_in(2));
        assert!(!breakers.is_in(0));
    }
}
