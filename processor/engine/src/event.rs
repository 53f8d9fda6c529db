//! A history event: a fact about a run, for ever.

use bytes::Bytes;

use crate::machine::operator::run_pause;
use crate::machine::{
    activity, attached_requests, cancel, child, close, external_workflow, marker, memo_and_search_attributes,
    signal, start, timer, update, workflow_task,
};
use crate::time::Timestamp;

/// One entry of a history. Field numbers are those of Temporal's `HistoryEvent`: the stored bytes are what an SDK reads.
#[derive(Clone, PartialEq, prost::Message)]
pub struct HistoryEvent {
    /// 1, 2, 3 ... without a gap; 0 while the event is buffered.
    #[prost(int64, tag = "1")]
    pub event_id: i64,
    /// When it happened; of a buffered event that is earlier than its neighbours'.
    #[prost(message, optional, tag = "2")]
    pub event_time: Option<Timestamp>,
    /// Derived from the attributes: [`Attributes::event_type`].
    #[prost(int32, tag = "3")]
    pub event_type: i32,
    /// Monotone within a history and never 0.
    #[prost(int64, tag = "5")]
    pub task_id: i64,
    /// An SDK that does not know the type may go on.
    #[prost(bool, tag = "300")]
    pub worker_may_ignore: bool,
    /// Summary and details, opaque.
    #[prost(bytes = "bytes", optional, tag = "301")]
    pub user_metadata: Option<Bytes>,
    /// Links, opaque.
    #[prost(bytes = "bytes", repeated, tag = "302")]
    pub links: Vec<Bytes>,
    /// Group markers of the command, opaque.
    #[prost(bytes = "bytes", repeated, tag = "304")]
    pub event_group_markers: Vec<Bytes>,
    /// What happened.
    #[prost(
        oneof = "Attributes",
        tags = "6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 48, 51, 52, 60, 63, 64"
    )]
    pub attributes: Option<Attributes>,
}

macro_rules! attributes {
    ($($variant:ident($message:ty) = $tag:literal, $event_type:literal;)*) => {
        /// What happened, by kind.
        #[derive(Clone, PartialEq, prost::Oneof)]
        #[allow(missing_docs)]
        pub enum Attributes { $(#[prost(message, tag = $tag)] $variant($message),)* }

        impl Attributes {
            /// The names of all event types.
            pub const NAMES: &[&str] = &[$(stringify!($variant)),*];

            /// Temporal's number of the event type.
            pub fn event_type(&self) -> i32 {
                match self { $(Self::$variant(_) => $event_type,)* }
            }

            /// An SDK that does not know the type may go on: workflow code never hears of it.
            pub fn may_be_ignored(&self) -> bool {
                matches!(self, Self::OptionsUpdated(_) | Self::WorkflowPaused(_) | Self::WorkflowUnpaused(_))
            }

            /// The event type's name, for transcripts and logs.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => stringify!($variant),)* }
            }
        }

        $(impl From<$message> for Attributes {
            fn from(message: $message) -> Self { Self::$variant(message) }
        })*
    };
}

attributes! {
    WorkflowStarted(Box<start::Started>) = "6", 1;
    WorkflowCompleted(close::Completed) = "7", 2;
    WorkflowFailed(close::Failed) = "8", 3;
    WorkflowTimedOut(close::TimedOut) = "9", 4;
    TaskScheduled(workflow_task::Scheduled) = "10", 5;
    TaskStarted(workflow_task::Started) = "11", 6;
    TaskCompleted(Box<workflow_task::Completed>) = "12", 7;
    TaskTimedOut(workflow_task::TimedOut) = "13", 8;
    TaskFailed(workflow_task::Failed) = "14", 9;
    ActivityScheduled(Box<activity::Scheduled>) = "15", 10;
    ActivityStarted(activity::Started) = "16", 11;
    ActivityCompleted(activity::Completed) = "17", 12;
    ActivityFailed(activity::Failed) = "18", 13;
    ActivityTimedOut(activity::TimedOut) = "19", 14;
    TimerStarted(timer::Started) = "20", 17;
    TimerFired(timer::Fired) = "21", 18;
    ActivityCancelRequested(activity::CancelRequested) = "22", 15;
    ActivityCanceled(activity::Canceled) = "23", 16;
    TimerCanceled(timer::Canceled) = "24", 19;
    MarkerRecorded(marker::Recorded) = "25", 25;
    WorkflowSignaled(signal::Signaled) = "26", 26;
    WorkflowTerminated(close::Terminated) = "27", 27;
    WorkflowCancelRequested(cancel::Requested) = "28", 20;
    WorkflowCanceled(close::Canceled) = "29", 21;
    CancelExternalInitiated(external_workflow::CancelInitiated) = "30", 22;
    CancelExternalFailed(external_workflow::CancelFailed) = "31", 23;
    ExternalCancelRequested(external_workflow::CancelRequested) = "32", 24;
    WorkflowContinuedAsNew(Box<close::ContinuedAsNew>) = "33", 28;
    StartChildInitiated(Box<child::Initiated>) = "34", 29;
    StartChildFailed(child::StartFailed) = "35", 30;
    ChildStarted(child::Started) = "36", 31;
    ChildCompleted(child::Completed) = "37", 32;
    ChildFailed(child::Failed) = "38", 33;
    ChildCanceled(child::Canceled) = "39", 34;
    ChildTimedOut(child::TimedOut) = "40", 35;
    ChildTerminated(child::Terminated) = "41", 36;
    SignalExternalInitiated(Box<external_workflow::SignalInitiated>) = "42", 37;
    SignalExternalFailed(external_workflow::SignalFailed) = "43", 38;
    ExternalSignaled(external_workflow::Signaled) = "44", 39;
    SearchAttributesUpserted(memo_and_search_attributes::SearchAttributesUpserted) = "45", 40;
    UpdateAccepted(update::Accepted) = "46", 41;
    UpdateCompleted(update::Completed) = "48", 43;
    UpdateAdmitted(update::Admitted) = "52", 47;
    PropertiesModified(memo_and_search_attributes::Modified) = "51", 46;
    OptionsUpdated(attached_requests::Updated) = "60", 55;
    WorkflowPaused(run_pause::RunPaused) = "63", 58;
    WorkflowUnpaused(run_pause::RunUnpaused) = "64", 59;
}

/// Those that are much larger than the others: an event that is none of them takes a third of the memory.
macro_rules! boxed {
    ($($variant:ident($message:ty);)*) => {
        $(impl From<$message> for Attributes {
            fn from(message: $message) -> Self { Self::$variant(Box::new(message)) }
        })*
    };
}

boxed! {
    WorkflowStarted(start::Started);
    ActivityScheduled(activity::Scheduled);
    WorkflowContinuedAsNew(close::ContinuedAsNew);
    StartChildInitiated(child::Initiated);
    TaskCompleted(workflow_task::Completed);
    SignalExternalInitiated(external_workflow::SignalInitiated);
}

/// Several events as one encoded `History` message: what a row of the history space holds.
#[derive(Clone, PartialEq, prost::Message)]
pub struct History {
    /// In the order of their ids.
    #[prost(message, repeated, tag = "1")]
    pub events: Vec<HistoryEvent>,
}
