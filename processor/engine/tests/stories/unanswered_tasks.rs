//! Workflow tasks that workers take and never answer. They wait before the next attempt, and tasks that workers can
//! complete go first.

use everlog_engine::api_types::TaskFailedCause;
use expect_test::expect;

use crate::world::{World, minutes, seconds};

/// Workers take the task and say nothing, so many times.
fn unanswered(world: &mut World, times: usize) {
    for _ in 0..times {
        world.claim().advance(seconds(10));
    }
}

#[test]
fn the_fourth_attempt_rests_behind_three_that_nobody_answered() {
    let mut world = World::with(|settings| settings.task_backoff_attempt = 100);
    world.start("order-1");
    unanswered(&mut world, 2);
    world.hush().claim().advance(seconds(10)).claim().crash().advance(seconds(9)).claim();
    world.advance(seconds(1)).claim().advance(seconds(10));
    world.expect(expect![[r#"
        > a worker takes the task
        < (task attempt 3 is taken)
        = task attempt 3, history 1-4 and 2 shown
        @ 00:00:30
        < (task attempt 4 rests until 00:00:40)
        > a worker takes the task
        = gone
        ~ crash, 4 events replayed
        @ 00:00:39
        > a worker takes the task
        = gone
        @ 00:00:40
        < (task attempt 4)
        > a worker takes the task
        < (task attempt 4 is taken)
        = task attempt 4, history 1-4 and 2 shown
        @ 00:00:50
        < (task attempt 5 rests until 00:01:10)
    "#]]);
}

#[test]
fn rests_double_up_to_the_longest() {
    let mut world = World::with(|settings| settings.task_backoff_attempt = 100);
    world.start("order-1");
    unanswered(&mut world, 2);
    let mut rests = Vec::new();
    for _attempt in 3..=12 {
        unanswered(&mut world, 1);
        let rest_ms = world.run().head.task.as_ref().expect("it is scheduled").rest_until_ms - world.now_ms;
        rests.push(rest_ms / 1_000);
        let transitions = world.run().head.transitions;
        world.advance(rest_ms);
        assert_eq!(
            world.run().head.transitions,
            transitions,
            "the end of a rest is none that a description counts"
        );
    }
    assert_eq!(rests, [10, 20, 40, 80, 160, 320, 600, 600, 600, 600]);
}

#[test]
fn news_do_not_end_a_rest_and_count_as_no_answer() {
    let mut world = World::new();
    world.start("order-1");
    unanswered(&mut world, 3);
    world.hush().signal("one").claim().advance(seconds(10));
    // With news it is a first attempt again, and the next rest is longer all the same.
    world.claim().signal("two").advance(seconds(10)).claim();
    world.expect(expect![[r#"
        > signal one
        < workflow.signaled one
        > a worker takes the task
        = gone
        @ 00:00:40
        < (task attempt 4)
        > a worker takes the task
        < task.scheduled, task.started
        = task attempt 1, history 1-7
        > signal two
        < (waits: workflow.signaled two)
        @ 00:00:50
        < task.timed_out StartToClose, workflow.signaled two, task.scheduled, (the task rests until 00:01:10)
        > a worker takes the task
        = gone
    "#]]);
}

#[test]
fn a_worker_that_answers_ends_the_row() {
    let mut world = World::with(|settings| settings.task_backoff_attempt = 100);
    world.start("order-1");
    unanswered(&mut world, 3);
    world.advance(seconds(10)).claim().fail_task(TaskFailedCause::WorkflowWorkerUnhandledFailure);
    unanswered(&mut world, 2);
    let task = world.run().head.task.as_ref().expect("it is scheduled");
    assert_eq!((task.unanswered, task.is_resting()), (2, false), "it begins anew with a failure");
    unanswered(&mut world, 1);
    world.advance(seconds(10)).task(|t| t.start_timer("t", minutes(1))).advance(minutes(1));
    let task = world.run().head.task.as_ref().expect("it is scheduled");
    assert_eq!((task.unanswered, task.is_resting()), (0, false), "it is over with a completion");
}

#[test]
fn a_run_whose_task_rests_is_cancelled_and_terminated_at_once() {
    let mut world = World::new();
    world.start("order-1");
    unanswered(&mut world, 3);
    world.hush().cancel().claim().advance(seconds(10)).terminate("poison");
    world.expect(expect![[r#"
        > cancel
        < workflow.cancel_requested, (task attempt 4)
        > a worker takes the task
        < task.scheduled, task.started
        = task attempt 1, history 1-7
        @ 00:00:40
        < task.timed_out StartToClose, (task attempt 2 rests until 00:01:00)
        > terminate: poison
        < workflow.terminated "poison"
    "#]]);
}

#[test]
fn a_task_that_reached_nobody_rests_no_further() {
    let mut world = World::new();
    world.start("order-1");
    unanswered(&mut world, 3);
    world.advance(seconds(10)).claim().release_task();
    let task = world.run().head.task.as_ref().expect("it is scheduled");
    assert_eq!((task.unanswered, task.is_resting()), (3, false));
}

#[test]
fn a_run_counts_the_tasks_that_failed_in_a_row_whatever_comes_meanwhile() {
    let mut world = World::new();
    let problems = |world: &World| {
        let task = world.run().head.task.as_ref().expect("it is scheduled");
        (task.problems, task.failed_cause)
    };
    let unhandled = TaskFailedCause::NonDeterministicError;
    world.start("order-1").claim().fail_task(unhandled).claim().signal("hurry").fail_task(unhandled);
    assert_eq!(problems(&world), (2, unhandled.into()));
    world.signal("again");
    assert_eq!(problems(&world), (2, unhandled.into()), "news are no reason to forget them");
    world.claim().advance(seconds(10));
    assert_eq!(problems(&world), (3, TaskFailedCause::Unspecified.into()), "a time-out counts");
    world.claim().fail_task(TaskFailedCause::UnhandledCommand);
    assert_eq!(problems(&world).0, 3, "news are no problem");
    world.task(|t| t.start_timer("pay", minutes(1))).signal("go on");
    assert_eq!(problems(&world), (0, 0));
}
