//! Receipts of answers that other nodes carry to polls. The carrying node settles each; a receipt that nobody settles
//! is given back after a while, and its task is requeued.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use everlog_partition::{Receipt, RunKey};

/// A receipt that is not settled for so long is given back, because the node that carried the answer is gone. Long
/// enough for a worker that reads a large answer slowly.
const RECEIVED_WITHIN: Duration = Duration::from_secs(8);

/// The poll that an answer is for.
pub struct Recipient {
    /// The poll.
    pub poll_id: String,
    /// The partition and the run of the task that it has claimed; none where it got a query.
    pub claimed: Option<(u32, RunKey)>,
}

/// Receipts that are not settled yet.
#[derive(Default)]
pub struct Receipts {
    last: AtomicU64,
    open: Mutex<HashMap<u64, (Instant, Receipt)>>,
}

impl Receipts {
    /// Keeps a receipt until it is settled or too old. Returns its id.
    pub fn keep(&self, receipt: Receipt) -> u64 {
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        self.open().insert(id, (Instant::now(), receipt));
        id
    }

    /// Settles a receipt: the answer has reached its poll, or nobody.
    pub fn settle(&self, id: u64, is_taken: bool) {
        let found = self.open().remove(&id);
        if let Some((_, receipt)) = found.filter(|_| is_taken) {
            receipt.accept();
        }
    }

    /// Gives back receipts that are too old. Returns how many.
    pub fn sweep(&self) -> u64 {
        let is_old = |began: &Instant| began.elapsed() > RECEIVED_WITHIN;
        // They are dropped behind the lock.
        let old: Vec<_> = self.open().extract_if(|_, (began, _)| is_old(began)).collect();
        if !old.is_empty() {
            tracing::debug!(count = old.len(), "delivery receipts expired");
        }
        old.len() as u64
    }

    /// How many are not settled.
    pub fn count(&self) -> usize {
        self.open().len()
    }

    fn open(&self) -> std::sync::MutexGuard<'_, HashMap<u64, (Instant, Receipt)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
