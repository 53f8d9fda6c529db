//! The log on a real Kafka: the contract of every log, fencing, and what a broker that stops or dies may cost.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use bytes::Bytes;
use everlog_log::contract::{self, Backend};
use everlog_log::{Appended, Commit, Error, Fence, Log, Offset, Output, Topic, buckets_of};
use everlog_log_kafka::{Kafka, Options, Traffic, topics};
use everlog_tests::kafka::{Cluster, Version};
use everlog_tests::patience;

mod hanging;
mod resting;

/// The longest that a log may wait for brokers.
const TIMEOUT_MS_MAX: u64 = 900_000;

/// Topics of a test's own on the shared broker, removed at its end.
struct TestLog {
    options: Options,
    keeps: bool,
}

impl TestLog {
    /// Its log waits for the broker, however slow that is: nobody harms it.
    fn new() -> Self {
        let cluster = Cluster::shared().expect("a broker");
        let mut test_log = Self::on(cluster.bootstrap(), 2);
        test_log.keeps = false;
        (test_log.options.append_timeout_ms, test_log.options.transaction_timeout_ms) =
            (TIMEOUT_MS_MAX, TIMEOUT_MS_MAX);
        test_log
    }

    fn on(bootstrap: &str, partitions: u32) -> Self {
        Self::replicated(bootstrap, partitions, 1)
    }

    fn replicated(bootstrap: &str, partitions: u32, replication: u16) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mut options = Options::new(bootstrap);
        options.prefix = format!("spot-{}.", COUNT.fetch_add(1, Ordering::Relaxed));
        (options.partitions, options.replication) = (partitions, replication);
        topics::create(&options).expect("topics");
        TestLog { options, keeps: true }
    }
}

impl Drop for TestLog {
    fn drop(&mut self) {
        if !self.keeps {
            topics::remove(&self.options).expect("topics are removed");
        }
    }
}

impl Backend for TestLog {
    type Home = Kafka;
    fn open(&self) -> Kafka {
        Kafka::open(self.options.clone()).expect("open")
    }
}

#[test]
fn kafka_keeps_the_contract_of_every_log() {
    contract::check(TestLog::new);
}

#[test]
fn a_commit_never_waits_for_the_clients_poll_interval() {
    let test_log = TestLog::new();
    let log = test_log.open();
    let fence = log.fence(0).expect("fence");
    append(&log, 0, &["a"]).expect("append");
    let mut took_us = Vec::new();
    for n in 0..220 {
        let outputs = (0..100).map(|k| row(&log, 0, &format!("k{k}"), &n.to_string())).collect();
        let begun = Instant::now();
        commit(&log, 0, fence, 1, outputs).expect("commit");
        took_us.push(begun.elapsed().as_micros() as u64);
    }
    let mut took_us = took_us.split_off(20);
    took_us.sort_unstable();
    let (p50, p99) = (took_us[100], took_us[198]);
    let stats = log.stats();
    println!("commits: p50 {p50} us, p99 {p99} us, {stats:?}");
    // An end waits for the client to look again, after 100 ms, where something is under way when it is asked for: without a
    // drain each time, or every tenth. Now and then the client counts what is no record.
    assert!(stats.undrained * 20 < stats.transactions, "{stats:?}");
}

#[test]
fn partitions_of_a_group_that_commit_at_the_same_moment_share_a_transaction() {
    let test_log = TestLog::new();
    let log = test_log.open();
    assert_eq!(log.committed_with(1), 0..2);
    let fences = [0, 1].map(|partition| log.fence(partition).expect("fence"));
    let before = log.stats();
    for (partition, fence) in (0..).zip(fences) {
        append(&log, partition, &["a"]).expect("append");
        commit(&log, partition, fence, 0, vec![]).expect("commit");
    }
    let apart = log.stats();
    assert_eq!((apart.commits - before.commits, apart.transactions - before.transactions), (2, 2));
    // A busy machine may come between the two.
    let share = || {
        let (before, (done, finished)) = (log.stats(), channel());
        for (partition, fence) in (0..).zip(fences) {
            let commit = Commit {
                partition,
                fence,
                applied: 1,
                position: "p".into(),
                outputs: vec![],
                index: Vec::new(),
            };
            let done = done.clone();
            log.commit(commit, Box::new(move |outcome| done.send(outcome).expect("the test waits")));
        }
        assert!((0..2).all(|_| wait(&finished).is_ok()));
        let after = log.stats();
        assert_eq!(after.commits - before.commits, 2);
        after.transactions - before.transactions == 1
    };
    patience::until_blocking("two commits share a transaction", share).expect("in time");
}

