//! An audit: the invariants of a history, followed event by event, and what the state must say after each step.

use std::collections::{BTreeMap, BTreeSet};

use everlog_engine::api_types::{QueueKind, TaskFailedCause, TimeoutType};
use everlog_engine::event::{Attributes, HistoryEvent};
use everlog_engine::machine::workflow_task::{Sticky, Task};
use everlog_engine::time::{Timestamp, span_ms};
use everlog_engine::{Grace, Run};
use prost::Message;

use super::laws::name;

/// What a history says so far.
#[derive(Default, Debug, PartialEq)]
pub struct Audit {
    last_id: i64,
    bytes: i64,
    phase: Phase,
    closed: bool,
    completed_id: i64,
    previous_started_id: i64,
    activities: BTreeMap<i64, Activity>,
    /// Timers by their Started event, with when they are due: a second timer of a name may begin before the first one's
    /// firing is written.
    timers: BTreeMap<i64, (String, i64)>,
    /// Children by their Initiated event, with their Started event.
    children: BTreeMap<i64, i64>,
    /// Signals and requests under way, by their Initiated event; true = it cancels.
    externals: BTreeMap<i64, bool>,
    signals: i64,
    requests: BTreeSet<String>,
    cancel_requested: bool,
    paused: bool,
    /// Updates that were accepted and not completed, with their Accepted events.
    updates: BTreeMap<String, i64>,
    attached: BTreeSet<String>,
    updates_completed: i64,
    /// Updates whose requests stand in the history, and that nobody has accepted since.
    admitted: i64,
}

/// Where the workflow task stands, as far as it is written.
#[derive(Default, Debug, PartialEq, Clone, Copy)]
enum Phase {
    #[default]
    None,
    Scheduled(i64),
    Started(i64, i64),
}

#[derive(Default, Debug, PartialEq)]
struct Activity {
    id: String,
    started_id: i64,
    cancel_requested_id: i64,
}

impl Audit {
    /// Takes the next event of the history.
    pub fn event(&mut self, event: &HistoryEvent) {
        let what = event.attributes.as_ref().expect("an event says what happened");
        let id = event.event_id;
        assert_eq!(id, self.last_id + 1, "event ids have a gap");
        assert!(!self.closed, "{} behind a closing event", name(event));
        assert_eq!(id == 1, matches!(what, Attributes::WorkflowStarted(_)), "a history begins once");
        let in_hand = matches!(self.phase, Phase::Started(..));
        let ends = matches!(
            what,
            Attributes::TaskCompleted(_) | Attributes::TaskFailed(_) | Attributes::TaskTimedOut(_)
        );
        assert!(!in_hand || ends, "{} directly behind a task that was started", name(event));
        self.last_id = id;
        let body = event.encoded_len();
        self.bytes += (body + prost::length_delimiter_len(body) + 1) as i64;
        match what {
            Attributes::WorkflowStarted(_)
            | Attributes::MarkerRecorded(_)
            | Attributes::SearchAttributesUpserted(_)
            | Attributes::PropertiesModified(_) => {}
            Attributes::OptionsUpdated(_)
            | Attributes::WorkflowPaused(_)
            | Attributes::WorkflowUnpaused(_) => {
                assert!(event.worker_may_ignore, "no workflow hears of it");
                self.operated(what);
            }
            Attributes::WorkflowSignaled(signaled) => {
                self.signals += 1;
                let id = &signaled.request_id;
                assert!(id.is_empty() || self.requests.insert(id.clone()), "signal {id} is written twice");
            }
            Attributes::UpdateAdmitted(_)
            | Attributes::UpdateAccepted(_)
            | Attributes::UpdateCompleted(_) => {
                self.update(id, what);
            }
            Attributes::WorkflowCancelRequested(_) => {
                assert!(!self.cancel_requested, "a cancellation is recorded once");
                self.cancel_requested = true;
            }
            Attributes::WorkflowCompleted(_)
            | Attributes::WorkflowFailed(_)
            | Attributes::WorkflowCanceled(_)
            | Attributes::WorkflowContinuedAsNew(_) => {
                assert_eq!(self.phase, Phase::None, "a workflow closes itself with a completion");
                self.closed = true;
            }
            Attributes::WorkflowTimedOut(_) | Attributes::WorkflowTerminated(_) => self.closed = true,
            task @ (Attributes::TaskScheduled(_)
            | Attributes::TaskStarted(_)
            | Attributes::TaskCompleted(_)
            | Attributes::TaskTimedOut(_)
            | Attributes::TaskFailed(_)) => self.task(id, task),
            Attributes::StartChildInitiated(_)
            | Attributes::StartChildFailed(_)
            | Attributes::ChildStarted(_)
            | Attributes::ChildCompleted(_)
            | Attributes::ChildFailed(_)
            | Attributes::ChildCanceled(_)
            | Attributes::ChildTimedOut(_)
            | Attributes::ChildTerminated(_) => self.child(id, what),
            Attributes::SignalExternalInitiated(_)
            | Attributes::SignalExternalFailed(_)
            | Attributes::ExternalSignaled(_)
            | Attributes::CancelExternalInitiated(_)
            | Attributes::CancelExternalFailed(_)
            | Attributes::ExternalCancelRequested(_) => self.external(id, what),
            activity => self.activity_or_timer(event, activity),
        }
    }

