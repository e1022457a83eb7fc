//! The one operating-system thread that owns every array.
//!
//! Others hand it closures with [`MlxThread::post`]; between closures it takes the owner's turns. A
//! panic in either is caught, handed to [`Owner::recover`] with its message, and the thread lives
//! on.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc::{self, RecvTimeoutError, TryRecvError},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use macmlx_inference::InferenceError;
use parking_lot::{Condvar, Mutex};

/// What lives on the thread.
pub(crate) trait Owner: 'static {
    /// Does one piece of work.
    fn turn(&mut self) -> Turn;

    /// Puts itself back into a state that can go on after a panic with `message`.
    fn recover(&mut self, message: &str);

    /// Ends what still runs; no more messages will come.
    fn close(&mut self);
}

/// Whether an owner has more to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Another turn will do something.
    Busy,
    /// Nothing to do before the next message.
    Idle,
    /// Nothing to do before the next message or this time.
    IdleUntil(Instant),
}

type Task<O> = Box<dyn FnOnce(&mut O) + Send>;

/// MLX threads that run. A process that ends while one does has MLX's own statics destroyed under
/// it, and crashes.
static ALIVE: Mutex<usize> = Mutex::new(0);
static ENDED: Condvar = Condvar::new();

/// Counts a thread for as long as it runs.
struct Alive;

impl Alive {
    fn new() -> Self {
        *ALIVE.lock() += 1;
        Self
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        *ALIVE.lock() -= 1;
        ENDED.notify_all();
    }
}

/// Waits, at the end of a process, until what was dropped has ended on its thread; false when that
/// takes longer.
pub fn wait_for_end(at_most: Duration) -> bool {
    let mut alive = ALIVE.lock();
    ENDED.wait_while_for(&mut alive, |alive| *alive > 0, at_most);
    *alive == 0
}

/// Handle of the thread; dropping it closes the owner and waits for the thread's end.
#[derive(Debug)]
pub(crate) struct MlxThread<O> {
    tasks: Option<mpsc::Sender<Task<O>>>,
    thread: Option<JoinHandle<()>>,
}

impl<O: Owner> MlxThread<O> {
    /// Starts the thread and makes the owner there.
    pub(crate) fn spawn(make: impl FnOnce() -> O + Send + 'static) -> std::io::Result<Self> {
        let (tasks, inbox) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("mlx".into())
            // Named once here, the stream need not be looked up at each operation.
            .spawn(move || {
                let _alive = Alive::new();
                mlx_rs::with_stream(&mlx_rs::Stream::new(), || run(make(), &inbox));
            })?;
        Ok(Self {
            tasks: Some(tasks),
            thread: Some(thread),
        })
    }

    /// Runs `task` on the thread, after those posted before it.
    pub(crate) fn post(
        &self,
        task: impl FnOnce(&mut O) + Send + 'static,
    ) -> Result<(), InferenceError> {
        self.tasks
            .as_ref()
            .and_then(|tasks| tasks.send(Box::new(task)).ok())
            .ok_or(InferenceError::ShuttingDown)
    }
}

impl<O> Drop for MlxThread<O> {
    fn drop(&mut self) {
        self.tasks = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the MLX thread ended by a panic");
        }
    }
}

fn run<O: Owner>(mut owner: O, inbox: &mpsc::Receiver<Task<O>>) {
    let mut turn = Turn::Idle;
    loop {
        let task = match turn {
            Turn::Idle => inbox.recv().map_err(|_| TryRecvError::Disconnected),
            Turn::IdleUntil(time) => inbox
                .recv_timeout(time.saturating_duration_since(Instant::now()))
                .map_err(|error| match error {
                    RecvTimeoutError::Timeout => TryRecvError::Empty,
                    RecvTimeoutError::Disconnected => TryRecvError::Disconnected,
                }),
            Turn::Busy => inbox.try_recv(),
        };
        match task {
            Ok(task) => {
                contain_panic(&mut owner, |owner| task(owner));
                turn = Turn::Busy;
            }
            Err(TryRecvError::Empty) => {
                turn = contain_panic(&mut owner, O::turn).unwrap_or(Turn::Busy);
            }
            Err(TryRecvError::Disconnected) => {
                contain_panic(&mut owner, O::close);
                return;
            }
        }
    }
}

