//! Mutations of the log: where the log breaks a rule, some seed fails; where it keeps the rule, the same seed passes.

use crate::log::{Nasty, Removed};
use crate::plan::Plan;
use crate::rule_mutations::{brought_again, crashes, late_appends, old_rows, take_overs};
use crate::seeds::{run, run_plan};

/// How many seeds run before one must have failed.
const SEEDS: u64 = 400;

/// Finds a seed that fails only because a rule is removed.
fn some_seed_fails_without(removed: Removed, stir: impl Fn(&mut Plan)) {
    for seed in 1..SEEDS {
        let mut plan = Plan { schedules: false, ..Plan::of(seed) };
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

#[test]
fn rows_that_do_not_stand_at_their_position_are_seen() {
    some_seed_fails_without(Removed::PositionWithoutRows, take_overs);
}

#[test]
fn appends_of_former_owners_that_count_are_seen() {
    some_seed_fails_without(Removed::Terms, |plan| {
        take_overs(plan);
        late_appends(plan);
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
    some_seed_fails_without(Removed::OldRows, old_rows);
}

#[test]
fn a_time_that_is_not_the_journals_is_seen() {
    some_seed_fails_without(Removed::Stamps, take_overs);
}

#[test]
fn an_ingress_that_believes_too_early_is_seen() {
    some_seed_fails_without(Removed::IngressAcks, |plan| {
        plan.forwards = true;
        plan.nasty.append_unknown = 300;
        plan.nasty.append_lost = 1_000;
    });
}

#[test]
fn public_commands_that_are_not_recognised_are_seen() {
    some_seed_fails_without(Removed::IngressMarks, brought_again);
}

/// Several nodes share the queues, and take the partition from each other.
fn homes(plan: &mut Plan) {
    take_overs(plan);
    plan.homes = true;
}

#[test]
fn a_door_that_refuses_what_its_partition_has_offered_is_seen() {
    some_seed_fails_without(Removed::Endpoint, homes);
}

#[test]
fn offers_that_count_in_another_era_are_seen() {
    some_seed_fails_without(Removed::Eras, homes);
}

#[test]
fn a_claim_that_nobody_has_answered_and_that_passes_for_refused_is_seen() {
    some_seed_fails_without(Removed::Unanswered, homes);
}

#[test]
fn offers_that_come_late_and_pass_for_the_latest_are_seen() {
    some_seed_fails_without(Removed::OfferTerms, homes);
}

#[test]
fn a_node_that_is_started_anew_and_passes_for_the_former_is_seen() {
    some_seed_fails_without(Removed::Instances, |plan| {
        crashes(plan);
        plan.homes = true;
    });
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
