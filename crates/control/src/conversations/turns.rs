//! Whose turn it is: one answer a conversation at a time, and no change of its messages meanwhile.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use uuid::Uuid;

use crate::Problem;

/// How long a request waits for the one before: an answer that was stopped just now is still being
/// stored when the next request comes.
const PATIENCE: Duration = Duration::from_secs(1);

/// The right to answer a conversation or change its messages, until dropped.
pub(crate) type Turn = OwnedMutexGuard<()>;

#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<HashMap<Uuid, Weak<AsyncMutex<()>>>>);

impl Turns {
    pub(super) async fn take(&self, id: Uuid) -> Result<Turn, Problem> {
        let turn = self.of(id).lock_owned();
        tokio::time::timeout(PATIENCE, turn).await.map_err(|_| {
            Problem::conflict(
                "busy",
                "this conversation is being answered; stop the answer first",
            )
        })
    }

    fn of(&self, id: Uuid) -> Arc<AsyncMutex<()>> {
        let mut turns = self.0.lock();
        turns.retain(|_, turn| turn.strong_count() > 0);
        if let Some(turn) = turns.get(&id).and_then(Weak::upgrade) {
            return turn;
        }
        let fresh = Arc::default();
        turns.insert(id, Arc::downgrade(&fresh));
        fresh
    }
}
