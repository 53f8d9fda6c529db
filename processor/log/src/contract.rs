//! The contract of every log, as one test that each implementation runs.
//!
//! A backend that is opened again, after its log was dropped, gives the same log with everything that was acknowledged.
//! Each check begins with a new backend.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, channel};

use bytes::Bytes;

use crate::{Appended, BUCKETS, Commit, Error, Fence, Log, Offset, Output, PartitionId, Topic, buckets_of};

/// A storage that a log can be opened in again and again.
pub trait Backend {
    /// The log in it.
    type Home: Log;
    /// Opens the log; the first call makes it.
    fn open(&self) -> Self::Home;
}

const APPENDERS: u64 = 16;
const APPENDS_EACH: u64 = 50;

/// Runs every check, each on a new backend with at least 2 partitions.
///
/// # Panics
/// If the log breaks the contract.
pub fn check<P: Backend>(mut place: impl FnMut() -> P) {
    offsets_have_no_gaps(&place());
    a_read_keeps_to_its_limit(&place());
    stamps_never_fall(&place().open());
    everything_acknowledged_is_there_after_reopening(&place());
    many_appenders_share_a_journal(&place().open());
    a_newer_fence_ends_the_older(&place());
    a_commit_is_whole_or_absent(&place());
    a_compacted_topic_keeps_the_last_value(&place());
    a_restore_from_a_mark_brings_what_came_later(&place());
    slices_bring_what_a_restore_visits(&place());
    a_tail_brings_every_record_once(&place());
    an_append_only_topic_keeps_everything_in_order(&place());
    a_trim_stops_at_the_position(&place());
    the_control_topic_is_a_map(&place());
    what_makes_no_sense_is_refused(&place().open());
}

fn offsets_have_no_gaps<P: Backend>(place: &P) {
    let log = place.open();
    assert_eq!(log.bounds(0).expect("bounds"), 0..0);
    assert_eq!(log.read(0, 0, 1000).expect("an empty journal can be read at its end"), []);
    let first = append(&log, 0, &["a", "b", "c"]);
    let second = append(&log, 0, &["d"]);
    let other = append(&log, 1, &["x"]);
    assert_eq!((first.first, second.first, other.first), (0, 3, 0));
    assert_eq!(texts(&log, 0, 0), ["a", "b", "c", "d"]);
    assert_eq!(texts(&log, 0, 2), ["c", "d"]);
    assert_eq!(texts(&log, 1, 0), ["x"]);
    assert_eq!(log.bounds(0).expect("bounds"), 0..4);
    assert_eq!(append(&log, 0, &["", "e"]).first, 4, "an empty record is a record");
    assert_eq!(texts(&log, 0, 3), ["d", "", "e"]);
    let beyond = log.read(0, 7, 1000);
    assert!(matches!(beyond, Err(Error::OutOfRange { wanted: 7, start: 0, end: 6, .. })), "{beyond:?}");
}

fn a_read_keeps_to_its_limit<P: Backend>(place: &P) {
    let log = place.open();
    let large = "x".repeat(10_000);
    append(&log, 0, &[&large, &large, &large]);
    let read = |bytes_max| log.read(0, 0, bytes_max).expect("read").len();
    assert_eq!((read(0), read(1)), (1, 1), "one record at least");
    assert_eq!(read(25_000), 2);
    assert_eq!(read(1_000_000), 3);
}

fn stamps_never_fall<H: Log>(log: &H) {
    let mut last = i64::MIN;
    for n in 0..20 {
        let appended = wait(&begin_append(log, 0, vec!["a".into(), "b".into()])).expect("append");
        let records = log.read(0, 2 * n, 1000).expect("read");
        let stamps: Vec<i64> = records.iter().map(|record| record.stamp_ms).collect();
        assert!(stamps.len() == 2 && stamps.is_sorted() && stamps[0] >= last, "append {n}: {stamps:?}");
        last = stamps[1];
        // Without it the append may have taken two requests.
        if let Some(appended) = appended {
            assert_eq!(appended.first, 2 * n);
            assert_eq!(stamps, [appended.stamp_ms; 2], "one stamp for the whole append");
        }
    }
}