#[test]
fn requests_are_counted_where_that_is_asked_for() {
    let test_log = TestLog::new();
    let log = Kafka::open(Options { statistics_interval_ms: 50, ..test_log.options.clone() }).expect("open");
    let mut _tail = log.follow(0, 0, Box::new(|| {})).expect("follow");
    let fence = log.fence(0).expect("fence");
    for _ in 0..10 {
        append(&log, 0, &["a"]).expect("append");
    }
    commit(&log, 0, fence, 10, vec![row(&log, 0, "k", "v")]).expect("commit");
    let wanted = [("Produce", 11), ("Fetch", 1), ("EndTxn", 2)];
    let is_counted = || {
        let traffic = log.traffic();
        let counted = |(kind, count): &(&str, u64)| traffic.requests.get(*kind).is_some_and(|n| n >= count);
        wanted.iter().all(counted) && traffic.sent_bytes > 1_000 && traffic.received_bytes > 1_000
    };
    let late = patience::until_blocking("all is counted", is_counted);
    assert!(late.is_ok(), "{late:?}: {:?}", log.traffic());
    assert_eq!(test_log.open().traffic(), Traffic::default());
}

#[test]
fn a_second_instance_fences_the_first() {
    let test_log = TestLog::new();
    let (first, second) = (test_log.open(), test_log.open());
    append(&first, 0, &["a", "b"]).expect("append");
    let old = first.fence(0).expect("fence");
    commit(&first, 0, old, 1, vec![row(&first, 0, "k", "first")]).expect("commit");
    let new = second.fence(0).expect("fence");
    assert!(new.0 > old.0, "{new:?} after {old:?}");
    let late = commit(&first, 0, old, 2, vec![row(&first, 0, "k", "late")]);
    assert!(matches!(late, Err(Error::Fenced { current, .. }) if current == new), "{late:?}");
    let again = commit(&first, 0, old, 2, vec![row(&first, 0, "k", "late")]);
    assert!(matches!(again, Err(Error::Fenced { .. })), "{again:?}");
    assert_eq!(restored(&second, 0), [("k".to_owned(), "first".to_owned())]);
    commit(&second, 0, new, 2, vec![row(&second, 0, "k", "second")]).expect("commit");
    // The coordinator has decided; another process sees it when the marker is written, a moment later.
    let is_seen = || restored(&first, 0) == [("k".to_owned(), "second".to_owned())];
    patience::until_blocking("what the second has committed is seen", is_seen).expect("in time");
    assert_eq!(first.position(0).expect("position"), Some((2, "p".into())));
    // It may come back, and then the other one is the former owner, of the group's other partition too.
    let back = first.fence(1).expect("fence");
    commit(&first, 1, back, 0, vec![]).expect("commit");
    let late = commit(&second, 0, new, 2, vec![]);
    assert!(matches!(late, Err(Error::Fenced { .. })), "{late:?}");
}

#[test]
fn two_who_make_the_topics_at_once_agree() {
    let cluster = Cluster::shared().expect("a broker");
    let mut options = Options::new(cluster.bootstrap());
    options.prefix = "at-once.".into();
    (options.partitions, options.replication) = (2, 1);
    let test_log = TestLog { options: options.clone(), keeps: false };
    std::thread::scope(|scope| {
        for partitions in [2, 3, 2, 3] {
            let options = Options { partitions, ..options.clone() };
            scope.spawn(move || topics::create(&options).expect("create"));
        }
    });
    let (one, other) = (test_log.open(), test_log.open());
    assert_eq!((one.incarnation(), one.partitions()), (other.incarnation(), other.partitions()));
    assert_eq!(topics::check(&options).expect("check"), []);
}

