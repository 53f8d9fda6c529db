//! How the embedded log writes its rows: column families, keys, values, checksums.

use bytes::Bytes;
use everlog_log::{BUCKETS, Offset, PartitionId, Record, Space, Topic, TopicEntry, buckets_of};

pub(super) const FORMAT_VERSION: u64 = 1;

/// Format version, incarnation, partitions, positions, fences, starts, control rows.
pub(super) const META: &str = "default";
/// partition u32 | offset u64 -> stamp i64 | crc32 | bytes
pub(super) const JOURNAL: &str = "journal";
/// topic u8 | partition u32 | offset u64 -> crc32 | key length u32 | key | value
pub(super) const TOPICS: &str = "topics";

/// All column families: each kind of rows has one, under the caller's keys; those of topics begin with the bucket.
pub(super) fn families() -> impl Iterator<Item = &'static str> {
    [META, JOURNAL, TOPICS].into_iter().chain(Space::ALL.map(Space::name))
}

pub(super) const KEY_FORMAT: &[u8] = b"f";
pub(super) const KEY_INCARNATION: &[u8] = b"i";
pub(super) const KEY_PARTITIONS: &[u8] = b"n";
/// First byte of control rows; nothing else in META starts with it.
pub(super) const CONTROL: u8 = b'c';

pub(super) fn control_key(key: &[u8]) -> Vec<u8> {
    let mut row = Vec::with_capacity(1 + key.len());
    row.push(CONTROL);
    row.extend_from_slice(key);
    row
}

pub(super) fn position_key(partition: PartitionId) -> [u8; 5] {
    meta_key(b'p', partition)
}

pub(super) fn fence_key(partition: PartitionId) -> [u8; 5] {
    meta_key(b'e', partition)
}

/// Row of a journal's start: offset u64 | stamp i64 of the last record below it.
pub(super) fn start_key(partition: PartitionId) -> [u8; 5] {
    meta_key(b's', partition)
}

/// Row of an append-only topic's start: offset u64.
pub(super) fn topic_start_key(topic: Topic, partition: PartitionId) -> [u8; 6] {
    let [_, a, b, c, d] = meta_key(b't', partition);
    [b't', topic_code(topic), a, b, c, d]
}

fn meta_key(kind: u8, partition: PartitionId) -> [u8; 5] {
    let [a, b, c, d] = partition.to_be_bytes();
    [kind, a, b, c, d]
}

pub(super) fn journal_key(partition: PartitionId, offset: Offset) -> [u8; 12] {
    let mut key = [0; 12];
    key[..4].copy_from_slice(&partition.to_be_bytes());
    key[4..].copy_from_slice(&offset.to_be_bytes());
    key
}

pub(super) fn topic_key(topic: Topic, partition: PartitionId, offset: Offset) -> [u8; 13] {
    let mut key = [0; 13];
    key[0] = topic_code(topic);
    key[1..].copy_from_slice(&journal_key(partition, offset));
    key
}

/// The offset is the last 8 bytes of the keys of journals and append-only topics.
pub(super) fn key_offset(key: &[u8]) -> Option<Offset> {
    let (_, tail) = key.split_at_checked(key.len().checked_sub(8)?)?;
    Some(u64::from_be_bytes(tail.try_into().ok()?))
}

fn topic_code(topic: Topic) -> u8 {
    match topic {
        Topic::Events => 1,
        Topic::Changelog => 2,
        Topic::History => 3,
        Topic::Timers => 4,
        Topic::Replies => 5,
        Topic::Rejections => 6,
    }
}

/// The column family of a compacted topic's rows; None for append-only topics.
pub(super) fn family(topic: Topic) -> Option<&'static str> {
    topic.is_compacted().then(|| topic.name())
}

/// First and past-the-last key of a partition's rows in a compacted topic; no last for the last partition.
pub(super) fn row_range(partition: PartitionId, partitions: u32) -> (Vec<u8>, Option<Vec<u8>>) {
    let buckets = buckets_of(partition, partitions);
    let edge = |bucket: u32| (bucket as u16).to_be_bytes().to_vec();
    (edge(buckets.start), (buckets.end < BUCKETS).then(|| edge(buckets.end)))
}

