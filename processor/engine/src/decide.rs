//! The decision: what a journal record does, given the state; the same for everybody who decides it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::draft::Draft;
use crate::machine::start::StartContext;
use crate::machine::{
    activity_attempt, cancel, close, external_workflow, fire_timers, operator, parent_child, reset, schedule,
    signal, start, update, workflow_task, workflow_task_completed, workflow_task_started,
};
use crate::outcome::{ActivityGrant, Outcome, Rejection, Reply};
use crate::request::{Request, RequestRecord, Sender};
use crate::run::Run;
use crate::settings::Settings;
use crate::stamp::Stamp;

/// The state that a record can depend on.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// The addressed run; the current one where none is named.
    pub run: Option<Arc<Run>>,
    /// The current run of the Workflow Id.
    pub current: Option<Arc<Run>>,
    /// The namespace was deleted: nothing is taken any more but the deletion of its runs.
    pub is_namespace_deleted: bool,
    /// The run of the addressed one's chain that has taken the request before, see [`RequestRecord::signal_request_id`] and
    /// [`RequestRecord::creation_request_id`].
    pub seen: Option<Arc<Run>>,
    /// Of the updates that the order speaks of, see [`RequestRecord::update_ids`], those that the addressed run has completed.
    pub done: BTreeMap<String, update::Done>,
    /// For a start that comes with an update: where its outcome stands in the run that has taken the request before, if that
    /// is another than the addressed one and has completed the update.
    pub done_before: Option<update::Done>,
    /// For a reset: what is written of the addressed run, and then of each run that the one before it went on as. Empty
    /// where that cannot be read.
    pub past: Vec<reset::HistoryBatches>,
}

/// Decides one record. Never panics, whatever the record says; refuses with a value.
pub fn decide(view: &View, input: &RequestRecord, stamp: &Stamp, settings: &Settings) -> Outcome {
    let place =
        StartContext { namespace_id: &input.namespace_id, workflow_id: &input.workflow_id, stamp, settings };
    let outcome = match &input.request {
        order if view.is_namespace_deleted && !matches!(order, Some(Request::Delete(_))) => {
            Outcome::refuse(Rejection::NamespaceDeleted(input.namespace_id.clone()))
        }
        None => Outcome::refuse(Rejection::InvalidArgument("Unknown order.".into())),
        Some(Request::Start(order)) => start::begin(view, order, place),
        Some(Request::CreateSchedule(order)) => schedule::create(view, input, order, place),
        Some(order) => match &view.run {
            None => order.row().if_missing.answer(&input.workflow_id, &input.run_id),
            Some(run) if !may_reach(run, input) => Outcome::refuse(Rejection::unknown()),
            Some(run) if run.schedule.is_some() || order.is_for_schedules() => {
                schedule::decide(run, view, input, order, place)
            }
            Some(run) => match order {
                Request::Reset(order) => reset::reset(run, view, order, place),
                order if run.is_open() => {
                    decide_open(run, (view.seen.is_some(), &view.done), input, order, stamp, settings)
                }
                order => decide_closed(run, &view.done, input, order, stamp, settings),
            },
        },
    };
    with_messages(input, within_limits(view, input, outcome, stamp, settings), stamp)
}

/// A message may be for children of its sender only; whoever has ended is cancelled already, whose child it ever was. A workflow
/// reaches itself by no message.
fn may_reach(run: &Run, message: &RequestRecord) -> bool {
    let Some(sender) = &message.sender else { return true };
    let is_own = (&sender.namespace_id, &sender.workflow_id) == (&message.namespace_id, &message.workflow_id);
    let asks = matches!(message.request, Some(Request::Signal(_) | Request::Cancel(_)));
    let is_over = matches!(message.request, Some(Request::Cancel(_))) && !run.is_open();
    !(is_own && asks) && (is_over || sender.reaches(run))
}

