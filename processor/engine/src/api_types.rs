//! The small words that commands, events and state share.
//!
//! Field numbers and enum values are those of Temporal's public protobuf, so that what a worker sends is what
//! the journal keeps, and what the history keeps is what a worker reads.

use bytes::Bytes;

use crate::time::Duration;

macro_rules! enumeration {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $value:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
        #[repr(i32)]
        #[allow(missing_docs)]
        pub enum $name { $($variant = $value),* }
    };
}

enumeration! {
    /// How a run stands.
    Status {
        Unspecified = 0, Running = 1, Completed = 2, Failed = 3, Canceled = 4, Terminated = 5,
        ContinuedAsNew = 6, TimedOut = 7, Paused = 8,
    }
}
enumeration! {
    /// Which deadline of a task passed.
    TimeoutType { Unspecified = 0, StartToClose = 1, ScheduleToStart = 2, ScheduleToClose = 3, Heartbeat = 4 }
}
enumeration! {
    /// Why a failed attempt is, or is not, followed by another.
    RetryState {
        Unspecified = 0, InProgress = 1, NonRetryableFailure = 2, Timeout = 3, MaximumAttemptsReached = 4,
        RetryPolicyNotSet = 5, InternalServerError = 6, CancelRequested = 7,
    }
}
enumeration! {
    /// What a start may do when the Workflow Id was used by a run that is closed.
    ReusePolicy {
        Unspecified = 0, AllowDuplicate = 1, AllowDuplicateFailedOnly = 2, RejectDuplicate = 3, TerminateIfRunning = 4,
    }
}
enumeration! {
    /// What a start does when the Workflow Id has an open run.
    ConflictPolicy { Unspecified = 0, Fail = 1, UseExisting = 2, TerminateExisting = 3 }
}
enumeration! {
    /// A queue that any worker of a type polls, or the private one of a worker that has the run in its cache.
    QueueKind { Unspecified = 0, Normal = 1, Sticky = 2 }
}
enumeration! {
    /// Why a worker is advised to continue as new.
    SuggestReason { Unspecified = 0, HistorySizeTooLarge = 1, TooManyHistoryEvents = 2, TooManyUpdates = 3 }
}
enumeration! {
    /// Whether a run stays with a version of its workers, or goes along with what is current.
    VersioningBehavior { Unspecified = 0, Pinned = 1, AutoUpgrade = 2 }
}
enumeration! {
    /// Who made a run that continues another.
    Initiator { Unspecified = 0, Workflow = 1, Retry = 2, Cron = 3 }
}
enumeration! {
    /// What becomes of a child when its parent's run closes.
    ParentClosePolicy { Unspecified = 0, Terminate = 1, Abandon = 2, RequestCancel = 3 }
}
enumeration! {
    /// Why a child was not started.
    ChildFailedCause { Unspecified = 0, WorkflowAlreadyExists = 1, NamespaceNotFound = 2 }
}
enumeration! {
    /// Why a signal to another workflow, or the request to cancel it, did not reach it.
    ExternalFailedCause { Unspecified = 0, NotFound = 1, NamespaceNotFound = 2, SignalCountLimitExceeded = 3 }
}
enumeration! {
    /// Why a workflow task failed.
    TaskFailedCause {
        Unspecified = 0, UnhandledCommand = 1, BadScheduleActivityAttributes = 2,
        BadRequestCancelActivityAttributes = 3, BadStartTimerAttributes = 4, BadCancelTimerAttributes = 5,
        BadRecordMarkerAttributes = 6, BadCompleteWorkflowExecutionAttributes = 7,
        BadFailWorkflowExecutionAttributes = 8, BadCancelWorkflowExecutionAttributes = 9,
        BadRequestCancelExternalWorkflowExecutionAttributes = 10, BadContinueAsNewAttributes = 11,
        StartTimerDuplicateId = 12, ResetStickyTaskQueue = 13, WorkflowWorkerUnhandledFailure = 14,
        BadSignalWorkflowExecutionAttributes = 15, BadStartChildExecutionAttributes = 16, ForceCloseCommand = 17,
        ResetWorkflow = 20, ScheduleActivityDuplicateId = 22, BadSearchAttributes = 23, NonDeterministicError = 24,
        BadModifyWorkflowPropertiesAttributes = 25, PendingChildWorkflowsLimitExceeded = 26,
        PendingActivitiesLimitExceeded = 27, PendingSignalsLimitExceeded = 28, PendingRequestCancelLimitExceeded = 29,
        BadUpdateWorkflowExecutionMessage = 30, BadScheduleNexusOperationAttributes = 32,
        BadRequestCancelNexusOperationAttributes = 34, FeatureDisabled = 35, GrpcMessageTooLarge = 36,
        PayloadsTooLarge = 37, WorkflowPauseRequestedBeforeTaskStarted = 39,
    }
}

/// The name under which a worker registered a workflow.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct WorkflowType {
    /// At most 1,000 bytes.
    #[prost(string, tag = "1")]
    pub name: String,
}

/// The name under which a worker registered an activity.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ActivityType {
    /// At most 1,000 bytes.
    #[prost(string, tag = "1")]
    pub name: String,
}

/// A run by its ids; an empty run id means the current run.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Execution {
    /// At most 1,000 bytes.
    #[prost(string, tag = "1")]
    pub workflow_id: String,
    /// A UUID in text, or empty.
    #[prost(string, tag = "2")]
    pub run_id: String,
}

/// Where tasks wait for a worker.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Message)]
pub struct TaskQueue {
    /// At most 1,000 bytes.
    #[prost(string, tag = "1")]
    pub name: String,
    /// A [`QueueKind`].
    #[prost(enumeration = "QueueKind", tag = "2")]
    pub kind: i32,
    /// Of a sticky queue: the normal queue of the same worker.
    #[prost(string, tag = "3")]
    pub normal_name: String,
}

impl TaskQueue {
    /// The normal queue of this name.
    pub fn normal(name: &str) -> Self {
        Self { name: name.into(), kind: QueueKind::Normal.into(), normal_name: String::new() }
    }
}

/// When and how often a failed attempt is made again.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RetryPolicy {
    /// Wait before the second attempt; 1 s where absent.
    #[prost(message, optional, tag = "1")]
    pub initial_interval: Option<Duration>,
    /// Factor from one wait to the next, at least 1; 2 where absent.
    #[prost(double, tag = "2")]
    pub backoff_coefficient: f64,
    /// The longest wait; 100 times the first where absent.
    #[prost(message, optional, tag = "3")]
    pub maximum_interval: Option<Duration>,
    /// Attempts in all; 0 means no limit.
    #[prost(int32, tag = "4")]
    pub maximum_attempts: i32,
    /// Types of application failures that are final.
    #[prost(string, repeated, tag = "5")]
    pub non_retryable_error_types: Vec<String>,
}

/// One entry of a map of opaque values (memo, search attributes, marker details).
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct MapEntry {
    /// The key.
    #[prost(string, tag = "1")]
    pub key: String,
    /// The value's encoded message, never looked into.
    #[prost(bytes = "bytes", tag = "2")]
    pub value: Bytes,
}

/// A memo or a set of search attributes: the map of field 1, each value opaque.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Fields {
    /// Entries as they were sent.
    #[prost(message, repeated, tag = "1")]
    pub entries: Vec<MapEntry>,
}
