//! Which bytes of a file are here: sorted ranges that neither overlap nor touch.

use std::ops::Range;

use rangemap::RangeSet;
use serde::{Deserialize, Serialize};

/// A set of bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(u64, u64)>", into = "Vec<(u64, u64)>")]
pub(super) struct Ranges(RangeSet<u64>);

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
        let pairs = ranges.0.into_iter();
        pairs.map(|range| (range.start, range.end)).collect()
    }
}

impl Ranges {
    pub(super) fn insert(&mut self, range: Range<u64>) {
        if !range.is_empty() {
            self.0.insert(range);
        }
    }

    /// Forgets what lies behind `size`.
    pub(super) fn truncate(&mut self, size: u64) {
        if size < u64::MAX {
            self.0.remove(size..u64::MAX);
        }
    }

    /// How many bytes are here.
    pub(super) fn count_bytes(&self) -> u64 {
        self.0.iter().map(|range| range.end - range.start).sum()
    }

    /// What a file of `size` bytes lacks, in pieces of at most `piece` bytes.
    pub(super) fn missing(&self, size: u64, piece: u64) -> Vec<Range<u64>> {
        let piece = piece.max(1);
        let whole = 0..size;
        let pieces = self.0.gaps(&whole).flat_map(|gap| {
            let starts = gap.clone().step_by(piece as usize);
            starts.map(move |start| start..start.saturating_add(piece).min(gap.end))
        });
        pieces.collect()
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
        for range in ranges.0.iter() {
            here[range.start as usize..(range.end as usize).min(size)].fill(true);
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
                let pairs = Vec::from(ranges.clone());
                assert!(pairs.windows(2).all(|pair| pair[0].1 < pair[1].0));
                assert!(pairs.iter().all(|(start, end)| start < end));
            }
            let count = here.iter().filter(|here| **here).count();
            assert_eq!(ranges.count_bytes(), count as u64);
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
        assert_eq!(ranges.missing(0, 4), []);
    }
}
