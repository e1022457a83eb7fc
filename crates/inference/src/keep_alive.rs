//! How long a model stays in memory after its last use.

use std::{sync::Arc, time::Duration};

/// A client's wish, for this stay of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepAlive {
    /// Zero: until the answer has been given.
    For(Duration),
    Forever,
}

/// Says how long the model with an id stays after its last use if no client has said so; `None`: for
/// ever. It is asked every few seconds, and its answers may change.
pub type TimeToLive = Arc<dyn Fn(&str) -> Option<Duration> + Send + Sync>;

impl KeepAlive {
    /// How long a model stays after its last use: as a client wished, else its time to live.
    /// `None`: for ever.
    pub fn after_use(wish: Option<Self>, time_to_live: Option<Duration>) -> Option<Duration> {
        match wish {
            Some(Self::For(duration)) => Some(duration),
            Some(Self::Forever) => None,
            None => time_to_live,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clients_wish_comes_before_the_models_own_time() {
        let (minute, hour) = (Duration::from_mins(1), Duration::from_hours(1));
        for (wish, time_to_live, expected) in [
            (None, None, None),
            (None, Some(minute), Some(minute)),
            (Some(KeepAlive::For(hour)), Some(minute), Some(hour)),
            (Some(KeepAlive::For(hour)), None, Some(hour)),
            (
                Some(KeepAlive::For(Duration::ZERO)),
                Some(minute),
                Some(Duration::ZERO),
            ),
            (Some(KeepAlive::Forever), Some(minute), None),
        ] {
            assert_eq!(KeepAlive::after_use(wish, time_to_live), expected);
        }
    }
}
