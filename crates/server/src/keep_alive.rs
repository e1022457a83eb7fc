//! How long models stay in memory after their last request, where a client has said so.
//!
//! A lifetime belongs to a model, as the last request that named one set it, and ends with the
//! model's stay in memory. Models without one stay. Whoever uses a model, in whatever dialect, keeps
//! it: what counts is the time the backend reports it idle.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use futures::FutureExt;
use macmlx_inference::{Backend, GenerationEvent, LoadedModel};
use macmlx_protocol::KeepAlive;
use tokio::{task::AbortHandle, time::sleep};

use crate::running::Starting;

/// How soon a model that is busy past its time is looked at again.
const BUSY: Duration = Duration::from_millis(100);

/// The lifetimes of models in memory.
pub(crate) struct Lifetimes {
    backend: Weak<dyn Backend>,
    set: Arc<Mutex<HashMap<String, Lifetime>>>,
}

#[derive(Debug)]
struct Lifetime {
    after_use: Duration,
    /// Unloads the model when its time has come.
    watch: AbortHandle,
}

impl Drop for Lifetime {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

impl fmt::Debug for Lifetimes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Lifetimes")
            .field("set", &self.set)
            .finish_non_exhaustive()
    }
}

impl Lifetimes {
    pub(crate) fn new(backend: &Arc<dyn Backend>) -> Self {
        Self {
            backend: Arc::downgrade(backend),
            set: Arc::default(),
        }
    }

    /// From now on the model stays for as long after each use. Must be called within a runtime.
    pub(crate) fn set(&self, model: &str, keep_alive: KeepAlive) {
        let mut set = lock(&self.set);
        set.remove(model);
        let KeepAlive::For(after_use) = keep_alive else {
            return;
        };
        let watch = tokio::spawn(watch(
            self.backend.clone(),
            Arc::downgrade(&self.set),
            model.to_owned(),
            after_use,
        ));
        let lifetime = Lifetime {
            after_use,
            watch: watch.abort_handle(),
        };
        set.insert(model.to_owned(), lifetime);
    }

    /// How long a model stays if nobody uses it; `None`: for ever.
    pub(crate) fn remaining(&self, model: &LoadedModel) -> Option<Duration> {
        lock(&self.set)
            .get(&model.id)
            .map(|lifetime| lifetime.after_use.saturating_sub(model.idle))
    }

    /// A request that sets the lifetime of the model that answers it, once it is known which.
    pub(crate) fn set_by(
        self: &Arc<Self>,
        starting: Starting,
        keep_alive: Option<KeepAlive>,
    ) -> Starting {
        let Some(keep_alive) = keep_alive else {
            return starting;
        };
        let lifetimes = Arc::clone(self);
        async move {
            Ok(starting.await?.inspect(move |event| {
                if let GenerationEvent::Started { model, .. } = event {
                    lifetimes.set(model, keep_alive);
                }
            }))
        }
        .boxed()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn watch(
    backend: Weak<dyn Backend>,
    set: Weak<Mutex<HashMap<String, Lifetime>>>,
    model: String,
    after_use: Duration,
) {
    // Ends when the model is gone, whoever unloaded it.
    while let Some(held) = backend.upgrade()
        && let Some(loaded) = held.loaded().into_iter().find(|loaded| loaded.id == model)
    {
        if loaded.active_requests == 0 && loaded.idle >= after_use {
            tracing::info!(model, "the model is unloaded: its keep-alive is over");
            if let Err(error) = held.unload(model.clone()).await {
                tracing::warn!(model, %error, "the model could not be unloaded");
            }
            break;
        }
        drop(held);
        sleep(after_use.saturating_sub(loaded.idle).max(BUSY)).await;
    }
    let Some(set) = set.upgrade() else {
        return;
    };
    let mut set = lock(&set);
    // Unless a newer request has set another.
    if set
        .get(&model)
        .is_some_and(|lifetime| lifetime.watch.id() == tokio::task::id())
    {
        set.remove(&model);
    }
}

#[cfg(test)]
mod tests {
    use futures::future::BoxFuture;
    use macmlx_inference::{
        EventStream, GenerateRequest, InferenceError, ModelCard, ModelTraits, TokenizeRequest,
    };
    use tokio::time::Instant;

    use super::*;

    /// One model, whose time is the test's.
    #[derive(Default)]
    struct Resident {
        state: Mutex<Option<State>>,
    }

    #[derive(Clone, Copy)]
    struct State {
        active: u32,
        last_use: Instant,
    }

    impl Resident {
        fn loaded_now() -> Arc<Self> {
            let resident = Arc::new(Self::default());
            resident.set(0);
            resident
        }

        /// That many requests run from now on.
        fn set(&self, active: u32) {
            *lock(&self.state) = Some(State {
                active,
                last_use: Instant::now(),
            });
        }

        fn is_loaded(&self) -> bool {
            lock(&self.state).is_some()
        }
    }

    fn unused<T>() -> BoxFuture<'static, Result<T, InferenceError>> {
        async { Err(InferenceError::Cancelled) }.boxed()
    }

    impl Backend for Resident {
        fn generate(
            &self,
            _: Arc<ModelCard>,
            _: GenerateRequest,
        ) -> BoxFuture<'_, Result<EventStream, InferenceError>> {
            unused()
        }

        fn tokenize(
            &self,
            _: Arc<ModelCard>,
            _: TokenizeRequest,
        ) -> BoxFuture<'_, Result<Vec<u32>, InferenceError>> {
            unused()
        }

