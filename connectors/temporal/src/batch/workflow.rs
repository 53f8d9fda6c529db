//! The workflow of a job: one activity does the work, and the run ends as the activity does.
//!
//! begun     --(nothing)-->            activity scheduled
//! begun     --cancel requested-->     canceled: nothing was done
//! working   --cancel requested-->     asks the activity to cancel itself
//! working   --activity completed-->   completed, with the report
//! working   --activity canceled-->    canceled, with the report
//! working   --activity failed-->      failed

use bytes::Bytes;
use everlog_engine::api_types::{ActivityType, RetryPolicy, TaskQueue};
use everlog_engine::command::{Command, CommandAttributes};
use everlog_engine::event::{Attributes, HistoryEvent};
use everlog_engine::machine::{activity, close, memo_and_search_attributes};
use everlog_engine::time::Duration;

use crate::batch::job::{ACTIVITY_TYPE, QUEUE};
use crate::batch::progress::BatchReport;
use crate::codec::failure;

/// The longest silence of a working node. Then another one goes on.
pub(crate) const HEARTBEAT_WITHIN: std::time::Duration = std::time::Duration::from_secs(10);
/// How long an attempt may take, as on Temporal's server: there is no limit.
const ATTEMPT_MS: i64 = 20 * 365 * 86_400 * 1_000;
/// The waits between two attempts.
const RETRY_MS: (i64, i64) = (1_000, 30_000);

/// What has happened so far.
#[derive(Default)]
struct JobPast {
    input: Option<Bytes>,
    cancel_requested: bool,
    scheduled_event_id: i64,
    asked_to_cancel: bool,
    end: Option<ActivityEnd>,
}

/// How the activity ended.
enum ActivityEnd {
    Completed(Option<Bytes>),
    Canceled(Option<Bytes>),
    Failed(Option<Bytes>),
}

impl JobPast {
    fn of(events: &[HistoryEvent]) -> Self {
        let mut past = Self::default();
        for event in events {
            match &event.attributes {
                Some(Attributes::WorkflowStarted(started)) => past.input.clone_from(&started.input),
                Some(Attributes::WorkflowCancelRequested(_)) => past.cancel_requested = true,
                Some(Attributes::ActivityScheduled(_)) => past.scheduled_event_id = event.event_id,
                Some(Attributes::ActivityCancelRequested(_)) => past.asked_to_cancel = true,
                Some(Attributes::ActivityCompleted(ended)) => {
                    past.end = Some(ActivityEnd::Completed(ended.result.clone()));
                }
                Some(Attributes::ActivityCanceled(ended)) => {
                    past.end = Some(ActivityEnd::Canceled(ended.details.clone()));
                }
                Some(Attributes::ActivityFailed(ended)) => {
                    past.end = Some(ActivityEnd::Failed(ended.failure.clone()))
                }
                Some(Attributes::ActivityTimedOut(ended)) => {
                    past.end = Some(ActivityEnd::Failed(ended.failure.clone()));
                }
                _others => {}
            }
        }
        past
    }
}

/// What the workflow does next, by its whole history.
pub(crate) fn decide(events: &[HistoryEvent]) -> Vec<Command> {
    let past = JobPast::of(events);
    let attributes = match past.end {
        Some(ActivityEnd::Completed(result)) => with_counts(
            result.as_ref(),
            CommandAttributes::CompleteWorkflow(close::Complete { result: result.clone() }),
        ),
        Some(ActivityEnd::Canceled(details)) => with_counts(
            details.as_ref(),
            CommandAttributes::CancelWorkflow(close::Cancel { details: details.clone() }),
        ),
        Some(ActivityEnd::Failed(given)) => {
            let failure = given.or_else(|| Some(failure::server("the job failed", None)));
            vec![CommandAttributes::FailWorkflow(close::Fail { failure })]
        }
        None if past.scheduled_event_id == 0 && past.cancel_requested => {
            vec![CommandAttributes::CancelWorkflow(close::Cancel { details: None })]
        }
        None if past.scheduled_event_id == 0 => vec![schedule(past.input)],
        None if past.cancel_requested && !past.asked_to_cancel => {
            let scheduled_event_id = past.scheduled_event_id;
            vec![CommandAttributes::RequestCancelActivity(activity::RequestCancel { scheduled_event_id })]
        }
        None => Vec::new(),
    };
    attributes.into_iter().map(command).collect()
}

/// The counts go into the memo, where a closed run keeps them.
fn with_counts(payloads: Option<&Bytes>, end: CommandAttributes) -> Vec<CommandAttributes> {
    let memo = BatchReport::read(payloads).map(|report| {
        let upserted_memo = Some(report.memo());
        CommandAttributes::ModifyProperties(memo_and_search_attributes::Modify { upserted_memo })
    });
    memo.into_iter().chain([end]).collect()
}

