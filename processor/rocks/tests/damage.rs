//! Damage to any file of a filled directory either stops the log with an error that names it, or loses nothing.

#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that is not as expected")]

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;

use bytes::Bytes;
use everlog_log::{Commit, Error, Log, Output, Topic, buckets_of};
use everlog_rocks::log::{Embedded, Options, Recover};

const PARTITIONS: u32 = 2;
const ROUNDS: u64 = 90;
const APPENDS_A_ROUND: u64 = 8;

/// A directory as a killed process leaves it: several tables, a write-ahead log with rows in no table.
struct Filled {
    dir: tempfile::TempDir,
    /// (partition, record) and (key, value) of all that was acknowledged.
    records: Vec<(u32, Bytes)>,
    rows: BTreeMap<Bytes, Bytes>,
}

fn options(dir: &Path) -> Options {
    Options {
        partitions: PARTITIONS,
        write_buffer_bytes: 1 << 20,
        block_cache_bytes: 1 << 20,
        ..Options::new(dir)
    }
}

fn fill() -> Filled {
    let dir = tempfile::tempdir().unwrap();
    let source = tempfile::tempdir().unwrap();
    let log = Embedded::open(options(source.path())).unwrap();
    let fences = [0, 1].map(|partition| log.fence(partition).unwrap());
    let mut filled = Filled { dir, records: Vec::new(), rows: BTreeMap::new() };
    for round in 0..ROUNDS {
        let (done, wait) = channel();
        for n in 0..APPENDS_A_ROUND {
            let partition = (n % 2) as u32;
            let record = Bytes::from(format!("{round} {n} ").repeat(500 + n as usize));
            filled.records.push((partition, record.clone()));
            let done = done.clone();
            log.append(
                partition,
                vec![record],
                Box::new(move |outcome| done.send(outcome.map(drop)).unwrap()),
            );
        }
        for partition in 0..PARTITIONS {
            let bucket = buckets_of(partition, PARTITIONS).start as u16;
            let key = [&bucket.to_be_bytes()[..], &(round % 40).to_be_bytes()[..]].concat();
            let (key, value) = (Bytes::from(key), Bytes::from(format!("row {round} ").repeat(200)));
            filled.rows.insert(key.clone(), value.clone());
            let outputs = vec![Output::new(Topic::Changelog, key, Some(value))];
            let applied = round * APPENDS_A_ROUND / 4;
            let fence = fences[partition as usize];
            let commit =
                Commit { partition, fence, applied, position: "position".into(), outputs, index: Vec::new() };
            let done = done.clone();
            log.commit(commit, Box::new(move |outcome| done.send(outcome).unwrap()));
        }
        drop(done);
        wait.iter().for_each(|outcome| outcome.unwrap());
    }
    log.control_put(b"last", Some(b"synced")).unwrap();
    log.database().wait_for_compact(&rocksdb::WaitForCompactOptions::default()).unwrap();
    copy(source.path(), filled.dir.path());
    drop(log);
    filled
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// Every record and row is there, or the first thing that is not.
fn everything(log: &Embedded, filled: &Filled) -> Result<(), Error> {
    for partition in 0..PARTITIONS {
        let mut expected = filled.records.iter().filter(|(of, _)| *of == partition).map(|(_, record)| record);
        let end = log.bounds(partition)?.end;
        let mut next = 0;
        while next < end {
            for record in log.read(partition, next, 1 << 20)? {
                assert_eq!(
                    Some(&record.bytes),
                    expected.next(),
                    "journal {partition}, offset {}",
                    record.offset
                );
                next += 1;
            }
        }
        assert_eq!(expected.next(), None, "journal {partition} ends at {end}");
    }
    let mut rows = BTreeMap::new();
    for partition in 0..PARTITIONS {
        let mut visit = |key: &[u8], value: Option<&[u8]>| {
            rows.insert(Bytes::copy_from_slice(key), Bytes::copy_from_slice(value.unwrap()));
            true
        };
        log.restore(Topic::Changelog, partition, 0, &mut visit)?;
        assert_eq!(log.position(partition)?.unwrap().0, (ROUNDS - 1) * APPENDS_A_ROUND / 4);
    }
    assert!(rows == filled.rows, "rows differ");
    Ok(())
}

/// Damages a copy and opens it: whether it stopped, and then with `Corrupt` of an expected file.
fn stops(filled: &Filled, what: &str, names: &[&str], damage: impl FnOnce(&Path)) -> bool {
    let dir = tempfile::tempdir().unwrap();
    copy(filled.dir.path(), dir.path());
    damage(dir.path());
    let outcome = Embedded::open(options(dir.path())).and_then(|log| everything(&log, filled));
    match outcome {
        Ok(()) => false,
        Err(Error::Corrupt { path, way_out, .. }) if !way_out.is_empty() => {
            let name = path.file_name().unwrap().to_str().unwrap();
            assert!(
                names.iter().any(|wanted| name.contains(wanted)),
                "{what}: {path:?} is named, not {names:?}"
            );
            true
        }
        Err(other) => panic!("{what}: {other:?}"),
    }
}

fn files(dir: &Path, suffix: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir.join("db")).unwrap();
    let mut names: Vec<PathBuf> =
        entries.map(|entry| PathBuf::from("db").join(entry.unwrap().file_name())).collect();
    names.retain(|name| name.to_str().unwrap().contains(suffix));
    names.sort();
    names
}

