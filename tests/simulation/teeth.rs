//! Teeth: with a rule taken out, some seed fails; with the rule in its place, the same seed passes.

use crate::dice::Dice;
use crate::disk::Disk;
use crate::log::{Broker, Nasty, Removed, Shared, incarnation};
use crate::node::{Node, PARTITION, PARTITIONS};
use crate::plan::{Plan, Shock};
use crate::seeds::{run, run_plan};

/// Seeds that are looked at until one fails.
const SEEDS: u64 = 400;

/// Finds a seed that fails only because a rule is taken out.
fn some_seed_fails_without(removed: Removed, stir: impl Fn(&mut Plan)) {
    for seed in 1..SEEDS {
        let mut plan = Plan::of(seed);
        stir(&mut plan);
        let without = run_plan(plan.clone().without(removed));
        if without.violations.is_empty() {
            continue;
        }
        let with = run_plan(plan);
        assert_eq!(with.violations, Vec::<String>::new(), "seed {seed} with every rule");
        println!("{removed:?}: seed {seed}: {:?}", without.violations);
        return;
    }
    panic!("nobody misses {removed:?}");
}

fn take_overs(plan: &mut Plan) {
    plan.nodes = 2;
    plan.shocks = (1..8).map(|n| (n * plan.chaos_ms / 8, Shock::TakeOver { node: n as usize % 2 })).collect();
}

#[test]
fn rows_that_do_not_stand_at_their_position_are_seen() {
    some_seed_fails_without(Removed::PositionWithoutRows, take_overs);
}

#[test]
fn appends_of_former_owners_that_count_are_seen() {
    some_seed_fails_without(Removed::Terms, |plan| {
        take_overs(plan);
        plan.nasty.append_unknown = 100;
        plan.nasty.append_lost = 0;
        plan.nasty.append_late_ms = 1_000;
        plan.nasty.delay_ms = 100;
    });
}

#[test]
fn a_commit_that_is_believed_and_never_happened_is_seen() {
    some_seed_fails_without(Removed::UnknownIsDone, |plan| {
        plan.nasty.commit_unknown = 100;
        plan.nasty.commit_lost = 1_000;
    });
}

#[test]
fn a_former_owner_that_may_commit_is_seen() {
    some_seed_fails_without(Removed::Fences, |plan| {
        take_overs(plan);
        plan.nasty.delay_ms = 150;
    });
}

#[test]
fn a_journal_that_is_trimmed_above_its_position_is_seen() {
    some_seed_fails_without(Removed::Trims, take_overs);
}

#[test]
fn old_rows_that_pass_for_new_ones_are_seen() {
    some_seed_fails_without(Removed::OldRows, |plan| {
        plan.nodes = 1;
        plan.shocks = (1..6).map(|n| (n * plan.chaos_ms / 6, Shock::OldRows { node: 0 })).collect();
    });
}

#[test]
fn a_time_that_is_not_the_journals_is_seen() {
    some_seed_fails_without(Removed::Stamps, take_overs);
}

#[test]
fn public_commands_that_are_not_recognised_are_seen() {
    some_seed_fails_without(Removed::IngressMarks, |plan| {
        plan.forwards = true;
        plan.nasty.append_unknown = 300;
        plan.nasty.append_lost = 0;
    });
}

/// Rows and a position of topics that are gone.
fn leftovers() -> (Shared, Node, Disk) {
    let broker =
        Shared::new(Broker::new(PARTITIONS, Nasty { immediate: true, ..Nasty::calm() }, Dice::new(3)));
    let clock = crate::clock::Clock::new(broker.lock().now_ms);
    let mut node = Node::start(0, &broker, &clock.shared(), Disk::default());
    node.recover(1, clock.now_ms()).unwrap();
    for turn in 1..20 {
        clock.advance(broker.lock().now_ms + turn * 100);
        node.turn(usize::MAX, clock.now_ms()).unwrap();
    }
    assert!(broker.lock().kept(PARTITION).position.is_some(), "something is committed");
    let disk = node.disk.clone();
    (broker, node, disk)
}

#[test]
fn topics_that_were_made_again_are_refused_with_the_rows_of_the_old_ones() {
    let (broker, _node, disk) = leftovers();
    {
        let mut broker = broker.lock();
        broker.kept.clear();
        broker.incarnation = incarnation(&mut Dice::new(99));
    }
    let clock = crate::clock::Clock::new(broker.lock().now_ms);
    let mut node = Node::start(1, &broker, &clock.shared(), disk);
    let refused = node.recover(2, clock.now_ms());
    assert!(matches!(refused, Err(everlog_partition::Error::Stale { .. })), "{refused:?}");
    node.disk = Disk::default();
    node.recover(3, clock.now_ms()).unwrap();
}

#[test]
fn a_journal_that_does_not_reach_its_position_is_refused() {
    let (broker, _node, _disk) = leftovers();
    broker.lock().kept(PARTITION).journal.truncate(1);
    let clock = crate::clock::Clock::new(broker.lock().now_ms);
    let mut node = Node::start(1, &broker, &clock.shared(), Disk::default());
    let refused = node.recover(2, clock.now_ms());
    assert!(matches!(refused, Err(everlog_partition::Error::Journal { .. })), "{refused:?}");
}

#[test]
fn a_plan_without_faults_leaves_every_owner_alone() {
    for seed in 1..50 {
        let mut plan = Plan::of(seed);
        plan.nasty = Nasty::calm();
        plan.shocks.clear();
        let verdict = run_plan(plan);
        assert_eq!((verdict.violations, verdict.ends.len()), (Vec::new(), 0), "seed {seed}");
    }
    assert!(run(1).answers > 0, "something is answered");
}
