//! Virtual time, and the tasks of clients and workers that wait in it.

use std::collections::{BTreeMap, VecDeque};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Who waits for which moment.
type Sleepers = BTreeMap<(i64, u64), Waker>;

/// The time of the world, and who waits for which moment of it.
#[derive(Clone)]
pub struct Clock {
    now_ms: Arc<AtomicI64>,
    sleepers: Arc<Mutex<Sleepers>>,
    serial: Arc<AtomicU64>,
}

impl Clock {
    pub fn new(now_ms: i64) -> Self {
        Self { now_ms: Arc::new(AtomicI64::new(now_ms)), sleepers: Arc::default(), serial: Arc::default() }
    }

    fn sleepers(&self) -> MutexGuard<'_, Sleepers> {
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn now_ms(&self) -> i64 {
        self.now_ms.load(Ordering::Relaxed)
    }

    /// The time, for those on the other side of `Send`.
    pub fn shared(&self) -> Arc<AtomicI64> {
        self.now_ms.clone()
    }

    pub fn advance(&self, to_ms: i64) {
        self.now_ms.fetch_max(to_ms, Ordering::Relaxed);
    }

    /// When the first sleeper is to be woken.
    pub fn next_ms(&self) -> Option<i64> {
        self.sleepers().first_key_value().map(|((at_ms, _), _)| *at_ms)
    }

    /// Wakes the first sleeper.
    pub fn wake(&self) {
        let first = self.sleepers().pop_first();
        if let Some((_, waker)) = first {
            waker.wake();
        }
    }

    /// Comes back after a while.
    pub async fn sleep(&self, ms: i64) {
        let until_ms = self.now_ms() + ms;
        let serial = self.serial.fetch_add(1, Ordering::Relaxed);
        poll_fn(|context| {
            if self.now_ms() >= until_ms {
                return Poll::Ready(());
            }
            self.sleepers().insert((until_ms, serial), context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// What comes of a call within a while; none if it does not come.
    pub async fn within<T>(&self, ms: i64, call: impl Future<Output = T>) -> Option<T> {
        let mut call = Box::pin(call);
        let mut sleep = Box::pin(self.sleep(ms));
        poll_fn(|context| {
            if let Poll::Ready(value) = call.as_mut().poll(context) {
                return Poll::Ready(Some(value));
            }
            sleep.as_mut().poll(context).map(|()| None)
        })
        .await
    }
}

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// Runs tasks in one thread, in the order in which they are woken.
#[derive(Default)]
pub struct Tasks {
    tasks: Vec<Option<Task>>,
    ready: Arc<Mutex<VecDeque<usize>>>,
}

struct Bell {
    task: usize,
    ready: Arc<Mutex<VecDeque<usize>>>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).push_back(self.task);
    }
}

impl Tasks {
    pub fn spawn(&mut self, task: impl Future<Output = ()> + 'static) {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).push_back(self.tasks.len());
        self.tasks.push(Some(Box::pin(task)));
    }

    /// Runs until every task waits.
    pub fn run(&mut self) {
        loop {
            let next = self.ready.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some(index) = next else { return };
            let Some(mut task) = self.tasks[index].take() else { continue };
            let waker = Waker::from(Arc::new(Bell { task: index, ready: self.ready.clone() }));
            if task.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
                self.tasks[index] = Some(task);
            }
        }
    }
}