fn size(filled: &Filled, file: &Path) -> u64 {
    std::fs::metadata(filled.dir.path().join(file)).unwrap().len()
}

fn flip(path: &Path, at: u64) {
    let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 0x10], at).unwrap();
}

fn cut(path: &Path, size_bytes: u64) {
    std::fs::File::options().write(true).open(path).unwrap().set_len(size_bytes).unwrap();
}

/// The newest write-ahead log with something in it.
fn wal(filled: &Filled) -> PathBuf {
    files(filled.dir.path(), ".log").into_iter().rfind(|file| size(filled, file) > 0).unwrap()
}

#[test]
fn an_undamaged_directory_of_a_killed_process_opens_and_is_whole() {
    let filled = fill();
    assert!(files(filled.dir.path(), ".sst").len() >= 3, "several tables");
    assert!(size(&filled, &wal(&filled)) > 40_000, "rows in no table");
    assert!(!stops(&filled, "nothing", &[], |_| {}));
    let copied = tempfile::tempdir().unwrap();
    copy(filled.dir.path(), copied.path());
    for _ in 0..3 {
        let log = Embedded::open(options(copied.path())).unwrap();
        assert_eq!(log.recovery().torn_bytes, 0);
        everything(&log, &filled).unwrap();
    }
}

#[test]
fn one_crash_after_the_other_loses_nothing() {
    let mut filled = fill();
    for crash in 0..3 {
        let log = Embedded::open(options(filled.dir.path())).unwrap();
        everything(&log, &filled).unwrap();
        let record = Bytes::from(format!("after crash {crash}"));
        filled.records.push((0, record.clone()));
        let (done, wait) = channel();
        log.append(0, vec![record], Box::new(move |outcome| done.send(outcome.map(drop)).unwrap()));
        wait.recv().unwrap().unwrap();
        let killed = tempfile::tempdir().unwrap();
        copy(filled.dir.path(), killed.path());
        drop(log);
        filled.dir = killed;
    }
    let logs = files(filled.dir.path(), ".log").len();
    assert!(logs > 3, "what was read again has become a file: {logs} write-ahead logs");
    everything(&Embedded::open(options(filled.dir.path())).unwrap(), &filled).unwrap();
}

#[test]
fn a_damaged_write_ahead_log_stops_the_log() {
    let filled = fill();
    let wal = wal(&filled);
    let name = wal.file_name().unwrap().to_str().unwrap();
    let end = size(&filled, &wal);
    let middle = (0..end).step_by(end as usize / 40);
    let last_record = end.saturating_sub(60)..end;
    for at in middle.chain(last_record).chain(0..12) {
        assert!(stops(&filled, &format!("flip at {at} of {end}"), &[name], |dir| flip(&dir.join(&wal), at)));
    }
    for keep in (0..end).step_by(end as usize / 25).chain(end - 40..end) {
        assert!(stops(&filled, &format!("cut to {keep} of {end}"), &[name, "db"], |dir| cut(
            &dir.join(&wal),
            keep
        )));
    }
    assert!(stops(&filled, "no write-ahead log", &[name, "db"], |dir| {
        std::fs::remove_file(dir.join(&wal)).unwrap()
    }));
}

#[test]
fn a_torn_tail_that_nobody_was_told_of_is_cut_off() {
    let filled = fill();
    let wal = wal(&filled);
    let whole = std::fs::read(filled.dir.path().join(&wal)).unwrap();
    let tails: [Vec<u8>; 5] =
        [vec![0; 3], vec![0; 70_000], vec![7; 3], vec![0xff; 50_000], whole[..20_000].to_vec()];
    for tail in tails {
        let dir = tempfile::tempdir().unwrap();
        copy(filled.dir.path(), dir.path());
        // The beginning of a record of 20,000 bytes, whose rest was never written.
        let mut torn = vec![1, 2, 3, 4, 0x20, 0x4e, 1];
        torn.extend_from_slice(&tail);
        let torn = if tail.first() == Some(&0) { tail } else { torn };
        let file = std::fs::File::options().write(true).open(dir.path().join(&wal)).unwrap();
        file.write_all_at(&torn, whole.len() as u64).unwrap();
        let log = Embedded::open(options(dir.path())).unwrap();
        assert_eq!(log.recovery().torn_bytes, torn.len() as u64);
        everything(&log, &filled).unwrap();
    }
}

