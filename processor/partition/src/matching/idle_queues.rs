//! How many task queues polls wait at, in each namespace and in all. A queue costs memory, and its name is the client's to choose.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::model::admission::CallFailure;

/// What a node holds of task queues in which nothing is ready. Where something is, no poll is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// Queues at which polls wait, in one namespace.
    pub namespace_polled_max: usize,
    /// Queues at which polls wait, in all namespaces.
    pub polled_max: usize,
    /// Pollers of queues without polls that are remembered, in one namespace: the last ones.
    pub namespace_remembered_max: usize,
    /// Pollers of queues without polls that are remembered, in all namespaces: the last ones.
    pub remembered_max: usize,
}

impl Default for QueueLimits {
    fn default() -> Self {
        Self {
            namespace_polled_max: 10_000,
            polled_max: 50_000,
            namespace_remembered_max: 1_000,
            remembered_max: 10_000,
        }
    }
}

/// What a node holds of task queues now, and what it has refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounts {
    /// Queues at which polls wait.
    pub polled: usize,
    /// Queues without polls and tasks that are remembered, as of the last look, a second ago at most.
    pub remembered: usize,
    /// Polls that were refused because polls waited at too many queues.
    pub refused: u64,
}

/// The queues at which polls wait.
pub(super) struct QueueCensus {
    pub(super) limits: QueueLimits,
    places: Mutex<Places>,
    pub(super) remembered: AtomicUsize,
    refused: AtomicU64,
}

#[derive(Default)]
struct Places {
    namespaces: HashMap<Arc<str>, usize>,
    all: usize,
}

/// A queue at which polls wait counts as one while it has this.
pub(super) struct QueuePlace {
    census: Arc<QueueCensus>,
    namespace_id: Arc<str>,
}

impl QueueCensus {
    pub(super) fn new(limits: QueueLimits) -> Arc<Self> {
        let (places, remembered, refused) = Default::default();
        Arc::new(Self { limits, places, remembered, refused })
    }

    pub(super) fn counts(&self) -> QueueCounts {
        QueueCounts {
            polled: self.places().all,
            remembered: self.remembered.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
        }
    }

    /// A place for one queue more.
    ///
    /// # Errors
    /// There are as many as may be.
    pub(super) fn admit(self: &Arc<Self>, namespace_id: &str) -> Result<QueuePlace, CallFailure> {
        let QueueLimits { namespace_polled_max, polled_max, .. } = self.limits;
        let mut places = self.places();
        let failure =
            if places.namespaces.get(namespace_id).is_some_and(|count| *count >= namespace_polled_max) {
                CallFailure::NamespaceCrowded { queues: namespace_polled_max }
            } else if places.all >= polled_max {
                CallFailure::Crowded { queues: polled_max }
            } else {
                return Ok(self.take(&mut places, namespace_id));
            };
        self.refused.fetch_add(1, Ordering::Relaxed);
        Err(failure)
    }

    /// A place whatever the bounds say: there is something for the poll, or it was let in before.
    pub(super) fn enter(self: &Arc<Self>, namespace_id: &str) -> QueuePlace {
        self.take(&mut self.places(), namespace_id)
    }

    fn take(self: &Arc<Self>, places: &mut Places, namespace_id: &str) -> QueuePlace {
        let known = places.namespaces.get_key_value(namespace_id).map(|(known, _)| Arc::clone(known));
        let namespace_id = known.unwrap_or_else(|| namespace_id.into());
        places.all += 1;
        *places.namespaces.entry(Arc::clone(&namespace_id)).or_default() += 1;
        QueuePlace { census: Arc::clone(self), namespace_id }
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        let mut places = self.census.places();
        places.all -= 1;
        if let Some(count) = places.namespaces.get_mut(&self.namespace_id) {
            *count -= 1;
            if *count == 0 {
                places.namespaces.remove(&self.namespace_id);
            }
        }
    }
}
