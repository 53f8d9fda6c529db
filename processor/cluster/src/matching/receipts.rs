//! Receipts of answers that other nodes carry to their polls: settled by what those nodes say, or given back after a while.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use everlog_partition::{Receipt, RunKey};

/// An answer of which nothing is heard for so long has reached nobody: the node that was to bring it on is gone. Long enough for
/// a worker that takes a large answer slowly.
const RECEIVED_WITHIN: Duration = Duration::from_secs(8);

/// Whose answer a receipt is of.
pub struct Recipient {
    /// The poll.
    pub poll_id: String,
    /// What it has claimed a task of, by partition and key; none where it is a query that it has got.
    pub claimed: Option<(u32, RunKey)>,
}

/// Answers of which it is not known yet whether they have reached their polls.
#[derive(Default)]
pub struct Receipts {
    last: AtomicU64,
    open: Mutex<HashMap<u64, (Instant, Receipt)>>,
}

impl Receipts {
    /// Keeps a receipt until it is settled, or too old.
    pub fn keep(&self, receipt: Receipt) -> u64 {
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        self.open().insert(id, (Instant::now(), receipt));
        id
    }

    /// The answer has reached its poll, or nobody.
    pub fn settle(&self, id: u64, is_taken: bool) {
        let found = self.open().remove(&id);
        if let Some((_, receipt)) = found.filter(|_| is_taken) {
            receipt.accept();
        }
    }

    /// Gives back what nobody has spoken of for too long; how many that were.
    pub fn sweep(&self) -> u64 {
        let is_old = |began: &Instant| began.elapsed() > RECEIVED_WITHIN;
        // They are dropped behind the lock.
        let old: Vec<_> = self.open().extract_if(|_, (began, _)| is_old(began)).collect();
        if !old.is_empty() {
            tracing::debug!(count = old.len(), "nobody has told of answers for too long: they go back");
        }
        old.len() as u64
    }

    /// How many are open.
    pub fn count(&self) -> usize {
        self.open().len()
    }

    fn open(&self) -> std::sync::MutexGuard<'_, HashMap<u64, (Instant, Receipt)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
