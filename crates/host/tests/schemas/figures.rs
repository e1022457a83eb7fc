//! What was counted, printed at the end.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use parking_lot::Mutex;

#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub(crate) suite: Suite,
    pub(crate) corpus: Corpus,
    pub(crate) sampled: Sampled,
}

/// The JSON Schema test suite.
#[derive(Debug, Default)]
pub(crate) struct Suite {
    pub(crate) compiled: AtomicUsize,
    pub(crate) refused: AtomicUsize,
    pub(crate) valid_accepted: AtomicUsize,
    pub(crate) valid_refused: AtomicUsize,
    pub(crate) invalid_refused: AtomicUsize,
    pub(crate) invalid_accepted: AtomicUsize,
}

/// Schemas that people wrote.
#[derive(Debug, Default)]
pub(crate) struct Corpus {
    pub(crate) compiled: AtomicUsize,
    pub(crate) refused: AtomicUsize,
    pub(crate) times: Mutex<Vec<Duration>>,
    /// How often which keyword was refused.
    reasons: Mutex<BTreeMap<String, usize>>,
}

impl Corpus {
    /// Remembers why a schema was refused.
    pub(crate) fn note(&self, reason: &str) {
        let reason = reason.split(" (at `").next().unwrap_or(reason);
        let mut reasons = self.reasons.lock();
        *reasons.entry(reason.to_owned()).or_default() += 1;
    }
}

/// Outputs that the starter model drew.
#[derive(Debug, Default)]
pub(crate) struct Sampled {
    pub(crate) valid: AtomicUsize,
    pub(crate) invalid: AtomicUsize,
    /// Cut off by their limit of tokens.
    pub(crate) unfinished: AtomicUsize,
}

pub(crate) fn count(counter: &AtomicUsize) {
    counter.fetch_add(1, Ordering::Relaxed);
}

fn get(counter: &AtomicUsize) -> usize {
    counter.load(Ordering::Relaxed)
}

fn share(part: usize, rest: usize) -> String {
    let whole = part + rest;
    let percent = 100.0 * part as f64 / whole.max(1) as f64;
    format!("{part} of {whole} ({percent:.1} %)")
}

impl Figures {
    #[expect(clippy::print_stdout, reason = "figures are what the suite is run for")]
    pub(crate) fn print(&self) {
        let suite = &self.suite;
        println!(
            "test suite: {} schemas compiled; of their instances {} valid ones taken, {} invalid \
             ones wrongly taken",
            share(get(&suite.compiled), get(&suite.refused)),
            share(get(&suite.valid_accepted), get(&suite.valid_refused)),
            share(get(&suite.invalid_accepted), get(&suite.invalid_refused)),
        );
        let corpus = &self.corpus;
        let mut times = corpus.times.lock().clone();
        times.sort_unstable();
        let at = |percent: usize| {
            times
                .get(times.len() * percent / 100)
                .copied()
                .unwrap_or_default()
        };
        println!(
            "real schemas: {} compiled, in {:.1?} (median), {:.1?} (95 %), {:.1?} (most)",
            share(get(&corpus.compiled), get(&corpus.refused)),
            at(50),
            at(95),
            times.last().copied().unwrap_or_default(),
        );
        let mut reasons: Vec<_> = corpus.reasons.lock().clone().into_iter().collect();
        reasons.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
        for (reason, times) in reasons.iter().take(12) {
            println!("  refused {times} times: {reason}");
        }
        let sampled = &self.sampled;
        println!(
            "drawn by the starter model: {} whole outputs valid, {} more were cut off",
            share(get(&sampled.valid), get(&sampled.invalid)),
            get(&sampled.unfinished),
        );
    }
}
