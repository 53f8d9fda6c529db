//! The workflows of the scenarios, as the worker runs them.

use crate::load::orders;
use crate::load::session::Session;
use crate::load::worker::{Program, Turn};

/// Completes at once.
pub fn nothing(session: &Session) -> Program {
    let complete = orders::complete(session.payloads.clone());
    Box::new(move |_| Turn::Close(vec![complete.clone()]))
}

/// Stays open and does nothing.
pub fn standing() -> Program {
    Box::new(|_| Turn::Ready)
}

/// Runs `count` activities, each after the one before.
pub fn activities_in_sequence(session: &Session, count: u32) -> Program {
    let complete = orders::complete(session.payloads.clone());
    let activities = activities(session, count);
    Box::new(move |progress| {
        if progress.activities_completed == count {
            Turn::Close(vec![complete.clone()])
        } else if progress.activities_scheduled == progress.activities_completed {
            Turn::Go(vec![activities[progress.activities_scheduled as usize].clone()])
        } else {
            Turn::Go(Vec::new())
        }
    })
}

/// Runs `count` activities at the same time.
pub fn activities_at_once(session: &Session, count: u32) -> Program {
    let complete = orders::complete(session.payloads.clone());
    let activities = activities(session, count);
    Box::new(move |progress| {
        if progress.activities_completed == count {
            Turn::Close(vec![complete.clone()])
        } else if progress.activities_scheduled == 0 {
            Turn::Go(activities.clone())
        } else {
            Turn::Go(Vec::new())
        }
    })
}

/// Waits for `count` timers, the shortest of `timer_ms`, spread over as long again.
pub fn timers(session: &Session, count: u32, timer_ms: u64) -> Program {
    let complete = orders::complete(session.payloads.clone());
    let spread_ms = |number| timer_ms * u64::from(number) / u64::from(count);
    let timers: Vec<_> =
        (0..count).map(|number| orders::start_timer(number, timer_ms + spread_ms(number))).collect();
    Box::new(move |progress| {
        if progress.timers_fired == count {
            Turn::Close(vec![complete.clone()])
        } else if progress.timers_started == 0 {
            Turn::Go(timers.clone())
        } else {
            Turn::Go(Vec::new())
        }
    })
}

fn activities(session: &Session, count: u32) -> Vec<bytes::Bytes> {
    let schedule =
        |number| orders::schedule_activity(number, &session.task_queue.name, session.payloads.clone());
    (1..=count).map(schedule).collect()
}
