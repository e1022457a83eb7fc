//! The tokens that a prefix cache would hold, so that what it would save can be observed.

use std::collections::VecDeque;

/// Conversations that are remembered for a model.
const KEPT: usize = 64;

/// Prompts with their answers, those of one model.
#[derive(Debug, Default)]
pub(crate) struct Prefixes {
    /// Oldest first.
    seen: VecDeque<Vec<u32>>,
}

impl Prefixes {
    /// How many of the prompt's first tokens were seen before. The last token always has to be
    /// computed, since the answer starts from it.
    pub(crate) fn count_cached(&self, prompt: &[u32]) -> usize {
        let longest = self.seen.iter().map(|seen| common(seen, prompt)).max();
        longest.unwrap_or(0).min(prompt.len().saturating_sub(1))
    }

    /// Remembers tokens; what they continue need not be remembered any more.
    pub(crate) fn remember(&mut self, tokens: Vec<u32>) {
        self.seen.retain(|seen| !tokens.starts_with(seen));
        if self.seen.len() == KEPT {
            self.seen.pop_front();
        }
        self.seen.push_back(tokens);
    }
}

fn common(left: &[u32], right: &[u32]) -> usize {
    left.iter()
        .zip(right)
        .take_while(|(left, right)| left == right)
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_common_start_counts() {
        let mut prefixes = Prefixes::default();
        assert_eq!(prefixes.count_cached(&[1, 2, 3]), 0);
        prefixes.remember(vec![1, 2, 3]);
        prefixes.remember(vec![1, 2, 9, 9]);
        assert_eq!(prefixes.count_cached(&[1, 2, 3, 4]), 3);
        assert_eq!(
            prefixes.count_cached(&[1, 2, 9]),
            2,
            "the last token is computed"
        );
        assert_eq!(prefixes.count_cached(&[7]), 0);
        assert_eq!(prefixes.count_cached(&[]), 0);
    }

    #[test]
    fn the_oldest_goes_first() {
        let mut prefixes = Prefixes::default();
        for first in 0..=KEPT as u32 {
            prefixes.remember(vec![first, 5, 5]);
        }
        assert_eq!(prefixes.count_cached(&[0, 5, 5]), 0);
        assert_eq!(prefixes.count_cached(&[1, 5, 5]), 2);
        // What is continued takes no second place.
        prefixes.remember(vec![2, 5, 5, 6]);
        assert_eq!(prefixes.count_cached(&[1, 5, 5]), 2);
    }
}
