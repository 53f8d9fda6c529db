//! A journal that owners of several levels of decisions have written.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use everlog_engine::command;
use everlog_engine::level;
use everlog_partition::{Config, LevelSource, TaskKind};

use crate::harness::{Harness, config, workflow};

/// The version of a run's UUID, in hex.
fn version(run_id: &str) -> &str {
    &run_id[14..15]
}

fn again() -> command::CommandAttributes {
    command::CommandAttributes::ContinueAsNew(Box::default())
}

#[test]
fn what_a_former_owner_has_decided_is_decided_alike_by_one_of_a_later_level() {
    let mut harness = Harness::build_with(Config { levels: Arc::new(0), ..config() });
    let begun = harness.start();
    let task = workflow(harness.poll(TaskKind::Workflow));
    harness.complete(&task.run, vec![again()]);
    let continued = harness.read().run.start.run_id.clone();
    assert_eq!([version(&begun), version(&continued)], ["5", "5"]);
    // Nothing of that is committed; all of it was told.
    harness.config.levels = Arc::new(level::LATEST);
    harness.crash();
    assert_eq!(harness.read().run.start.run_id, continued, "the replay found another id");
    // A run of old goes on, and what follows it has an id of today, after a crash too.
    let task = workflow(harness.poll(TaskKind::Workflow));
    harness.complete(&task.run, vec![again()]);
    let latest = harness.read().run.start.as_ref().clone();
    assert_eq!((version(&latest.run_id), &latest.first_run_id), ("7", &begun));
    harness.crash();
    assert_eq!(harness.read().run.start.run_id, latest.run_id);
}

#[test]
fn a_level_that_was_once_reached_is_kept() {
    let mut harness = Harness::build();
    let begun = harness.start();
    harness.partition().commit_soon();
    harness.until(|harness| harness.partition().is_idle());
    // The next owner is one that names a lower level, as long as there are nodes that know no higher one.
    harness.config.levels = Arc::new(0);
    harness.crash();
    let task = workflow(harness.poll(TaskKind::Workflow));
    harness.complete(&task.run, vec![again()]);
    let continued = harness.read().run.start.run_id.clone();
    assert_eq!([version(&begun), version(&continued)], ["7", "7"]);
    assert!(begun < continued);
}

/// New partitions begin at level 0; the others are raised to a level that changes.
struct Raised(AtomicU32);

impl LevelSource for Raised {
    fn of_new_partition(&self) -> u32 {
        0
    }

    fn raised(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

#[test]
fn a_level_is_raised_by_a_record_while_the_partition_serves() {
    let levels = Arc::new(Raised(AtomicU32::new(0)));
    let mut harness = Harness::build_with(Config { levels: levels.clone(), ..config() });
    let begun = harness.start();
    levels.0.store(level::LATEST, Ordering::Relaxed);
    harness.until(|harness| {
        harness.now_ms.fetch_add(100, Ordering::Relaxed);
        harness.partition().level() == level::LATEST
    });
    let task = workflow(harness.poll(TaskKind::Workflow));
    harness.complete(&task.run, vec![again()]);
    let continued = harness.read().run.start.run_id.clone();
    assert_eq!([version(&begun), version(&continued)], ["5", "7"]);
    // What was decided below the level is decided so again, and what was decided at it as well; the next owner may
    // not have heard of it yet.
    levels.0.store(0, Ordering::Relaxed);
    harness.crash();
    assert_eq!(harness.read().run.start.run_id, continued);
    assert_eq!(harness.partition().level(), level::LATEST);
}

#[test]
fn a_partition_stays_at_its_level_until_it_is_raised() {
    let levels = Arc::new(Raised(AtomicU32::new(0)));
    let mut harness = Harness::build_with(Config { levels: levels.clone(), ..config() });
    harness.start();
    harness.partition().commit_soon();
    harness.until(|harness| harness.partition().is_idle());
    // A release that would begin new partitions at a higher level.
    harness.config.levels = Arc::new(NewAtLatest);
    harness.crash();
    assert_eq!(harness.partition().level(), 0);
}

struct NewAtLatest;

impl LevelSource for NewAtLatest {
    fn of_new_partition(&self) -> u32 {
        level::LATEST
    }

    fn raised(&self) -> u32 {
        0
    }
}