fn schedule(input: Option<Bytes>) -> CommandAttributes {
    let span = |ms| Some(Duration::from_ms(ms));
    let heartbeat_ms = i64::try_from(HEARTBEAT_WITHIN.as_millis()).expect("some seconds");
    CommandAttributes::ScheduleActivity(Box::new(activity::Schedule {
        activity_id: "work".into(),
        activity_type: Some(ActivityType { name: ACTIVITY_TYPE.into() }),
        task_queue: Some(TaskQueue::normal(QUEUE)),
        input,
        start_to_close_timeout: span(ATTEMPT_MS),
        heartbeat_timeout: span(heartbeat_ms),
        retry_policy: Some(RetryPolicy {
            initial_interval: span(RETRY_MS.0),
            maximum_interval: span(RETRY_MS.1),
            backoff_coefficient: 2.0,
            ..RetryPolicy::default()
        }),
        ..activity::Schedule::default()
    }))
}

fn command(attributes: CommandAttributes) -> Command {
    Command { command_type: attributes.command_type(), order: Some(attributes), ..Command::default() }
}

#[cfg(test)]
mod tests {
    use everlog_engine::machine::{cancel, signal, start};

    use super::*;

    fn history(attributes: Vec<Attributes>) -> Vec<HistoryEvent> {
        let event = |(attributes, event_id): (Attributes, i64)| HistoryEvent {
            event_id,
            event_type: attributes.event_type(),
            attributes: Some(attributes),
            ..HistoryEvent::default()
        };
        attributes.into_iter().zip(1..).map(event).collect()
    }

    fn begun() -> Vec<Attributes> {
        let input = Some(Bytes::from_static(b"input"));
        vec![start::Started { input, ..start::Started::default() }.into()]
    }

    fn working() -> Vec<Attributes> {
        let mut attributes = begun();
        attributes.push(activity::Scheduled::default().into());
        attributes
    }

    fn decided(past: Vec<Attributes>, event: Option<Attributes>) -> Vec<CommandAttributes> {
        let events = history(past.into_iter().chain(event).collect());
        decide(&events).into_iter().filter_map(|command| command.order).collect()
    }

    #[test]
    fn the_activity_is_scheduled_once_with_the_input_of_the_run() {
        let commands = decided(begun(), None);
        let [CommandAttributes::ScheduleActivity(schedule)] = &commands[..] else { panic!("{commands:?}") };
        assert_eq!(schedule.input.as_deref(), Some(&b"input"[..]));
        assert_eq!(schedule.task_queue.as_ref().map(|queue| queue.name.as_str()), Some(QUEUE));
        assert!(decided(working(), None).is_empty());
        let signaled = signal::Signaled::default();
        assert!(decided(working(), Some(signaled.into())).is_empty(), "nothing waits for a signal");
    }

    #[test]
    fn the_run_ends_as_the_activity_does_and_its_memo_has_the_counts() {
        let report = BatchReport { total: 3, complete: 2, failed: 1, failures: Vec::new() };
        let result = Some(report.result());
        let modify = CommandAttributes::ModifyProperties(memo_and_search_attributes::Modify {
            upserted_memo: Some(report.memo()),
        });
        let completed = activity::Completed { result: result.clone(), ..activity::Completed::default() };
        let complete = CommandAttributes::CompleteWorkflow(close::Complete { result: result.clone() });
        assert_eq!(decided(working(), Some(completed.into())), [modify.clone(), complete]);
        let canceled = activity::Canceled { details: result.clone(), ..activity::Canceled::default() };
        let cancel = CommandAttributes::CancelWorkflow(close::Cancel { details: result });
        assert_eq!(decided(working(), Some(canceled.into())), [modify, cancel]);
        let failure = Some(Bytes::from_static(b"failure"));
        let failed = activity::Failed { failure: failure.clone(), ..activity::Failed::default() };
        let fail = CommandAttributes::FailWorkflow(close::Fail { failure });
        assert_eq!(decided(working(), Some(failed.into())), [fail]);
        let ended = decided(working(), Some(activity::TimedOut::default().into()));
        assert!(matches!(&ended[..], [CommandAttributes::FailWorkflow(fail)] if fail.failure.is_some()));
    }

    #[test]
    fn a_job_that_is_to_be_canceled_asks_its_activity_once() {
        let requested = || Some(cancel::Requested::default().into());
        let commands = decided(working(), requested());
        let asks = activity::RequestCancel { scheduled_event_id: 2 };
        assert_eq!(commands, [CommandAttributes::RequestCancelActivity(asks)]);
        let mut asked = working();
        asked.extend(requested());
        assert!(decided(asked, Some(activity::CancelRequested::default().into())).is_empty());
        let at_once = CommandAttributes::CancelWorkflow(close::Cancel { details: None });
        assert_eq!(decided(begun(), requested()), [at_once]);
    }
}