    fn operated(&mut self, what: &Attributes) {
        if let Attributes::OptionsUpdated(updated) = what {
            let id = &updated.attached_request_id;
            assert!(id.is_empty() || self.attached.insert(id.clone()), "request {id} was attached twice");
            return;
        }
        let pauses = matches!(what, Attributes::WorkflowPaused(_));
        assert_ne!(self.paused, pauses, "it is paused and unpaused in turn");
        self.paused = pauses;
    }

    fn update(&mut self, id: i64, what: &Attributes) {
        match what {
            Attributes::UpdateAccepted(accepted) => {
                assert_eq!(self.phase, Phase::None, "a worker accepts with a completion");
                let is_admitted = self.admitted > 0 && accepted.accepted_request.is_none();
                self.admitted -= i64::from(is_admitted);
                assert!(is_admitted || accepted.accepted_request.is_some(), "nobody could replay the update");
                let before = self.updates.insert(accepted.protocol_instance_id.clone(), id);
                assert_eq!(before, None, "an update is accepted once");
            }
            Attributes::UpdateAdmitted(admitted) => {
                assert!(admitted.request.is_some(), "nobody could be given the update");
                self.admitted += 1;
            }
            Attributes::UpdateCompleted(completed) => {
                let meta = completed.meta.as_ref().expect("an outcome names its update");
                let accepted_id = self.updates.remove(&meta.update_id);
                assert_eq!(
                    accepted_id,
                    Some(completed.accepted_event_id),
                    "the outcome of what was not accepted"
                );
                self.updates_completed += 1;
            }
            other => panic!("{} is no event of an update", other.name()),
        }
    }

    fn task(&mut self, id: i64, what: &Attributes) {
        match what {
            Attributes::TaskScheduled(scheduled) => {
                assert_eq!(self.phase, Phase::None, "two tasks are pending");
                assert!(!self.paused, "a paused run gets no task");
                assert!(scheduled.attempt >= 1);
                self.phase = Phase::Scheduled(id);
            }
            Attributes::TaskStarted(started) => {
                assert_eq!(self.phase, Phase::Scheduled(started.scheduled_event_id));
                self.phase = Phase::Started(started.scheduled_event_id, id);
            }
            Attributes::TaskCompleted(completed) => {
                let was = Phase::Started(completed.scheduled_event_id, completed.started_event_id);
                assert_eq!(self.phase, was);
                self.previous_started_id = completed.started_event_id;
                self.completed_id = id;
                self.phase = Phase::None;
            }
            Attributes::TaskFailed(failed) => {
                let was = match failed.started_event_id {
                    0 => Phase::Scheduled(failed.scheduled_event_id),
                    started_id => Phase::Started(failed.scheduled_event_id, started_id),
                };
                assert_eq!(self.phase, was);
                let by_pause = i32::from(TaskFailedCause::WorkflowPauseRequestedBeforeTaskStarted);
                assert_eq!(failed.started_event_id == 0, failed.cause == by_pause);
                self.phase = Phase::None;
            }
            Attributes::TaskTimedOut(out) => {
                let was = match out.started_event_id {
                    0 => Phase::Scheduled(out.scheduled_event_id),
                    started_id => Phase::Started(out.scheduled_event_id, started_id),
                };
                assert_eq!(self.phase, was);
                let waited = out.timeout_type == i32::from(TimeoutType::ScheduleToStart);
                assert_eq!(waited, out.started_event_id == 0);
                self.phase = Phase::None;
            }
            other => panic!("{} is no event of a task", other.name()),
        }
    }

