//! Rows of alarms, read a slice at a time: of a row of buckets those within a span of time. A partition has thousands of buckets,
//! and most of them nothing to tell: one pass over all of them finds what there is.

use std::ops::Range;

use bytes::Bytes;
use everlog_store::{CommittedRows, Seek, Space, Store};

use crate::context::PartitionContext;

/// Alarms that are read at a time: runs are loaded in between.
pub(crate) const TIMERS_SLICE: usize = 1_000;
/// Rows that are looked at for them at most: calls wait for that.
const LOOKS_MAX: usize = 1_000;

/// What is still to be read.
pub(crate) struct TimerRows {
    span_ms: Range<i64>,
    /// Keys of rows.
    from: Vec<u8>,
    to: Vec<u8>,
}

impl TimerRows {
    /// Of a partition, within these moments.
    pub(crate) fn of(context: &PartitionContext, span_ms: Range<i64>) -> Self {
        Self::new(&everlog_log::buckets_of(context.id, context.partitions), span_ms)
    }

    /// Of these buckets, within these moments.
    fn new(buckets: &Range<u32>, span_ms: Range<i64>) -> Self {
        let last = buckets.end.saturating_sub(1).max(buckets.start);
        TimerRows { from: edge(buckets.start, span_ms.start), to: edge(last, span_ms.end), span_ms }
    }

    /// True once there is nothing left.
    pub(crate) fn is_done(&self) -> bool {
        self.from >= self.to
    }

    /// The next of them, `rows_max` at most: a slice of them may be empty, and not the last one.
    pub(crate) fn read<B: CommittedRows>(
        &mut self,
        store: &Store<B>,
        rows_max: usize,
    ) -> Result<Vec<Bytes>, everlog_store::Error> {
        let (mut found, mut looks, mut from) = (Vec::new(), 0, None);
        store.seek_scan(Space::Timers, &self.from, &self.to, &mut |row| {
            looks += 1;
            let is_enough = |found: &[Bytes]| found.len() == rows_max || looks == LOOKS_MAX;
            if let Some(ahead) = self.ahead(row) {
                if !is_enough(&found) {
                    return Seek::At(ahead);
                }
                from = Some(ahead);
                return Seek::End;
            }
            found.push(Bytes::copy_from_slice(row));
            if !is_enough(&found) {
                return Seek::Next;
            }
            from = Some([row, &[0]].concat());
            Seek::End
        })?;
        self.from = from.unwrap_or_else(|| self.to.clone());
        Ok(found)
    }

    /// Where it goes on from a row that is none of them: at the first one of its bucket, or of the next one, that may be.
    fn ahead(&self, row: &[u8]) -> Option<Vec<u8>> {
        let (bucket, rest) = row.split_first_chunk()?;
        let at_ms = i64::from_be_bytes(*rest.first_chunk()?);
        let bucket = u32::from(u16::from_be_bytes(*bucket));
        if at_ms < self.span_ms.start {
            return Some(edge(bucket, self.span_ms.start));
        }
        (at_ms >= self.span_ms.end).then(|| edge(bucket + 1, self.span_ms.start))
    }
}

/// The key before all rows of a bucket from a moment on. The bucket behind the last one is that one's very end.
fn edge(bucket: u32, at_ms: i64) -> Vec<u8> {
    let (bucket, at_ms) = u16::try_from(bucket).map_or((u16::MAX, i64::MAX), |bucket| (bucket, at_ms));
    let mut key = bucket.to_be_bytes().to_vec();
    key.extend_from_slice(&at_ms.to_be_bytes());
    key
}

#[cfg(test)]
mod tests {
    use everlog_store::MemoryRows;

    use super::*;

    /// A row of a bucket and a moment.
    fn row(bucket: u16, at_ms: i64, name: &str) -> Bytes {
        [edge(bucket.into(), at_ms).as_slice(), name.as_bytes()].concat().into()
    }

    /// All of them, read so many at a time, and in how many slices.
    fn read(store: &Store<MemoryRows>, mut rows: TimerRows, rows_max: usize) -> (Vec<Bytes>, usize) {
        let (mut found, mut slices) = (Vec::new(), 0);
        while !rows.is_done() {
            found.extend(rows.read(store, rows_max).expect("rows in memory are read"));
            slices += 1;
        }
        (found, slices)
    }

    #[test]
    fn what_is_within_the_span_is_found_once_in_slices_of_any_size() {
        let mut store = Store::new(MemoryRows::default());
        let (buckets, span_ms) = (100..1_100, 50..60);
        let mut within = Vec::new();
        for bucket in 90..1_110_u16 {
            for (at_ms, name) in
                [(0, "waits"), (1, "left"), (49, "a"), (50, "b"), (50, "c"), (59, "d"), (60, "e")]
            {
                // From none of them to all of them in a bucket.
                if i64::from(bucket) % 7 < at_ms % 8 {
                    let row = row(bucket, at_ms, name);
                    store.put(Space::Timers, row.clone(), Bytes::new());
                    if buckets.contains(&u32::from(bucket)) && span_ms.contains(&at_ms) {
                        within.push(row);
                    }
                }
            }
        }
        assert!(within.len() > 900, "{}", within.len());
        for rows_max in [1, 7, 64, usize::MAX] {
            let (found, slices) = read(&store, TimerRows::new(&buckets, span_ms.clone()), rows_max);
            assert_eq!(found, within, "{rows_max} at a time");
            assert!(
                slices >= within.len().div_ceil(rows_max).max(2),
                "{slices} slices: no look takes all of them"
            );
        }
    }

    #[test]
    fn the_last_bucket_of_all_has_an_end() {
        let mut store = Store::new(MemoryRows::default());
        for at_ms in [0, 5, i64::MAX - 1] {
            store.put(Space::Timers, row(u16::MAX, at_ms, "w"), Bytes::new());
        }
        let rows = TimerRows::new(&(65_000..65_536), 1..9);
        assert_eq!(read(&store, rows, 10).0, [row(u16::MAX, 5, "w")]);
    }
}