#[test]
fn topics_that_would_lose_data_are_refused_with_the_way_out() {
    let test_log = TestLog::new();
    let demanding = Options { record_bytes_max: 64 << 20, ..test_log.options.clone() };
    let refusal = Kafka::open(demanding).err().expect("refused").to_string();
    assert!(refusal.contains("max.message.bytes") && refusal.contains("kafka-configs.sh"), "{refusal}");
    let mut elsewhere = test_log.options.clone();
    elsewhere.prefix = "nothing-here.".into();
    let refusal = Kafka::open(elsewhere).err().expect("refused").to_string();
    assert!(refusal.contains("nothing-here.control"), "{refusal}");
    let mut nobody = Options::new("127.0.0.1:1");
    nobody.call_timeout_ms = 2_000;
    let refusal = Kafka::open(nobody).err().expect("refused").to_string();
    assert!(refusal.contains("bootstrap.servers") && refusal.contains("127.0.0.1:1"), "{refusal}");
}

#[test]
fn an_append_to_a_broker_that_stopped_is_unknown_and_its_order_is_kept() {
    let cluster = Cluster::start(Version::V4_4_0, 1).expect("a broker");
    let mut test_log = TestLog::on(cluster.bootstrap(), 2);
    append(&test_log.open(), 0, &["before"]).expect("append");
    test_log.options.append_timeout_ms = 2_000;
    let log = test_log.open();
    cluster.pause(1).expect("pause");
    let lost: Vec<_> = (0..3).map(|n| begin_append(&log, 0, &[&format!("during {n}")])).collect();
    for outcome in &lost {
        let outcome = wait(outcome);
        assert!(matches!(outcome, Err(Error::Unknown { .. } | Error::Busy { .. })), "{outcome:?}");
    }
    assert!(log.stats().unknown > 0);
    cluster.resume(1).expect("resume");
    // A busy machine may be late for this one too.
    let attempts = std::cell::Cell::new(100);
    let after = again(|| {
        attempts.set(attempts.get() + 1);
        append(&log, 0, &[&format!("later {}", attempts.get())])
    });
    let records = texts(&log, 0);
    let last = usize::try_from(after.expect("alone").first).expect("small");
    assert_eq!((&*records[0], &records[last]), ("before", &format!("later {}", attempts.get())));
    // What was under way may be there or not, but never behind what came later.
    assert_eq!(records.len(), last + 1, "{records:?}");
    assert!(records[1..].is_sorted(), "{records:?}");
}

#[test]
fn a_commit_to_a_broker_that_stopped_is_unknown_until_the_partition_is_taken_over_again() {
    let cluster = Cluster::start(Version::V4_4_0, 1).expect("a broker");
    let mut test_log = TestLog::on(cluster.bootstrap(), 2);
    test_log.options.transaction_timeout_ms = 3_000;
    let log = test_log.open();
    append(&log, 0, &["a", "b"]).expect("append");
    let (fence, other) = again(|| {
        let (fence, other) = (log.fence(0)?, log.fence(1)?);
        commit(&log, 0, fence, 1, vec![row(&log, 0, "k", "one")]).map(|()| (fence, other))
    });
    cluster.pause(1).expect("pause");
    let lost = commit(&log, 0, fence, 2, vec![row(&log, 0, "k", "two")]);
    assert!(matches!(lost, Err(Error::Unknown { .. })), "{lost:?}");
    cluster.resume(1).expect("resume");
    for (partition, fence) in [(0, fence), (1, other)] {
        let late = commit(&log, partition, fence, 0, vec![]);
        assert!(matches!(late, Err(Error::Unknown { .. })), "the whole group is in doubt: {late:?}");
    }
    again(|| log.fence(0));
    let (applied, _) = log.position(0).expect("position").expect("committed once");
    let expected = if applied == 1 { "one" } else { "two" };
    assert_eq!(restored(&log, 0), [("k".to_owned(), expected.to_owned())], "whole or absent");
    again(|| commit(&log, 0, log.fence(0)?, 2, vec![row(&log, 0, "k", "three")]));
    assert_eq!(restored(&log, 0), [("k".to_owned(), "three".to_owned())]);
    let late = commit(&log, 1, other, 0, vec![]);
    assert!(matches!(late, Err(Error::Unknown { .. })), "each partition is taken over by itself: {late:?}");
}

