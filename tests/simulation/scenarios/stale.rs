//! Rows beside the log that do not fit it. Recovery recognises each kind before it uses the rows.

use everlog_engine::machine::signal;
use everlog_engine::request::Request;
use everlog_log::Topic;
use everlog_partition::{Error, RowsFault};
use everlog_store::{CommittedRows, RowsCheckpoint};
use everlog_wire::{Position, RestoreCheckpoint};

use crate::clients::input;
use crate::disk::Disk;
use crate::harness::{Harness, ids};
use crate::log::index;
use crate::node::PARTITION;

const HOUR_MS: i64 = 3_600_000;

fn signal(harness: &mut Harness, name: &str) {
    let order = Request::Signal(signal::Signal { name: name.into(), ..signal::Signal::default() });
    let (router, input) = (harness.node.router.clone(), input(&ids().next().unwrap(), "", order));
    harness.call(async move { router.order(input).await }).unwrap();
    harness.until(|harness| harness.node.partition.as_ref().unwrap().is_idle());
}

/// A node with a run, and its rows as they were then.
fn build() -> (Harness, Disk) {
    let mut harness = Harness::build(0, 0);
    harness.start(&ids().next().unwrap(), 1_000 * HOUR_MS);
    signal(&mut harness, "before");
    let disk = harness.node.disk.copy(harness.node.disk.writes());
    (harness, disk)
}

/// Takes the partition over with these rows; what is wrong with them, if anything.
fn fault(harness: &mut Harness, disk: &Disk) -> Option<RowsFault> {
    let now_ms = harness.clock.now_ms();
    harness.node.partition = None;
    harness.node.disk = disk.copy(disk.writes());
    match harness.node.recover(9, now_ms) {
        Ok(()) => None,
        Err(Error::Stale { fault, .. }) => Some(fault),
        Err(error) => panic!("{error}"),
    }
}

/// Writes another mark under the rows.
fn mark(disk: &Disk, change: impl FnOnce(&mut RestoreCheckpoint)) -> Disk {
    let changed = disk.copy(disk.writes());
    let RowsCheckpoint::At(Some(mark)) = disk.checkpoint().unwrap() else { panic!("they stand somewhere") };
    let mut mark = RestoreCheckpoint::read(mark).unwrap();
    change(&mut mark);
    changed.write(&mut std::iter::empty(), Some(&mark.encode())).unwrap();
    changed
}

fn position(mark: &mut RestoreCheckpoint, change: impl FnOnce(&mut Position)) {
    let mut position = Position::read(mark.position.clone()).unwrap();
    change(&mut position);
    mark.position = position.encode();
}

#[test]
fn rows_are_too_old_when_the_log_may_have_forgotten_what_was_deleted_since() {
    let (mut harness, old) = build();
    harness.broker.lock().tombstones_ms = Some(2 * HOUR_MS);
    harness.pass(HOUR_MS * 3 / 2);
    assert_eq!(fault(&mut harness, &old), None, "nothing was committed since: they are as new as can be");
    harness.until(|harness| harness.node.partition.as_ref().unwrap().is_serving());
    signal(&mut harness, "after");
    assert_eq!(fault(&mut harness, &old), Some(RowsFault::Old));
    harness.broker.lock().tombstones_ms = Some(4 * HOUR_MS);
    assert_eq!(fault(&mut harness, &old), None);
    harness.broker.lock().tombstones_ms = None;
    assert_eq!(fault(&mut harness, &old), None);
}

#[test]
fn a_clock_that_was_behind_does_not_make_old_rows_young() {
    let (mut harness, old) = build();
    harness.broker.lock().tombstones_ms = Some(2 * HOUR_MS);
    harness.pass(HOUR_MS * 3 / 2);
    signal(&mut harness, "after");
    harness.off_ms = -HOUR_MS;
    harness.pass(1_000);
    assert_eq!(fault(&mut harness, &old), Some(RowsFault::Old));
}

#[test]
fn rows_that_stand_further_than_the_log_or_otherwise_are_of_no_use() {
    let (mut harness, disk) = build();
    let ahead = mark(&disk, |mark| position(mark, |position| position.applied += 1));
    assert_eq!(fault(&mut harness, &ahead), Some(RowsFault::Ahead));
    let otherwise = mark(&disk, |mark| position(mark, |position| position.term += 1));
    assert_eq!(fault(&mut harness, &otherwise), Some(RowsFault::Foreign));
    let of_other_topics =
        mark(&disk, |mark| position(mark, |position| position.incarnation = vec![1; 16].into()));
    assert_eq!(fault(&mut harness, &of_other_topics), Some(RowsFault::Foreign));
    let of_another_partition = mark(&disk, |mark| mark.partition += 1);
    assert_eq!(fault(&mut harness, &of_another_partition), Some(RowsFault::Foreign));
    let unreadable = mark(&disk, |mark| mark.position = vec![255; 9].into());
    assert_eq!(fault(&mut harness, &unreadable), Some(RowsFault::Corrupt));
    assert_eq!(fault(&mut harness, &disk), None);
}

/// What befalls the log, and what is to be told of it.
fn lost(harm: impl FnOnce(&mut Harness)) -> String {
    let (mut harness, disk) = build();
    let now_ms = harness.clock.now_ms();
    harness.node.partition = None;
    harness.node.disk = disk;
    harm(&mut harness);
    match harness.node.recover(9, now_ms) {
        Err(Error::Journal { detail, .. }) => detail,
        other => panic!("it is not refused: {other:?}"),
    }
}

#[test]
fn a_journal_that_was_made_again_and_refilled_is_refused() {
    let told = lost(|harness| {
        let mut broker = harness.broker.lock();
        for record in &mut broker.stored(PARTITION).journal {
            record.stamp_ms += HOUR_MS;
        }
    });
    assert!(told.contains("was made again") && told.contains("Way out:"), "{told}");
}

#[test]
fn topics_of_rows_that_were_made_again_are_refused() {
    for topic in [Topic::Changelog, Topic::Timers] {
        let told = lost(|harness| {
            let mut broker = harness.broker.lock();
            let stored = broker.stored(PARTITION);
            stored.topics[index(topic)] = Default::default();
            if topic == Topic::Changelog {
                stored.position = None;
            }
        });
        assert!(told.contains("Way out:"), "{topic:?}: {told}");
    }
}