fn contain_panic<O: Owner, T>(owner: &mut O, act: impl FnOnce(&mut O) -> T) -> Option<T> {
    match caught(|| act(owner)) {
        Ok(value) => Some(value),
        Err(message) => {
            owner.recover(&message);
            None
        }
    }
}

/// Runs `act`; a panic becomes its words.
pub(crate) fn caught<T>(act: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(act)).map_err(|payload| {
        let message = panic_message(payload.as_ref());
        tracing::error!(message, "panic on the MLX thread; it goes on");
        message
    })
}

fn panic_message(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "panic without a message".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts down, panics at thirteen, keeps what it was told.
    struct Countdown {
        left: u32,
        /// Is counted down, too, after a pause without a message.
        again: Option<u32>,
        report: mpsc::Sender<String>,
    }

    impl Owner for Countdown {
        fn turn(&mut self) -> Turn {
            if self.left == 0 {
                return Turn::Idle;
            }
            assert!(self.left != 13, "unlucky");
            self.left -= 1;
            if self.left == 0 {
                self.report.send("done".into()).unwrap();
                if let Some(again) = self.again.take() {
                    self.left = again;
                    return Turn::IdleUntil(Instant::now());
                }
            }
            Turn::Busy
        }

        fn recover(&mut self, message: &str) {
            self.left = 0;
            self.report.send(format!("recovered: {message}")).unwrap();
        }

        fn close(&mut self) {
            self.report.send("closed".into()).unwrap();
        }
    }

    #[test]
    fn survives_panics_and_closes() {
        let (report, reports) = mpsc::channel();
        let thread = MlxThread::spawn(move || Countdown {
            left: 0,
            again: None,
            report,
        })
        .unwrap();
        thread.post(|owner| owner.left = 5).unwrap();
        assert_eq!(reports.recv().unwrap(), "done");
        thread.post(|owner| owner.left = 15).unwrap();
        assert_eq!(reports.recv().unwrap(), "recovered: unlucky");
        thread.post(|_| panic!("in a {}", "task")).unwrap();
        assert_eq!(reports.recv().unwrap(), "recovered: in a task");
        thread.post(|owner| owner.left = 3).unwrap();
        assert_eq!(reports.recv().unwrap(), "done");
        drop(thread);
        assert_eq!(reports.recv().unwrap(), "closed");
    }

    #[test]
    fn a_pause_ends_without_a_message() {
        let (report, reports) = mpsc::channel();
        let thread = MlxThread::spawn(move || Countdown {
            left: 0,
            again: Some(3),
            report,
        })
        .unwrap();
        thread.post(|owner| owner.left = 2).unwrap();
        assert_eq!(reports.recv().unwrap(), "done");
        assert_eq!(reports.recv().unwrap(), "done");
    }

    #[test]
    fn the_end_waits_for_work_that_was_dropped() {
        let (report, _reports) = mpsc::channel();
        let (begun, has_begun) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let thread = MlxThread::spawn(move || Countdown {
            left: 0,
            again: None,
            report,
        })
        .unwrap();
        thread
            .post(move |_| {
                begun.send(()).unwrap();
                released.recv().unwrap();
            })
            .unwrap();
        has_begun.recv().unwrap();
        let dropping = std::thread::spawn(move || drop(thread));
        assert!(!wait_for_end(Duration::from_millis(20)));
        release.send(()).unwrap();
        assert!(wait_for_end(Duration::from_secs(30)));
        dropping.join().unwrap();
    }
}
