//! Transitions: what a description counts of all that happened to a run. The numbers are those of Temporal's server.

use std::fmt::Write;

use everlog_engine::api_types::{RetryPolicy, TaskFailedCause};
use everlog_engine::time::Duration;
use expect_test::expect;

use crate::world::{World, application, minutes, seconds};

/// What was done, and how many transitions the run has behind it.
#[derive(Default)]
struct Count(String);

impl Count {
    fn note(&mut self, what: &str, world: &World) {
        writeln!(self.0, "{what}: {}", world.run().head.transitions).expect("a string takes all");
    }
}

#[test]
fn each_record_that_changes_something_counts() {
    let (mut world, mut count) = (World::new(), Count::default());
    count.note("start", world.start("order-1"));
    count.note("claim", world.claim());
    count.note("complete, start a timer", world.answer(|t| t.start_timer("t", minutes(1))));
    count.note("signal", world.signal("one"));
    count.note("claim", world.claim());
    count.note("signal that is buffered", world.signal("two"));
    count.note("complete", world.answer(|t| t));
    count.note("claim and complete", world.task(|t| t));
    count.note("the timer fires", world.advance(minutes(1)));
    count.note("claim and close", world.task(|t| t.complete("done")));
    expect![[r#"
        start: 1
        claim: 2
        complete, start a timer: 3
        signal: 4
        claim: 5
        signal that is buffered: 6
        complete: 7
        claim and complete: 9
        the timer fires: 10
        claim and close: 12
    "#]]
    .assert_eq(&count.0);
}

#[test]
fn a_task_that_fails_again_counts_without_an_event() {
    let (mut world, mut count) = (World::new(), Count::default());
    world.start("order-1");
    for attempt in 1..=3 {
        count.note(&format!("attempt {attempt} is taken"), world.claim());
        count.note("it fails", world.fail_task(TaskFailedCause::NonDeterministicError));
    }
    world.claim();
    count.note("attempt 4 is refused", world.answer(|t| t.cancel_timer("unknown")));
    expect![[r#"
        attempt 1 is taken: 2
        it fails: 3
        attempt 2 is taken: 4
        it fails: 5
        attempt 3 is taken: 6
        it fails: 7
        attempt 4 is refused: 8
    "#]]
    .assert_eq(&count.0);
}

#[test]
fn an_attempt_at_an_activity_that_need_not_wait_any_longer_does_not_count() {
    let (mut world, mut count) = (World::new(), Count::default());
    world.start("order-1").task(|t| {
        t.activity_with("a", "", |s| {
            let initial_interval = Some(Duration::from_ms(seconds(1)));
            s.retry_policy = Some(RetryPolicy { initial_interval, ..RetryPolicy::default() });
        })
    });
    count.note("scheduled", &world);
    count.note("taken", world.claim_activity("a"));
    count.note("heartbeat", world.heartbeat("a", "half"));
    count.note("failed", world.fail_activity("a", "E", Some(application("E", |_failure| {}))));
    count.note("the wait is over", world.advance(seconds(1)));
    count.note("taken again", world.claim_activity("a"));
    count.note("completed", world.complete_activity("a"));
    expect![[r#"
        scheduled: 3
        taken: 4
        heartbeat: 5
        failed: 6
        the wait is over: 6
        taken again: 7
        completed: 8
    "#]]
    .assert_eq(&count.0);
}

#[test]
fn an_update_counts_with_its_events_only() {
    let (mut world, mut count) = (World::new(), Count::default());
    count.note("at rest", world.start("order-1").task(|t| t));
    count.note("update", world.update("u1"));
    count.note("its task is taken", world.claim());
    count.note("refused", world.answer(|t| t.reject("u1")));
    count.note("update", world.update("u2"));
    count.note("its task is taken", world.claim());
    count.note("answered", world.answer(|t| t.accept("u2").respond("u2")));
    count.note("update", world.update("u3"));
    count.note("a signal makes its task one like any other", world.signal("one"));
    count.note("another update", world.update("u4"));
    expect![[r#"
        at rest: 3
        update: 3
        its task is taken: 3
        refused: 3
        update: 3
        its task is taken: 3
        answered: 4
        update: 4
        a signal makes its task one like any other: 5
        another update: 5
    "#]]
    .assert_eq(&count.0);
}

#[test]
fn a_signal_of_another_workflow_counts_twice() {
    let (mut world, mut count) = (World::new(), Count::default());
    world.start("parcel-1");
    world.start("order-1").task(|t| t.signal_other("parcel-1", false)).post();
    count.note("the sender", world.on("order-1"));
    count.note("the receiver", world.on("parcel-1"));
    expect![[r#"
        the sender: 4
        the receiver: 3
    "#]]
    .assert_eq(&count.0);
}

#[test]
fn a_reset_counts_for_a_closed_run_that_it_only_finds_there() {
    let mut world = World::new();
    let first = world.start("order-1").task(|t| t.complete("done")).run().start.run_id.clone();
    let second = world.start("order-1").task(|t| t.complete("done")).run().start.run_id.clone();
    assert_eq!(world.run().head.transitions, 3);
    world.reset_with(&first, 4, |_order| {});
    let transitions = |run_id: &str| world.replica.stored(run_id).map(|stored| stored.run.head.transitions);
    assert_eq!((transitions(&first), transitions(&second)), (Some(4), Some(4)));
    assert_eq!(world.run().head.transitions, 2, "the new one");
}
