//! What lets a request into a partition's inbox, and the failures that it is refused with.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Why a call got no answer from a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallFailure {
    /// Too much is waiting already; later it may go through.
    #[error("the partition has too many requests waiting")]
    Busy,
    /// The partition is stopping or gone. What was asked may or may not have happened.
    #[error("the partition is not available")]
    Unavailable,
    /// Another node serves the partition; nothing was taken.
    #[error("the partition is served by another node")]
    Moved,
    /// The partition makes its index anew; lists and counts have to wait.
    #[error("the index of the partition is being made: {percent} % are done")]
    Indexing {
        /// How much is done.
        percent: u32,
    },
    /// A count by groups has too many of them.
    #[error("the count has more than {groups} groups")]
    TooManyGroups {
        /// How many may be.
        groups: usize,
    },
    /// The disk has no room; nothing was taken.
    #[error("the log has no space left")]
    Full,
    /// Polls wait at as many task queues of the namespace as may be; the poll was not let in.
    #[error("polls wait at {queues} task queues of the namespace, which is the limit")]
    NamespaceCrowded {
        /// How many may be.
        queues: usize,
    },
    /// Polls wait at as many task queues as may be; the poll was not let in.
    #[error("polls wait at {queues} task queues, which is the limit")]
    Crowded {
        /// How many may be.
        queues: usize,
    },
    /// The record could not be applied; it was skipped.
    #[error("internal error")]
    Internal,
}

/// What an order came to.
pub type CallResult<T> = Result<T, CallFailure>;

/// How many requests wait, per partition, against three limits: completions and cancellations are let in when starts
/// and signals no longer are, and neither has to wait for a place because many read.
pub struct Admission {
    waiting: Vec<Waits>,
    orders_max: usize,
    reads_max: usize,
}

#[derive(Default)]
struct Waits {
    orders: AtomicUsize,
    reads: AtomicUsize,
}

/// What a request is let in as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AdmissionClass {
    /// Begins work, or adds to it.
    Ordinary,
    /// Ends work, or stops it.
    Urgent,
    /// Changes nothing.
    Read,
}

impl Admission {
    /// Limits per partition: ordinary orders up to `orders_max`, urgent ones up to twice as many, and apart from these
    /// reads and queries up to `reads_max`.
    pub fn new(partitions: u32, orders_max: usize, reads_max: usize) -> Self {
        let waiting = (0..partitions).map(|_| Waits::default()).collect();
        Self { waiting, orders_max, reads_max }
    }

    /// Orders that wait for a partition.
    pub fn waiting_orders(&self, partition: u32) -> usize {
        self.waiting[partition as usize].orders.load(Ordering::Relaxed)
    }

    /// Reads and queries that wait for a partition.
    pub fn waiting_reads(&self, partition: u32) -> usize {
        self.waiting[partition as usize].reads.load(Ordering::Relaxed)
    }

    pub(crate) fn enter(
        self: &Arc<Self>,
        partition: u32,
        class: AdmissionClass,
    ) -> CallResult<AdmissionSlot> {
        let limit = match class {
            AdmissionClass::Ordinary => self.orders_max,
            AdmissionClass::Urgent => self.orders_max.saturating_mul(2),
            AdmissionClass::Read => self.reads_max,
        };
        let slot = AdmissionSlot { admission: self.clone(), partition, class };
        // Where the limit is reached the slot is given back at once.
        if slot.count().fetch_add(1, Ordering::Relaxed) >= limit { Err(CallFailure::Busy) } else { Ok(slot) }
    }
}

/// A place among the waiting requests; given back when dropped.
pub struct AdmissionSlot {
    admission: Arc<Admission>,
    partition: u32,
    class: AdmissionClass,
}

impl AdmissionSlot {
    fn count(&self) -> &AtomicUsize {
        let waits = &self.admission.waiting[self.partition as usize];
        match self.class {
            AdmissionClass::Ordinary | AdmissionClass::Urgent => &waits.orders,
            AdmissionClass::Read => &waits.reads,
        }
    }
}

impl Drop for AdmissionSlot {
    fn drop(&mut self) {
        self.count().fetch_sub(1, Ordering::Relaxed);
    }
}