/// Gathers what the record asks of others: what runs have sent, what those that closed have to tell, and the answer to
/// the sender if it is a message itself.
fn with_messages(input: &RequestRecord, mut outcome: Outcome, stamp: &Stamp) -> Outcome {
    let latest = outcome.steps.last().map(|step| step.run.start.first_run_id.clone()).unwrap_or_default();
    for step in &mut outcome.steps {
        outcome.messages.append(&mut step.messages);
        if let Some(last) = step.closing_event() {
            outcome.messages.extend(parent_child::farewell(&step.run, last, &latest));
        }
    }
    if let Some(sender) = input.sender.as_ref().filter(|sender| sender.initiated_event_id > 0) {
        outcome.messages.extend(answer(sender, input.request.as_ref(), &outcome.reply));
    }
    if let Some(Request::Start(order)) = &input.request
        && let Some(watcher) = &order.watcher
    {
        let answer = schedule::action::answer_to_start(watcher, &outcome, stamp.now_ms);
        outcome.messages.push(answer);
    }
    outcome
}

fn answer(sender: &Sender, order: Option<&Request>, reply: &Reply) -> Option<RequestRecord> {
    match order {
        Some(Request::Start(_)) => Some(parent_child::answer_to_start(sender, reply)),
        Some(Request::Signal(_)) => Some(external_workflow::answer(sender, false, reply)),
        Some(Request::Cancel(_)) => Some(external_workflow::answer(sender, true, reply)),
        _no_answer_is_wanted => None,
    }
}

fn decide_closed(
    run: &Run,
    done: &BTreeMap<String, update::Done>,
    input: &RequestRecord,
    order: &Request,
    stamp: &Stamp,
    settings: &Settings,
) -> Outcome {
    if let Some(outcome) = reset::come_late(run, input, order, stamp, settings) {
        return outcome;
    }
    match order {
        Request::Update(order) if belongs(run, &order.first_run_id) => {
            match update::standing(run, &order.update_id, done.get(&order.update_id)) {
                Some(standing) => Outcome::answer(Reply::Update(Box::new(standing))),
                None => Outcome::refuse(Rejection::closed()),
            }
        }
        Request::FireTimers(_) if run.expires_ms() <= stamp.now_ms => {
            Outcome { expired: true, ..Outcome::answer(Reply::Done) }
        }
        Request::Delete(_) => Outcome { expired: true, ..Outcome::answer(Reply::Done) },
        order => order.row().if_closed.answer(),
    }
}