fn everything_acknowledged_is_there_after_reopening<P: Backend>(place: &P) {
    let log = place.open();
    let partitions = log.partitions();
    let incarnation = log.incarnation();
    let stamps: Vec<i64> = (0..partitions)
        .map(|partition| {
            append(&log, partition, &["kept"]);
            append(&log, partition, &[&format!("of {partition}")]).stamp_ms
        })
        .collect();
    drop(log);
    let log = place.open();
    assert_eq!((log.partitions(), log.incarnation()), (partitions, incarnation));
    for (partition, stamp_ms) in (0..partitions).zip(stamps) {
        assert_eq!(texts(&log, partition, 0), ["kept".to_owned(), format!("of {partition}")]);
        let next = append(&log, partition, &["next"]);
        assert_eq!(next.first, 2, "offsets go on");
        assert!(next.stamp_ms >= stamp_ms, "stamps go on");
    }
}

fn many_appenders_share_a_journal<H: Log>(log: &H) {
    std::thread::scope(|scope| {
        for appender in 0..APPENDERS {
            scope.spawn(move || {
                let pending: Vec<_> = (0..APPENDS_EACH)
                    .map(|n| {
                        begin_append(
                            log,
                            0,
                            vec![format!("{appender} {n} a").into(), format!("{appender} {n} b").into()],
                        )
                    })
                    .collect();
                let places = pending.iter().filter_map(|done| wait(done).expect("append"));
                let firsts: Vec<_> = places.map(|appended| appended.first).collect();
                assert!(firsts.is_sorted(), "one caller's appends keep their order");
            });
        }
    });
    let expected = (APPENDERS * APPENDS_EACH * 2) as usize;
    let records = read_all(log, 0, 0);
    assert_eq!(records.len(), expected);
    let mut next = BTreeMap::new();
    for pair in records.chunks(2) {
        let text = |at: usize| String::from_utf8_lossy(&pair[at].bytes).into_owned();
        let (first, second) = (text(0), text(1));
        let (appender, rest) = first.split_once(' ').expect("two words");
        let counted: &mut u64 = next.entry(appender.to_owned()).or_default();
        assert_eq!(rest, format!("{counted} a"));
        assert_eq!(second, format!("{appender} {counted} b"), "the records of an append stand together");
        *counted += 1;
    }
}

fn a_newer_fence_ends_the_older<P: Backend>(place: &P) {
    let log = place.open();
    append(&log, 0, &["a", "b"]);
    let old = log.fence(0).expect("fence");
    commit(&log, 0, old, 1, "one", vec![]).expect("the latest fence commits");
    let new = log.fence(0).expect("fence");
    assert_ne!(old, new);
    let late = commit(&log, 0, old, 2, "late", vec![row(&log, 0, "k", Some("late"))]);
    assert!(matches!(late, Err(Error::Fenced { .. })), "{late:?}");
    assert_eq!(log.position(0).expect("position"), Some((1, "one".into())));
    assert_eq!(restored(&log, Topic::Changelog, 0), []);
    commit(&log, 0, new, 2, "two", vec![]).expect("the latest fence commits");
    let other = log.fence(1).expect("fence");
    commit(&log, 1, other, 0, "other", vec![]).expect("fences are per partition");
    drop(log);
    let log = place.open();
    let newest = log.fence(0).expect("fence");
    assert!(![old, new].contains(&newest), "a fence is never given twice");
    assert!(matches!(commit(&log, 0, new, 2, "ghost", vec![]), Err(Error::Fenced { .. })));
    assert_eq!(log.position(0).expect("position"), Some((2, "two".into())));
}

