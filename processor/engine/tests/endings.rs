//! Endings: how workflows, tasks and activities are over, each told once.

use std::ops::{Deref, DerefMut};

use everlog_engine::api_types::{RetryPolicy, TaskFailedCause, TimeoutType};
use everlog_engine::machine::activity::Schedule;
use everlog_engine::{ActivityEnding, Ending, WorkflowEnding};

use crate::world::{World, application, hours, minutes, seconds};

/// A world, and how much of what was over in it was looked at.
struct Watched {
    world: World,
    seen: usize,
}

impl Deref for Watched {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

impl DerefMut for Watched {
    fn deref_mut(&mut self) -> &mut World {
        &mut self.world
    }
}

/// What was over since the last look.
fn told(watched: &mut Watched) -> Vec<Ending> {
    let endings = &watched.world.replica.endings;
    let new = endings[watched.seen..].to_vec();
    watched.seen = endings.len();
    new
}

fn world() -> Watched {
    Watched { world: World::new(), seen: 0 }
}

fn attempts(maximum_attempts: i32) -> impl FnOnce(&mut Schedule) {
    move |s| s.retry_policy = Some(RetryPolicy { maximum_attempts, ..RetryPolicy::default() })
}

const FAILED: Ending = Ending::ActivityAttemptFailed;
const TIMED_OUT: Ending = Ending::ActivityAttemptTimedOut;

#[test]
fn each_way_to_close_a_run_is_an_ending() {
    type Close<'a> = &'a dyn Fn(&mut World) -> &mut World;
    let closed = |close: Close<'_>| {
        let mut world = world();
        world.start("order-1");
        assert_eq!(told(&mut world), []);
        close(&mut world);
        told(&mut world)
    };
    let cases: [(Close<'_>, WorkflowEnding); 6] = [
        (&|world| world.task(|t| t.complete("done")), WorkflowEnding::Completed),
        (&|world| world.task(|t| t.fail(application("broken", |_| {}))), WorkflowEnding::Failed),
        (&|world| world.task(|t| t.cancel()), WorkflowEnding::Canceled),
        (&|world| world.terminate("enough"), WorkflowEnding::Terminated),
        (&|world| world.task(|t| t.continue_as_new(|_| {})), WorkflowEnding::ContinuedAsNew),
        (&|world| world.claim().terminate("enough"), WorkflowEnding::Terminated),
    ];
    for (close, ending) in cases {
        assert_eq!(closed(close), [Ending::Workflow(ending)]);
    }
    let mut world = world();
    world.start_with("order-1", "one minute", |b| b.run_timeout_ms = minutes(1));
    world.advance(minutes(2));
    assert_eq!(told(&mut world), [Ending::Workflow(WorkflowEnding::TimedOut)]);
}

#[test]
fn a_task_that_fails_again_and_again_is_told_each_time() {
    let mut world = world();
    world.start("order-1");
    for _ in 0..3 {
        world.claim().fail_task(TaskFailedCause::NonDeterministicError);
        assert_eq!(
            told(&mut world),
            [Ending::WorkflowTaskFailed(TaskFailedCause::NonDeterministicError)],
            "only the first of them is written"
        );
    }
    world.claim().advance(minutes(2));
    assert_eq!(told(&mut world), [Ending::WorkflowTaskTimedOut(TimeoutType::StartToClose)]);
    world.claim().release_task();
    assert_eq!(told(&mut world), [], "it has reached nobody");
    world.task(|t| t.complete("done"));
    assert_eq!(told(&mut world), [Ending::Workflow(WorkflowEnding::Completed)]);
}

#[test]
fn a_completion_that_is_refused_is_a_failed_task() {
    let mut world = world();
    world.start("order-1").claim().signal("hurry").answer(|t| t.complete("done"));
    assert_eq!(told(&mut world), [Ending::WorkflowTaskFailed(TaskFailedCause::UnhandledCommand)]);
    world.task(|t| t.cancel_timer("none"));
    assert_eq!(told(&mut world), [Ending::WorkflowTaskFailed(TaskFailedCause::BadCancelTimerAttributes)]);
}

#[test]
fn a_sticky_task_that_nobody_takes_has_timed_out() {
    let mut world = world();
    world.start("order-1").task(|t| t.sticky("cache-1")).signal("one").advance(minutes(1));
    assert_eq!(told(&mut world), [Ending::WorkflowTaskTimedOut(TimeoutType::ScheduleToStart)]);
}

#[test]
fn an_attempt_is_told_whether_or_not_there_is_another() {
    let mut world = world();
    world.start("order-1").task(|t| t.activity_with("a", "", attempts(3)));
    world.claim_activity("a").fail_activity("a", "", Some(application("broken", |_| {})));
    assert_eq!(told(&mut world), [FAILED]);
    world.advance(seconds(1)).claim_activity("a").advance(hours(1));
    assert_eq!(told(&mut world), [TIMED_OUT]);
    world.advance(hours(1)).claim_activity("a").release_activity("a");
    assert_eq!(told(&mut world), [], "it has reached nobody");
    world.claim_activity("a").fail_activity("a", "", Some(application("broken", |_| {})));
    assert_eq!(told(&mut world), [FAILED, Ending::Activity(ActivityEnding::Failed)]);
}

#[test]
fn each_way_to_close_an_activity_is_an_ending() {
    let mut world = world();
    world.start("order-1").task(|t| t.activity("a").activity("b").activity_with("c", "", attempts(1)));
    world.claim_activity("a").complete_activity("a");
    assert_eq!(told(&mut world), [Ending::Activity(ActivityEnding::Completed)]);
    world.claim_activity("c").advance(hours(1));
    assert_eq!(told(&mut world), [TIMED_OUT, Ending::Activity(ActivityEnding::TimedOut)]);
    world.claim_activity("b").task(|t| t.cancel_activity("b")).cancel_activity("b");
    assert_eq!(told(&mut world), [Ending::Activity(ActivityEnding::Canceled)]);
}

#[test]
fn what_comes_during_a_task_is_told_when_it_is_written() {
    let mut world = world();
    world.start("order-1").task(|t| t.activity("a")).claim_activity("a").signal("hurry").claim();
    world.complete_activity("a");
    assert_eq!(told(&mut world), []);
    world.answer(|t| t.start_timer("pay", minutes(1)));
    assert_eq!(told(&mut world), [Ending::Activity(ActivityEnding::Completed)]);
}

#[test]
fn what_a_reset_copies_is_not_told_again() {
    let mut world = world();
    world.start("order-1").task(|t| t.activity("a")).claim_activity("a").complete_activity("a");
    world.task(|t| t.start_timer("pay", minutes(1)));
    assert_eq!(told(&mut world), [Ending::Activity(ActivityEnding::Completed)]);
    world.reset(10);
    assert_eq!(told(&mut world), [Ending::Workflow(WorkflowEnding::Terminated)]);
}
