//! Partitions on their way here: a few threads recover them, so that those at work are not kept waiting. They are there only
//! while something is to be done: the allocator keeps memory for each thread, about 1 MB for one that has recovered something.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use everlog_partition::{Error, Stats};

use crate::partitions::set::{ActivePartition, OwnershipContext};

/// Partitions that are recovered at once; a long restore keeps only those waiting that come beyond.
const AT_ONCE_MAX: usize = 8;

/// A partition as it comes from its recovery, and the number of its life.
pub type Recovered = Result<(Box<ActivePartition>, u64), Error>;

struct Job {
    context: Arc<OwnershipContext>,
    id: u32,
    stats: Arc<Stats>,
    applied: Option<u64>,
    has_rested: bool,
}

/// Those that wait, and the threads that there are.
#[derive(Default)]
struct Queue {
    waiting: VecDeque<Job>,
    threads: usize,
}

/// The recoveries.
#[derive(Default)]
pub struct RecoveryPool(Arc<Mutex<Queue>>);

impl RecoveryPool {
    /// Recovers a partition; it is posted to its thread when it is there, or why it is not.
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
            // Those that there are come to it.
            Err(_) if queue.threads > 0 => {}
            Err(error) => {
                // It may pass, as brokers do that do not answer.
                let error = everlog_log::Error::Io { detail: format!("no thread could be started: {error}") };
                for job in queue.waiting.drain(..) {
                    job.context.senders.arrived(job.id, Err(Error::Log(error.clone())));
                }
            }
        }
    }
}

/// The next one; a thread that gets none is counted no more, and ends.
fn next(queue: &Mutex<Queue>) -> Option<Job> {
    let mut queue = lock(queue);
    let job = queue.waiting.pop_front();
    queue.threads -= usize::from(job.is_none());
    job
}

fn work(queue: &Mutex<Queue>) {
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

/// Nothing panics while it holds this lock, save the system without memory.
fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}
