//! What other threads may know: which models are in memory and how busy they are.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use macmlx_inference::{InferenceError, LoadedModel};

use super::Weights;

/// Shared account of models and requests.
#[derive(Debug, Default)]
pub(crate) struct Residents {
    account: Mutex<Account>,
}

#[derive(Debug, Default)]
struct Account {
    /// In the order in which they were loaded.
    residents: Vec<Resident>,
    /// By model id, also of models not in memory: requests that run or wait.
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
    /// Takes a place in the queue, of which there are `limit`.
    pub(crate) fn wait(self: &Arc<Self>, limit: usize) -> Result<WaitTicket, InferenceError> {
        let mut account = self.lock();
        if account.waiting >= limit {
            return Err(InferenceError::Overloaded);
        }
        account.waiting += 1;
        Ok(WaitTicket {
            residents: self.clone(),
        })
    }

    pub(crate) fn activate(self: &Arc<Self>, model: &str) -> ActiveTicket {
        *self.lock().active.entry(model.to_owned()).or_default() += 1;
        ActiveTicket {
            residents: self.clone(),
            model: model.to_owned(),
        }
    }

    #[cfg(test)]
    pub(crate) fn active(&self, model: &str) -> u32 {
        self.lock().active.get(model).copied().unwrap_or(0)
    }

    pub(crate) fn list(&self) -> Vec<LoadedModel> {
        let account = self.lock();
        account
            .residents
            .iter()
            .map(|resident| {
                let active_requests = account.active.get(&resident.id).copied().unwrap_or(0);
                LoadedModel {
                    id: resident.id.clone(),
                    memory_bytes: resident.memory_bytes,
                    active_requests,
                    idle: if active_requests > 0 {
                        std::time::Duration::ZERO
                    } else {
                        resident.last_used.elapsed()
                    },
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
        };
        self.lock().residents.push(resident);
    }

    /// Counts a model out.
    pub(super) fn remove(&self, id: &str) {
        self.lock().residents.retain(|resident| resident.id != id);
    }

    fn lock(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ActiveTicket {
    fn drop(&mut self) {
        let mut account = self.residents.lock();
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
        self.residents.lock().waiting -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn weights() -> Weights<()> {
        Weights {
            model: Box::new(()),
            memory_bytes: 5,
            description: "float32".into(),
        }
    }

    #[test]
    fn queue_has_an_end() {
        let residents = Arc::new(Residents::default());
        let first = residents.wait(1).unwrap();
        assert_eq!(residents.wait(1).unwrap_err(), InferenceError::Overloaded);
        drop(first);
        residents.wait(1).unwrap();
    }

    #[test]
    fn activity_counts_by_model() {
        let residents = Arc::new(Residents::default());
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
}
