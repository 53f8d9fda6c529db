//! A journal that owners of several levels of decisions have written.

use everlog_engine::command;
use everlog_engine::level;
use everlog_partition::{Config, TaskKind};

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
    let mut harness = Harness::build_with(Config { level: 0, ..config() });
    let begun = harness.start();
    let task = workflow(harness.poll(TaskKind::Workflow));
    harness.complete(&task.run, vec![again()]);
    let continued = harness.read().run.start.run_id.clone();
    assert_eq!([version(&begun), version(&continued)], ["5", "5"]);
    // Nothing of that is committed; all of it was told.
    harness.config.level = level::LATEST;
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
    harness.config.level = 0;
    harness.crash();
    let task = workflow(harness.poll(TaskKind::Workflow));
    harness.complete(&task.run, vec![again()]);
    let continued = harness.read().run.start.run_id.clone();
    assert_eq!([version(&begun), version(&continued)], ["7", "7"]);
    assert!(begun < continued);
}