    fn activity_or_timer(&mut self, event: &HistoryEvent, what: &Attributes) {
        let (id, now_ms) = (event.event_id, event.event_time.map_or(0, Timestamp::to_ms));
        match what {
            Attributes::ActivityScheduled(scheduled) => {
                let open = Activity { id: scheduled.activity_id.clone(), ..Activity::default() };
                self.activities.insert(id, open);
            }
            Attributes::ActivityCancelRequested(asked) => {
                let activity = self.activities.get_mut(&asked.scheduled_event_id);
                activity
                    .expect("only what is open, or not known to be closed, is canceled")
                    .cancel_requested_id = id;
            }
            Attributes::ActivityStarted(started) => {
                let activity = self.activities.get_mut(&started.scheduled_event_id);
                let activity = activity.expect("only a scheduled activity is started");
                assert_eq!(activity.started_id, 0, "an activity is started once in a history");
                activity.started_id = id;
            }
            Attributes::ActivityCompleted(closed) => {
                self.close(closed.scheduled_event_id, closed.started_event_id)
            }
            Attributes::ActivityFailed(closed) => {
                self.close(closed.scheduled_event_id, closed.started_event_id)
            }
            Attributes::ActivityTimedOut(closed) => {
                self.close(closed.scheduled_event_id, closed.started_event_id)
            }
            Attributes::ActivityCanceled(closed) => {
                let asked_id =
                    self.activities.get(&closed.scheduled_event_id).map(|open| open.cancel_requested_id);
                assert!(asked_id.is_some_and(|id| id >= closed.latest_cancel_requested_event_id));
                assert!(closed.latest_cancel_requested_event_id > 0, "nobody asked for the cancellation");
                self.close(closed.scheduled_event_id, closed.started_event_id);
            }
            Attributes::TimerStarted(started) => {
                let due_ms = now_ms.saturating_add(span_ms(started.start_to_fire_timeout));
                self.timers.insert(id, (started.timer_id.clone(), due_ms));
            }
            Attributes::TimerFired(fired) => {
                let (timer_id, due_ms) =
                    self.timers.remove(&fired.started_event_id).expect("a timer ends once");
                assert_eq!(timer_id, fired.timer_id);
                assert!(due_ms <= now_ms, "a timer fired too early");
            }
            Attributes::TimerCanceled(canceled) => {
                let (timer_id, _) =
                    self.timers.remove(&canceled.started_event_id).expect("a timer ends once");
                assert_eq!(timer_id, canceled.timer_id);
            }
            other => panic!("{} is no event of an activity or a timer", other.name()),
        }
    }

    fn child(&mut self, id: i64, what: &Attributes) {
        let mut close = |initiated_id: i64, started_id: i64| {
            let known = self.children.remove(&initiated_id).expect("a child is closed once");
            assert!(known > 0 && known == started_id, "the closing event of a child names another start");
        };
        match what {
            Attributes::StartChildInitiated(_) => assert_eq!(self.children.insert(id, 0), None),
            Attributes::StartChildFailed(failed) => {
                assert_eq!(self.children.remove(&failed.initiated_event_id), Some(0), "it has not begun");
            }
            Attributes::ChildStarted(started) => {
                let known = self.children.get_mut(&started.initiated_event_id).expect("it was asked for");
                assert_eq!(std::mem::replace(known, id), 0, "a child is started once");
            }
            Attributes::ChildCompleted(closed) => close(closed.initiated_event_id, closed.started_event_id),
            Attributes::ChildFailed(closed) => close(closed.initiated_event_id, closed.started_event_id),
            Attributes::ChildCanceled(closed) => close(closed.initiated_event_id, closed.started_event_id),
            Attributes::ChildTimedOut(closed) => close(closed.initiated_event_id, closed.started_event_id),
            Attributes::ChildTerminated(closed) => close(closed.initiated_event_id, closed.started_event_id),
            other => panic!("{} is no event of a child", other.name()),
        }
    }

