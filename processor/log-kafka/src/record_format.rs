//! What the log itself writes to Kafka: reserved keys, position rows, fence rows, and the header of an output.

use bytes::Bytes;
use everlog_log::{Error, Fence, Offset, PartitionId, Topic};

/// Changelog keys that begin so are the log's own: buckets end at 0x3fff.
const RESERVED: [u8; 2] = [0xff, 0xff];
const POSITION: u8 = b'p';
const FENCE: u8 = b'f';
const END: u8 = b'e';
/// Control keys that begin so are the log's own.
pub(crate) const CONTROL_RESERVED: u8 = 0xff;
const TOPIC_ID: u8 = b't';
/// Version of the incarnation record.
const INCARNATION_FORMAT: u8 = 1;

/// Carried by every output: fence (u64), number of the commit under that fence (u64), the commit's `applied` (u64),
/// place of the record in its commit (u32), all big endian. The position row comes last, its place is their count.
pub(crate) const HEADER: &str = "everlog";

pub(crate) fn header(fence: Fence, commit: u64, applied: Offset, place: u32) -> [u8; 28] {
    let mut bytes = [0; 28];
    bytes[..8].copy_from_slice(&fence.0.to_be_bytes());
    bytes[8..16].copy_from_slice(&commit.to_be_bytes());
    bytes[16..24].copy_from_slice(&applied.to_be_bytes());
    bytes[24..].copy_from_slice(&place.to_be_bytes());
    bytes
}

/// Fence and number of a commit, and the place in it, of a record with this header.
pub(crate) fn origin(header: &[u8]) -> Option<((u64, u64), u32)> {
    let (fence, rest) = header.split_first_chunk()?;
    let (commit, rest) = rest.split_first_chunk()?;
    let (_applied, place) = rest.split_first_chunk::<8>()?;
    let place = u32::from_be_bytes(place.try_into().ok()?);
    Some(((u64::from_be_bytes(*fence), u64::from_be_bytes(*commit)), place))
}

/// A commit of a partition. A later one is greater, whoever made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CommitId {
    pub(crate) fence: u64,
    pub(crate) number: u64,
}

pub(crate) fn is_reserved(key: &[u8]) -> bool {
    key.starts_with(&RESERVED)
}

fn reserved_key(kind: u8, partition: PartitionId) -> [u8; 7] {
    let [a, b, c, d] = partition.to_be_bytes();
    [RESERVED[0], RESERVED[1], kind, a, b, c, d]
}

pub(crate) fn position_key(partition: PartitionId) -> [u8; 7] {
    reserved_key(POSITION, partition)
}

pub(crate) fn fence_key(partition: PartitionId) -> [u8; 7] {
    reserved_key(FENCE, partition)
}

/// Of a tombstone that is written for the end of its transaction only. In a public topic it is empty, which no Workflow Id
/// is.
pub(crate) fn end_key(topic: Topic, partition: PartitionId) -> Vec<u8> {
    if topic.is_compacted() { reserved_key(END, partition).to_vec() } else { Vec::new() }
}

/// A position row: `applied`, incarnation, fence, then the caller's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PositionRow {
    pub(crate) applied: Offset,
    pub(crate) incarnation: [u8; 16],
    pub(crate) fence: Fence,
    pub(crate) row: Bytes,
}

impl PositionRow {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(32 + self.row.len());
        bytes.extend_from_slice(&self.applied.to_be_bytes());
        bytes.extend_from_slice(&self.incarnation);
        bytes.extend_from_slice(&self.fence.0.to_be_bytes());
        bytes.extend_from_slice(&self.row);
        bytes
    }

    /// None: not a position row.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (applied, rest) = bytes.split_first_chunk()?;
        let (incarnation, rest) = rest.split_first_chunk()?;
        let (fence, row) = rest.split_first_chunk()?;
        Some(PositionRow {
            applied: u64::from_be_bytes(*applied),
            incarnation: *incarnation,
            fence: Fence(u64::from_be_bytes(*fence)),
            row: Bytes::copy_from_slice(row),
        })
    }
}

/// Key of the control record that gave out a fence; the record's place is the fence.
pub(crate) fn control_fence_key(partition: PartitionId) -> Vec<u8> {
    [&[CONTROL_RESERVED, b'f'][..], &partition.to_be_bytes()].concat()
}