fn a_commit_is_whole_or_absent<P: Backend>(place: &P) {
    let log = place.open();
    append(&log, 0, &["a", "b", "c"]);
    let fence = log.fence(0).expect("fence");
    let outputs = vec![
        row(&log, 0, "state", Some("1")),
        Output { topic: Topic::History, ..row(&log, 0, "batch", Some("2")) },
        Output { topic: Topic::Timers, ..row(&log, 0, "due", Some("3")) },
        Output::new(Topic::Events, "wf".into(), Some("started".into())),
    ];
    commit(&log, 0, fence, 2, "here", outputs).expect("commit");
    let refused = vec![row(&log, 0, "state", Some("bad")), Output::new(Topic::Events, "wf".into(), None)];
    assert!(matches!(commit(&log, 0, fence, 3, "there", refused), Err(Error::Refused { .. })));
    let backwards = commit(&log, 0, fence, 1, "back", vec![row(&log, 0, "state", Some("bad"))]);
    assert!(matches!(backwards, Err(Error::OutOfRange { .. })), "{backwards:?}");
    let beyond = commit(&log, 0, fence, 4, "beyond", vec![row(&log, 0, "state", Some("bad"))]);
    assert!(matches!(beyond, Err(Error::OutOfRange { .. })), "{beyond:?}");
    // An append makes durable what was committed before it.
    append(&log, 0, &["d"]);
    drop(log);
    only_the_first_commit_is_there(&place.open());
}

fn only_the_first_commit_is_there(log: &impl Log) {
    assert_eq!(log.position(0).expect("position"), Some((2, "here".into())));
    assert_eq!(restored(log, Topic::Changelog, 0), [("state".to_owned(), "1".to_owned())]);
    assert_eq!(restored(log, Topic::History, 0), [("batch".to_owned(), "2".to_owned())]);
    assert_eq!(restored(log, Topic::Timers, 0), [("due".to_owned(), "3".to_owned())]);
    let events = log.topic_read(Topic::Events, 0, 0, 1000).expect("read");
    assert_eq!(events, [(0, "wf".into(), "started".into())]);
    assert_eq!(log.position(1).expect("position"), None);
}

fn a_compacted_topic_keeps_the_last_value<P: Backend>(place: &P) {
    let log = place.open();
    let fences = [log.fence(0).expect("fence"), log.fence(1).expect("fence")];
    let both = [0, 1].map(|partition: PartitionId| {
        let put = |pairs: &[(&str, Option<&str>)]| {
            let outputs = pairs.iter().map(|(key, value)| row(&log, partition, key, *value)).collect();
            commit(&log, partition, fences[partition as usize], 0, "p", outputs).expect("commit");
        };
        put(&[("c", Some("1")), ("a", Some("1")), ("b", Some("1"))]);
        put(&[("b", Some("2")), ("d", Some("1")), ("d", None)]);
        put(&[("c", None), ("a", Some("3"))]);
        partition
    });
    let expected = [("a".to_owned(), "3".to_owned()), ("b".to_owned(), "2".to_owned())];
    for partition in both {
        assert_eq!(restored(&log, Topic::Changelog, partition), expected);
    }
    append(&log, 0, &["sync"]);
    drop(log);
    let log = place.open();
    for partition in both {
        assert_eq!(restored(&log, Topic::Changelog, partition), expected);
    }
    let mut seen = 0;
    let mut first_only = |_: &[u8], _: Option<&[u8]>| {
        seen += 1;
        false
    };
    log.restore(Topic::Changelog, 0, 0, &mut first_only).expect("restore");
    assert_eq!(seen, 1, "false stops");
    assert!(
        log.restore(Topic::Events, 0, 0, &mut |_, _| true).is_err(),
        "append-only topics are not restored"
    );
}

fn a_restore_from_a_mark_brings_what_came_later<P: Backend>(place: &P) {
    let log = place.open();
    let fence = log.fence(0).expect("fence");
    append(&log, 0, &["a", "b"]);
    let early = vec![row(&log, 0, "a", Some("1")), row(&log, 0, "b", Some("1"))];
    commit(&log, 0, fence, 1, "one", early).expect("commit");
    let mark = log.marks(0).expect("marks").changelog;
    let late = vec![row(&log, 0, "b", None), row(&log, 0, "c", Some("2"))];
    commit(&log, 0, fence, 2, "two", late).expect("commit");
    drop(log);
    let log = place.open();
    let mut rows: BTreeMap<String, String> = [("a".into(), "1".into()), ("b".into(), "1".into())].into();
    let mut visit = |key: &[u8], value: Option<&[u8]>| {
        match value {
            Some(value) => rows.insert(text(&key[2..]), text(value)),
            None => rows.remove(&text(&key[2..])),
        };
        true
    };
    let found = log.restore(Topic::Changelog, 0, mark, &mut visit).expect("restore");
    assert_eq!(found.position, Some((2, "two".into())));
    if mark == 0 {
        // The rows are in the log itself: what is gone is not visited.
        rows.remove("b");
    }
    assert_eq!(rows, [("a".into(), "1".into()), ("c".into(), "2".into())].into());
}