    fn external(&mut self, id: i64, what: &Attributes) {
        let mut end = |initiated_id: i64, cancels: bool| {
            assert_eq!(self.externals.remove(&initiated_id), Some(cancels), "an answer comes once");
        };
        match what {
            Attributes::SignalExternalInitiated(_) => assert_eq!(self.externals.insert(id, false), None),
            Attributes::CancelExternalInitiated(_) => assert_eq!(self.externals.insert(id, true), None),
            Attributes::SignalExternalFailed(failed) => end(failed.initiated_event_id, false),
            Attributes::ExternalSignaled(reached) => end(reached.initiated_event_id, false),
            Attributes::CancelExternalFailed(failed) => end(failed.initiated_event_id, true),
            Attributes::ExternalCancelRequested(reached) => end(reached.initiated_event_id, true),
            other => panic!("{} is no event of a signal or request to another", other.name()),
        }
    }

    fn close(&mut self, scheduled_id: i64, started_id: i64) {
        let open = self.activities.remove(&scheduled_id).expect("an activity is closed once");
        assert_eq!(open.started_id, started_id, "the closing event of {} names another start", open.id);
    }

    /// Compares the state with the history.
    pub fn state(&self, run: &Run) {
        let head = &run.head;
        assert_eq!(run.is_open(), !self.closed);
        assert_eq!(head.next_event_id, self.last_id + 1);
        assert_eq!(head.history_bytes, self.bytes);
        assert_eq!(head.previous_started_event_id, self.previous_started_id);
        assert_eq!(head.state_bytes, state_bytes(run), "the state's size is not counted right");
        self.state_of_updates(run);
        let attached = run.attached.values().filter(|attached| attached.event_id > 0);
        assert!(
            attached.map(|attached| &attached.request_id).eq(&self.attached),
            "other requests are attached"
        );
        if self.closed {
            assert!(head.task.is_none() && run.timers.is_empty());
            let mut activities = run.activities.values();
            assert!(
                activities.all(|activity| activity.pause.is_some()),
                "an activity is open, and not for show"
            );
            assert!(run.buffered.is_empty() && head.backoff_until_ms == 0 && head.close_ms > 0);
            assert!(run.chain.is_none(), "a closed run hands nothing on any more");
            assert!(run.next_deadline_ms(Grace::default()).is_some(), "a closed run is deleted at last");
            return;
        }
        assert!(
            !head.cancel_requested || head.backoff_until_ms == 0,
            "a request to cancel waits for nothing"
        );
        self.state_of_task(run);
        self.state_of_parts(run);
        assert_eq!(run.next_deadline_ms(Grace::default()), earliest(run), "a deadline is missed");
    }

    fn state_of_task(&self, run: &Run) {
        let head = &run.head;
        assert!(run.buffered.is_empty() || run.started_task().is_some(), "events wait for nothing");
        // Signals are held off while a task is in hand; a paused run gets its next one when it is unpaused.
        let is_ended = head.task.is_some() || run.is_paused();
        assert!(!head.close_attempted || is_ended, "nothing would end the holding off of signals");
        let Some(task) = &head.task else {
            assert_eq!(self.phase, Phase::None);
            return;
        };
        assert!(
            head.backoff_until_ms == 0 || task.speculative,
            "a task is pending although the first one has to wait"
        );
        assert_eq!(
            task.written,
            task.attempt == 1 && !task.speculative,
            "first attempts are written, others are not"
        );
        assert!(
            !task.speculative || run.buffered.is_empty(),
            "events wait behind a task that is not written"
        );
        assert_eq!(task.is_started(), task.claim > 0);
        let phase = match (task.written, task.is_started()) {
            (false, _) => Phase::None,
            (true, false) => Phase::Scheduled(task.scheduled_event_id),
            (true, true) => Phase::Started(task.scheduled_event_id, task.started_event_id),
        };
        assert_eq!(self.phase, phase);
        if !task.written && (task.is_started() || task.speculative) {
            assert_eq!(task.scheduled_event_id, head.next_event_id, "the worker was shown other ids");
            assert!(!task.is_started() || task.started_event_id == head.next_event_id + 1);
        }
        if !task.is_started() {
            assert_eq!(is_on_sticky_queue(task), head.sticky.is_some(), "the task waits where nobody looks");
        }
    }