/// Key of the control record with the id of a topic; the name is without the prefix.
pub(crate) fn topic_id_key(name: &str) -> Vec<u8> {
    [&[CONTROL_RESERVED, TOPIC_ID][..], name.as_bytes()].concat()
}

/// Name and id of a topic. None: another kind of control record.
pub(crate) fn topic_id(key: &[u8], value: &[u8]) -> Option<(String, [u8; 16])> {
    let name = key.strip_prefix(&[CONTROL_RESERVED, TOPIC_ID])?;
    Some((String::from_utf8(name.to_vec()).ok()?, value.try_into().ok()?))
}

/// What was fixed when the topics were made. The first such record of `control` holds; each has a key of its own, so
/// that compaction never takes it away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Incarnation {
    pub(crate) id: [u8; 16],
    pub(crate) partitions: u32,
    pub(crate) group_partitions: u32,
}

impl Incarnation {
    const KEY: [u8; 2] = [CONTROL_RESERVED, b'i'];

    pub(crate) fn key(&self) -> Vec<u8> {
        [&Self::KEY[..], &self.id].concat()
    }

    pub(crate) fn value(&self) -> Vec<u8> {
        let numbers = [self.partitions.to_be_bytes(), self.group_partitions.to_be_bytes()].concat();
        [&[INCARNATION_FORMAT][..], &numbers].concat()
    }

    /// None: another kind of control record.
    ///
    /// # Errors
    /// Made by another version.
    pub(crate) fn decode(key: &[u8], value: &[u8]) -> Result<Option<Self>, Error> {
        let Some(id) = key.strip_prefix(&Self::KEY[..]).and_then(|id| id.try_into().ok()) else {
            return Ok(None);
        };
        let format = value.first().copied().unwrap_or(0);
        let numbers = value.get(1..).and_then(|rest| rest.split_first_chunk());
        match numbers {
            Some((partitions, rest)) if format == INCARNATION_FORMAT && rest.len() == 4 => {
                let mut group = [0; 4];
                group.copy_from_slice(rest);
                let (partitions, group_partitions) =
                    (u32::from_be_bytes(*partitions), u32::from_be_bytes(group).max(1));
                Ok(Some(Incarnation { id, partitions, group_partitions }))
            }
            Some(_) | None => Err(Error::Mismatch {
                what: "format version of the topics",
                stored: format.into(),
                wanted: INCARNATION_FORMAT.into(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_row_comes_back_as_it_went() {
        let position = PositionRow {
            applied: 7,
            incarnation: [3; 16],
            fence: Fence(9),
            row: Bytes::from_static(b"row"),
        };
        assert_eq!(PositionRow::decode(&position.encode()), Some(position.clone()));
        assert_eq!(PositionRow::decode(&position.encode()[..31]), None);
        let empty = PositionRow { row: Bytes::new(), ..position };
        assert_eq!(PositionRow::decode(&empty.encode()), Some(empty));
    }

    #[test]
    fn a_header_tells_where_its_record_is_from() {
        assert_eq!(origin(&header(Fence(9), 5, 70, 3)), Some(((9, 5), 3)));
        assert_eq!(origin(&header(Fence(9), 5, 70, 3)[..27]), None);
    }

    #[test]
    fn an_incarnation_comes_back_as_it_went() {
        let made = Incarnation { id: [9; 16], partitions: 16, group_partitions: 4 };
        assert_eq!(Incarnation::decode(&made.key(), &made.value()).expect("ours"), Some(made));
        assert_eq!(Incarnation::decode(b"member", b"x").expect("another kind"), None);
        assert!(Incarnation::decode(&made.key(), &[2, 0]).is_err(), "a later version");
    }

    #[test]
    fn a_topic_id_comes_back_as_it_went() {
        let id = [7; 16];
        assert_eq!(topic_id(&topic_id_key("journal"), &id), Some(("journal".into(), id)));
        assert_eq!(topic_id(&control_fence_key(3), &id), None);
        assert_eq!(topic_id(&topic_id_key("journal"), &id[1..]), None);
    }

    #[test]
    fn no_bucket_has_a_reserved_key() {
        for bucket in 0..everlog_log::BUCKETS {
            assert!(!is_reserved(&(bucket as u16).to_be_bytes()));
        }
        assert!(is_reserved(&position_key(3)) && is_reserved(&fence_key(3)));
    }
}
