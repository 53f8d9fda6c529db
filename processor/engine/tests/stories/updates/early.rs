//! Updates that come before the time of a run's first task.

use expect_test::expect;

use crate::world::{World, minutes, seconds};

/// Found by program 1986 of the differential test.
#[test]
fn a_run_that_was_woken_before_its_time_leaves_the_rest_of_that_to_the_next_one() {
    let mut world = World::new();
    world.start_with("order-1", "in a minute", |begin| begin.start_delay_ms = 60_000);
    world.update("u1").claim().answer(|t| t.accept("u1").respond("u1")).hush();
    world.advance(seconds(20)).signal("go").task(|t| t.continue_as_new(|_again| {}));
    world.advance(minutes(1));
    world.expect(expect![[r#"
        @ 00:00:20
        > signal go
        < workflow.signaled go, task.scheduled
        > task: continue as new
        < task.started, task.completed, workflow.continued_as_new, run 2: workflow.started, first task in 40s
        @ 00:01:00
        < (the delay is over), task.scheduled
        @ 00:01:20
    "#]]);
}

#[test]
fn an_update_does_not_wait_for_the_time_of_the_first_task() {
    let start = |world: &mut World| {
        world.start_with("order-1", "in a minute", |begin| begin.start_delay_ms = 60_000);
    };
    let mut world = World::new();
    start(&mut world);
    world.update("u1").claim().answer(|t| t.reject("u1"));
    world.advance(minutes(1)).claim();
    world.expect(expect![[r#"
        > start order-1 in a minute
        < workflow.started, first task in 1m
        > update u1
        < (update u1 waits), (speculative task)
        > a worker takes the task
        < (speculative task is taken)
        = task attempt 1, history 1-1 and 2 shown
        > task: reject u1
        < (update u1 is rejected: Refused)
        @ 00:01:00
        < (the delay is over), task.scheduled
        > a worker takes the task
        < task.started
        = task attempt 1, history 1-3
    "#]]);
    let mut world = World::new();
    start(&mut world);
    world.update("u1").claim().answer(|t| t.accept("u1").respond("u1"));
    world.advance(minutes(1));
    world.expect(expect![[r#"
        > start order-1 in a minute
        < workflow.started, first task in 1m
        > update u1
        < (update u1 waits), (speculative task)
        > a worker takes the task
        < (speculative task is taken)
        = task attempt 1, history 1-1 and 2 shown
        > task: accept u1, answer u1
        < (the delay is over), task.scheduled, task.started, task.completed, update.accepted u1, update.completed u1
        @ 00:01:00
    "#]]);
    let mut world = World::new();
    start(&mut world);
    world.update("u1").claim().advance(minutes(1));
    world.expect(expect![[r#"
        > start order-1 in a minute
        < workflow.started, first task in 1m
        > update u1
        < (update u1 waits), (speculative task)
        > a worker takes the task
        < (speculative task is taken)
        = task attempt 1, history 1-1 and 2 shown
        @ 00:00:10
        < (the delay is over), task.scheduled, task.started, task.timed_out StartToClose, (task attempt 2)
        @ 00:01:00
    "#]]);
}
