//! The threads that recover partitions, so that partitions at work do not wait. They exist only while there is
//! something to do, because the allocator keeps about 1 MB for each thread that has recovered something.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use everlog_partition::{Error, Stats};

use crate::partitions::set::{ActivePartition, OwnershipContext};

/// Partitions that are recovered at once; further ones wait.
const AT_ONCE_MAX: usize = 8;

/// A recovered partition and its incarnation, or why it cannot be recovered.
pub type Recovered = Result<(Box<ActivePartition>, u64), Error>;

struct Job {
    context: Arc<OwnershipContext>,
    id: u32,
    stats: Arc<Stats>,
    applied: Option<u64>,
    has_rested: bool,
}

/// The jobs that wait, and the number of threads.
#[derive(Default)]
struct RecoveryQueue {
    waiting: VecDeque<Job>,
    threads: usize,
}

/// The pool.
#[derive(Default)]
pub struct RecoveryPool(Arc<Mutex<RecoveryQueue>>);

impl RecoveryPool {
    /// Recovers a partition. The result is sent to the partition's thread.
    pub fn recover(
        &self,
        context: &Arc<OwnershipContext>,
        id: u32,
        stats: &Arc<Stats>,
        applied: Option<u64>,
        has_rested: bool,
    ) {
        let (context, stats) = (Arc::clone(context), Arc::clone(stats));
        let mut queue = lock(&self.0);
        queue.waiting.push_back(Job { context, id, stats, applied, has_rested });
        if queue.threads == AT_ONCE_MAX {
            return;
        }
        let shared = Arc::clone(&self.0);
        let thread = std::thread::Builder::new().name(format!("recovery-{}", queue.threads));
        match thread.spawn(move || work(&shared)) {
            Ok(_runs) => queue.threads += 1,
            // The existing threads get to it.
            Err(_) if queue.threads > 0 => {}
            Err(error) => {
                // It may go away by itself: a system that has no threads has some later.
                let error = everlog_log::Error::Io { detail: format!("no thread could be started: {error}") };
                for job in queue.waiting.drain(..) {
                    job.context.senders.arrived(job.id, Err(Error::Log(error.clone())));
                }
            }
        }
    }
}

/// The next job. A thread that gets none is no longer counted, and ends.
fn next(queue: &Mutex<RecoveryQueue>) -> Option<Job> {
    let mut queue = lock(queue);
    let job = queue.waiting.pop_front();
    queue.threads -= usize::from(job.is_none());
    job
}

fn work(queue: &Mutex<RecoveryQueue>) {
    while let Some(Job { context, id, stats, applied, has_rested }) = next(queue) {
        let live = std::panic::AssertUnwindSafe(|| match has_rested {
            true => context.recover_again(id, stats, applied),
            false => context.recover(id, stats, applied),
        });
        let recovered = std::panic::catch_unwind(live).unwrap_or_else(|_panic| {
            Err(Error::Journal { partition: id, detail: "its recovery panicked".into() })
        });
        context.senders.arrived(id, recovered);
    }
}

/// No code panics while it holds this lock, except when memory is exhausted.
fn lock(queue: &Mutex<RecoveryQueue>) -> MutexGuard<'_, RecoveryQueue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}
