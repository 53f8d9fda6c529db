//! Advice to continue as new: when a worker gets it with its task.

use everlog_engine::api_types::TaskFailedCause;
use expect_test::expect;

use crate::world::World;

#[test]
fn a_long_history_advises_to_continue_as_new() {
    let mut world = World::with(|settings| settings.suggest_events = 10);
    world.start("order-1").signals(&["1", "2", "3", "4", "5", "6"]).hush().claim();
    let advice = |world: &World| world.run().started_task().map(|task| task.suggest_reasons.clone());
    assert_eq!(advice(&world), Some(vec![]), "the Started event is the ninth");
    world.answer(|t| t.force().return_new());
    assert_eq!(advice(&world), Some(vec![2]), "too many events");
    world.expect(expect![[r#"
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-9
        > task: one more task, at once
        < task.completed, task.scheduled, task.started, continue as new is advised
        = sticky task attempt 1, history 10-12
    "#]]);
}

#[test]
fn a_task_that_failed_and_gets_news_counts_no_event_of_its_own() {
    let mut world = World::with(|settings| settings.suggest_events = 7);
    world.start("order-1").claim().fail_task(TaskFailedCause::NonDeterministicError).signal("news").hush();
    world.claim();
    let advice = |world: &World| world.run().started_task().map(|task| task.suggest_reasons.clone());
    assert_eq!(advice(&world), Some(vec![]), "its Started event is the seventh");
    world.expect(expect![[r#"
        > a worker takes the task
        < task.scheduled, task.started
        = task attempt 1, history 1-7
    "#]]);
}

#[test]
fn a_large_history_advises_the_same_in_a_retry_and_where_it_is_written() {
    let mut world = World::with(|settings| settings.suggest_bytes = 100);
    world.start("order-1").claim().fail_task(TaskFailedCause::NonDeterministicError).hush();
    world.claim();
    let shown = world.run().started_task().expect("it was taken").tail();
    world.answer(|t| t.marker("m"));
    let stored = world.replica.stored(&world.run().start.run_id).expect("the run is there");
    assert_eq!(stored.events[4..6], shown, "what the worker was shown is what is written");
    world.expect(expect![[r#"
        > a worker takes the task
        < (task attempt 2 is taken)
        = task attempt 2, history 1-4 and 2 shown
        > task: marker m
        < task.scheduled attempt 2, task.started, continue as new is advised, task.completed, marker.recorded m
    "#]]);
}