fn slices_bring_what_a_restore_visits<P: Backend>(place: &P) {
    let log = place.open();
    let fence = log.fence(0).expect("fence");
    append(&log, 0, &["a", "b"]);
    for commit in 0..10 {
        let rows =
            (0..10).map(|n| row(&log, 0, &format!("{}", (n * commit) % 30), Some(&commit.to_string())));
        let position = commit.to_string();
        crate::contract::commit(&log, 0, fence, 1, &position, rows.collect()).expect("commit");
    }
    let (mut rows, mut next, mut slices) = (BTreeMap::new(), 0, 0);
    loop {
        let (sender, receiver) = channel();
        let done = Box::new(move |slice| sender.send(slice).expect("the test waits"));
        log.restore_chunk(Topic::Changelog, 0, next, 500, done);
        let slice = receiver.recv().expect("an answer").expect("a slice");
        for (key, value) in &slice.rows {
            match value {
                Some(value) => rows.insert(text(&key[2..]), text(value)),
                None => rows.remove(&text(&key[2..])),
            };
        }
        slices += 1;
        if slice.end == 0 || slice.next >= slice.end {
            break;
        }
        if slices == 2 {
            // A deletion meanwhile is in a later chunk.
            let gone = row(&log, 0, "1", None);
            crate::contract::commit(&log, 0, fence, 1, "gone", vec![gone]).expect("commit");
        }
        assert!(slice.next > next, "it goes on behind {next}");
        next = slice.next;
    }
    assert!(next == 0 || slices > 2, "they are slices");
    if log.marks(0).expect("marks").changelog > 0 {
        assert_eq!(rows.into_iter().collect::<Vec<_>>(), restored(&log, Topic::Changelog, 0));
    }
}

fn a_tail_brings_every_record_once<P: Backend>(place: &P) {
    let log = place.open();
    append(&log, 0, &["a", "b", "c"]);
    let (woken, wakes) = channel();
    let wake = Box::new(move || woken.send(()).expect("the test waits"));
    let Some(mut tail) = log.follow(0, 1, wake).expect("follow") else { return };
    let mut found: Vec<crate::Record> = Vec::new();
    for round in 0..3 {
        let wanted = 2 + round;
        while found.len() < wanted {
            let more = tail.take(1).expect("take");
            if more.is_empty() {
                wakes.recv().expect("it is woken");
            }
            found.extend(more);
        }
        assert_eq!(found.len(), wanted);
        append(&log, 0, &["next"]);
    }
    let texts: Vec<_> = found.iter().map(|record| text(&record.bytes)).collect();
    assert_eq!(texts, ["b", "c", "next", "next"]);
    assert!(found.iter().enumerate().all(|(n, record)| record.offset == 1 + n as Offset), "no gaps");
}

