//! Full disks, full queues, second owners, wrong settings: each gets its own clear answer, and nothing is lost.

#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that is not as expected")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};

use bytes::Bytes;
use everlog_log::{Appended, Commit, Error, Fence, Log};
use everlog_patience as patience;
use everlog_rocks::log::{Embedded, Limits, Options};

fn append(log: &Embedded, bytes: &'static str) -> Receiver<Result<Appended, Error>> {
    let (done, wait) = channel();
    log.append(
        0,
        vec![Bytes::from_static(bytes.as_bytes())],
        Box::new(move |outcome| done.send(outcome.map(Option::unwrap)).unwrap()),
    );
    wait
}

fn commit(log: &Embedded, fence: Fence, applied: u64) -> Result<(), Error> {
    let (done, wait) = channel();
    let commit =
        Commit { partition: 0, fence, applied, position: Bytes::new(), outputs: vec![], index: Vec::new() };
    log.commit(commit, Box::new(move |outcome| done.send(outcome).unwrap()));
    wait.recv().unwrap()
}

#[test]
fn a_full_disk_refuses_appends_then_commits_and_goes_on_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let free = Arc::new(AtomicU64::new(u64::MAX));
    let told = Arc::clone(&free);
    // Twice the write buffers and 8 MiB are kept free, however little is asked for.
    let kept = 2 * (16 << 20) + (8 << 20);
    let options = Options {
        free_bytes: Arc::new(move |_: &Path| Ok(told.load(Ordering::Relaxed))),
        write_buffer_bytes: 16 << 20,
        limits: Limits { free_bytes_min: 1 << 20, ..Limits::default() },
        ..Options::new(dir.path())
    };
    let log = Embedded::open(options).unwrap();
    let fence = log.fence(0).unwrap();
    assert_eq!(append(&log, "before").recv().unwrap().unwrap().first, 0);
    free.store(kept - 1, Ordering::Relaxed);
    assert!(log.is_full(), "an onlooker need not wait for an append to be refused");
    let deadline = patience::deadline();
    let mut accepted = 1;
    // The space is asked for a few times a second, so some appends still pass.
    let refused = loop {
        match append(&log, "more").recv().unwrap() {
            Ok(_) => accepted += 1,
            Err(error) => break error,
        }
        assert!(!deadline.is_over(), "the full disk is not noticed");
    };
    let said = format!("{} bytes are free", kept - 1);
    assert!(matches!(&refused, Error::Full { detail } if detail.contains(&said)), "{refused}");
    assert!(log.is_full() && log.failure().is_none());
    commit(&log, fence, 1).unwrap();
    free.store(kept / 2 - 1, Ordering::Relaxed);
    assert!(matches!(commit(&log, fence, accepted), Err(Error::Full { .. })));
    assert_eq!(log.position(0).unwrap().unwrap().0, 1);
    log.trim(0, 1).unwrap();
    free.store(kept, Ordering::Relaxed);
    assert!(!log.is_full());
    commit(&log, fence, accepted).unwrap();
    assert_eq!(append(&log, "after").recv().unwrap().unwrap().first, accepted);
}

#[test]
fn a_full_queue_refuses_appends_at_once_and_says_how_much_waits() {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits { waiting_items_max: 3, ..Limits::default() };
    let log = Embedded::open(Options { limits, ..Options::new(dir.path()) }).unwrap();
    // Holds the writer in a callback, so that the queue fills.
    let (release, held) = channel::<()>();
    let (entered, inside) = channel();
    let hold = move |_| {
        entered.send(()).unwrap();
        held.recv().unwrap();
    };
    log.append(0, vec!["hold".into()], Box::new(hold));
    inside.recv().unwrap();
    let waiting: Vec<_> = (0..3).map(|_| append(&log, "waits")).collect();
    let refused = append(&log, "too many").recv().unwrap();
    assert!(matches!(refused, Err(Error::Busy { waiting_items: 3, waiting_bytes: 15 })), "{refused:?}");
    assert_eq!(log.stats().waiting_appends, 3);
    release.send(()).unwrap();
    assert!(waiting.iter().all(|done| done.recv().unwrap().is_ok()));
    assert!(append(&log, "room again").recv().unwrap().is_ok());
}

