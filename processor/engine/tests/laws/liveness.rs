//! Liveness: from wherever the dice have left a run, it goes on, or it waits for somebody outside.

use everlog_engine::machine::operator::activity_control::{
    ActivitySelection, ActivitySelector, UnpauseActivity,
};
use everlog_engine::machine::operator::run_pause::UnpauseRun;
use everlog_engine::machine::{activity_attempt, close, workflow_task, workflow_task_completed};
use everlog_engine::request::Request;
use everlog_engine::{Reply, Run};

use super::case::Case;
use super::sights::Sights;
use crate::world::a_signal;

/// Rounds within which a run comes to rest; each has a few timers and activities.
const ROUNDS_MAX: usize = 3_000;
/// Deadlines that are looked at while nobody works.
const WAKES: usize = 60;

/// Nobody works: every deadline, once it has come, does something, and none comes for ever.
pub fn left_alone(case: &mut Case, sights: &mut Sights) {
    let mut at_once = 0;
    let mut last_ms = case.world.now_ms;
    for _wake in 0..WAKES {
        let parts: usize = case.open().values().map(|run| run.activities.len() + run.timers.len()).sum();
        let Some(outcome) = case.wake_first(sights) else { break };
        assert!(!outcome.steps.is_empty(), "a deadline has come and nothing was due");
        at_once = if case.world.now_ms == last_ms { at_once + 1 } else { 0 };
        assert!(at_once <= 40 + 4 * parts, "a deadline comes again and again");
        last_ms = case.world.now_ms;
        sights.saw("a run that was left alone");
    }
}

/// Workers do whatever there is to do: every run closes or waits for somebody outside, and then it can be closed.
pub fn settled(case: &mut Case, sights: &mut Sights) {
    for (workflow_id, _) in case.open() {
        answered(case, sights);
        case.world.on(&workflow_id);
        let mut rounds = 0;
        while let Some(run) = case.run().filter(|run| run.is_open()).cloned() {
            if !go_on(case, &run, sights) {
                break;
            }
            rounds += 1;
            assert!(rounds < ROUNDS_MAX, "the run does not come to rest");
        }
        if let Some(run) = case.run().filter(|run| run.is_open()).cloned() {
            assert!(run.activities.is_empty() && run.timers.is_empty() && run.buffered.is_empty());
            assert_eq!(run.head.backoff_until_ms, 0, "it waits for a task that nobody schedules");
            sights.saw("a run that settled by itself");
            finish(case, sights);
        }
    }
}

/// All letters arrive: nobody waits for an answer any more, but for how a child ends.
fn answered(case: &mut Case, sights: &mut Sights) {
    while case.deliver(sights) {}
    for (_, run) in case.open() {
        assert!(run.externals.is_empty(), "a signal or a request to another has no answer");
        assert!(run.children.values().all(|child| !child.run_id.is_empty()), "a child has not been heard of");
        sights.saw("a run that has all its answers");
    }
}

/// One thing that a worker or the clock would do now; false where there is none.
fn go_on(case: &mut Case, run: &Run, sights: &mut Sights) -> bool {
    let order = if let Some(pending) = &run.head.task {
        match pending.is_started() {
            false if pending.is_resting() => rested(case, pending),
            true => answer(pending, Vec::new()),
            false => claim(run, pending),
        }
    } else if run.is_paused() {
        Request::UnpauseRun(UnpauseRun::default())
    } else if run.activities.values().any(|activity| activity.pause.is_some()) {
        let selection = Some(ActivitySelection::All(true));
        let selector = Some(ActivitySelector { selection });
        Request::UnpauseActivity(UnpauseActivity { selector, ..UnpauseActivity::default() })
    } else if let Some(activity) = run.activities.values().find(|activity| activity.is_ready()) {
        let (scheduled_event_id, attempt) = (activity.scheduled_event_id, activity.attempt);
        Request::ClaimActivity(activity_attempt::Claim {
            scheduled_event_id,
            attempt,
            stamp: activity.stamp,
            ..activity_attempt::Claim::default()
        })
    } else if let Some(activity) = run.activities.values().find(|activity| activity.is_started()) {
        let target = activity_attempt::Target {
            scheduled_event_id: activity.scheduled_event_id,
            attempt: activity.attempt,
            claim: activity.claim,
            activity_id: String::new(),
        };
        Request::CompleteActivity(activity_attempt::Complete {
            target: Some(target),
            ..activity_attempt::Complete::default()
        })
    } else {
        let waits = run.head.backoff_until_ms > 0 || !run.activities.is_empty() || !run.timers.is_empty();
        if waits {
            let due_ms = run.next_deadline_ms(case.world.grace()).expect("what waits for time has a time");
            case.world.now_ms = case.world.now_ms.max(due_ms);
            case.world.order(Request::FireTimers(everlog_engine::machine::fire_timers::FireTimers {}));
        }
        return waits;
    };
    let outcome = case.world.order(order);
    sights.outcome(&outcome);
    assert!(!outcome.steps.is_empty(), "a worker could not do what there was to do: {:?}", outcome.reply);
    true
}

/// The time has come at which a task that rests is offered.
fn rested(case: &mut Case, pending: &workflow_task::Task) -> Request {
    case.world.now_ms = case.world.now_ms.max(pending.rest_until_ms);
    Request::FireTimers(everlog_engine::machine::fire_timers::FireTimers {})
}

fn claim(run: &Run, pending: &workflow_task::Task) -> Request {
    Request::ClaimTask(workflow_task::Claim {
        scheduled_event_id: pending.scheduled_event_id,
        attempt: pending.attempt,
        sticky: run.head.sticky.is_some(),
        stamp: pending.stamp,
        ..workflow_task::Claim::default()
    })
}

fn answer(pending: &workflow_task::Task, commands: Vec<everlog_engine::command::Command>) -> Request {
    let token = Some(pending.token());
    Request::CompleteTask(Box::new(workflow_task_completed::Complete {
        token,
        commands,
        ..workflow_task_completed::Complete::default()
    }))
}

/// A run at rest takes a signal, completes over it, and is closed.
fn finish(case: &mut Case, sights: &mut Sights) {
    let signal = a_signal("finish", "");
    let outcome = case.world.order(Request::Signal(signal));
    let taken = matches!(outcome.reply, Reply::Done);
    while let Some(run) = case.run().filter(|run| run.is_open()).cloned() {
        let order = match &run.head.task {
            Some(pending) if pending.is_started() => {
                // Behind a run of a schedule that completes there is always another.
                let closing = match run.chain {
                    None => everlog_engine::command::CommandAttributes::CompleteWorkflow(
                        close::Complete::default(),
                    ),
                    Some(_) => {
                        everlog_engine::command::CommandAttributes::CancelWorkflow(close::Cancel::default())
                    }
                };
                let command_type = closing.command_type();
                let order = Some(closing);
                let command = everlog_engine::command::Command { command_type, order, ..Default::default() };
                answer(pending, vec![command])
            }
            Some(pending) if pending.is_resting() => rested(case, pending),
            Some(pending) => claim(&run, pending),
            None => {
                assert!(!taken, "a signal was taken and nobody is told");
                Request::Terminate(close::Terminate::default())
            }
        };
        let outcome = case.world.order(order);
        sights.outcome(&outcome);
        assert!(!outcome.steps.is_empty(), "a run at rest cannot be closed: {:?}", outcome.reply);
    }
}
