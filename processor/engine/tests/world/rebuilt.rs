//! The law of rebuilding: a history tells the state, but for what no history holds.

use std::collections::BTreeMap;
use std::sync::Arc;

use everlog_engine::event::{Attributes, History};
use everlog_engine::machine::activity::Activity;
use everlog_engine::machine::child::Child;
use everlog_engine::machine::external_workflow::External;
use everlog_engine::machine::update::Update;
use everlog_engine::machine::workflow_task::Task;
use everlog_engine::time::{Duration, span_ms};
use everlog_engine::{Change, Run, apply, rebuild};

/// The state that comes of a run's whole history is the run's, as far as a history can tell. A schedule has none.
pub fn of(run: &Run, batches: &[History]) {
    if run.schedule.is_some() {
        assert!(batches.is_empty(), "a schedule has a history");
        return;
    }
    let mut rebuilt = rebuild(run.start.as_ref().clone(), batches);
    // What waits for its id has happened all the same.
    for event in run.buffered.iter() {
        apply(&mut rebuilt, &Change::Buffered(Box::new(event.clone())));
        if matches!(event.attributes, Some(Attributes::WorkflowSignaled(_))) {
            let signals = rebuilt.head.signals + 1;
            apply(&mut rebuilt, &Change::Signals(signals));
        }
    }
    assert_eq!(told(&rebuilt), told(run), "the history tells another state");
}

/// A run without what no history holds; all that is left out is named here.
fn told(run: &Run) -> Run {
    let mut run = run.clone();
    if run.is_paused() {
        // The end of the first wait shows by the task that follows, which a paused run gets later.
        run.head.backoff_until_ms = 0;
    }
    let head = &mut run.head;
    head.sticky = None;
    head.close_attempted = false;
    head.transitions = 0;
    head.updates_admitted = 0;
    head.reset_run_id.clear();
    head.former_resets.clear();
    head.reset_event_id = 0;
    head.is_replaced = false;
    head.close_offset = 0;
    // Parts of it are left out below.
    head.state_bytes = 0;
    // A task's events are written late or never, so when it was scheduled is not told; its queue changes without an
    // event, who has it is a claim's matter, and attempts that are not answered are not written.
    head.task = head.task.take().filter(|task| task.written).map(|task| Task {
        queue: None,
        scheduled_ms: 0,
        first_scheduled_ms: 0,
        claim: 0,
        updates_given: 0,
        updates_held: 0,
        unanswered: 0,
        rest_until_ms: 0,
        problems: 0,
        failed_cause: 0,
        stamp: 0,
        // As far as an event can say it.
        timeout_ms: span_ms(Some(Duration::from_ms(task.timeout_ms))),
        ..task
    });
    // Of a closed run those that are paused, to be seen.
    let open = run.activities.iter().filter(|_| run.is_open());
    let activities = open.map(|(id, activity)| (*id, Arc::new(scheduled(&run, activity))));
    run.activities = BTreeMap::from_iter(activities).into();
    // Answers that came when the run had closed.
    let unheard = |child: &Child| Arc::new(Child { late: None, ..child.clone() });
    let children = run.children.iter().map(|(id, child)| (*id, unheard(child)));
    run.children = BTreeMap::from_iter(children).into();
    let unheard = |external: &External| Arc::new(External { late: None, ..external.clone() });
    let externals = run.externals.iter().map(|(id, external)| (*id, unheard(external)));
    run.externals = BTreeMap::from_iter(externals).into();
    // An answer that waited for its id when the build came in.
    let mut properties = run.properties.as_ref().clone();
    properties.reset_points.iter_mut().for_each(|point| point.resettable = true);
    run.properties = properties.into();
    let accepted = run.updates.iter().filter(|(_, update)| update.accepted_event_id > 0);
    let unnumbered = |update: &Update| Arc::new(Update { number: 0, ..update.clone() });
    let updates = accepted.map(|(id, update)| (id.clone(), unnumbered(update)));
    run.updates = BTreeMap::from_iter(updates).into();
    run
}

/// An activity as if nobody had tried it yet, nor operated it. In a run that a reset has made its time may have begun anew.
fn scheduled(run: &Run, activity: &Activity) -> Activity {
    let began_ms = if run.start.reset_ms > 0 { activity.first_scheduled_ms } else { 0 };
    let options = activity.original.as_deref().cloned().unwrap_or_else(|| activity.options());
    let expires_ms = match options.schedule_to_close_ms {
        0 => 0,
        span_ms => activity.first_scheduled_ms.saturating_add(span_ms),
    };
    Activity {
        attempt: 1,
        first_scheduled_ms: activity.first_scheduled_ms - began_ms,
        scheduled_ms: activity.first_scheduled_ms - began_ms,
        expires_ms: expires_ms.saturating_sub(began_ms).max(0),
        task_queue: options.task_queue,
        schedule_to_start_ms: options.schedule_to_start_ms,
        start_to_close_ms: options.start_to_close_ms,
        heartbeat_timeout_ms: options.heartbeat_timeout_ms,
        retry_policy: options.retry_policy,
        priority: options.priority,
        pause: None,
        stamp: 0,
        is_reset: false,
        forgets_heartbeat: false,
        original: None,
        backing_off: false,
        started_ms: 0,
        claim: 0,
        identity: String::new(),
        request_id: String::new(),
        heartbeat_details: None,
        heartbeat_ms: 0,
        last_failure: None,
        last_attempt_ms: 0,
        retry_delay_ms: 0,
        ..activity.clone()
    }
}
