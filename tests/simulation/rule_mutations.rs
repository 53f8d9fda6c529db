//! The product without one of its rules. For each rule, a scenario fails without it and passes with it.

use everlog_partition::Rule;

use crate::log::Nasty;
use crate::plan::{Plan, Shock};
use crate::scenarios::one_node;
use crate::seeds::run_plan;
use crate::workflow::{Program, Step};

/// How many seeds run before one must have failed.
const SEEDS: u64 = 400;

/// Finds a seed that fails only because a rule is removed.
fn some_seed_fails(rule: Rule, stir: impl Fn(&mut Plan)) {
    for seed in 1..SEEDS {
        // The rules are of the partition: what several nodes do for each other would only come in between, and a schedule too.
        let mut plan = Plan { homes: false, schedules: false, ..Plan::of(seed) };
        stir(&mut plan);
        let without = run_plan(plan.clone().without_rule(rule));
        if without.violations.is_empty() {
            continue;
        }
        let with = run_plan(plan);
        assert_eq!(with.violations, Vec::<String>::new(), "seed {seed} with every rule");
        println!("{rule:?}: seed {seed}: {:?}", without.violations);
        return;
    }
    panic!("nobody misses {rule:?}");
}

/// A scenario passes with the rule and fails without it.
fn ends_otherwise(rule: Rule, story: impl Fn() -> Result<(), String>) {
    assert_eq!(story(), Ok(()));
    let _taken_out = crate::rules::Without::rule(rule);
    let otherwise = story();
    assert!(otherwise.is_err(), "nobody misses {rule:?}");
    println!("{rule:?}: {otherwise:?}");
}

/// A line for each rule: its name, what the test claims, and the scenario. A rule without a line does not compile.
macro_rules! rule_mutations {
    ($($rule:ident, $claim:ident, $how:ident($scenario:expr);)*) => {
        $(#[test]
        fn $claim() {
            $how(Rule::$rule, $scenario);
        })*

        const _: fn(Rule) = |rule| match rule {
            $(Rule::$rule => (),)*
        };
    };
}