fn decide_open(
    run: &Run,
    (seen, done): (bool, &BTreeMap<String, update::Done>),
    input: &RequestRecord,
    order: &Request,
    stamp: &Stamp,
    settings: &Settings,
) -> Outcome {
    let sender = input.sender.as_ref();
    let mut draft = Draft::new(run.clone(), stamp, settings);
    let answer = match order {
        Request::Start(_)
        | Request::Reset(_)
        | Request::CreateSchedule(_)
        | Request::UpdateSchedule(_)
        | Request::PatchSchedule(_)
        | Request::DeleteSchedule(_)
        | Request::ScheduleActionOpened(_)
        | Request::ScheduleActionClosed(_) => Ok(Reply::Done),
        Request::Signal(_) if seen => Ok(Reply::Done),
        Request::Signal(order) => signal::signal_from(&mut draft, order, sender).map(|()| Reply::Done),
        Request::Cancel(order) if belongs(run, &order.first_run_id) => {
            cancel::request(&mut draft, order, sender);
            Ok(Reply::Done)
        }
        Request::Terminate(order) if belongs(run, &order.first_run_id) => {
            close::terminate_as_ordered(&mut draft, order);
            Ok(Reply::Done)
        }
        Request::Update(order) if belongs(run, &order.first_run_id) => {
            let done = done.get(&order.update_id);
            update::admit(&mut draft, order, done).map(|standing| Reply::Update(Box::new(standing)))
        }
        Request::Cancel(_) | Request::Terminate(_) | Request::Update(_) => Err(Rejection::unknown()),
        Request::ClaimTask(order) => return claim_task(draft, order),
        Request::CompleteTask(order) => return workflow_task_completed::complete(draft, run, order, done),
        Request::FailTask(order) => workflow_task_started::fail(&mut draft, order),
        Request::ReleaseTask(order) => workflow_task_started::release(&mut draft, order),
        Request::ClaimActivity(order) => return claim_activity(draft, order),
        Request::CompleteActivity(order) => activity_attempt::complete(&mut draft, order),
        Request::FailActivity(order) => activity_attempt::fail(&mut draft, order),
        Request::CancelActivity(order) => activity_attempt::cancel(&mut draft, order),
        Request::HeartbeatActivity(order) => activity_attempt::heartbeat(&mut draft, order),
        Request::ReleaseActivity(order) => activity_attempt::release(&mut draft, order),
        Request::PauseActivity(_)
        | Request::UnpauseActivity(_)
        | Request::ResetActivity(_)
        | Request::UpdateActivityOptions(_)
        | Request::PauseRun(_)
        | Request::UnpauseRun(_)
        | Request::UpdateRunOptions(_) => operator::decide(&mut draft, order),
        Request::FireTimers(_) => return settle_what_is_due(draft),
        Request::ResetSticky(_)
        | Request::ChildOpened(_)
        | Request::BeginChild(_)
        | Request::ChildClosed(_)
        | Request::ExternalAnswered(_) => {
            hear(&mut draft, order);
            Ok(Reply::Done)
        }
        Request::Delete(_) => {
            close::terminate(&mut draft, "Delete workflow execution", None, "history-service");
            let (steps, expired) = (vec![draft.finish()], true);
            return Outcome { steps, expired, ..Outcome::answer(Reply::Done) };
        }
    };
    answered(draft, order, answer)
}

fn answered(draft: Draft<'_>, order: &Request, answer: Result<Reply, Rejection>) -> Outcome {
    match answer {
        Err(rejection) => Outcome::refuse(rejection),
        Ok(reply) if draft.changes().is_empty() => Outcome::answer(reply),
        Ok(reply) => Outcome { seen: taken(order), steps: vec![draft.finish()], ..Outcome::answer(reply) },
    }
}

/// What others tell a run, and nobody waits for.
fn hear(draft: &mut Draft<'_>, order: &Request) {
    match order {
        Request::ResetSticky(_) => workflow_task::reset_sticky(draft),
        Request::ChildOpened(order) => parent_child::opened(draft, order),
        Request::BeginChild(_) => parent_child::begin_child(draft),
        Request::ChildClosed(order) => parent_child::closed(draft, order),
        Request::ExternalAnswered(order) => external_workflow::answered(draft, order),
        _others_are_answered => {}
    }
}

fn settle_what_is_due(mut draft: Draft<'_>) -> Outcome {
    let successor = fire_timers::wake(&mut draft);
    if draft.changes().is_empty() {
        return Outcome::answer(Reply::Done);
    }
    Outcome::of(Reply::Done, draft.finish(), successor)
}

/// The request id of a signal that was taken.
fn taken(order: &Request) -> Option<String> {
    match order {
        Request::Signal(signal) if !signal.request_id.is_empty() => Some(signal.request_id.clone()),
        _other => None,
    }
}

fn belongs(run: &Run, first_run_id: &str) -> bool {
    first_run_id.is_empty() || run.start.first_run_id == first_run_id
}

fn claim_task(mut draft: Draft<'_>, order: &workflow_task::Claim) -> Outcome {
    let Some(grant) = workflow_task_started::claim(&mut draft, order) else {
        return Outcome::answer(Reply::Gone);
    };
    let step = draft.finish();
    let reply = Reply::Task(Box::new(grant.of(&step)));
    Outcome { steps: vec![step], ..Outcome::answer(reply) }
}

