//! How often each token occurs in a window of a sequence, kept on the device so that penalties do
//! not wait for the last token to be read back.

use std::collections::VecDeque;

use mlx_rs::{Array, ops::indexing::scatter_add_single};

use super::logits_processors::Step;
use crate::error::Result;

/// Counts over the last tokens of a sequence, of those that are counted at all.
#[derive(Debug)]
pub(super) struct TokenCounts {
    /// `[1, vocab]` of `f32`.
    counts: Array,
    /// `None`: nothing ever leaves.
    window: Option<usize>,
    /// Tokens in the window, oldest first; host tokens or `[1]` arrays still on the device.
    recent: VecDeque<Entry>,
}

#[derive(Debug)]
enum Entry {
    /// Takes a place in the window but is not counted.
    Uncounted,
    Host(u32),
    Device(Array),
}

impl TokenCounts {
    /// Counts `tokens` from index `counted_from` on, within the last `window` of them.
    pub(super) fn new(
        tokens: &[u32],
        counted_from: usize,
        window: Option<usize>,
        vocab_size: u32,
    ) -> Self {
        let start = window.map_or(0, |window| tokens.len().saturating_sub(window));
        let mut counts = vec![0.0_f32; vocab_size as usize];
        let mut recent = VecDeque::new();
        for (index, &token) in tokens.iter().enumerate().skip(start) {
            let is_counted = index >= counted_from;
            if is_counted && let Some(count) = counts.get_mut(token as usize) {
                *count += 1.0;
            }
            if window.is_some() {
                recent.push_back(if is_counted {
                    Entry::Host(token)
                } else {
                    Entry::Uncounted
                });
            }
        }
        Self {
            counts: Array::from_slice(&counts, &[1, vocab_size as i32]),
            window,
            recent,
        }
    }

    /// Takes in the last sampled token, then gives the counts, `[1, vocab]`.
    pub(super) fn advance(&mut self, step: &Step<'_>) -> Result<&Array> {
        if let Some(last) = step.last {
            self.add(last, 1.0)?;
            if let Some(window) = self.window {
                self.recent.push_back(Entry::Device(last.clone()));
                if self.recent.len() > window {
                    match self.recent.pop_front() {
                        Some(Entry::Host(token)) => {
                            self.add(&Array::from_slice(&[token], &[1]), -1.0)?;
                        }
                        Some(Entry::Device(token)) => self.add(&token, -1.0)?,
                        Some(Entry::Uncounted) | None => {}
                    }
                }
            }
        }
        Ok(&self.counts)
    }

    fn add(&mut self, token: &Array, amount: f32) -> Result<()> {
        let update = Array::from_slice(&[amount], &[1, 1, 1]);
        self.counts = scatter_add_single(&self.counts, token, &update, 1)?;
        Ok(())
    }
}