fn an_append_only_topic_keeps_everything_in_order<P: Backend>(place: &P) {
    let log = place.open();
    let fence = log.fence(0).expect("fence");
    let entry = |n: u64| Output::new(Topic::Replies, "same".into(), Some(n.to_string().into()));
    commit(&log, 0, fence, 0, "p", (0..3).map(entry).collect()).expect("commit");
    commit(&log, 0, fence, 0, "p", (3..5).map(entry).collect()).expect("commit");
    let entries = |log: &P::Home, from| -> Vec<(Offset, String)> {
        let entries = log.topic_read(Topic::Replies, 0, from, 1_000_000).expect("read");
        entries.into_iter().map(|(offset, _, value)| (offset, text(&value))).collect()
    };
    let written = entries(&log, 0);
    assert_eq!(
        written.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>(),
        ["0", "1", "2", "3", "4"]
    );
    // What ends a transaction may take a place of its own.
    assert!(written.is_sorted_by(|(a, _), (b, _)| a < b), "{written:?}");
    let third = written[2].0;
    log.topic_trim(Topic::Replies, 0, third).expect("trim");
    assert_eq!(entries(&log, third), written[2..]);
    let below = log.topic_read(Topic::Replies, 0, third - 1, 1000);
    let Err(Error::OutOfRange { wanted, start, end, .. }) = below else { panic!("{below:?}") };
    assert!(wanted == third - 1 && start == third && end > written[4].0, "{below:?}");
    assert!(log.topic_trim(Topic::Replies, 0, end + 1).is_err(), "beyond the end");
    log.topic_trim(Topic::Replies, 0, end).expect("a trim to the end");
    append(&log, 0, &["sync"]);
    drop(log);
    let log = place.open();
    let fence = log.fence(0).expect("fence");
    commit(&log, 0, fence, 0, "p", vec![entry(5)]).expect("commit");
    let [(at, value)] = &entries(&log, end)[..] else { panic!("one entry") };
    assert!(*at >= end && value == "5", "offsets go on after everything was trimmed");
}

fn a_trim_stops_at_the_position<P: Backend>(place: &P) {
    let log = place.open();
    append(&log, 0, &["a", "b", "c", "d"]);
    assert!(matches!(log.trim(0, 1), Err(Error::OutOfRange { .. })), "nothing is committed yet");
    let fence = log.fence(0).expect("fence");
    commit(&log, 0, fence, 3, "p", vec![]).expect("commit");
    assert!(matches!(log.trim(0, 4), Err(Error::OutOfRange { .. })), "above the position");
    log.trim(0, 2).expect("below the position");
    assert_eq!(log.bounds(0).expect("bounds"), 2..4);
    assert!(matches!(log.read(0, 1, 1000), Err(Error::OutOfRange { wanted: 1, start: 2, end: 4, .. })));
    log.trim(0, 1).expect("already trimmed: nothing to do");
    commit(&log, 0, fence, 4, "q", vec![]).expect("commit");
    log.trim(0, 4).expect("up to the position");
    drop(log);
    let log = place.open();
    assert_eq!(log.bounds(0).expect("bounds"), 4..4);
    assert_eq!(
        log.position(0).expect("position"),
        Some((4, "q".into())),
        "a trim makes the position durable"
    );
    assert_eq!(append(&log, 0, &["e"]).first, 4, "offsets go on after everything was trimmed");
    assert_eq!(texts(&log, 0, 4), ["e"]);
}

fn the_control_topic_is_a_map<P: Backend>(place: &P) {
    let log = place.open();
    log.control_put(b"b", Some(b"1")).expect("put");
    log.control_put(b"a", Some(b"2")).expect("put");
    log.control_put(b"b", Some(b"3")).expect("put");
    log.control_put(b"c", Some(b"4")).expect("put");
    log.control_put(b"c", None).expect("remove");
    log.control_put(b"", Some(b"5")).expect("an empty key is a key");
    let expected = [("", "5"), ("a", "2"), ("b", "3")];
    let scan = |log: &P::Home| {
        let mut rows = Vec::new();
        log.control_scan(&mut |key, value| rows.push((text(key), text(value)))).expect("scan");
        rows
    };
    let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert_eq!(scan(&log), expected);
    drop(log);
    assert_eq!(scan(&place.open()), expected);
}

