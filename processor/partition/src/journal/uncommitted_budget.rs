//! What the partitions of a node may hold uncommitted between them: one that had a great request uses what the others
//! leave.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Room for bytes that wait for a commit, shared by the partitions of a node.
#[derive(Debug)]
pub struct UncommittedBudget {
    bytes_max: usize,
    held: AtomicUsize,
}

impl UncommittedBudget {
    /// Room for so many bytes in all partitions together.
    pub fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Self { bytes_max, held: AtomicUsize::new(0) })
    }

    /// How much nobody holds, in bytes.
    pub(crate) fn left(&self) -> usize {
        self.bytes_max.saturating_sub(self.held.load(Ordering::Relaxed))
    }
}

/// What one partition holds of the room; given back when dropped.
pub(crate) struct UncommittedShare {
    room: Arc<UncommittedBudget>,
    bytes: usize,
}

impl UncommittedShare {
    pub(crate) fn of(room: Arc<UncommittedBudget>) -> Self {
        Self { room, bytes: 0 }
    }

    /// Tells what the partition holds from now on, in bytes.
    pub(crate) fn set(&mut self, bytes: usize) {
        self.room.held.fetch_add(bytes, Ordering::Relaxed);
        self.room.held.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes = bytes;
    }

    /// How much nobody holds, in bytes.
    pub(crate) fn left(&self) -> usize {
        self.room.left()
    }
}

impl Drop for UncommittedShare {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::{UncommittedBudget, UncommittedShare};

    #[test]
    fn what_one_holds_the_others_lack_until_it_is_gone() {
        let room = UncommittedBudget::new(100);
        let (mut one, mut other) = (UncommittedShare::of(room.clone()), UncommittedShare::of(room.clone()));
        one.set(90);
        other.set(5);
        assert_eq!(room.left(), 5);
        other.set(50);
        assert_eq!(room.left(), 0);
        one.set(10);
        assert_eq!(room.left(), 40);
        drop(other);
        assert_eq!(room.left(), 90);
    }
}
