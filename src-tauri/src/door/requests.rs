//! The page's requests that run, so that they can be ended.

use std::collections::HashMap;

use futures::future::AbortHandle;
use parking_lot::{Mutex, MutexGuard};

#[derive(Debug, Default)]
pub(crate) struct Requests(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    begun: u64,
    running: HashMap<Key, Run>,
}

/// A window's label and the id that its page gave.
type Key = (String, String);

#[derive(Debug)]
struct Run {
    number: u64,
    handle: AbortHandle,
}

/// Names one run of a request.
#[derive(Debug)]
pub(super) struct Ticket {
    key: Key,
    number: u64,
}

impl Requests {
    /// Notes a request. One that runs under the same id is ended: the page has forgotten it.
    pub(super) fn begin(&self, window: &str, id: &str, handle: AbortHandle) -> Ticket {
        let key = (window.to_owned(), id.to_owned());
        let mut table = self.table();
        table.begun += 1;
        let number = table.begun;
        if let Some(older) = table.running.insert(key.clone(), Run { number, handle }) {
            older.handle.abort();
        }
        Ticket { key, number }
    }

    /// Forgets a request that is over, unless a newer one took its id.
    pub(super) fn end(&self, ticket: &Ticket) {
        let mut table = self.table();
        if table
            .running
            .get(&ticket.key)
            .is_some_and(|run| run.number == ticket.number)
        {
            table.running.remove(&ticket.key);
        }
    }

    /// Ends a request; one that is over already stays so.
    pub(super) fn cancel(&self, window: &str, id: &str) {
        let key = (window.to_owned(), id.to_owned());
        if let Some(run) = self.table().running.remove(&key) {
            run.handle.abort();
        }
    }

    /// Ends all requests of a window whose page is gone.
    pub(crate) fn cancel_all(&self, window: &str) {
        self.table().running.retain(|(of, _), run| {
            let is_kept = of != window;
            if !is_kept {
                run.handle.abort();
            }
            is_kept
        });
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(requests: &Requests, window: &str, id: &str) -> (Ticket, AbortHandle) {
        let (handle, _) = AbortHandle::new_pair();
        (requests.begin(window, id, handle.clone()), handle)
    }

    #[test]
    fn each_request_is_cancelled_by_its_own_window() {
        let requests = Requests::default();
        let (_, first) = begin(&requests, "main", "1");
        let (_, second) = begin(&requests, "main", "2");
        let (_, other) = begin(&requests, "other", "1");
        requests.cancel("main", "1");
        requests.cancel("main", "unknown");
        assert!(first.is_aborted() && !second.is_aborted() && !other.is_aborted());
        requests.cancel_all("main");
        assert!(second.is_aborted() && !other.is_aborted());
    }

    #[test]
    fn the_end_of_an_older_request_spares_the_newer_one() {
        let requests = Requests::default();
        let (older, older_handle) = begin(&requests, "main", "1");
        let (newer, newer_handle) = begin(&requests, "main", "1");
        assert!(older_handle.is_aborted());
        requests.end(&older);
        requests.cancel("main", "1");
        assert!(newer_handle.is_aborted());
        requests.end(&newer);
        assert!(requests.table().running.is_empty());
    }
}
