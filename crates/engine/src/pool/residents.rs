//! What other threads may know: which models are in memory and how busy they are.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use macmlx_inference::{InferenceError, KeepAlive, LoadedModel, LoadedWatcher, TimeToLive};
use parking_lot::Mutex;

use super::Weights;

/// Shared account of models and requests.
pub(crate) struct Residents {
    account: Mutex<Account>,
    time_to_live: TimeToLive,
    watchers: Mutex<Vec<LoadedWatcher>>,
}

impl std::fmt::Debug for Residents {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Residents")
            .field("account", &self.account)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct Account {
    /// The models in memory, in the order in which they were loaded.
    residents: Vec<Resident>,
    /// Requests that run or wait, by model id, also of models not in memory.
    active: HashMap<String, u32>,
    /// Requests that wait for a place in the batch.
    waiting: usize,
}

#[derive(Debug)]
struct Resident {
    id: String,
    memory_bytes: u64,
    weights: String,
    /// When it was loaded or its last request ended.
    last_used: Instant,
    /// How long it is to stay after its last use, as a client said last.
    keep_alive: Option<KeepAlive>,
}

/// Whose time in memory is over.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Review {
    /// Ids of models to be dropped.
    pub(crate) expired: Vec<String>,
    /// When the next model's time is over if it is not used again; `None`: none has a limit.
    pub(crate) next: Option<Instant>,
}

/// Counts a request as running or waiting while it lives.
#[derive(Debug)]
pub(crate) struct ActiveTicket {
    residents: Arc<Residents>,
    model: String,
}

/// Counts a request as waiting while it lives.
#[derive(Debug)]
pub(crate) struct WaitTicket {
    residents: Arc<Residents>,
}

impl Residents {
    pub(crate) fn new(time_to_live: TimeToLive) -> Self {
        Self {
            account: Mutex::default(),
            time_to_live,
            watchers: Mutex::default(),
        }
    }

    /// Sets how long a model stays after its last use, for as long as it is in memory.
    pub(crate) fn keep(&self, id: &str, keep_alive: KeepAlive) {
        let mut account = self.account.lock();
        let mut residents = account.residents.iter_mut();
        if let Some(resident) = residents.find(|resident| resident.id == id) {
            resident.keep_alive = Some(keep_alive);
        }
    }

    /// Finds the models whose time is over at `now`. One with a request never is among them.
    pub(crate) fn review(&self, now: Instant) -> Review {
        let account = self.account.lock();
        let mut review = Review::default();
        for resident in &account.residents {
            if account.active.contains_key(&resident.id) {
                continue;
            }
            let expiry = self.after_use(resident).and_then(|after_use| {
                // A time beyond the clock's end never comes.
                resident.last_used.checked_add(after_use)
            });
            match expiry {
                Some(expiry) if expiry <= now => review.expired.push(resident.id.clone()),
                Some(expiry) => {
                    let next = review.next.unwrap_or(expiry);
                    review.next = Some(next.min(expiry));
                }
                None => {}
            }
        }
        review
    }

    /// Has `watcher` called when a model came or went.
    pub(crate) fn watch(&self, watcher: LoadedWatcher) {
        self.watchers.lock().push(watcher);
    }

    fn tell(&self) {
        let watchers = self.watchers.lock();
        for watcher in &*watchers {
            watcher();
        }
    }

    fn after_use(&self, resident: &Resident) -> Option<Duration> {
        KeepAlive::after_use(resident.keep_alive, (self.time_to_live)(&resident.id))
    }

    /// Bytes of the models in memory beside the one with this id.
    pub(super) fn others_bytes(&self, id: &str) -> u64 {
        let account = self.account.lock();
        let others = account.residents.iter().filter(|other| other.id != id);
        others.map(|other| other.memory_bytes).sum()
    }

    /// Takes a place in the queue, of which there are `limit`.
    pub(crate) fn wait(self: &Arc<Self>, limit: usize) -> Result<WaitTicket, InferenceError> {
        let mut account = self.account.lock();
        if account.waiting >= limit {
            return Err(InferenceError::Overloaded);
        }
        account.waiting += 1;
        Ok(WaitTicket {
            residents: self.clone(),
        })
    }

    pub(crate) fn activate(self: &Arc<Self>, model: &str) -> ActiveTicket {
        *self
            .account
            .lock()
            .active
            .entry(model.to_owned())
            .or_default() += 1;
        ActiveTicket {
            residents: self.clone(),
            model: model.to_owned(),
        }
    }

    pub(crate) fn active(&self, model: &str) -> u32 {
        self.account.lock().active.get(model).copied().unwrap_or(0)
    }

    pub(crate) fn list(&self) -> Vec<LoadedModel> {
        let account = self.account.lock();
        account
            .residents
            .iter()
            .map(|resident| {
                let active_requests = account.active.get(&resident.id).copied().unwrap_or(0);
                let idle = if active_requests > 0 {
                    Duration::ZERO
                } else {
                    resident.last_used.elapsed()
                };
                let after_use = self.after_use(resident);
                LoadedModel {
                    id: resident.id.clone(),
                    memory_bytes: resident.memory_bytes,
                    active_requests,
                    idle,
                    expires_in: after_use.map(|after_use| after_use.saturating_sub(idle)),
                    weights: resident.weights.clone(),
                }
            })
            .collect()
    }

