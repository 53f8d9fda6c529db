//! What a decision knows of the world: the journal record's time and place, and nothing else.

use uuid::{Builder, Uuid};

use crate::level;
use crate::run::Grace;

/// The last time that a UUID of version 7 can tell, in ms since 1970-01-01 UTC.
const RUN_ID_MS_MAX: i64 = (1 << 48) - 1;

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
    /// The level of decisions that the present owner has named: see [`level`].
    pub level: u32,
}

impl Stamp {
    /// The `index`-th id of this record: a UUID that everybody who decides the record computes alike.
    pub fn id(&self, index: u32) -> String {
        self.derived(index).to_string()
    }

    /// The `index`-th random number of this record, from 0 to `most`; 0 where that is negative.
    pub(crate) fn draw(&self, index: u32, most: i64) -> i64 {
        let Ok(most) = u64::try_from(most) else { return 0 };
        let (_, random) = self.derived(index).as_u64_pair();
        i64::try_from(random % most.saturating_add(1)).unwrap_or(0)
    }

    /// The id of the run that this record begins, which would be its `index`-th: a UUID of version 7, so that ids of runs are in
    /// the order of time.
    ///
    /// Behind the time stand the low 34 bits of the offset, as the counter of RFC 9562, section 6.2, method 1: within a millisecond
    /// ids of one partition are in the order of its records. The last 40 bits are those of [`Stamp::id`]. A time before 1970
    /// counts as 1970, one after the year 10889 as the last moment of that which has a place.
    pub fn run_id(&self, index: u32) -> String {
        let derived = self.derived(index);
        if self.level < level::TIMED_RUN_IDS {
            return derived.to_string();
        }
        // Of the first and the third of these bytes the upper 4 and 2 bits give way to version and variant.
        let mut rest = [0; 10];
        rest[..2].copy_from_slice(&(self.offset >> 22).to_be_bytes()[6..]);
        rest[2..5].copy_from_slice(&self.offset.to_be_bytes()[5..]);
        rest[5..].copy_from_slice(&derived.as_bytes()[11..]);
        let ms = self.now_ms.clamp(0, RUN_ID_MS_MAX).unsigned_abs();
        Builder::from_unix_timestamp_millis(ms, &rest).into_uuid().to_string()
    }

    fn derived(&self, index: u32) -> Uuid {
        let mut name = [0; 16];
        name[..4].copy_from_slice(&self.partition.to_be_bytes());
        name[4..12].copy_from_slice(&self.offset.to_be_bytes());
        name[12..].copy_from_slice(&index.to_be_bytes());
        Uuid::new_v5(&Uuid::from_bytes(self.incarnation), &name)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp() -> Stamp {
        let (incarnation, now_ms, owner_ms) = ([7; 16], 1_700_000_000_123, 1_700_000_000_000);
        Stamp { incarnation, partition: 3, offset: 0x3_1234_5678, now_ms, owner_ms, level: level::LATEST }
    }

    /// Journals are replayed: no release may give a run another id.
    #[test]
    fn a_run_id_is_what_it_once_was() {
        let old = Stamp { level: 0, ..stamp() };
        assert_eq!(stamp().run_id(0), "018bcfe5-687b-7c48-b456-78bd38bc0210");
        assert_eq!(stamp().run_id(1), "018bcfe5-687b-7c48-b456-789432421670");
        assert_eq!(old.run_id(0), "8ed909b5-6d18-5685-a6ed-afbd38bc0210");
        assert_eq!(old.run_id(1), "16c728df-6486-5402-a266-649432421670");
        for index in 0..3 {
            assert_eq!([stamp().id(index), old.id(index)], [old.run_id(index), old.run_id(index)]);
        }
    }

    #[test]
    fn run_ids_are_in_the_order_of_time_and_then_of_records() {
        let at = |now_ms, offset| Stamp { now_ms, offset, ..stamp() }.run_id(0);
        let ids = [
            at(i64::MIN, 0),
            at(0, 1),
            at(1, 0),
            at(1_700_000_000_123, 0),
            at(1_700_000_000_123, 1),
            at(1_700_000_000_123, (1 << 22) - 1),
            at(1_700_000_000_123, 1 << 22),
            at(1_700_000_000_123, (1 << 34) - 1),
            at(1_700_000_000_124, 1 << 34),
            at(RUN_ID_MS_MAX, 0),
            at(i64::MAX, 1),
        ];
        assert!(ids.is_sorted_by(|earlier, later| earlier < later), "{ids:#?}");
    }

    #[test]
    fn a_run_id_tells_when_its_run_began() {
        for now_ms in [0, 1, 1_700_000_000_123, RUN_ID_MS_MAX] {
            let id = Uuid::parse_str(&Stamp { now_ms, ..stamp() }.run_id(0)).expect("a UUID");
            assert_eq!((id.get_version_num(), id.get_variant()), (7, uuid::Variant::RFC4122));
            let (seconds, nanos) = id.get_timestamp().expect("a time").to_unix();
            assert_eq!(seconds as i64 * 1_000 + i64::from(nanos) / 1_000_000, now_ms);
        }
    }
}