fn claim_activity(mut draft: Draft<'_>, order: &activity_attempt::Claim) -> Outcome {
    let claimed = activity_attempt::claim(&mut draft, order);
    let step = draft.finish();
    let grant = claimed.and_then(|id| step.run.activities.get(&id)).map(|activity| {
        Reply::Activity(Box::new(ActivityGrant { run: step.run.clone(), activity: activity.clone() }))
    });
    match grant {
        Some(reply) => Outcome { steps: vec![step], ..Outcome::answer(reply) },
        None => Outcome::answer(Reply::Gone),
    }
}

/// A run that would grow beyond its limits is terminated instead of doing what it was asked to; the caller is told so.
/// An answer that it was brought has come too late for it.
fn within_limits(
    view: &View,
    input: &RequestRecord,
    outcome: Outcome,
    stamp: &Stamp,
    settings: &Settings,
) -> Outcome {
    let Some(step) = outcome.steps.first() else { return outcome };
    let Some(reason) = outgrown(&step.run, settings) else { return outcome };
    let before = [&view.run, &view.current].into_iter().flatten();
    let Some(before) = before.into_iter().find(|run| run.start.run_id == step.run.start.run_id) else {
        return outcome;
    };
    let mut draft = Draft::new(before.as_ref().clone(), stamp, settings);
    close::terminate(&mut draft, reason, None, "history-service");
    if let Some(order) = &input.request {
        reset::keep_late(&mut draft, input, order);
    }
    let reply = Reply::Rejected(Rejection::InvalidArgument(reason.into()));
    Outcome { steps: vec![draft.finish()], ..Outcome::answer(reply) }
}

/// Which limit an open run has passed.
fn outgrown(run: &Run, settings: &Settings) -> Option<&'static str> {
    let head = &run.head;
    if !run.is_open() || run.schedule.is_some() {
        None
    } else if head.next_event_id.saturating_sub(1) > settings.history_events_max {
        Some("Workflow history count exceeds limit.")
    } else if head.history_bytes > settings.history_bytes_max {
        Some("Workflow history size exceeds limit.")
    } else if settings.state_bytes_max > 0 && head.state_bytes > settings.state_bytes_max {
        Some("Workflow mutable state size exceeds limit.")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api_types::ChildFailedCause;
    use crate::machine::parent_child::Opened;
    use crate::request::Delete;

    fn decided(order: Request, sender: Option<Sender>) -> Outcome {
        let view = View { is_namespace_deleted: true, ..View::default() };
        let (namespace_id, workflow_id) = ("gone".into(), "order-1".into());
        let input = RequestRecord {
            namespace_id,
            workflow_id,
            sender,
            request: Some(order),
            ..RequestRecord::default()
        };
        let (incarnation, now_ms, level) = ([0; 16], 1_000, crate::level::LATEST);
        let stamp = Stamp { incarnation, partition: 0, offset: 0, now_ms, owner_ms: 0, level };
        decide(&view, &input, &stamp, &Settings::standard())
    }

    fn begin() -> Request {
        Request::Start(Box::new(start::Begin { workflow_type: "Order".into(), ..start::Begin::default() }))
    }

    #[test]
    fn nothing_begins_in_a_deleted_namespace() {
        let refused = Outcome::refuse(Rejection::NamespaceDeleted("gone".into()));
        assert_eq!(decided(begin(), None), refused);
        assert_eq!(decided(Request::Signal(signal::Signal::default()), None), refused);
        let missing = Outcome::refuse(Rejection::unknown_run("order-1", ""));
        assert_eq!(decided(Request::Delete(Delete {}), None), missing, "its runs are deleted still");
    }

    #[test]
    fn who_asks_for_a_child_in_a_deleted_namespace_hears_of_it() {
        let sender = Sender { workflow_id: "parent".into(), initiated_event_id: 5, ..Sender::default() };
        let messages = decided(begin(), Some(sender)).messages;
        let cause = ChildFailedCause::NamespaceNotFound.into();
        let answer = Request::ChildOpened(Opened { initiated_event_id: 5, run_id: String::new(), cause });
        assert_eq!(messages.into_iter().map(|message| message.request).collect::<Vec<_>>(), [Some(answer)]);
    }
}
