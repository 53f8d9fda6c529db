//! The write-ahead logs, read in order: no gap in their sequence numbers, no bad record that was acknowledged.
//!
//! What was acknowledged is known from two sides: the file `acked`, and every batch, which carries the sequence
//! number that was acknowledged when it was written.

use std::path::{Path, PathBuf};

use everlog_log::Error;

use super::blocks::{Blocks, Found, Next};
use super::damaged;
use super::manifest::Manifest;

/// sequence u64 LE | count u32 LE | kind u8 | length u8 | acknowledged sequence u64 LE
const HEAD_BYTES: usize = 22;
/// The kind of an entry that only the write-ahead log keeps.
const LOG_DATA: u8 = 3;

/// A tail that was never acknowledged: cut the `wal`-th file to `keep_bytes`, empty all after it.
pub(super) struct Torn {
    pub(super) wal: usize,
    pub(super) keep_bytes: u64,
}

struct Batch {
    sequence: u64,
    count: u64,
    acked: u64,
}

/// A bad record: what stands before it is whole.
struct Fault {
    wal: usize,
    keep_bytes: u64,
    reason: &'static str,
}

/// Reads all logs (number, path); None if every record is whole.
pub(super) fn examine(
    dir: &Path,
    manifest: &Manifest,
    wals: &[(u64, PathBuf)],
    acked_sequence: u64,
) -> Result<Option<Torn>, Error> {
    let mut chain = Chain { next: None, acked: acked_sequence, goes_on: false };
    for (wal, (_, path)) in wals.iter().enumerate() {
        let mut blocks = Blocks::open(path, HEAD_BYTES)?;
        let fault = loop {
            match blocks.next()? {
                Next::Record(found) => {
                    let is_first = chain.next.is_none();
                    let sequence = chain.add(path, &found)?;
                    if is_first {
                        check_first(dir, manifest, wals[0].0, sequence)?;
                    }
                }
                Next::End => break None,
                Next::Fault { at, reason } => {
                    break Some(Fault { wal, keep_bytes: at, reason });
                }
            }
        };
        let Some(fault) = fault else { continue };
        chain.look_behind(blocks.beginnings_after(fault.keep_bytes)?);
        for (_, path) in &wals[wal + 1..] {
            chain.look_behind(Blocks::open(path, HEAD_BYTES)?.beginnings()?);
        }
        return chain.judge(path, manifest, &fault).map(Some);
    }
    Ok(None)
}

/// The oldest log must go on where the tables end: else logs before it, or edits of the manifest, are lost.
fn check_first(dir: &Path, manifest: &Manifest, oldest: u64, sequence: u64) -> Result<(), Error> {
    let Manifest { first_needed_log, last_sequence, .. } = *manifest;
    if oldest == first_needed_log {
        return Ok(());
    }
    if manifest.names_a_log() || sequence > last_sequence + 1 {
        let missing = dir.join(format!("{first_needed_log:06}.log"));
        let detail = format!(
            "the manifest needs it, but the oldest write-ahead log is {oldest:06}.log from write {sequence} on \
             (the manifest knows of writes up to {last_sequence})"
        );
        return Err(damaged(&missing, detail));
    }
    Ok(())
}

struct Chain {
    /// The sequence number that the next batch must have, once one was seen.
    next: Option<u64>,
    /// Acknowledged at least.
    acked: u64,
    /// Whether whole records stand behind the first bad one.
    goes_on: bool,
}

impl Chain {
    fn add(&mut self, path: &Path, found: &Found) -> Result<u64, Error> {
        let at = found.at;
        let batch = parse(&found.head)
            .ok_or_else(|| damaged(path, format!("at byte {at} stands no batch of ours")))?;
        if let Some(expected) = self.next.filter(|next| *next != batch.sequence) {
            let sequence = batch.sequence;
            let detail =
                format!("at byte {at} stands write {sequence}, expected was {expected}: some are missing");
            return Err(damaged(path, detail));
        }
        self.next = Some(batch.sequence + batch.count);
        self.acked = self.acked.max(batch.acked);
        Ok(batch.sequence)
    }