pub(super) fn encode_record(
    partition: PartitionId,
    offset: Offset,
    stamp_ms: i64,
    bytes: &[u8],
    row: &mut Vec<u8>,
) {
    row.clear();
    row.extend_from_slice(&stamp_ms.to_be_bytes());
    row.extend_from_slice(&record_crc(partition, offset, stamp_ms, bytes).to_be_bytes());
    row.extend_from_slice(bytes);
}

/// None if the checksum does not fit: the bytes are not those written for this partition and offset.
pub(super) fn decode_record(partition: PartitionId, offset: Offset, row: &[u8]) -> Option<Record> {
    let (stamp, rest) = row.split_first_chunk::<8>()?;
    let (crc, bytes) = rest.split_first_chunk::<4>()?;
    let stamp_ms = i64::from_be_bytes(*stamp);
    let intact = record_crc(partition, offset, stamp_ms, bytes) == u32::from_be_bytes(*crc);
    intact.then(|| Record { offset, stamp_ms, bytes: Bytes::copy_from_slice(bytes) })
}

fn record_crc(partition: PartitionId, offset: Offset, stamp_ms: i64, bytes: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&partition.to_be_bytes());
    crc.update(&offset.to_be_bytes());
    crc.update(&stamp_ms.to_be_bytes());
    crc.update(bytes);
    crc.finalize()
}

pub(super) fn encode_entry(place: &[u8], key: &[u8], value: &[u8], row: &mut Vec<u8>) {
    row.clear();
    row.extend_from_slice(&[0; 4]);
    row.extend_from_slice(&(key.len() as u32).to_be_bytes());
    row.extend_from_slice(key);
    row.extend_from_slice(value);
    let crc = entry_crc(place, &row[4..]);
    row[..4].copy_from_slice(&crc.to_be_bytes());
}

/// None if the checksum does not fit.
pub(super) fn decode_entry(place: &[u8], row: &[u8]) -> Option<TopicEntry> {
    let (crc, rest) = row.split_first_chunk::<4>()?;
    if entry_crc(place, rest) != u32::from_be_bytes(*crc) {
        return None;
    }
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (key, value) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
    Some((key_offset(place)?, Bytes::copy_from_slice(key), Bytes::copy_from_slice(value)))
}

fn entry_crc(place: &[u8], rest: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(place);
    crc.update(rest);
    crc.finalize()
}

pub(super) fn encode_u64_and(first: u64, rest: &[u8]) -> Vec<u8> {
    let mut row = first.to_be_bytes().to_vec();
    row.extend_from_slice(rest);
    row
}

pub(super) fn decode_u64_and(row: &[u8]) -> Option<(u64, &[u8])> {
    let (first, rest) = row.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*first), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_only_read_back_at_its_own_place() {
        let mut row = Vec::new();
        encode_record(3, 7, 1_000, b"hello", &mut row);
        assert_eq!(decode_record(3, 7, &row).unwrap().bytes, &b"hello"[..]);
        assert!(decode_record(3, 8, &row).is_none() && decode_record(2, 7, &row).is_none());
        for at in 0..row.len() {
            let mut damaged = row.clone();
            damaged[at] ^= 1;
            assert!(decode_record(3, 7, &damaged).is_none(), "byte {at}");
        }
    }

    #[test]
    fn an_entry_with_any_byte_flipped_is_not_read() {
        let place = topic_key(Topic::Replies, 1, 9);
        let mut row = Vec::new();
        encode_entry(&place, b"key", b"value", &mut row);
        assert_eq!(
            decode_entry(&place, &row),
            Some((9, Bytes::from_static(b"key"), Bytes::from_static(b"value")))
        );
        for at in 0..row.len() {
            let mut damaged = row.clone();
            damaged[at] ^= 1;
            assert!(decode_entry(&place, &damaged).is_none(), "byte {at}");
        }
    }
}