fn what_makes_no_sense_is_refused<H: Log>(log: &H) {
    let beyond = log.partitions();
    assert!(log.bounds(beyond).is_err() && log.read(beyond, 0, 1).is_err() && log.fence(beyond).is_err());
    assert!(log.position(beyond).is_err() && log.trim(beyond, 0).is_err());
    assert!(wait(&begin_append(log, beyond, vec!["a".into()])).is_err(), "unknown partition");
    assert!(wait(&begin_append(log, 0, vec![])).is_err(), "an append of nothing");
    assert!(log.topic_read(Topic::Changelog, 0, 0, 1).is_err(), "compacted topics have no offsets");
    let fence = log.fence(0).expect("fence");
    let foreign = vec![row(log, 1, "k", Some("v"))];
    assert!(matches!(commit(log, 0, fence, 0, "p", foreign), Err(Error::Refused { .. })), "a foreign bucket");
    let bare = vec![Output::new(Topic::Changelog, "k".into(), Some("v".into()))];
    assert!(matches!(commit(log, 0, fence, 0, "p", bare), Err(Error::Refused { .. })), "no bucket");
    assert_eq!(restored(log, Topic::Changelog, 1), []);
    assert_eq!(log.position(0).expect("position"), None);
}

fn begin_append<H: Log>(
    log: &H,
    partition: PartitionId,
    records: Vec<Bytes>,
) -> Receiver<Result<Option<Appended>, Error>> {
    let (done, wait) = channel();
    log.append(partition, records, Box::new(move |outcome| done.send(outcome).expect("the test waits")));
    wait
}

fn wait<T>(done: &Receiver<T>) -> T {
    done.recv().expect("done is called once")
}

fn append<H: Log>(log: &H, partition: PartitionId, records: &[&str]) -> Appended {
    let records: Vec<_> = records.iter().map(|text| Bytes::copy_from_slice(text.as_bytes())).collect();
    let count = records.len() as Offset;
    let appended = wait(&begin_append(log, partition, records)).expect("append");
    appended.unwrap_or_else(|| {
        // Nobody else appends, so they are the last ones.
        let first = log.bounds(partition).expect("bounds").end - count;
        let stamp_ms = log.read(partition, first, 1).expect("read")[0].stamp_ms;
        Appended { first, stamp_ms }
    })
}

fn commit<H: Log>(
    log: &H,
    partition: PartitionId,
    fence: Fence,
    applied: Offset,
    position: &str,
    outputs: Vec<Output>,
) -> Result<(), Error> {
    let (done, finished) = channel();
    let commit = Commit {
        partition,
        fence,
        applied,
        position: Bytes::copy_from_slice(position.as_bytes()),
        outputs,
        index: Vec::new(),
    };
    log.commit(commit, Box::new(move |outcome| done.send(outcome).expect("the test waits")));
    wait(&finished)
}

/// A changelog row in the last bucket of a partition.
fn row<H: Log>(log: &H, partition: PartitionId, key: &str, value: Option<&str>) -> Output {
    let bucket = buckets_of(partition, log.partitions()).end - 1;
    assert!(bucket < BUCKETS);
    let key = [&(bucket as u16).to_be_bytes()[..], key.as_bytes()].concat().into();
    Output::new(Topic::Changelog, key, value.map(|value| Bytes::copy_from_slice(value.as_bytes())))
}

fn restored<H: Log>(log: &H, topic: Topic, partition: PartitionId) -> Vec<(String, String)> {
    let mut rows = BTreeMap::new();
    let mut visit = |key: &[u8], value: Option<&[u8]>| {
        match value {
            Some(value) => rows.insert(text(&key[2..]), text(value)),
            None => rows.remove(&text(&key[2..])),
        };
        true
    };
    log.restore(topic, partition, 0, &mut visit).expect("restore");
    rows.into_iter().collect()
}

fn read_all<H: Log>(log: &H, partition: PartitionId, from: Offset) -> Vec<crate::Record> {
    let mut records: Vec<crate::Record> = Vec::new();
    loop {
        let next = from + records.len() as Offset;
        let more = log.read(partition, next, 300).expect("read");
        if more.is_empty() {
            return records;
        }
        assert!(more.iter().enumerate().all(|(n, record)| record.offset == next + n as Offset), "no gaps");
        records.extend(more);
    }
}

fn texts<H: Log>(log: &H, partition: PartitionId, from: Offset) -> Vec<String> {
    read_all(log, partition, from).iter().map(|record| text(&record.bytes)).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