rule_mutations! {
    Terms, appends_of_a_former_owner_do_nothing, some_seed_fails(|plan| {
        take_overs(plan);
        late_appends(plan);
    });
    TermAfterDoubt, an_append_of_unknown_outcome_is_not_simply_made_again, some_seed_fails(late_appends);
    Contiguity, what_others_appended_in_between_is_applied_first, some_seed_fails(|plan| {
        take_overs(plan);
        plan.forwards = true;
        plan.nasty.delay_ms = 150;
    });
    ReadsBehindAppends, a_former_owner_shows_nothing_old, some_seed_fails(pauses);
    StepDown, a_former_owner_steps_down, some_seed_fails(take_overs);
    UnknownCommits, a_commit_of_unknown_outcome_is_not_simply_made_again, some_seed_fails(|plan| {
        plan.nasty.commit_unknown = 200;
        plan.nasty.commit_lost = 0;
    });
    RowsAfterCommit, rows_never_run_ahead_of_their_commit, some_seed_fails(|plan| {
        plan.nasty.commit_unknown = 200;
        plan.nasty.commit_lost = 1_000;
    });
    RowsFromTheirMark, old_rows_are_brought_up_to_the_log, some_seed_fails(old_rows);
    FinishedRestore, half_a_restore_is_begun_again, some_seed_fails(|plan| {
        old_rows(plan);
        plan.nasty.clean = 1_000;
    });
    StaleRows, rows_of_topics_that_are_gone_are_refused, ends_otherwise(one_node::rows_of_other_topics);
    TakeOver, a_position_of_another_journal_is_refused, ends_otherwise(one_node::a_position_of_another_journal);
    Trim, a_journal_is_trimmed_below_its_position, some_seed_fails(crashes);
    InheritedTime, time_goes_on_where_it_was_committed, some_seed_fails(|plan| {
        crashes(plan);
        plan.shocks.push((0, Shock::LogClock { by_ms: 9_000 }));
        plan.shocks.push((plan.chaos_ms / 2, Shock::LogClock { by_ms: -18_000 }));
    });
    InheritedTerm, the_term_goes_on_where_it_was_committed, some_seed_fails(crashes);
    InheritedGrace, the_grace_goes_on_where_it_was_committed, ends_otherwise(one_node::a_worker_that_answers_the_owner_after_the_next);
    InheritedSettings, the_limits_go_on_as_they_were_committed, some_seed_fails(crashes);
    InheritedLevel, the_level_of_decisions_goes_on_as_it_was_committed, some_seed_fails(crashes);
    InheritedMarks, what_was_brought_before_a_crash_is_known_after_it, some_seed_fails(|plan| {
        crashes(plan);
        brought_again(plan);
    });
    IngressMarks, what_is_brought_twice_counts_once, some_seed_fails(brought_again);
    IngressGaps, what_is_brought_in_part_waits_for_the_rest, some_seed_fails(|plan| {
        brought_again(plan);
        plan.nasty.append_lost = 1_000;
    });
    JournalTime, time_is_that_of_the_journal, some_seed_fails(take_overs);
    MonotoneTime, time_does_not_run_backwards, some_seed_fails(|plan| {
        plan.shocks = vec![
            (0, Shock::LogClock { by_ms: 9_000 }),
            (plan.chaos_ms / 3, Shock::LogClock { by_ms: -18_000 }),
        ];
    });
    EarlyAlarms, an_alarm_that_comes_too_early_comes_again, some_seed_fails(|plan| {
        plan.shocks = (0..plan.nodes).map(|node| (0, Shock::NodeClock { node, by_ms: 9_000 })).collect();
    });
    Grace, a_worker_has_time_to_find_a_new_owner, ends_otherwise(one_node::a_worker_that_answers_the_new_owner);
    Ids, everybody_makes_the_same_ids, some_seed_fails(take_overs);
    Settings, everybody_knows_the_same_limits, some_seed_fails(take_overs);
    Level, everybody_decides_by_the_same_level, some_seed_fails(take_overs);
    LaterReleases, a_record_of_a_later_release_is_not_skipped, ends_otherwise(one_node::a_later_release);
    Poison, a_record_that_makes_the_engine_panic_is_skipped, some_seed_fails(|plan| plan.poison = true);
    WaitingTasks, what_waits_for_a_worker_is_offered_by_the_next_owner, some_seed_fails(crashes);
    Bounds, what_waits_for_a_commit_is_bounded, some_seed_fails(|plan| {
        plan.overlay_bytes_max = 1 << 10;
        plan.shocks = vec![(500, Shock::Away { span_ms: 20_000 })];
    });
    NoWorkBeyond, what_tasks_and_alarms_lead_to_is_bounded_too, some_seed_fails(|plan| {
        plan.overlay_bytes_max = 1 << 8;
        plan.programs = vec![Program { generations: 20, steps: vec![Step::Timer] }; 4];
        plan.shocks = vec![(500, Shock::Away { span_ms: 20_000 })];
    });
    ReplayInSlices, a_long_journal_is_committed_in_slices, ends_otherwise(one_node::a_journal_that_is_longer_than_may_wait);
    MessageNumbers, a_message_that_comes_twice_is_taken_once, some_seed_fails(|plan| {
        children(plan);
        take_overs(plan);
        late_appends(plan);
    });
    MessageRows, a_message_that_has_not_arrived_goes_along_with_the_commit, some_seed_fails(|plan| {
        children(plan);
        crashes(plan);
        plan.nasty.delay_ms = 150;
    });
    InheritedPosts, numbers_of_messages_go_on_where_they_were_committed, some_seed_fails(|plan| {
        children(plan);
        crashes(plan);
    });
    IngressIncarnation, a_topic_that_was_made_again_is_another_source, some_seed_fails(|plan| {
        plan.forwards = true;
        plan.commands_made_again = true;
    });
}

/// Each workflow has children, one after the other.
fn children(plan: &mut Plan) {
    plan.programs = vec![Program { generations: 0, steps: vec![Step::Child; 6] }; 3];
}

/// Nodes take the partition from its owner again and again.
pub fn take_overs(plan: &mut Plan) {
    plan.nodes = 2;
    plan.shocks = (1..8).map(|n| (n * plan.chaos_ms / 8, Shock::TakeOver { node: n as usize % 2 })).collect();
}

pub fn crashes(plan: &mut Plan) {
    plan.nodes = 2;
    plan.shocks = (1..8).map(|n| (n * plan.chaos_ms / 8, Shock::Crash { node: n as usize % 2 })).collect();
}

/// The owner is paused while another node takes over.
fn pauses(plan: &mut Plan) {
    plan.nodes = 2;
    plan.shocks.clear();
    for n in 1..6 {
        let (at_ms, node) = (n * plan.chaos_ms / 6, n as usize % 2);
        plan.shocks.push((at_ms, Shock::Pause { node, span_ms: plan.chaos_ms / 12 }));
        plan.shocks.push((at_ms + 1, Shock::TakeOver { node: 1 - node }));
    }
}

pub fn old_rows(plan: &mut Plan) {
    plan.nodes = 1;
    plan.shocks = (1..6).map(|n| (n * plan.chaos_ms / 6, Shock::OldRows { node: 0 })).collect();
}

/// Appends that arrive although their senders get no reply.
pub fn late_appends(plan: &mut Plan) {
    plan.nasty =
        Nasty { append_unknown: 100, append_lost: 0, append_late_ms: 1_000, delay_ms: 100, ..plan.nasty };
}

/// Public commands of which their producers do not know whether they arrived.
pub fn brought_again(plan: &mut Plan) {
    plan.forwards = true;
    plan.nasty.append_unknown = 300;
    plan.nasty.append_lost = 0;
}