#[test]
fn appends_that_wait_together_share_one_sync() {
    let dir = tempfile::tempdir().unwrap();
    let log = Embedded::open(Options::new(dir.path())).unwrap();
    let (release, held) = channel::<()>();
    let (entered, inside) = channel();
    let hold = move |_| {
        entered.send(()).unwrap();
        held.recv().unwrap();
    };
    log.append(0, vec!["hold".into()], Box::new(hold));
    inside.recv().unwrap();
    let before = log.stats();
    let waiting: Vec<_> = (0..1000).map(|_| append(&log, "waits")).collect();
    release.send(()).unwrap();
    assert!(waiting.iter().all(|done| done.recv().unwrap().is_ok()));
    let after = log.stats();
    assert_eq!((after.appends - before.appends, after.syncs - before.syncs), (1000, 1));
}

#[test]
fn what_waits_at_the_end_is_still_written() {
    let dir = tempfile::tempdir().unwrap();
    let log = Embedded::open(Options::new(dir.path())).unwrap();
    let waiting: Vec<_> = (0..500).map(|_| append(&log, "waits")).collect();
    drop(log);
    assert!(waiting.iter().all(|done| done.recv().unwrap().is_ok()));
    let log = Embedded::open(Options::new(dir.path())).unwrap();
    assert_eq!(log.bounds(0).unwrap(), 0..500);
}

#[test]
fn a_caller_that_panics_in_its_callback_ends_nobody_elses_log() {
    let dir = tempfile::tempdir().unwrap();
    let log = Embedded::open(Options::new(dir.path())).unwrap();
    log.append(0, vec!["a".into()], Box::new(|_| panic!("a caller's bug")));
    assert_eq!(append(&log, "b").recv().unwrap().unwrap().first, 1);
}

#[test]
fn a_second_owner_of_the_directory_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let log = Embedded::open(Options::new(dir.path())).unwrap();
    let second = Embedded::open(Options::new(dir.path())).map(drop);
    assert!(matches!(&second, Err(Error::Locked { dir: named }) if named == dir.path()), "{second:?}");
    drop(log);
    drop(Embedded::open(Options::new(dir.path())).unwrap());
}

#[test]
fn another_partition_count_or_a_senseless_setting_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    drop(Embedded::open(Options { partitions: 4, ..Options::new(dir.path()) }).unwrap());
    let other = Embedded::open(Options { partitions: 8, ..Options::new(dir.path()) }).map(drop);
    assert!(matches!(other, Err(Error::Mismatch { what: "partitions", stored: 4, wanted: 8 })), "{other:?}");
    for options in [
        Options { partitions: 0, ..Options::new(dir.path()) },
        Options { partitions: 257, ..Options::new(dir.path()) },
        Options { block_cache_bytes: 0, ..Options::new(dir.path()) },
        Options { limits: Limits { batch_bytes_max: 0, ..Limits::default() }, ..Options::new(dir.path()) },
    ] {
        assert!(matches!(Embedded::open(options).map(drop), Err(Error::Refused { .. })));
    }
}

#[test]
fn stamps_never_fall_when_the_clock_does() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(AtomicU64::new(5000));
    let open = || {
        let clock = Arc::clone(&clock);
        let clock = Arc::new(move || clock.load(Ordering::Relaxed) as i64);
        Embedded::open(Options { clock, ..Options::new(dir.path()) }).unwrap()
    };
    let log = open();
    assert_eq!(append(&log, "a").recv().unwrap().unwrap().stamp_ms, 5000);
    clock.store(10, Ordering::Relaxed);
    assert_eq!(append(&log, "b").recv().unwrap().unwrap().stamp_ms, 5000);
    drop(log);
    assert_eq!(append(&open(), "c").recv().unwrap().unwrap().stamp_ms, 5000);
}