    fn state_of_updates(&self, run: &Run) {
        let head = &run.head;
        assert_eq!(head.updates_completed, self.updates_completed);
        let accepted = run.updates.iter().filter(|(_, update)| update.accepted_event_id > 0);
        let accepted: BTreeMap<_, _> =
            accepted.map(|(id, update)| (id.clone(), update.accepted_event_id)).collect();
        assert_eq!(accepted, self.updates, "the accepted updates are others");
        let waiting: Vec<_> = run.updates.values().filter(|update| update.accepted_event_id == 0).collect();
        assert!(waiting.iter().all(|update| update.request.is_some()), "nobody could be given the update");
        let numbers: BTreeSet<_> = waiting.iter().map(|update| update.number).collect();
        assert_eq!(numbers.len(), waiting.len(), "updates share a number");
        assert!(numbers.last().is_none_or(|last| *last <= head.updates_admitted));
        assert!(waiting.is_empty() || run.is_open(), "an update waits for a closed run");
        // Others stand in the history, where workers find them whenever they look.
        let waiting: Vec<_> = waiting.into_iter().filter(|update| !update.is_written).collect();
        assert!(waiting.is_empty() || head.task.is_some() || run.is_paused(), "an update waits for no task");
        if let Some(task) = head.task.as_ref().filter(|task| task.speculative) {
            assert!(!waiting.is_empty() || task.is_started(), "a task is there for nothing");
        }
    }

    fn state_of_parts(&self, run: &Run) {
        let waits = |wanted: &dyn Fn(&Attributes) -> bool| {
            run.buffered.iter().filter(|event| event.attributes.as_ref().is_some_and(wanted)).count() as i64
        };
        let signals = waits(&|what| matches!(what, Attributes::WorkflowSignaled(_)));
        assert_eq!(run.head.signals, self.signals + signals);
        let asked = waits(&|what| matches!(what, Attributes::WorkflowCancelRequested(_))) > 0;
        assert_eq!(run.head.cancel_requested, self.cancel_requested || asked);
        let open: Vec<_> = self.activities.keys().filter(|id| closing(run, **id).is_none()).collect();
        assert_eq!(run.activities.keys().collect::<Vec<_>>(), open, "the open activities are others");
        for (id, activity) in run.activities.iter() {
            let audited = &self.activities[id];
            assert_eq!(audited.started_id, 0, "an activity is started in the history, and open");
            assert_eq!(
                (&audited.id, audited.cancel_requested_id),
                (&activity.activity_id, activity.cancel_requested_event_id)
            );
            assert!(activity.attempt >= 1 && activity.is_started() == (activity.claim > 0));
            assert!(!(activity.backing_off && activity.is_started()));
            assert!(!activity.backing_off || activity.scheduled_ms > 0, "a retry without a time");
        }
        let open: Vec<_> = self.children.keys().filter(|id| !is_answered(run, **id)).collect();
        assert_eq!(run.children.keys().collect::<Vec<_>>(), open, "the open children are others");
        let open: Vec<_> = self.externals.keys().filter(|id| !is_answered(run, **id)).collect();
        assert_eq!(
            run.externals.keys().collect::<Vec<_>>(),
            open,
            "other signals and requests are under way"
        );
        let mut fired = self.timers.clone();
        fired.retain(|id, _| !run.timers.values().any(|timer| timer.started_event_id == *id));
        let firings = waits(&|what| matches!(what, Attributes::TimerFired(_)));
        assert_eq!(fired.len() as i64, firings, "a timer is neither open nor fired");
        assert_eq!(self.timers.len() as i64, run.timers.len() as i64 + firings);
    }
}

/// The closing event of an activity, where it is buffered.
fn closing(run: &Run, scheduled_id: i64) -> Option<&HistoryEvent> {
    run.buffered.iter().find(|event| match event.attributes.as_ref() {
        Some(Attributes::ActivityCompleted(closed)) => closed.scheduled_event_id == scheduled_id,
        Some(Attributes::ActivityFailed(closed)) => closed.scheduled_event_id == scheduled_id,
        Some(Attributes::ActivityTimedOut(closed)) => closed.scheduled_event_id == scheduled_id,
        Some(Attributes::ActivityCanceled(closed)) => closed.scheduled_event_id == scheduled_id,
        Some(_) | None => false,
    })
}