#[test]
fn a_broker_that_is_killed_loses_nothing_acknowledged() {
    let cluster = Cluster::start(Version::V4_4_0, 1).expect("a broker");
    let mut test_log = TestLog::on(cluster.bootstrap(), 2);
    // Whatever the broker takes to come back.
    test_log.options.append_timeout_ms = TIMEOUT_MS_MAX;
    let log = test_log.open();
    let fence = log.fence(0).expect("fence");
    let mut acknowledged: Vec<(Offset, String)> = Vec::new();
    let mut keep = |n: u32| {
        let text = format!("record {n}");
        if let Ok(Some(place)) = append(&log, 0, &[&text]) {
            acknowledged.push((place.first, text));
        }
    };
    (0..100).for_each(&mut keep);
    commit(&log, 0, fence, 50, vec![row(&log, 0, "k", "50")]).expect("commit");
    cluster.kill(1).expect("kill");
    let during = begin_append(&log, 0, &["during"]);
    cluster.restart(1).expect("restart");
    let during = wait(&during).map(drop);
    (100..200).for_each(&mut keep);
    assert!(acknowledged.len() >= 199, "{} and {during:?}", acknowledged.len());
    again(|| log.fence(0));
    assert_eq!(log.position(0).expect("position"), Some((50, "p".into())));
    again(|| commit(&log, 0, log.fence(0)?, 150, vec![row(&log, 0, "k", "150")]));
    drop(log);
    let log = test_log.open();
    let records = texts(&log, 0);
    for (offset, text) in acknowledged {
        assert_eq!(records[usize::try_from(offset).expect("small")], text);
    }
    assert_eq!(restored(&log, 0), [("k".to_owned(), "150".to_owned())]);
}

#[test]
fn a_slow_follower_misses_nothing() {
    let test_log = TestLog::new();
    let log = test_log.open();
    let (woken, wakes) = channel();
    let wake = Box::new(move || woken.send(()).unwrap_or_default());
    let mut tail = log.follow(0, 0, wake).expect("follow").expect("others may append");
    // Many times what its queue holds.
    let record = "x".repeat(100_000);
    for _ in 0..30 {
        let done: Vec<_> = (0..10).map(|_| begin_append(&log, 0, &[&record])).collect();
        done.iter().for_each(|done| assert!(wait(done).is_ok()));
    }
    let mut next = 0;
    while next < 300 {
        let records = tail.take(1 << 20).expect("take");
        for record in &records {
            assert_eq!((record.offset, record.bytes.len()), (next, 100_000));
            next += 1;
        }
        if records.is_empty() {
            wakes.recv_timeout(patience::most()).expect("it is woken");
        }
    }
    assert!(tail.take(1).expect("take").is_empty());
    let replaced = log.follow(0, 299, Box::new(|| {})).expect("follow").expect("others may append");
    assert!(matches!(tail.take(1), Err(Error::Closed)), "one follower for a partition");
    drop(replaced);
}

#[test]
fn a_follower_that_is_behind_what_its_own_log_has_trimmed_goes_on_there() {
    let test_log = TestLog::new();
    let log = test_log.open();
    let fence = log.fence(0).expect("fence");
    let (woken, wakes) = channel();
    let wake = Box::new(move || woken.send(()).unwrap_or_default());
    let mut tail = log.follow(0, 0, wake).expect("follow").expect("others may append");
    // Many times what its queue holds: it rests.
    let record = "x".repeat(100_000);
    for _ in 0..30 {
        let done: Vec<_> = (0..10).map(|_| begin_append(&log, 0, &[&record])).collect();
        done.iter().for_each(|done| assert!(wait(done).is_ok()));
    }
    commit(&log, 0, fence, 300, vec![row(&log, 0, "k", "v")]).expect("commit");
    log.trim(0, 300).expect("trim");
    let is_deleted = || log.bounds(0).expect("bounds").start >= 300;
    patience::until_blocking("what was trimmed is deleted", is_deleted).expect("in time");
    append(&log, 0, &["last"]).expect("append");
    let mut last = None;
    while last != Some(300) {
        let records = tail.take(1 << 20).expect("take");
        for record in &records {
            assert!(last.is_none_or(|last| record.offset > last), "{} after {last:?}", record.offset);
            last = Some(record.offset);
        }
        if records.is_empty() {
            wakes.recv_timeout(patience::most()).expect("it is woken");
        }
    }
}

