//! Deletes old records of the embedded log's public topics. The ends of the topics are noted in `control` rows from
//! time to time, so that a restart deletes nothing early and nothing late.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use everlog_log::clock::now_ms;
use everlog_log::{Error, Log, Topic};
use everlog_rocks::log::Embedded;

const PREFIX: &[u8] = b"retention/";
/// Notes within the retention. A record stays for the retention, and at most this part of it longer.
const NOTES: u64 = 8;
/// The longest pause between two looks, because the node may not run for longer.
const LOOK_MS_MAX: u64 = 3_600_000;

/// The ends of all partitions of the topics, by the time of the note in ms since 1970-01-01 UTC.
type Notes = BTreeMap<i64, Vec<u64>>;

/// Deletes old records while the log is open.
pub async fn keep(log: Weak<Embedded>, retention_ms: u64) {
    let mut looks =
        tokio::time::interval(Duration::from_millis((retention_ms / NOTES).clamp(100, LOOK_MS_MAX)));
    loop {
        looks.tick().await;
        let log = log.clone();
        let look = move || log.upgrade().map(|log| look(&log, retention_ms, now_ms()));
        match tokio::task::spawn_blocking(look).await {
            Ok(Some(Ok(()))) => {}
            Ok(Some(Err(error))) => tracing::debug!(%error, "old records of public topics not deleted"),
            Ok(None) | Err(_) => return,
        }
    }
}

/// Deletes the records before the newest note that is old enough, and makes a note if one is due.
fn look(log: &Arc<Embedded>, retention_ms: u64, now_ms: i64) -> Result<(), Error> {
    let notes = notes(log)?;
    let retention_ms = i64::try_from(retention_ms).unwrap_or(i64::MAX);
    let old = notes.range(..=now_ms.saturating_sub(retention_ms));
    if let Some((_, ends)) = old.clone().next_back() {
        forget(log, ends)?;
    }
    for (time_ms, _) in old {
        log.control_put(&key(*time_ms), None)?;
    }
    let due_ms =
        notes.last_key_value().map_or(i64::MIN, |(time_ms, _)| time_ms + retention_ms / NOTES as i64);
    // A note from the future was made before the clock was set back.
    if now_ms >= due_ms || notes.last_key_value().is_some_and(|(time_ms, _)| *time_ms > now_ms) {
        log.control_put(&key(now_ms), Some(&ends(log)?))?;
    }
    Ok(())
}

fn notes(log: &Arc<Embedded>) -> Result<Notes, Error> {
    let mut notes = Notes::new();
    log.control_scan(&mut |key, value| {
        let time = key.strip_prefix(PREFIX).and_then(|time| std::str::from_utf8(time).ok()?.parse().ok());
        if let Some(time_ms) = time {
            let ends = value.chunks_exact(8).filter_map(|end| Some(u64::from_be_bytes(end.try_into().ok()?)));
            notes.insert(time_ms, ends.collect());
        }
    })?;
    Ok(notes)
}

fn key(time_ms: i64) -> Vec<u8> {
    [PREFIX, time_ms.to_string().as_bytes()].concat()
}

fn places(log: &Arc<Embedded>) -> impl Iterator<Item = (Topic, u32)> {
    let partitions = log.partitions();
    Topic::append_only().flat_map(move |topic| (0..partitions).map(move |partition| (topic, partition)))
}

fn ends(log: &Arc<Embedded>) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    for (topic, partition) in places(log) {
        bytes.extend_from_slice(&log.topic_bounds(topic, partition)?.end.to_be_bytes());
    }
    Ok(bytes)
}

fn forget(log: &Arc<Embedded>, ends: &[u64]) -> Result<(), Error> {
    for ((topic, partition), below) in places(log).zip(ends) {
        if log.topic_bounds(topic, partition)?.start < *below {
            log.topic_trim(topic, partition, *below)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use everlog_log::{Commit, Output};
    use everlog_rocks::log::Options;

    use super::*;

    /// Appends so many events to a log.
    fn add(log: &Arc<Embedded>, count: usize) {
        let fence = log.fence(0).expect("nobody else");
        let output = Output::new(Topic::Events, "order-1".into(), Some("event".into()));
        let outputs = vec![output; count];
        let (sender, receiver) = std::sync::mpsc::channel();
        let commit = Commit {
            partition: 0,
            fence,
            applied: 0,
            position: "position".into(),
            outputs,
            index: Vec::new(),
        };
        log.commit(commit, Box::new(move |done| sender.send(done).expect("the test waits")));
        receiver.recv().expect("the log answers").expect("it is committed");
    }

    fn events(log: &Arc<Embedded>) -> std::ops::Range<u64> {
        log.topic_bounds(Topic::Events, 0).expect("it is there")
    }

    #[test]
    fn an_entry_stays_for_the_retention_and_goes_soon_after_whoever_restarts() {
        let dir = tempfile::tempdir().expect("a directory");
        let open = || Arc::new(Embedded::open(Options::new(dir.path())).expect("it is free"));
        let mut log = open();
        add(&log, 3);
        look(&log, 8_000, 10_000).expect("the log is open");
        add(&log, 2);
        drop(log);
        log = open();
        look(&log, 8_000, 17_999).expect("the log is open");
        assert_eq!(events(&log), 0..5);
        look(&log, 8_000, 18_000).expect("the log is open");
        assert_eq!(events(&log), 3..5);
        look(&log, 8_000, 25_999).expect("the log is open");
        assert_eq!(events(&log), 5..5, "they were there at the note of 17_999");
    }

    #[test]
    fn notes_are_few_and_a_clock_that_was_set_back_stops_nothing() {
        let dir = tempfile::tempdir().expect("a directory");
        let log = Arc::new(Embedded::open(Options::new(dir.path())).expect("it is free"));
        for second in 0..100 {
            look(&log, 8_000, 1_000_000 + second * 250).expect("the log is open");
        }
        assert!(notes(&log).expect("it is open").len() <= NOTES as usize + 2);
        add(&log, 1);
        look(&log, 8_000, 500_000).expect("the log is open");
        look(&log, 8_000, 508_000).expect("the log is open");
        assert_eq!(events(&log), 1..1);
    }
}
