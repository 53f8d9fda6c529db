//! Follows a journal: a record becomes visible a while after it was appended.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use everlog_log::{Error, Offset, PartitionId, Record, Tail, Wake};

use super::broker::{Broker, Shared, Tell};

/// How far somebody sees.
pub struct Followed {
    pub partition: PartitionId,
    pub visible: Offset,
    pub wake: Arc<Wake>,
}

impl Followed {
    /// Sees everything that is there; tells who is woken.
    pub fn see(followed: &Weak<Mutex<Self>>, broker: &mut Broker) -> Vec<Tell> {
        let Some(followed) = followed.upgrade() else { return Vec::new() };
        let mut followed = followed.lock().unwrap_or_else(PoisonError::into_inner);
        let end = broker.stored(followed.partition).journal.len() as Offset;
        if end <= followed.visible {
            return Vec::new();
        }
        followed.visible = end;
        let wake = followed.wake.clone();
        vec![Box::new(move || wake())]
    }
}

pub struct SimTail {
    pub broker: Shared,
    pub followed: Arc<Mutex<Followed>>,
    pub next: Offset,
}

impl Tail for SimTail {
    fn take(&mut self, bytes_max: usize) -> Result<Vec<Record>, Error> {
        let (partition, visible) = {
            let followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
            (followed.partition, followed.visible)
        };
        let mut broker = self.broker.lock();
        let stored = broker.stored(partition);
        let (start, end) = (stored.start, stored.journal.len() as Offset);
        if self.next < start {
            return Err(Error::OutOfRange { partition, wanted: self.next, start, end });
        }
        let mut found = Vec::new();
        let mut bytes = 0;
        while self.next < visible.min(end) {
            let record = stored.journal[self.next as usize].clone();
            bytes += record.bytes.len();
            if !found.is_empty() && bytes > bytes_max {
                break;
            }
            self.next += 1;
            found.push(record);
        }
        Ok(found)
    }
}