        fn detokenize(
            &self,
            _: Arc<ModelCard>,
            _: Vec<u32>,
        ) -> BoxFuture<'_, Result<String, InferenceError>> {
            unused()
        }

        fn traits(&self, _: Arc<ModelCard>) -> BoxFuture<'_, Result<ModelTraits, InferenceError>> {
            unused()
        }

        fn load(&self, _: Arc<ModelCard>) -> BoxFuture<'_, Result<(), InferenceError>> {
            unused()
        }

        fn unload(&self, _: String) -> BoxFuture<'_, Result<bool, InferenceError>> {
            let was_loaded = lock(&self.state).take().is_some();
            async move { Ok(was_loaded) }.boxed()
        }

        fn loaded(&self) -> Vec<LoadedModel> {
            lock(&self.state)
                .iter()
                .map(|state| LoadedModel {
                    id: "m".into(),
                    memory_bytes: 1,
                    active_requests: state.active,
                    idle: if state.active > 0 {
                        Duration::ZERO
                    } else {
                        state.last_use.elapsed()
                    },
                    weights: String::new(),
                })
                .collect()
        }
    }

    fn lifetimes(resident: &Arc<Resident>) -> Lifetimes {
        let backend: Arc<dyn Backend> = resident.clone();
        Lifetimes::new(&backend)
    }

    const MINUTE: Duration = Duration::from_mins(1);

    #[tokio::test(start_paused = true)]
    async fn an_idle_model_goes_when_its_time_is_over() {
        let resident = Resident::loaded_now();
        let lifetimes = lifetimes(&resident);
        lifetimes.set("m", KeepAlive::For(5 * MINUTE));
        sleep(4 * MINUTE).await;
        let left = lifetimes.remaining(&resident.loaded()[0]);
        assert_eq!(left, Some(MINUTE));
        // Another use, in whatever dialect.
        resident.set(0);
        sleep(4 * MINUTE).await;
        assert!(resident.is_loaded());
        sleep(MINUTE + BUSY).await;
        assert!(!resident.is_loaded());
        resident.set(0);
        assert_eq!(
            lifetimes.remaining(&resident.loaded()[0]),
            None,
            "a lifetime ends with the stay"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn zero_lets_the_answer_end_first() {
        let resident = Resident::loaded_now();
        resident.set(2);
        let lifetimes = lifetimes(&resident);
        lifetimes.set("m", KeepAlive::For(Duration::ZERO));
        sleep(MINUTE).await;
        assert!(resident.is_loaded());
        resident.set(1);
        sleep(MINUTE).await;
        assert!(resident.is_loaded(), "another request still runs");
        resident.set(0);
        sleep(2 * BUSY).await;
        assert!(!resident.is_loaded());
    }

    #[tokio::test(start_paused = true)]
    async fn the_newest_wish_counts() {
        let resident = Resident::loaded_now();
        let lifetimes = lifetimes(&resident);
        lifetimes.set("m", KeepAlive::For(MINUTE));
        lifetimes.set("m", KeepAlive::Forever);
        sleep(500 * MINUTE).await;
        assert!(resident.is_loaded());
        assert_eq!(lifetimes.remaining(&resident.loaded()[0]), None);
        resident.set(0);
        lifetimes.set("m", KeepAlive::For(10 * MINUTE));
        lifetimes.set("m", KeepAlive::For(MINUTE));
        sleep(MINUTE + BUSY).await;
        assert!(!resident.is_loaded());
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_kept_alive_by_being_watched() {
        let resident = Resident::loaded_now();
        let lifetimes = lifetimes(&resident);
        lifetimes.set("m", KeepAlive::For(MINUTE));
        sleep(BUSY).await;
        assert_eq!(Arc::strong_count(&resident), 1);
        drop(lifetimes);
        sleep(2 * MINUTE).await;
        assert!(resident.is_loaded(), "the server is gone, and its watch");
    }
}
