//! Which bytes of a file are here: sorted ranges that neither overlap nor touch.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// A set of bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(u64, u64)>", into = "Vec<(u64, u64)>")]
pub(super) struct Ranges(Vec<(u64, u64)>);

impl From<Vec<(u64, u64)>> for Ranges {
    /// Takes them as they come, sorted or not.
    fn from(pairs: Vec<(u64, u64)>) -> Self {
        let mut ranges = Self::default();
        for (start, end) in pairs {
            ranges.insert(start..end);
        }
        ranges
    }
}

impl From<Ranges> for Vec<(u64, u64)> {
    fn from(ranges: Ranges) -> Self {
        ranges.0
    }
}

impl Ranges {
    pub(super) fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let first = self.0.partition_point(|(_, end)| *end < range.start);
        let last = self.0.partition_point(|(start, _)| *start <= range.end);
        let mut merged = (range.start, range.end);
        if first < last {
            merged.0 = merged.0.min(self.0[first].0);
            merged.1 = merged.1.max(self.0[last - 1].1);
        }
        self.0.splice(first..last, [merged]);
    }

    /// Forgets what lies behind `size`.
    pub(super) fn truncate(&mut self, size: u64) {
        self.0.retain_mut(|(start, end)| {
            *end = (*end).min(size);
            *start < *end
        });
    }

    /// How many bytes are here.
    pub(super) fn covered(&self) -> u64 {
        self.0.iter().map(|(start, end)| end - start).sum()
    }

    /// What a file of `size` bytes lacks, in pieces of at most `piece` bytes.
    pub(super) fn missing(&self, size: u64, piece: u64) -> Vec<Range<u64>> {
        let piece = piece.max(1);
        let mut pieces = Vec::new();
        let mut position = 0;
        for (start, end) in self.0.iter().copied().chain([(size, size)]) {
            let start = start.min(size);
            while position < start {
                let end = position.saturating_add(piece).min(start);
                pieces.push(position..end);
                position = end;
            }
            position = position.max(end);
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random and are the same each time.
    struct Sequence(u64);

    impl Sequence {
        fn next(&mut self, below: u64) -> u64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % below
        }
    }

    fn bytes(ranges: &Ranges, size: usize) -> Vec<bool> {
        let mut here = vec![false; size];
        for (start, end) in &ranges.0 {
            here[*start as usize..(*end as usize).min(size)].fill(true);
        }
        here
    }

    #[test]
    fn any_order_of_ranges_agrees_with_a_map_of_bytes() {
        const SIZE: u64 = 97;
        for seed in 0..500 {
            let mut sequence = Sequence(seed);
            let mut ranges = Ranges::default();
            let mut here = vec![false; SIZE as usize];
            for _ in 0..sequence.next(40) {
                let start = sequence.next(SIZE);
                let end = start + sequence.next(SIZE - start + 1);
                ranges.insert(start..end);
                here[start as usize..end as usize].fill(true);
                if sequence.next(20) == 0 {
                    let size = sequence.next(SIZE);
                    ranges.truncate(size);
                    here[size as usize..].fill(false);
                }
                assert_eq!(
                    bytes(&ranges, SIZE as usize),
                    here,
                    "seed {seed}: {ranges:?}"
                );
                assert!(ranges.0.windows(2).all(|pair| pair[0].1 < pair[1].0));
                assert!(ranges.0.iter().all(|(start, end)| start < end));
            }
            let count = here.iter().filter(|here| **here).count();
            assert_eq!(ranges.covered(), count as u64);
            let piece = 1 + sequence.next(30);
            let missing = ranges.missing(SIZE, piece);
            assert!(
                missing
                    .iter()
                    .all(|range| !range.is_empty() && range.end - range.start <= piece)
            );
            for range in missing {
                for byte in range {
                    assert!(!here[byte as usize], "asked for twice");
                    here[byte as usize] = true;
                }
            }
            assert!(here.iter().all(|here| *here), "never asked for");
        }
    }

    #[test]
    fn what_was_written_by_others_is_put_in_order() {
        let ranges: Ranges = serde_json::from_str("[[5,9],[0,2],[8,12],[3,3],[7,4]]").unwrap();
        assert_eq!(serde_json::to_string(&ranges).unwrap(), "[[0,2],[5,12]]");
        assert_eq!(ranges.missing(20, 100), [2..5, 12..20]);
        assert_eq!(ranges.missing(9, 100), ranges.missing(5, 100));
        assert_eq!(Ranges::default().missing(0, 4), []);
    }
}
