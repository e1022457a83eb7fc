//! How fast a download is, smoothed, and how long the rest takes.

use std::time::Duration;

/// A change of speed shows for the most part after this long.
const MEMORY: Duration = Duration::from_secs(5);
/// Until this long after the start no end is predicted.
const WARM_UP: Duration = Duration::from_secs(3);

/// An exponential moving average over time.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Speed {
    bytes_per_second: f64,
    observed: Duration,
}

impl Speed {
    /// Bytes that arrived within the time since the last call.
    pub(super) fn observe(&mut self, bytes: u64, elapsed: Duration) {
        if elapsed.is_zero() {
            return;
        }
        let now = bytes as f64 / elapsed.as_secs_f64();
        // The first seconds count in full, else a fast start looks slow.
        self.observed += elapsed;
        let memory = MEMORY.min(self.observed).as_secs_f64();
        let weight = 1.0 - (-elapsed.as_secs_f64() / memory).exp();
        let weight = if self.observed == elapsed {
            1.0
        } else {
            weight
        };
        self.bytes_per_second += (now - self.bytes_per_second) * weight;
    }

    pub(super) fn bytes_per_second(&self) -> f64 {
        self.bytes_per_second
    }

    pub(super) fn eta(&self, remaining_bytes: u64) -> Option<Duration> {
        if self.observed < WARM_UP || self.bytes_per_second < 1.0 {
            return None;
        }
        Duration::try_from_secs_f64(remaining_bytes as f64 / self.bytes_per_second).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(250);

    #[test]
    fn follows_changes_within_seconds() {
        let mut speed = Speed::default();
        for _ in 0..40 {
            speed.observe(250_000, TICK);
        }
        assert!((speed.bytes_per_second() - 1e6).abs() < 1.0);
        assert_eq!(speed.eta(5_000_000).map(|eta| eta.as_secs()), Some(5));
        for _ in 0..80 {
            speed.observe(0, TICK);
        }
        assert!(speed.bytes_per_second() < 5e4, "{speed:?}");
    }

    #[test]
    fn says_nothing_too_early_or_about_a_standstill() {
        let mut speed = Speed::default();
        speed.observe(1_000_000, TICK);
        assert_eq!(speed.eta(1), None);
        let mut still = Speed::default();
        still.observe(0, Duration::from_mins(1));
        assert_eq!(still.eta(1), None);
    }
}