/// Prints what the log costs on this machine; asserts nothing about speed.
#[test]
fn figures() {
    let test_log = TestLog::new();
    let log = test_log.open();
    let record = "x".repeat(300);
    for (under_way, count) in [(1_usize, 1_000), (16, 10_000), (256, 50_000)] {
        let mut took_us = Vec::new();
        let begun = Instant::now();
        let mut open = std::collections::VecDeque::new();
        while took_us.len() < count {
            while open.len() < under_way {
                open.push_back((Instant::now(), begin_append(&log, 0, &[&record])));
            }
            let (sent, done) = open.pop_front().expect("one");
            wait(&done).expect("append");
            took_us.push(sent.elapsed().as_micros() as u64);
        }
        open.iter().for_each(|(_, done)| assert!(wait(done).is_ok()));
        let rate = took_us.len() as f64 / begun.elapsed().as_secs_f64();
        took_us.sort_unstable();
        let at = |per_mille: usize| took_us[took_us.len() * per_mille / 1_000];
        println!(
            "appends, {under_way} under way: {rate:.0}/s, p50 {} p90 {} p99 {} us",
            at(500),
            at(900),
            at(990)
        );
    }
    let fence = log.fence(0).expect("fence");
    let (rows, count) = (5_000, 60);
    let begun = Instant::now();
    for n in 0..count {
        let outputs = (0..rows).map(|k| row(&log, 0, &format!("{n}/{k}"), &record)).collect();
        commit(&log, 0, fence, 0, outputs).expect("commit");
    }
    println!("{count} commits of {rows} rows: {:?}", begun.elapsed());
    let begun = Instant::now();
    let (mut bytes, mut seen) = (0, 0);
    let mut visit = |key: &[u8], value: Option<&[u8]>| {
        bytes += key.len() + value.map_or(0, <[u8]>::len);
        seen += 1;
        true
    };
    log.restore(Topic::Changelog, 0, 0, &mut visit).expect("restore");
    let took_s = begun.elapsed().as_secs_f64();
    println!(
        "restore: {seen} rows, {:.0} MB/s, {:.0} rows/s",
        bytes as f64 / took_s / 1e6,
        f64::from(seen) / took_s
    );
    println!("{:?}", log.stats());
}

fn begin_append(log: &Kafka, partition: u32, records: &[&str]) -> Receiver<Result<Option<Appended>, Error>> {
    let (done, wait) = channel();
    let records = records.iter().map(|text| Bytes::copy_from_slice(text.as_bytes())).collect();
    log.append(partition, records, Box::new(move |outcome| done.send(outcome).expect("the test waits")));
    wait
}

fn append(log: &Kafka, partition: u32, records: &[&str]) -> Result<Option<Appended>, Error> {
    wait(&begin_append(log, partition, records))
}

fn wait<T>(done: &Receiver<T>) -> T {
    done.recv_timeout(patience::most()).expect("done is called once")
}

/// Tries until it is done: a busy machine is late for a log that gives up soon.
fn again<T>(attempt: impl Fn() -> Result<T, Error>) -> T {
    let deadline = patience::deadline();
    loop {
        match attempt() {
            Ok(done) => return done,
            Err(error) => assert!(!deadline.is_over(), "{error}"),
        }
    }
}

fn commit(
    log: &Kafka,
    partition: u32,
    fence: Fence,
    applied: Offset,
    outputs: Vec<Output>,
) -> Result<(), Error> {
    let (done, finished) = channel();
    let commit = Commit { partition, fence, applied, position: "p".into(), outputs, index: Vec::new() };
    log.commit(commit, Box::new(move |outcome| done.send(outcome).expect("the test waits")));
    wait(&finished)
}

fn row(log: &Kafka, partition: u32, key: &str, value: &str) -> Output {
    let bucket = buckets_of(partition, log.partitions()).start as u16;
    let key = [&bucket.to_be_bytes()[..], key.as_bytes()].concat().into();
    Output::new(Topic::Changelog, key, Some(Bytes::copy_from_slice(value.as_bytes())))
}

fn restored(log: &Kafka, partition: u32) -> Vec<(String, String)> {
    let mut rows = std::collections::BTreeMap::new();
    let mut visit = |key: &[u8], value: Option<&[u8]>| {
        match value {
            Some(value) => rows.insert(text(&key[2..]), text(value)),
            None => rows.remove(&text(&key[2..])),
        };
        true
    };
    log.restore(Topic::Changelog, partition, 0, &mut visit).expect("restore");
    rows.into_iter().collect()
}

fn texts(log: &Kafka, partition: u32) -> Vec<String> {
    let mut records = Vec::new();
    loop {
        let more = log.read(partition, records.len() as Offset, 1 << 20).expect("read");
        if more.is_empty() {
            return records;
        }
        records.extend(more.iter().map(|record| text(&record.bytes)));
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
