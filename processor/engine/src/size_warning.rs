//! Marks: sizes beyond which somebody should hear of a run, long before a limit ends it or refuses what it is sent.

use bytes::Bytes;
use prost::encoding::message::encoded_len_repeated;

use crate::draft::{Change, Step};
use crate::event::Attributes;
use crate::machine::marker;
use crate::run::Run;
use crate::settings::Settings;

/// What there may be too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeWarning {
    /// Events of a history.
    Events,
    /// Bytes of a history.
    History,
    /// Bytes of a run's state.
    State,
    /// Bytes of a memo.
    Memo,
    /// Bytes of one payload field.
    Blob,
}

impl Step {
    /// The marks that the run has passed with this step, each with the size that is beyond it; `before` is the run as it
    /// stood, where there was one. A payload passes its mark whenever there is one that is larger.
    pub fn marks_passed(
        &self,
        before: Option<&Run>,
        settings: &Settings,
    ) -> impl Iterator<Item = (SizeWarning, i64)> {
        let same_memo = before.is_some_and(|before| before.properties.is_same(&self.run.properties));
        let memo = |run: &Run| if same_memo { 0 } else { memo_bytes(run) };
        let sizes = |run: &Run| [events(run), run.head.history_bytes, run.head.state_bytes, memo(run), 0];
        let stood = before.map_or([0; 5], sizes);
        let [events, history, state, memo, _] = sizes(&self.run);
        let stands = [
            (SizeWarning::Events, settings.history_events_warn, events),
            (SizeWarning::History, settings.history_bytes_warn, history),
            (SizeWarning::State, settings.state_bytes_warn, state),
            (SizeWarning::Memo, settings.memo_bytes_warn, memo),
            (SizeWarning::Blob, settings.blob_bytes_warn, self.largest_blob()),
        ];
        let passed = stands.into_iter().zip(stood).filter(|((_, most, now), before)| {
            // Settings of a release that did not know a mark say 0.
            *most > 0 && now > most && before <= most
        });
        passed.map(|((mark, _, now), _)| (mark, now))
    }

    /// Bytes of the largest payload field of what was written, and of what open activities have reported.
    fn largest_blob(&self) -> i64 {
        let written = self.events().filter_map(|event| event.attributes.as_ref()).map(largest);
        let reported = self.changes.iter().map(|change| match change {
            Change::Activity(activity) => longest([&activity.heartbeat_details]),
            _other => 0,
        });
        written.chain(reported).max().map_or(0, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX))
    }
}

fn events(run: &Run) -> i64 {
    run.head.next_event_id.saturating_sub(1)
}

/// Bytes of the memo as it is sent.
fn memo_bytes(run: &Run) -> i64 {
    i64::try_from(encoded_len_repeated(1, &run.properties.memo)).unwrap_or(i64::MAX)
}

/// Bytes of an event's largest payload field. Memo, search attributes and metadata are none: each has a limit of its own.
fn largest(attributes: &Attributes) -> usize {
    match attributes {
        Attributes::WorkflowStarted(event) => {
            longest([&event.input, &event.header, &event.continued_failure, &event.last_completion_result])
        }
        Attributes::WorkflowCompleted(event) => longest([&event.result]),
        Attributes::WorkflowFailed(event) => longest([&event.failure]),
        Attributes::WorkflowTerminated(event) => longest([&event.details]),
        Attributes::WorkflowCanceled(event) => longest([&event.details]),
        Attributes::WorkflowContinuedAsNew(event) => {
            longest([&event.input, &event.header, &event.failure, &event.last_completion_result])
        }
        Attributes::WorkflowSignaled(event) => longest([&event.input, &event.header]),
        Attributes::TaskFailed(event) => longest([&event.failure]),
        Attributes::ActivityScheduled(event) => longest([&event.input, &event.header]),
        Attributes::ActivityStarted(event) => longest([&event.last_failure]),
        Attributes::ActivityCompleted(event) => longest([&event.result]),
        Attributes::ActivityFailed(event) => longest([&event.failure]),
        Attributes::ActivityTimedOut(event) => longest([&event.failure]),
        Attributes::ActivityCanceled(event) => longest([&event.details]),
        Attributes::MarkerRecorded(event) => {
            longest([&event.header, &event.failure]).max(marker::bytes(&event.details))
        }
        Attributes::StartChildInitiated(event) => longest([&event.input, &event.header]),
        Attributes::ChildStarted(event) => longest([&event.header]),
        Attributes::ChildCompleted(event) => longest([&event.result]),
        Attributes::ChildFailed(event) => longest([&event.failure]),
        Attributes::ChildCanceled(event) => longest([&event.details]),
        Attributes::SignalExternalInitiated(event) => longest([&event.input, &event.header]),
        Attributes::UpdateAdmitted(event) => longest([&event.request]),
        Attributes::UpdateAccepted(event) => longest([&event.accepted_request]),
        Attributes::UpdateCompleted(event) => longest([&event.outcome]),
        Attributes::WorkflowTimedOut(_)
        | Attributes::WorkflowCancelRequested(_)
        | Attributes::TaskScheduled(_)
        | Attributes::TaskStarted(_)
        | Attributes::TaskCompleted(_)
        | Attributes::TaskTimedOut(_)
        | Attributes::ActivityCancelRequested(_)
        | Attributes::TimerStarted(_)
        | Attributes::TimerFired(_)
        | Attributes::TimerCanceled(_)
        | Attributes::CancelExternalInitiated(_)
        | Attributes::CancelExternalFailed(_)
        | Attributes::ExternalCancelRequested(_)
        | Attributes::StartChildFailed(_)
        | Attributes::ChildTimedOut(_)
        | Attributes::ChildTerminated(_)
        | Attributes::SignalExternalFailed(_)
        | Attributes::ExternalSignaled(_)
        | Attributes::SearchAttributesUpserted(_)
        | Attributes::PropertiesModified(_)
        | Attributes::OptionsUpdated(_)
        | Attributes::WorkflowPaused(_)
        | Attributes::WorkflowUnpaused(_) => 0,
    }
}

fn longest<const FIELDS: usize>(fields: [&Option<Bytes>; FIELDS]) -> usize {
    fields.into_iter().flatten().map(Bytes::len).max().unwrap_or(0)
}