#[test]
fn a_damaged_table_is_found_when_it_is_opened_or_read() {
    let filled = fill();
    for table in files(filled.dir.path(), ".sst") {
        let name = table.file_name().unwrap().to_str().unwrap();
        let end = size(&filled, &table);
        let mut stopped = 0;
        for at in (0..end).step_by(end as usize / 6) {
            stopped += u32::from(stops(&filled, &format!("flip at {at} of {name}"), &[name, "db"], |dir| {
                flip(&dir.join(&table), at)
            }));
        }
        assert!(stopped >= 5, "{name}: {stopped} flips found, the others harmless");
        for keep in [0, end / 2, end - 1] {
            assert!(stops(&filled, &format!("cut {name} to {keep}"), &[name, "db"], |dir| cut(
                &dir.join(&table),
                keep
            )));
        }
        assert!(stops(&filled, &format!("no {name}"), &[name, "db"], |dir| {
            std::fs::remove_file(dir.join(&table)).unwrap()
        }));
    }
}

#[test]
fn a_damaged_manifest_stops_the_log_or_costs_nothing() {
    let filled = fill();
    let manifest = files(filled.dir.path(), "MANIFEST").pop().unwrap();
    let end = size(&filled, &manifest);
    let mut stopped = 0;
    let names = ["MANIFEST", ".log", ".sst", "db"];
    for at in (0..end).step_by(9).chain(end - 30..end) {
        stopped += u32::from(stops(&filled, &format!("flip at {at} of {end}"), &names, |dir| {
            flip(&dir.join(&manifest), at)
        }));
    }
    assert!(u64::from(stopped) > end / 9 - 9, "{stopped} of {} flips are found", end / 9);
    for keep in (0..end).step_by(11) {
        stops(&filled, &format!("cut to {keep} of {end}"), &names, |dir| cut(&dir.join(&manifest), keep));
    }
    assert!(stops(&filled, "no manifest", &names, |dir| std::fs::remove_file(dir.join(&manifest)).unwrap()));
}

#[test]
fn a_missing_or_wrong_name_of_the_manifest_never_makes_an_empty_log() {
    let filled = fill();
    let current = |dir: &Path| dir.join("db/CURRENT");
    assert!(stops(&filled, "no CURRENT", &["CURRENT"], |dir| {
        std::fs::remove_file(current(dir)).unwrap()
    }));
    for wrong in ["", "MANIFEST-000001\n", "MANIFEST-", "nonsense\n", "MANIFEST-000099\n"] {
        let names = ["CURRENT", "MANIFEST"];
        assert!(stops(&filled, wrong, &names, |dir| std::fs::write(current(dir), wrong).unwrap()));
    }
    assert!(
        stops(&filled, "not text", &["CURRENT"], |dir| std::fs::write(current(dir), [0xff, 0xfe]).unwrap())
    );
    assert!(stops(&filled, "no database", &["db"], |dir| {
        std::fs::remove_dir_all(dir.join("db")).unwrap()
    }));
    assert!(stops(&filled, "no bound", &["acked"], |dir| {
        std::fs::remove_file(dir.join("acked")).unwrap()
    }));
    assert!(stops(&filled, "an empty bound", &["acked"], |dir| cut(&dir.join("acked"), 0)));
}

#[test]
fn an_old_copy_of_the_database_is_not_taken_for_the_new_one() {
    let dir = tempfile::tempdir().unwrap();
    let old = tempfile::tempdir().unwrap();
    drop(Embedded::open(options(dir.path())).unwrap());
    copy(dir.path(), old.path());
    let log = Embedded::open(options(dir.path())).unwrap();
    log.control_put(b"k", Some(b"v")).unwrap();
    drop(log);
    std::fs::remove_dir_all(dir.path().join("db")).unwrap();
    copy(&old.path().join("db"), &dir.path().join("db"));
    assert!(matches!(Embedded::open(options(dir.path())), Err(Error::Corrupt { .. })));
}

#[test]
fn the_way_out_goes_on_with_what_is_readable() {
    let filled = fill();
    let wal = wal(&filled);
    let at = size(&filled, &wal) / 2;
    flip(&filled.dir.path().join(&wal), at);
    assert!(matches!(Embedded::open(options(filled.dir.path())), Err(Error::Corrupt { .. })));
    let lossy = Options { recover: Recover::AcceptLoss, ..options(filled.dir.path()) };
    let kept = Embedded::open(lossy).unwrap().bounds(0).unwrap().end;
    let all = filled.records.iter().filter(|(partition, _)| *partition == 0).count() as u64;
    assert!(kept > 0 && kept < all, "{kept} of {all}");
    let log = Embedded::open(options(filled.dir.path())).unwrap();
    assert_eq!(log.bounds(0).unwrap().end, kept, "the log is whole again");
}
