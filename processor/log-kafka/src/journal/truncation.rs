//! Deletes journal records below the committed positions.
//!
//! A thread of its own does it, because an unreachable broker blocks the caller.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use everlog_log::{Backoff, Error, Offset, PartitionId};
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::errors::io_text;
use crate::topics::admin::Admin;

/// The pause after a round in which a delete failed.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(30));
/// How long a closed log still tries.
const LAST_WITHIN: Duration = Duration::from_secs(2);

/// Trims of the journals.
pub(crate) struct Truncation {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    admin: Arc<Admin>,
    topic: String,
    wanted: Mutex<WantedTruncation>,
    changed: Condvar,
}

#[derive(Default)]
struct WantedTruncation {
    /// Below which offset; a later one takes an earlier one's place.
    below: BTreeMap<PartitionId, Offset>,
    closing: bool,
}

impl Truncation {
    pub(crate) fn open(admin: &Arc<Admin>, topic: String) -> Result<Self, Error> {
        let shared = Arc::new(Shared {
            admin: Arc::clone(admin),
            topic,
            wanted: Mutex::default(),
            changed: Condvar::new(),
        });
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("trims".into()).spawn(move || of_thread.run());
        let thread = thread.map_err(|error| io_text(format!("a thread for trims: {error}")))?;
        Ok(Truncation { shared, thread: Some(thread) })
    }

    /// Deletes below an offset, soon, and again until it is done. Never waits.
    pub(crate) fn want(&self, partition: PartitionId, below: Offset) {
        let mut wanted = self.shared.wanted();
        let known = wanted.below.entry(partition).or_default();
        *known = below.max(*known);
        self.shared.changed.notify_one();
    }
}

impl Drop for Truncation {
    fn drop(&mut self) {
        self.shared.wanted().closing = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic of it was printed; what it had not deleted the next owner deletes.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn wanted(&self) -> MutexGuard<'_, WantedTruncation> {
        self.wanted.lock()
    }

    fn run(&self) {
        let mut backoff = BACKOFF;
        while let Some((below, closing)) = self.next() {
            let end = Instant::now() + LAST_WITHIN;
            let mut left = BTreeMap::new();
            for (partition, below) in below {
                if closing && Instant::now() > end {
                    return;
                }
                if let Err(error) = self.admin.delete_below(&self.topic, partition as i32, below) {
                    tracing::debug!(partition, below, %error, "the journal was not truncated; it is tried again");
                    left.insert(partition, below);
                }
            }
            if closing {
                return;
            }
            match left.is_empty() {
                true => backoff.reset(),
                false => self.rest(left, backoff.failed()),
            }
        }
    }

    /// What is to be deleted next, once there is something; none when all is done and the log is closed.
    fn next(&self) -> Option<(BTreeMap<PartitionId, Offset>, bool)> {
        let mut wanted = self.wanted();
        let idle = |wanted: &mut WantedTruncation| wanted.below.is_empty() && !wanted.closing;
        self.changed.wait_while(&mut wanted, idle);
        let below = std::mem::take(&mut wanted.below);
        (!below.is_empty()).then_some((below, wanted.closing))
    }

    /// Puts back what was not deleted, unless more is wanted by now, and waits.
    fn rest(&self, left: BTreeMap<PartitionId, Offset>, pause: Duration) {
        let mut wanted = self.wanted();
        for (partition, below) in left {
            wanted.below.entry(partition).or_insert(below);
        }
        let open = |wanted: &mut WantedTruncation| !wanted.closing;
        self.changed.wait_while_for(&mut wanted, open, pause);
    }
}