    /// Counts a model in.
    pub(super) fn add<M: ?Sized>(&self, id: &str, weights: &Weights<M>) {
        let resident = Resident {
            id: id.to_owned(),
            memory_bytes: weights.memory_bytes,
            weights: weights.description.clone(),
            last_used: Instant::now(),
            keep_alive: None,
        };
        self.account.lock().residents.push(resident);
        self.tell();
    }

    /// Counts a model out.
    pub(super) fn remove(&self, id: &str) {
        self.account
            .lock()
            .residents
            .retain(|resident| resident.id != id);
        self.tell();
    }
}

impl Drop for ActiveTicket {
    fn drop(&mut self) {
        let mut account = self.residents.account.lock();
        if let Some(count) = account.active.get_mut(&self.model) {
            *count -= 1;
            if *count == 0 {
                account.active.remove(&self.model);
            }
        }
        for resident in &mut account.residents {
            if resident.id == self.model {
                resident.last_used = Instant::now();
            }
        }
    }
}

impl Drop for WaitTicket {
    fn drop(&mut self) {
        self.residents.account.lock().waiting -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    fn residents(time_to_live: Option<Duration>) -> Arc<Residents> {
        Arc::new(Residents::new(Arc::new(move |_| time_to_live)))
    }

    fn weights() -> Weights<()> {
        Weights {
            model: Box::new(()),
            memory_bytes: 5,
            description: "float32".into(),
        }
    }

    #[test]
    fn queue_has_an_end() {
        let residents = residents(None);
        let first = residents.wait(1).unwrap();
        assert_eq!(residents.wait(1).unwrap_err(), InferenceError::Overloaded);
        drop(first);
        residents.wait(1).unwrap();
    }

    #[test]
    fn activity_counts_by_model() {
        let residents = residents(None);
        residents.add("a", &weights());
        residents.add("b", &weights());
        let tickets = [
            residents.activate("a"),
            residents.activate("b"),
            residents.activate("a"),
        ];
        let listed = residents.list();
        let activity = |index: usize| (listed[index].active_requests, listed[index].idle);
        assert_eq!(activity(0), (2, Duration::ZERO));
        assert_eq!(activity(1), (1, Duration::ZERO));
        drop(tickets);
        assert_eq!(residents.list()[0].active_requests, 0);
        residents.remove("a");
        let left: Vec<String> = residents.list().into_iter().map(|model| model.id).collect();
        assert_eq!(left, ["b"]);
    }

    #[test]
    fn an_idle_model_expires_when_its_time_is_over() {
        let residents = residents(Some(5 * MINUTE));
        residents.add("a", &weights());
        let begun = Instant::now();
        assert_eq!(residents.review(begun).expired, [""; 0]);
        let next = residents.review(begun).next.unwrap();
        assert!(next <= begun + 5 * MINUTE && next > begun + 4 * MINUTE);
        assert_eq!(residents.review(next).expired, ["a"]);
        let request = residents.activate("a");
        assert_eq!(residents.review(begun + 90 * MINUTE), Review::default());
        assert_eq!(residents.list()[0].expires_in, Some(5 * MINUTE));
        drop(request);
        assert!(residents.review(next).expired.is_empty(), "it was used");
        let left = residents.list()[0].expires_in.unwrap();
        assert!(left <= 5 * MINUTE && left > 4 * MINUTE, "{left:?}");
    }

    #[test]
    fn what_clients_wish_counts_for_one_stay() {
        let residents = residents(Some(MINUTE));
        residents.add("a", &weights());
        let now = Instant::now();
        for (keep_alive, after, is_over) in [
            (KeepAlive::Forever, 500 * MINUTE, false),
            (KeepAlive::For(10 * MINUTE), 9 * MINUTE, false),
            (KeepAlive::For(10 * MINUTE), 11 * MINUTE, true),
            (KeepAlive::For(Duration::ZERO), Duration::ZERO, true),
            (KeepAlive::For(Duration::MAX), 500 * MINUTE, false),
        ] {
            residents.keep("a", keep_alive);
            let review = residents.review(now + after);
            assert_eq!(
                !review.expired.is_empty(),
                is_over,
                "{keep_alive:?} {after:?}"
            );
        }
        residents.remove("a");
        residents.keep("a", KeepAlive::Forever);
        residents.add("a", &weights());
        assert_eq!(residents.review(now + 2 * MINUTE).expired, ["a"]);
    }

    #[test]
    fn coming_and_going_is_told() {
        let residents = residents(None);
        let told = Arc::new(Mutex::new(Vec::new()));
        let (weak, log) = (Arc::downgrade(&residents), told.clone());
        residents.watch(Box::new(move || {
            let count = weak.upgrade().map_or(0, |residents| residents.list().len());
            log.lock().push(count);
        }));
        residents.add("a", &weights());
        residents.add("b", &weights());
        residents.remove("a");
        assert_eq!(*told.lock(), [1, 2, 1]);
    }
}