    /// Batches behind a fault tell how far acknowledgement had gone.
    fn look_behind(&mut self, found: Vec<Found>) {
        self.goes_on |= !found.is_empty();
        let batches = found.iter().filter_map(|found| parse(&found.head));
        self.acked = batches.fold(self.acked, |acked, batch| acked.max(batch.acked));
    }

    fn judge(&self, path: &Path, manifest: &Manifest, fault: &Fault) -> Result<Torn, Error> {
        let Fault { wal, keep_bytes, reason } = *fault;
        let acked = self.acked;
        // The very first record of all has no neighbour that tells its number: it is at most the next one after the
        // tables, and exactly that one while nothing was flushed since the log was opened. Else the number that the
        // manifest gives may be of a write that came during a flush, and if more follows, it is taken for acknowledged.
        let is_known = !self.goes_on || !manifest.names_a_log();
        let write = self.next.unwrap_or(if is_known { manifest.last_sequence + 1 } else { 0 });
        if acked >= write {
            let detail =
                format!("at byte {keep_bytes} {reason}: write {write} stood there, acknowledged is {acked}");
            return Err(damaged(path, detail));
        }
        Ok(Torn { wal, keep_bytes })
    }
}

fn parse(head: &[u8]) -> Option<Batch> {
    let (sequence, rest) = head.split_first_chunk::<8>()?;
    let (count, rest) = rest.split_first_chunk::<4>()?;
    let acked = match rest {
        [LOG_DATA, 8, acked @ ..] => u64::from_le_bytes(acked.try_into().ok()?),
        _ => 0,
    };
    let batch =
        Batch { sequence: u64::from_le_bytes(*sequence), count: u32::from_le_bytes(*count).into(), acked };
    Some(batch)
}

#[cfg(test)]
mod tests {
    use super::super::blocks::write_record;
    use super::*;

    /// Logs of batches of one row each, given as (number, sequence of the first batch, acknowledged by each).
    struct Bench {
        dir: tempfile::TempDir,
        wals: Vec<(u64, PathBuf)>,
    }

    impl Bench {
        fn new(logs: &[(u64, u64, &[u64])]) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let mut wals = Vec::new();
            for (number, first, acked) in logs {
                let mut file = Vec::new();
                for (sequence, acked) in (*first..).zip(*acked) {
                    let mut batch = sequence.to_le_bytes().to_vec();
                    batch.extend_from_slice(&1u32.to_le_bytes());
                    batch.extend_from_slice(&[LOG_DATA, 8]);
                    batch.extend_from_slice(&acked.to_le_bytes());
                    batch.extend_from_slice(&[9; 100]);
                    write_record(&mut file, &batch);
                }
                let path = dir.path().join(format!("{number:06}.log"));
                std::fs::write(&path, file).unwrap();
                wals.push((*number, path));
            }
            Bench { dir, wals }
        }

        /// "whole", "torn WAL BYTES" or the name of the damaged file.
        fn examine(&self, acked: u64) -> String {
            self.examine_with(Manifest { first_needed_log: 10, last_sequence: 100, number: 0 }, acked)
        }

        fn examine_with(&self, manifest: Manifest, acked: u64) -> String {
            match examine(self.dir.path(), &manifest, &self.wals, acked) {
                Ok(None) => "whole".into(),
                Ok(Some(torn)) => format!("torn {} {}", torn.wal, torn.keep_bytes),
                Err(Error::Corrupt { path, .. }) => path.file_name().unwrap().to_str().unwrap().into(),
                Err(other) => panic!("{other}"),
            }
        }

        fn flip(&self, wal: usize, at: usize) {
            let mut bytes = std::fs::read(&self.wals[wal].1).unwrap();
            bytes[at] ^= 1;
            std::fs::write(&self.wals[wal].1, bytes).unwrap();
        }

