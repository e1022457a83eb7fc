//! What a backend does and has done, in numbers.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use macmlx_inference::Usage;
use parking_lot::Mutex;
use tokio::{sync::watch, time::Instant};

use crate::{
    events::{Event, Events},
    throughput::{Rates, Throughput},
};

/// How often throughput is told while something runs.
const TICK: Duration = Duration::from_secs(1);

/// Totals since the start, and what is going on. Order between counters does not matter to anyone.
#[derive(Debug, Default)]
pub struct Activity {
    requests: AtomicU64,
    prompt_tokens: AtomicU64,
    completion_tokens: AtomicU64,
    running: watch::Sender<u64>,
    rates: Mutex<Rates>,
    /// Models being loaded, and how many wait for each.
    loading: Mutex<BTreeMap<String, u32>>,
}

impl Activity {
    /// Requests that were admitted, and those for vectors and rankings that were answered.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// What has not ended yet.
    pub fn running(&self) -> u64 {
        *self.running.borrow()
    }

    /// Returns the prompt tokens of completed requests.
    pub fn prompt_tokens(&self) -> u64 {
        self.prompt_tokens.load(Ordering::Relaxed)
    }

    /// Returns the completion tokens of completed requests.
    pub fn completion_tokens(&self) -> u64 {
        self.completion_tokens.load(Ordering::Relaxed)
    }

    /// Ids of the models that are being loaded.
    pub fn loading(&self) -> Vec<String> {
        self.loading.lock().keys().cloned().collect()
    }

    /// The last few seconds; nothing when nothing runs.
    pub fn throughput(&self) -> Throughput {
        let running = self.running();
        if running == 0 {
            return Throughput::default();
        }
        let (decode_tokens_per_second, prompt_tokens_per_second) =
            self.rates.lock().now(Instant::now());
        Throughput {
            decode_tokens_per_second,
            prompt_tokens_per_second,
            running,
        }
    }

    /// Tells throughput each second while something runs, and once when nothing does any more.
    /// Sleeps in between. Never ends.
    pub async fn tell(&self, events: &Events) {
        let mut running = self.running.subscribe();
        loop {
            // The sender is here, so waiting does not fail.
            if running.wait_for(|count| *count > 0).await.is_err() {
                return;
            }
            while self.running() > 0 {
                let rest = running.wait_for(|count| *count == 0);
                if tokio::time::timeout(TICK, rest).await.is_err() {
                    self.publish_throughput(events);
                }
            }
            self.publish_throughput(events);
        }
    }

    fn publish_throughput(&self, events: &Events) {
        events.publish(Event::Throughput {
            throughput: self.throughput(),
        });
    }

    pub(crate) fn admit(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.begin();
    }

    pub(crate) fn begin(&self) {
        self.running.send_modify(|count| *count += 1);
    }

    /// Texts have become vectors or a ranking.
    pub(crate) fn count_encoded(&self, tokens: u32) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.prompt_tokens
            .fetch_add(u64::from(tokens), Ordering::Relaxed);
        self.count(0, u64::from(tokens));
    }

    pub(crate) fn end(&self) {
        self.running
            .send_modify(|count| *count = count.saturating_sub(1));
    }

    pub(crate) fn count_usage(&self, usage: &Usage) {
        self.prompt_tokens
            .fetch_add(u64::from(usage.prompt_tokens), Ordering::Relaxed);
        self.completion_tokens
            .fetch_add(u64::from(usage.completion_tokens), Ordering::Relaxed);
    }

    /// Tokens as they come; none at all say that work began.
    pub(crate) fn count(&self, decoded: u64, prompt: u64) {
        self.rates.lock().add(Instant::now(), decoded, prompt);
    }

    pub(crate) fn begin_loading(&self, id: &str) {
        *self.loading.lock().entry(id.to_owned()).or_default() += 1;
    }

    /// Whether that was the last who waited.
    pub(crate) fn end_loading(&self, id: &str) -> bool {
        let mut loading = self.loading.lock();
        let Some(count) = loading.get_mut(id) else {
            return false;
        };
        *count -= 1;
        let is_last = *count == 0;
        if is_last {
            loading.remove(id);
        }
        is_last
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn throughput_is_told_while_something_runs_and_once_at_rest() {
        let (activity, events) = (Activity::default(), Events::default());
        let mut told = Box::pin(events.subscribe());
        let work = async {
            tokio::time::sleep(Duration::from_mins(5)).await;
            activity.admit();
            activity.count(100, 0);
            tokio::time::sleep(Duration::from_millis(2500)).await;
            activity.end();
            tokio::time::sleep(Duration::from_mins(5)).await;
        };
        tokio::select! {
            () = activity.tell(&events) => {}
            () = work => {}
        }
        drop(events);
        let mut running = Vec::new();
        while let Some(event) = told.next().await {
            let Event::Throughput { throughput } = event else {
                panic!("{event:?}");
            };
            running.push(throughput.running);
        }
        assert_eq!(running, [1, 1, 0]);
    }
}
