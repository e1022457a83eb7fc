//! When a request that failed is tried again, and when trying ends.

use std::time::Duration;

use super::Error;

/// No pause between two attempts is longer, unless the hub says so.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How much trouble is borne.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Attempts in a row without a new byte.
    pub attempts: u32,
    /// The pause after the first of them; each next one is twice as long.
    pub first_pause: Duration,
    /// The longest wait that a hub may ask for.
    pub longest_wait: Duration,
}

/// What went wrong with one request.
#[derive(Debug)]
pub(crate) struct Trouble {
    /// What to report if trying again does not help.
    pub error: Error,
    /// Trying again cannot help.
    pub is_final: bool,
    /// The wait that the hub asks for.
    pub retry_after: Option<Duration>,
}

impl Trouble {
    pub(crate) fn last(error: Error) -> Self {
        Self {
            error,
            is_final: true,
            retry_after: None,
        }
    }

    pub(crate) fn passing(error: Error) -> Self {
        Self {
            error,
            is_final: false,
            retry_after: None,
        }
    }
}

/// The attempts made so far.
#[derive(Debug)]
pub(crate) struct Attempts {
    patience: Patience,
    failed: u32,
}

impl Attempts {
    pub(crate) fn new(patience: Patience) -> Self {
        Self {
            patience,
            failed: 0,
        }
    }

    /// Something new arrived: the count begins anew.
    pub(crate) fn reset(&mut self) {
        self.failed = 0;
    }

    /// Waits before the next attempt, or gives up.
    pub(crate) async fn after(&mut self, trouble: Trouble) -> Result<(), Error> {
        let pause = self.pause(&trouble).ok_or(trouble.error)?;
        tokio::time::sleep(pause).await;
        Ok(())
    }

    fn pause(&mut self, trouble: &Trouble) -> Option<Duration> {
        self.failed += 1;
        if trouble.is_final || self.failed >= self.patience.attempts {
            return None;
        }
        let doubled = 2_u32.saturating_pow(self.failed - 1);
        let own = self
            .patience
            .first_pause
            .saturating_mul(doubled)
            .min(LONGEST_PAUSE);
        match trouble.retry_after {
            Some(wait) if wait > self.patience.longest_wait => None,
            Some(wait) => Some(wait.max(own)),
            None => Some(own),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempts() -> Attempts {
        Attempts::new(Patience {
            attempts: 4,
            first_pause: Duration::from_secs(1),
            longest_wait: Duration::from_secs(10),
        })
    }

    fn trouble(retry_after: Option<u64>) -> Trouble {
        Trouble {
            retry_after: retry_after.map(Duration::from_secs),
            ..Trouble::passing(Error::Unexpected(String::new()))
        }
    }

    #[test]
    fn pauses_double_until_attempts_end() {
        let mut attempts = attempts();
        let pauses: Vec<_> = (0..4).map(|_| attempts.pause(&trouble(None))).collect();
        let seconds = |n| Some(Duration::from_secs(n));
        assert_eq!(pauses, [seconds(1), seconds(2), seconds(4), None]);
        attempts.reset();
        assert_eq!(attempts.pause(&trouble(None)), seconds(1));
    }

    #[test]
    fn the_hub_says_how_long_within_reason() {
        assert_eq!(
            attempts().pause(&trouble(Some(7))),
            Some(Duration::from_secs(7))
        );
        assert_eq!(attempts().pause(&trouble(Some(11))), None);
        let last = Trouble::last(Error::Unexpected(String::new()));
        assert_eq!(attempts().pause(&last), None);
    }
}
