//! How fast tokens come, over the last few seconds.

use std::{collections::VecDeque, time::Duration};

use serde::Serialize;
use tokio::time::Instant;
use utoipa::ToSchema;

/// What counts as now.
const WINDOW: Duration = Duration::from_secs(3);

/// Tokens that come within one are told as one.
const BUCKET: Duration = Duration::from_millis(250);

/// All running requests together.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, ToSchema)]
pub struct Throughput {
    pub decode_tokens_per_second: f64,
    pub prompt_tokens_per_second: f64,
    /// Requests.
    pub running: u64,
}

/// Tokens of the last few seconds.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    buckets: VecDeque<Bucket>,
}

#[derive(Debug)]
struct Bucket {
    began: Instant,
    decoded: u64,
    prompt: u64,
}

impl Rates {
    /// Counts tokens; none at all say that work began.
    pub(crate) fn add(&mut self, now: Instant, decoded: u64, prompt: u64) {
        match self.buckets.back_mut() {
            Some(last) if now.duration_since(last.began) < BUCKET => {
                last.decoded += decoded;
                last.prompt += prompt;
            }
            Some(_) | None => self.buckets.push_back(Bucket {
                began: now,
                decoded,
                prompt,
            }),
        }
        self.forget(now);
    }

    /// Decoded and prompt tokens a second.
    pub(crate) fn now(&mut self, now: Instant) -> (f64, f64) {
        self.forget(now);
        // A prompt's tokens are told when they are done, so their time begins with the work.
        let prompt = self.rate(now, |bucket| bucket.prompt, |_| true);
        let decoded = self.rate(now, |bucket| bucket.decoded, |bucket| bucket.decoded > 0);
        (decoded, prompt)
    }

    fn rate(
        &self,
        now: Instant,
        tokens: impl Fn(&Bucket) -> u64,
        is_first: impl Fn(&Bucket) -> bool,
    ) -> f64 {
        let Some(first) = self.buckets.iter().find(|bucket| is_first(bucket)) else {
            return 0.0;
        };
        let total: u64 = self.buckets.iter().map(tokens).sum();
        let span = now.duration_since(first.began).max(BUCKET);
        total as f64 / span.as_secs_f64()
    }

    fn forget(&mut self, now: Instant) {
        while self
            .buckets
            .front()
            .is_some_and(|bucket| now.duration_since(bucket.began) > WINDOW)
        {
            self.buckets.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_about(rate: f64, expected: f64) -> bool {
        (rate - expected).abs() < expected * 0.2
    }

    #[test]
    fn a_steady_stream_has_its_rate() {
        let start = Instant::now();
        let mut rates = Rates::default();
        rates.add(start, 0, 0);
        // 500 prompt tokens in a second, then 50 tokens a second.
        rates.add(start + Duration::from_secs(1), 0, 500);
        let (decoded, prompt) = rates.now(start + Duration::from_secs(1));
        assert!(is_about(prompt, 500.0), "{prompt}");
        assert!(decoded.abs() < f64::EPSILON);
        for token in 0..500 {
            rates.add(start + Duration::from_millis(1000 + token * 20), 1, 0);
        }
        let (decoded, prompt) = rates.now(start + Duration::from_secs(11));
        assert!(is_about(decoded, 50.0), "{decoded}");
        assert!(prompt.abs() < f64::EPSILON);
        assert!(rates.buckets.len() <= 14);
    }

    #[test]
    fn silence_is_no_rate() {
        let start = Instant::now();
        let mut rates = Rates::default();
        assert_eq!(rates.now(start), (0.0, 0.0));
        rates.add(start, 5, 5);
        assert_eq!(rates.now(start + Duration::from_mins(1)), (0.0, 0.0));
    }
}
