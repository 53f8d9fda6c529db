//! The close event of a run that has a next run, for clients that do not follow to the next run by themselves.
//!
//! Java's client takes the close event of a failed attempt for the end of the workflow. Temporal's server shows it a
//! continued-as-new event instead, which it once wrote for retries and cron runs.

use bytes::Bytes;
use everlog_engine::event::{Attributes, History, HistoryEvent};
use everlog_engine::machine::close::ContinuedAsNew;
use prost::Message;

use crate::codec::failure;

/// Replaces the close event at the end of a history by a continued-as-new event, if there is a next run. Only the fields that lead to
/// the next run are set.
pub(crate) fn continued(history: Bytes) -> Bytes {
    let Ok(mut read) = History::decode(history.clone()) else { return history };
    let Some(event) = read.events.last_mut() else { return history };
    match event.attributes.as_ref().and_then(continuation) {
        Some(continuation) => {
            let continuation = Attributes::from(continuation);
            *event = HistoryEvent {
                event_id: event.event_id,
                event_time: event.event_time,
                event_type: continuation.event_type(),
                task_id: event.task_id,
                attributes: Some(continuation),
                ..HistoryEvent::default()
            };
            read.encode_to_vec().into()
        }
        None => history,
    }
}

fn continuation(closed: &Attributes) -> Option<ContinuedAsNew> {
    let (run_id, failure, last_completion_result) = match closed {
        Attributes::WorkflowCompleted(closed) => (&closed.new_execution_run_id, None, closed.result.clone()),
        Attributes::WorkflowFailed(closed) => (&closed.new_execution_run_id, closed.failure.clone(), None),
        Attributes::WorkflowTimedOut(closed) => {
            (&closed.new_execution_run_id, Some(failure::run_timeout()), None)
        }
        _nothing_follows => return None,
    };
    (!run_id.is_empty()).then(|| ContinuedAsNew {
        new_execution_run_id: run_id.clone(),
        failure,
        last_completion_result,
        ..ContinuedAsNew::default()
    })
}

#[cfg(test)]
mod tests {
    use everlog_engine::machine::close::{Completed, Failed, Terminated, TimedOut};
    use everlog_temporal_api::enums::TimeoutType;
    use everlog_temporal_api::failure::Failure;
    use everlog_temporal_api::failure::failure::FailureInfo;

    use super::*;

    const NEXT: &str = "0ebc0a91-be2f-49ca-a1c9-ee45956a0de4";

    /// An event, and the one that is shown in its place.
    fn shown(closed: impl Into<Attributes>) -> (HistoryEvent, HistoryEvent) {
        let attributes = closed.into();
        let event = HistoryEvent {
            event_id: 5,
            event_type: attributes.event_type(),
            task_id: 77,
            attributes: Some(attributes),
            ..HistoryEvent::default()
        };
        let history = History { events: vec![event.clone()] }.encode_to_vec();
        let mut read = History::decode(continued(history.into())).expect("a history");
        (event, read.events.pop().expect("its event"))
    }

    fn continuation_of(closed: impl Into<Attributes>) -> ContinuedAsNew {
        let (event, shown) = shown(closed);
        assert_eq!((shown.event_id, shown.event_type, shown.task_id), (event.event_id, 28, event.task_id));
        match shown.attributes {
            Some(Attributes::WorkflowContinuedAsNew(continuation)) => *continuation,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_attempt_that_another_follows_is_shown_as_continued() {
        let failure = Some(Bytes::from_static(b"a failure"));
        let failed =
            Failed { failure: failure.clone(), new_execution_run_id: NEXT.into(), ..Failed::default() };
        let expected = ContinuedAsNew { new_execution_run_id: NEXT.into(), ..ContinuedAsNew::default() };
        assert_eq!(continuation_of(failed), ContinuedAsNew { failure, ..expected.clone() });
        let result = Some(Bytes::from_static(b"a result"));
        let completed =
            Completed { result: result.clone(), new_execution_run_id: NEXT.into(), ..Completed::default() };
        assert_eq!(
            continuation_of(completed),
            ContinuedAsNew { last_completion_result: result, ..expected.clone() }
        );
        let timed_out =
            continuation_of(TimedOut { new_execution_run_id: NEXT.into(), ..TimedOut::default() });
        let failure = Failure::decode(timed_out.failure.clone().expect("a failure")).expect("readable");
        assert_eq!((failure.message.as_str(), failure.source.as_str()), ("workflow timeout", "Server"));
        let Some(FailureInfo::TimeoutFailureInfo(info)) = failure.failure_info else {
            panic!("{:?}", failure.failure_info);
        };
        assert_eq!(info.timeout_type, i32::from(TimeoutType::StartToClose));
        assert_eq!(ContinuedAsNew { failure: None, ..timed_out }, expected);
    }

    #[test]
    fn what_nothing_follows_is_shown_as_it_is() {
        for closed in [
            Attributes::from(Completed::default()),
            Failed::default().into(),
            TimedOut::default().into(),
            Terminated::default().into(),
        ] {
            let (event, shown) = shown(closed);
            assert_eq!(shown, event);
        }
        let nothing = Bytes::new();
        assert_eq!(continued(nothing.clone()), nothing);
    }
}