        fn cut(&self, wal: usize, size_bytes: u64) {
            std::fs::File::options()
                .write(true)
                .open(&self.wals[wal].1)
                .unwrap()
                .set_len(size_bytes)
                .unwrap();
        }
    }

    const RECORD: u64 = 7 + 22 + 100;

    /// Three logs with writes 101 to 109; what was acknowledged is told one write later.
    fn three() -> Bench {
        Bench::new(&[(10, 101, &[100, 101, 102]), (12, 104, &[103, 104, 105]), (15, 107, &[106, 107, 108])])
    }

    #[test]
    fn whole_logs_are_whole() {
        assert_eq!(three().examine(109), "whole");
    }

    #[test]
    fn only_an_unacknowledged_last_record_is_torn() {
        for (acked, expected) in [(108, format!("torn 2 {}", 2 * RECORD)), (109, "000015.log".into())] {
            let bench = three();
            bench.cut(2, 3 * RECORD - 1);
            assert_eq!(bench.examine(acked), expected);
            let bench = three();
            bench.flip(2, 2 * RECORD as usize + 50);
            assert_eq!(bench.examine(acked), expected);
        }
    }

    #[test]
    fn a_bad_record_with_an_acknowledgement_behind_it_is_damage_even_when_acked_is_stale() {
        for (wal, at) in [(0, 40), (1, 40), (1, 2 * RECORD as usize + 40), (2, 40), (2, RECORD as usize + 4)]
        {
            let bench = three();
            bench.flip(wal, at);
            assert_eq!(bench.examine(0), format!("{:06}.log", bench.wals[wal].0), "log {wal}, byte {at}");
        }
    }

    #[test]
    fn a_log_that_lost_its_end_leaves_a_gap() {
        let bench = three();
        bench.cut(1, 2 * RECORD);
        assert_eq!(bench.examine(0), "000015.log", "cut between two records");
        let bench = three();
        bench.cut(1, 2 * RECORD + 60);
        assert_eq!(bench.examine(0), "000012.log", "cut in a record");
        let mut bench = three();
        bench.wals.remove(1);
        assert_eq!(bench.examine(0), "000015.log", "the whole log is gone");
    }

    #[test]
    fn a_needed_first_log_that_is_gone_is_missed() {
        let mut bench = three();
        bench.wals.remove(0);
        assert_eq!(bench.examine(0), "000010.log");
    }

    #[test]
    fn everything_behind_a_torn_record_is_dropped_with_it() {
        let bench = Bench::new(&[(10, 101, &[100, 101, 101]), (12, 104, &[101, 101])]);
        bench.flip(0, 2 * RECORD as usize + 40);
        assert_eq!(
            bench.examine(102),
            format!("torn 0 {}", 2 * RECORD),
            "writes 103 to 105 were never acknowledged"
        );
        assert_eq!(bench.examine(103), "000010.log");
    }

    #[test]
    fn a_torn_first_record_of_all_is_torn_only_if_nothing_behind_it_or_acknowledged() {
        let bench = Bench::new(&[(10, 101, &[100])]);
        bench.cut(0, 30);
        assert_eq!((bench.examine(100), bench.examine(101)), ("torn 0 0".into(), "000010.log".into()));
        let bench = Bench::new(&[(10, 101, &[100, 100])]);
        bench.flip(0, 40);
        assert_eq!(bench.examine(100), "000010.log");
    }

    #[test]
    fn pages_of_a_first_log_that_came_to_the_disk_in_another_order_are_torn() {
        let opened = || Manifest { first_needed_log: 10, last_sequence: 100, number: 11 };
        let bench = Bench::new(&[(12, 101, &[100, 100])]);
        bench.flip(0, 40);
        assert_eq!(bench.examine_with(opened(), 100), "torn 0 0");
        assert_eq!(bench.examine_with(opened(), 101), "000012.log", "it was acknowledged");
        let bench = Bench::new(&[(12, 101, &[100, 101])]);
        bench.flip(0, 40);
        assert_eq!(bench.examine_with(opened(), 100), "000012.log", "the next one says so");
    }
}
