//! Open polls by worker: when a worker shuts down, its polls end empty.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

const SHARDS: usize = 16;

/// Workers with open polls, and workers that shut down a short while ago.
pub(crate) struct PollerRegistry {
    shards: [Mutex<PollerShard>; SHARDS],
    stopped_max: usize,
    memory: Duration,
}

#[derive(Default)]
struct PollerShard {
    workers: HashMap<String, Worker>,
    stopped: usize,
}

struct Worker {
    polls: usize,
    stop: watch::Sender<bool>,
    stopped_at: Option<Instant>,
}

/// A worker's open poll; removed when dropped.
pub(crate) struct PollerGuard {
    workers: Arc<PollerRegistry>,
    key: String,
    stop: watch::Receiver<bool>,
}

impl PollerRegistry {
    /// Remembers at most `stopped_max` workers that were shut down, each for `memory`.
    pub(crate) fn new(stopped_max: usize, memory: Duration) -> Arc<Self> {
        Arc::new(Self { shards: Default::default(), stopped_max: stopped_max.div_ceil(SHARDS), memory })
    }

    /// Registers a poll of the worker.
    pub(crate) fn register(self: &Arc<Self>, namespace_id: &str, instance: &str) -> PollerGuard {
        let key = key(namespace_id, instance);
        let mut shard = self.shard(&key);
        let worker = shard.workers.entry(key.clone()).or_insert_with(|| Worker {
            polls: 0,
            stop: watch::Sender::new(false),
            stopped_at: None,
        });
        worker.polls += 1;
        let stop = worker.stop.subscribe();
        drop(shard);
        PollerGuard { workers: self.clone(), key, stop }
    }

    /// The worker shuts down: its open polls end, and polls that arrive later end at once.
    pub(crate) fn stop(&self, namespace_id: &str, instance: &str) {
        let key = key(namespace_id, instance);
        let now = Instant::now();
        let mut shard = self.shard(&key);
        shard.forget(now, self.memory);
        let may_remember = shard.stopped < self.stopped_max;
        match shard.workers.get_mut(&key) {
            Some(worker) => {
                worker.stop.send_replace(true);
                if worker.stopped_at.replace(now).is_none() {
                    shard.stopped += 1;
                }
            }
            None if may_remember => {
                let worker = Worker { polls: 0, stop: watch::Sender::new(true), stopped_at: Some(now) };
                shard.workers.insert(key, worker);
                shard.stopped += 1;
            }
            None => {}
        }
    }

    fn shard(&self, key: &str) -> MutexGuard<'_, PollerShard> {
        let hash =
            key.bytes().fold(0_usize, |hash, byte| hash.wrapping_mul(31).wrapping_add(usize::from(byte)));
        self.shards[hash % SHARDS].lock()
    }
}

impl PollerShard {
    fn forget(&mut self, now: Instant, memory: Duration) {
        let old =
            |worker: &Worker| worker.stopped_at.is_some_and(|at| now.saturating_duration_since(at) > memory);
        self.workers.retain(|_, worker| worker.polls > 0 || !old(worker));
        self.stopped = self.workers.values().filter(|worker| worker.stopped_at.is_some()).count();
    }
}

impl PollerGuard {
    /// Completes when the worker shuts down.
    pub(crate) async fn stopped(&mut self) {
        // The sender lives as long as this guard: the worker's entry is removed with its last poll.
        drop(self.stop.wait_for(|stopped| *stopped).await);
    }
}

impl Drop for PollerGuard {
    fn drop(&mut self) {
        let mut shard = self.workers.shard(&self.key);
        let crowded = shard.stopped > self.workers.stopped_max;
        let Some(worker) = shard.workers.get_mut(&self.key) else {
            return;
        };
        worker.polls -= 1;
        let stopped = worker.stopped_at.is_some();
        if worker.polls == 0 && (!stopped || crowded) {
            shard.workers.remove(&self.key);
            shard.stopped -= usize::from(stopped);
        }
    }
}

fn key(namespace_id: &str, instance: &str) -> String {
    [namespace_id, "/", instance].concat()
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    fn entries(workers: &PollerRegistry) -> usize {
        workers.shards.iter().map(|shard| shard.lock().workers.len()).sum()
    }

    #[tokio::test]
    async fn a_shutdown_ends_open_polls_and_late_ones() {
        let workers = PollerRegistry::new(100, Duration::from_secs(60));
        let mut open = workers.register("ns", "worker-1");
        let mut other = workers.register("ns", "worker-2");
        workers.stop("ns", "worker-1");
        open.stopped().await;
        workers.register("ns", "worker-1").stopped().await;
        let mut context = Context::from_waker(Waker::noop());
        assert!(pin!(other.stopped()).poll(&mut context).is_pending(), "it polls on");
    }

    #[test]
    fn a_worker_without_polls_is_forgotten() {
        let workers = PollerRegistry::new(100, Duration::from_secs(60));
        let (first, second) = (workers.register("ns", "worker-1"), workers.register("ns", "worker-1"));
        drop(first);
        assert_eq!(entries(&workers), 1);
        drop(second);
        assert_eq!(entries(&workers), 0);
    }

    #[test]
    fn shutdowns_are_remembered_up_to_a_limit_and_for_a_while() {
        let workers = PollerRegistry::new(SHARDS, Duration::from_secs(60));
        for number in 0..1_000 {
            workers.stop("ns", &number.to_string());
        }
        assert!(entries(&workers) <= SHARDS);
        let workers = PollerRegistry::new(1_000, Duration::ZERO);
        for number in 0..1_000 {
            workers.stop("ns", &number.to_string());
        }
        assert!(entries(&workers) <= SHARDS * 2);
    }
}
