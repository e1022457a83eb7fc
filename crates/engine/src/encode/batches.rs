//! Decides which texts go into the next batch, from plain numbers.
//!
//! Invariants:
//! - A batch has texts of one model; where they are padded, all about as long as the longest, so that
//!   little is padding.
//! - Every other batch is led by the oldest request, the others by the one with least to do: a query
//!   overtakes a library without starving it.
//! - Requests that share a model share batches.

/// A text that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Waiting {
    /// Length in tokens.
    pub(super) length: usize,
    /// Place in its request.
    pub(super) index: usize,
}

/// What still waits of one request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rest<'a> {
    /// Requests of the same model have the same number.
    pub(super) model: usize,
    /// The model pads texts to the longest of a batch.
    pub(super) pads: bool,
    /// Shortest first, at least one.
    pub(super) texts: &'a [Waiting],
}

/// A text of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pick {
    /// Place of its request among those that wait.
    pub(super) request: usize,
    pub(super) text: Waiting,
}

/// Tokens by which a text may always be padded: another batch costs more.
const FREE_PADDING: usize = 16;

/// The next batch, longest text first; empty only when nothing waits. It takes no more than `budget`
/// tokens, padding included, unless a single text does. `batches` is how many there were.
pub(super) fn next(requests: &[Rest<'_>], batches: u64, budget: usize) -> Vec<Pick> {
    let lead = if batches.is_multiple_of(2) {
        requests.first()
    } else {
        requests.iter().min_by_key(|request| total(request.texts))
    };
    let Some((lead, widest)) = lead.and_then(|lead| Some((lead, lead.texts.last()?))) else {
        return Vec::new();
    };
    let width = widest.length;
    let shortest = if lead.pads {
        width - FREE_PADDING.max(width / 4).min(width)
    } else {
        0
    };
    let mut fitting: Vec<Pick> = Vec::new();
    for (place, request) in requests.iter().enumerate() {
        if request.model != lead.model {
            continue;
        }
        let from = request.texts.partition_point(|text| text.length < shortest);
        let to = request.texts.partition_point(|text| text.length <= width);
        fitting.extend(request.texts[from..to].iter().map(|&text| Pick {
            request: place,
            text,
        }));
    }
    // The lead's longest is among the longest of all; who leads goes first among equals.
    fitting.sort_by_key(|pick| {
        let is_leads = std::ptr::eq(&raw const requests[pick.request], lead);
        (std::cmp::Reverse(pick.text.length), !is_leads, pick.request)
    });
    let mut tokens = 0;
    let within = |pick: &&Pick| {
        tokens += if lead.pads { width } else { pick.text.length };
        tokens <= budget
    };
    let count = fitting.iter().take_while(within).count();
    fitting.truncate(count.max(1));
    fitting
}

/// Tokens that a batch of these takes, padding included.
pub(super) fn count_padded(picks: &[Pick]) -> usize {
    let width = picks.iter().map(|pick| pick.text.length).max();
    width.unwrap_or(0) * picks.len()
}

fn total(texts: &[Waiting]) -> usize {
    texts.iter().map(|text| text.length).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(lengths: &[usize]) -> Vec<Waiting> {
        let mut texts: Vec<Waiting> = lengths
            .iter()
            .enumerate()
            .map(|(index, &length)| Waiting { length, index })
            .collect();
        texts.sort_by_key(|text| text.length);
        texts
    }

    /// Models and lengths of requests, and the batch: (request, index).
    fn batch(requests: &[(usize, &[usize])], batches: u64, budget: usize) -> Vec<(usize, usize)> {
        let texts: Vec<_> = requests.iter().map(|(_, lengths)| texts(lengths)).collect();
        let rests: Vec<_> = requests
            .iter()
            .zip(&texts)
            .map(|(&(model, _), texts)| Rest {
                model,
                pads: true,
                texts,
            })
            .collect();
        next(&rests, batches, budget)
            .iter()
            .map(|pick| (pick.request, pick.text.index))
            .collect()
    }

    #[test]
    fn without_padding_only_tokens_count() {
        let texts = texts(&[60, 3, 20, 16, 8]);
        let rest = |pads| Rest {
            model: 0,
            pads,
            texts: &texts,
        };
        let lengths = |pads| -> Vec<usize> {
            let picks = next(&[rest(pads)], 0, 100);
            picks.iter().map(|pick| pick.text.length).collect()
        };
        assert_eq!(lengths(true), [60]);
        assert_eq!(lengths(false), [60, 20, 16]);
    }

    /// Name, requests, batches so far, the batch.
    type Case = (
        &'static str,
        &'static [(usize, &'static [usize])],
        u64,
        &'static [(usize, usize)],
    );

    #[test]
    fn batches() {
        let table: &[Case] = &[
            ("nothing waits", &[], 0, &[]),
            ("one text", &[(0, &[7])], 0, &[(0, 0)]),
            (
                "longest first",
                &[(0, &[5, 9, 7])],
                0,
                &[(0, 1), (0, 2), (0, 0)],
            ),
            (
                "padding counts",
                &[(0, &[30, 30, 40, 30])],
                0,
                &[(0, 2), (0, 0)],
            ),
            (
                "a text beyond the budget goes alone",
                &[(0, &[300, 299])],
                0,
                &[(0, 0)],
            ),
            (
                "much shorter ones wait for their like",
                &[(0, &[50, 3, 40, 33])],
                0,
                &[(0, 0), (0, 2)],
            ),
            (
                "requests share a batch",
                &[(0, &[20]), (0, &[10, 20])],
                0,
                &[(0, 0), (1, 1), (1, 0)],
            ),
            (
                "not with longer ones",
                &[(0, &[20]), (0, &[21])],
                0,
                &[(0, 0)],
            ),
            (
                "not with another model",
                &[(0, &[20]), (1, &[20]), (0, &[19])],
                0,
                &[(0, 0), (2, 0)],
            ),
            (
                "the least goes every other time",
                &[(0, &[100, 100]), (1, &[90])],
                1,
                &[(1, 0)],
            ),
            (
                "who leads goes first",
                &[(0, &[50, 50, 50]), (0, &[50])],
                1,
                &[(1, 0), (0, 0)],
            ),
        ];
        for (name, requests, batches, expected) in table {
            assert_eq!(batch(requests, *batches, 100), *expected, "{name}");
        }
    }

    #[test]
    fn no_text_waits_for_ever() {
        let mut left = vec![
            texts(&[3, 90, 14, 200, 15, 90, 90, 1]),
            texts(&[10]),
            texts(&[80, 2]),
        ];
        let mut batches = 0;
        while left.iter().any(|texts| !texts.is_empty()) {
            left.retain(|texts| !texts.is_empty());
            let rests: Vec<_> = left
                .iter()
                .map(|texts| Rest {
                    model: 0,
                    pads: true,
                    texts,
                })
                .collect();
            let picks = next(&rests, batches, 128);
            assert!(!picks.is_empty());
            assert!(count_padded(&picks) <= 128 || picks.len() == 1, "{picks:?}");
            for pick in picks {
                left[pick.request].retain(|text| *text != pick.text);
            }
            batches += 1;
            assert!(batches < 12);
        }
    }
}
