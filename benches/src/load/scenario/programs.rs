//! The workflows of the scenarios, as the worker runs them.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::load::calls::WORKFLOW_TYPE;
use crate::load::orders;
use crate::load::session::Session;
use crate::load::worker::{Program, Turn};

/// The type of children.
const CHILD_TYPE: &str = "child";
const MARKERS_AT_ONCE: u32 = 1_000;

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

/// Starts `count` children that complete at once, in waves of `wave`, each after the one before has ended.
pub fn parent(session: &Session, count: u32, wave: u32) -> Program {
    let complete = orders::complete(session.payloads.clone());
    let (name, task_queue) = (session.name.clone(), session.task_queue.name.clone());
    let input = session.payloads.clone();
    let children = AtomicU64::new(0);
    let child = move || {
        let workflow_id = format!("{name}-child-{}", children.fetch_add(1, Ordering::Relaxed));
        orders::start_child(workflow_id, CHILD_TYPE, &task_queue, input.clone())
    };
    Box::new(move |progress| {
        if progress.workflow_type != WORKFLOW_TYPE || progress.children_completed == count {
            Turn::Close(vec![complete.clone()])
        } else if progress.children_initiated == progress.children_completed {
            let next = wave.min(count - progress.children_initiated);
            Turn::Go((0..next).map(|_| child()).collect())
        } else {
            Turn::Go(Vec::new())
        }
    })
}

/// Records `count` markers, some with each task, then stays open.
pub fn markers(session: &Session, count: u32) -> Program {
    let marker = orders::record_marker(session.payloads.clone());
    Box::new(move |progress| match count.saturating_sub(progress.markers).min(MARKERS_AT_ONCE) {
        0 => Turn::Ready,
        some => Turn::Again(vec![marker.clone(); some as usize]),
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