/// The last event of a child, or the answer to a signal or request, is buffered.
fn is_answered(run: &Run, initiated_id: i64) -> bool {
    run.buffered.iter().any(|event| match event.attributes.as_ref() {
        Some(Attributes::StartChildFailed(closed)) => closed.initiated_event_id == initiated_id,
        Some(Attributes::ChildCompleted(closed)) => closed.initiated_event_id == initiated_id,
        Some(Attributes::ChildFailed(closed)) => closed.initiated_event_id == initiated_id,
        Some(Attributes::ChildCanceled(closed)) => closed.initiated_event_id == initiated_id,
        Some(Attributes::ChildTimedOut(closed)) => closed.initiated_event_id == initiated_id,
        Some(Attributes::ChildTerminated(closed)) => closed.initiated_event_id == initiated_id,
        Some(Attributes::SignalExternalFailed(failed)) => failed.initiated_event_id == initiated_id,
        Some(Attributes::ExternalSignaled(reached)) => reached.initiated_event_id == initiated_id,
        Some(Attributes::CancelExternalFailed(failed)) => failed.initiated_event_id == initiated_id,
        Some(Attributes::ExternalCancelRequested(reached)) => reached.initiated_event_id == initiated_id,
        Some(_) | None => false,
    })
}

fn state_bytes(run: &Run) -> i64 {
    let activities: usize = run.activities.values().map(|activity| activity.encoded_len()).sum();
    let timers: usize = run.timers.values().map(Message::encoded_len).sum();
    let buffered: usize = run.buffered.iter().map(Message::encoded_len).sum();
    let children: usize = run.children.values().map(|child| child.encoded_len()).sum();
    let externals: usize = run.externals.values().map(|external| external.encoded_len()).sum();
    let attached: usize = run.attached.values().map(Message::encoded_len).sum();
    let schedule = run.schedule.as_ref().map_or(0, |schedule| {
        let (definition, results) = (schedule.definition(), &schedule.results);
        definition.encoded_len() + schedule.progress.encoded_len() + results.encoded_len()
    });
    let parts = activities + timers + children + externals + buffered + attached + schedule;
    (parts + run.properties.encoded_len()) as i64
}

fn is_on_sticky_queue(task: &Task) -> bool {
    task.queue.as_ref().is_some_and(|queue| queue.kind == i32::from(QueueKind::Sticky))
}

/// The earliest thing that an open run has to be woken for, counted anew.
fn earliest(run: &Run) -> Option<i64> {
    if let Some(schedule) = &run.schedule {
        return schedule.progress.alarm_ms;
    }
    let head = &run.head;
    let mut due: Vec<i64> =
        [run.start.run_expires_ms, head.backoff_until_ms].into_iter().filter(|ms| *ms > 0).collect();
    match (&head.task, &head.sticky) {
        (Some(task), _) if task.is_started() => due.push(task.started_ms.saturating_add(task.timeout_ms)),
        (Some(task), _) if task.is_resting() => due.push(task.rest_until_ms),
        (Some(task), Some(Sticky { schedule_to_start_ms, .. })) if is_on_sticky_queue(task) => {
            due.push(task.scheduled_ms.saturating_add(*schedule_to_start_ms));
        }
        (Some(task), _) if task.speculative => due.push(task.scheduled_ms.saturating_add(5_000)),
        (Some(_) | None, _) => {}
    }
    due.extend(run.timers.values().map(|timer| timer.fire_ms));
    for activity in run.activities.values() {
        let mut add = |since_ms: i64, span_ms: i64| {
            due.extend((span_ms > 0).then(|| since_ms.saturating_add(span_ms)));
        };
        add(0, activity.expires_ms);
        if !activity.is_started() && activity.pause.is_some() {
            continue;
        }
        if activity.backing_off {
            add(0, activity.scheduled_ms);
        } else if activity.is_started() {
            add(activity.started_ms, activity.start_to_close_ms);
            add(activity.started_ms.max(activity.heartbeat_ms), activity.heartbeat_timeout_ms);
        } else {
            add(activity.scheduled_ms, activity.schedule_to_start_ms);
        }
    }
    due.into_iter().min()
}
