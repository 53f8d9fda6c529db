//! What a decision knows of the world: the journal record's time and place, and nothing else.

use uuid::Uuid;

use crate::run::Grace;

/// Time, position and seed of one journal record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The random id made with the journal.
    pub incarnation: [u8; 16],
    /// The partition.
    pub partition: u32,
    /// The record's offset in the partition's journal.
    pub offset: u64,
    /// The record's time in ms since 1970-01-01 UTC; never less than that of the record before it.
    pub now_ms: i64,
    /// When the present owner took over.
    pub owner_ms: i64,
}

impl Stamp {
    /// The `index`-th id of this record: a UUID that everybody who decides the record computes alike.
    pub fn id(&self, index: u32) -> String {
        let mut name = [0; 16];
        name[..4].copy_from_slice(&self.partition.to_be_bytes());
        name[4..12].copy_from_slice(&self.offset.to_be_bytes());
        name[12..].copy_from_slice(&index.to_be_bytes());
        Uuid::new_v5(&Uuid::from_bytes(self.incarnation), &name).to_string()
    }

    /// Names what this record hands out: its offset + 1, so that 0 can mean "nobody has it".
    pub(crate) fn claim(&self) -> u64 {
        self.offset.saturating_add(1)
    }

    /// What the present owner grants to workers.
    pub fn grace(&self) -> Grace {
        Grace { owner_ms: self.owner_ms }
    }
}
