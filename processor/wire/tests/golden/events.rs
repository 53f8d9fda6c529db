//! One event of every type, with every field filled in.

use std::collections::BTreeMap;

use bytes::Bytes;
use everlog_engine::api_types::{
    ActivityType, ChildFailedCause, Execution, ExternalFailedCause, Initiator, MapEntry, ParentClosePolicy,
    QueueKind, RetryPolicy, RetryState, ReusePolicy, SuggestReason, TaskFailedCause, TaskQueue, TimeoutType,
    VersioningBehavior, WorkflowType,
};
use everlog_engine::event::{Attributes, HistoryEvent};
use everlog_engine::machine::operator::run_pause::{RunPaused, RunUnpaused};
use everlog_engine::machine::reset_points::{Point, Points};
use everlog_engine::machine::worker_versioning::{Override, Pinned, Version};
use everlog_engine::machine::{
    activity, attached_requests, cancel, child, close, external_workflow, marker, memo_and_search_attributes,
    signal, start, timer, update, workflow_task,
};
use everlog_engine::time::{Duration, Timestamp};

pub fn samples() -> BTreeMap<String, HistoryEvent> {
    let all = [workflow(), ends(), tasks(), activities(), activity_ends(), others()].concat();
    let all = all.into_iter().map(|attributes| (attributes.name().to_owned(), attributes));
    let grown = grown().into_iter().map(|attributes| (format!("{}.version", attributes.name()), attributes));
    let event = |(place, (name, attributes)): (usize, (String, Attributes))| {
        let event_id = place as i64 + 1;
        let event = HistoryEvent {
            event_id,
            event_time: Some(Timestamp { seconds: 1_763_700_000, nanos: 123_000_000 }),
            event_type: attributes.event_type(),
            task_id: event_id,
            worker_may_ignore: true,
            user_metadata: Some(some(b"metadata")),
            links: vec![some(b"link")],
            event_group_markers: vec![group()],
            attributes: Some(attributes),
        };
        (name, event)
    };
    let kin = kin().into_iter().map(|attributes| (attributes.name().to_owned(), attributes));
    let of_kin = of_kin().into_iter().map(|attributes| (format!("{}.kin", attributes.name()), attributes));
    let repeated = start::Started { attempt: 2, cron_schedule: "@daily".into(), ..Default::default() };
    let repeated = std::iter::once(("WorkflowStarted.repeated".to_owned(), repeated.into()));
    let followed = start::Started { prev_auto_reset_points: Some(points()), ..Default::default() };
    let followed = std::iter::once(("WorkflowStarted.points".to_owned(), followed.into()));
    let updates = updates().into_iter().map(|attributes| (attributes.name().to_owned(), attributes));
    let reset = workflow_task::Failed {
        cause: TaskFailedCause::ResetWorkflow.into(),
        base_run_id: "base".into(),
        new_run_id: "new".into(),
        fork_event_version: 1,
        ..Default::default()
    };
    let reset = std::iter::once(("TaskFailed.reset".to_owned(), reset.into()));
    let admitted = std::iter::once(("UpdateAdmitted".to_owned(), admitted().into()));
    let versioned = versioned().into_iter();
    let versioned = versioned.map(|attributes| (format!("{}.versioned", attributes.name()), attributes));
    let all = all.chain(grown).chain(kin).chain(of_kin).chain(repeated).chain(updates);
    let operators = of_operators().map(|(name, attributes)| (name.to_owned(), attributes));
    let all = all.chain(reset).chain(admitted).chain(followed).chain(versioned).chain(operators);
    all.enumerate().map(event).collect()
}

/// Where builds came in.
pub fn points() -> Points {
    let create_time = Some(Timestamp { seconds: 1_763_700_000, nanos: 0 });
    let point = Point {
        binary_checksum: "checksum".into(),
        run_id: "before".into(),
        first_workflow_task_completed_id: 4,
        create_time,
        expire_time: Some(Timestamp { seconds: 1_763_703_600, nanos: 0 }),
        resettable: true,
        build_id: "build".into(),
    };
    Points { points: vec![point] }
}

/// What operators do to a run, each with a name of its own.
fn of_operators() -> [(&'static str, Attributes); 3] {
    let identity = "operator".to_owned();
    let (reason, request_id) = ("a bad deployment".to_owned(), "request-1".to_owned());
    let updated = attached_requests::Updated {
        versioning_override: Some(overriding()),
        unset_versioning_override: true,
        identity: identity.clone(),
        priority: Some(Bytes::from_static(b"\x08\x03")),
        ..Default::default()
    };
    let paused =
        RunPaused { identity: identity.clone(), reason: reason.clone(), request_id: request_id.clone() };
    [
        ("WorkflowPaused", paused.into()),
        ("WorkflowUnpaused", RunUnpaused { identity, reason, request_id }.into()),
        ("OptionsUpdated.operator", updated.into()),
    ]
}

/// Events that once had no place for the version of a worker.
fn grown() -> Vec<Attributes> {
    let version = || Some(Bytes::from_static(b"\x0a\x05build"));
    let (binary_checksum, worker_version) = ("checksum".to_owned(), version());
    vec![
        workflow_task::Failed { cause: 24, binary_checksum, worker_version, ..Default::default() }.into(),
        activity::Completed { started_event_id: 6, worker_version: version(), ..Default::default() }.into(),
        activity::Failed { worker_version: version(), cause: 1, ..Default::default() }.into(),
        activity::Canceled { started_event_id: 6, worker_version: version(), ..Default::default() }.into(),
    ]
}

/// A version of a deployment.
pub fn version() -> Version {
    Version { build_id: "build".into(), deployment_name: "deployment".into() }
}

/// What keeps a run with it.
pub fn overriding() -> Override {
    Override { pinned: Some(Pinned { behavior: 1, version: Some(version()) }), auto_upgrade: false }
}

/// Events that once had no place for versions of workers.
fn versioned() -> Vec<Attributes> {
    vec![
        start::Started {
            versioning_override: Some(overriding()),
            inherited_pinned_version: Some(version()),
            ..Default::default()
        }
        .into(),
        workflow_task::Completed {
            versioning_behavior: VersioningBehavior::AutoUpgrade.into(),
            worker_deployment_name: "deployment".into(),
            deployment_version: Some(version()),
            ..Default::default()
        }
        .into(),
        activity::Scheduled { use_workflow_build_id: true, ..Default::default() }.into(),
        child::Initiated { inherit_build_id: true, ..Default::default() }.into(),
        close::ContinuedAsNew { inherit_build_id: true, ..Default::default() }.into(),
    ]
}

/// An opaque message: payloads, metadata, a link, each with a text in field 2 of their field 1.
pub fn some(text: &'static [u8]) -> Bytes {
    let length = u8::try_from(text.len()).expect("a short text");
    [&[0x0a, length + 2, 0x12, length], text].concat().into()
}

/// A map with one entry, as memo and search attributes are written.
pub fn map() -> Bytes {
    Bytes::from_static(b"\x0a\x0a\x0a\x03key\x12\x03\x12\x01v")
}

/// A group marker with a label's id.
pub fn group() -> Bytes {
    Bytes::from_static(b"\x0a\x07\x0a\x05group")
}

/// A failure with a message.
pub fn failure() -> Bytes {
    Bytes::from_static(b"\x0a\x04boom")
}

pub fn span(seconds: i64) -> Option<Duration> {
    Some(Duration { seconds, nanos: 5_000_000 })
}

pub fn queue() -> Option<TaskQueue> {
    Some(TaskQueue { name: "cache".into(), kind: QueueKind::Sticky.into(), normal_name: "orders".into() })
}

pub fn policy() -> RetryPolicy {
    RetryPolicy {
        initial_interval: span(1),
        backoff_coefficient: 2.5,
        maximum_interval: span(100),
        maximum_attempts: 7,
        non_retryable_error_types: vec!["Fatal".into(), "Final".into()],
    }
}

pub fn execution(run_id: &str) -> Option<Execution> {
    Some(Execution { workflow_id: "other".into(), run_id: run_id.into() })
}

fn workflow() -> Vec<Attributes> {
    let started = start::Started {
        workflow_type: Some(WorkflowType { name: "Order".into() }),
        task_queue: Some(TaskQueue::normal("orders")),
        input: Some(some(b"input")),
        workflow_execution_timeout: span(3_600),
        workflow_run_timeout: span(600),
        workflow_task_timeout: span(10),
        continued_execution_run_id: "before".into(),
        initiator: Initiator::Workflow.into(),
        continued_failure: Some(failure()),
        last_completion_result: Some(some(b"result")),
        original_execution_run_id: "this".into(),
        identity: "client".into(),
        first_execution_run_id: "first".into(),
        retry_policy: Some(policy()),
        attempt: 1,
        workflow_execution_expiration_time: Some(Timestamp { seconds: 1_763_703_600, nanos: 0 }),
        first_workflow_task_backoff: span(7),
        memo: Some(map()),
        search_attributes: Some(map()),
        header: Some(map()),
        workflow_id: "order-1".into(),
        root_workflow_execution: execution("root"),
        priority: Some(Bytes::from_static(b"\x08\x03")),
        eager_execution_accepted: true,
        cron_schedule: String::new(),
        ..start::Started::default()
    };
    let signaled = signal::Signaled {
        signal_name: "go".into(),
        input: Some(some(b"input")),
        identity: "client".into(),
        header: Some(map()),
        external_workflow_execution: execution("run"),
        request_id: "request".into(),
    };
    let requested = cancel::Requested {
        cause: "changed my mind".into(),
        external_workflow_execution: execution("run"),
        identity: "client".into(),
        ..cancel::Requested::default()
    };
    vec![started.into(), signaled.into(), requested.into()]
}

fn ends() -> Vec<Attributes> {
    let completed = close::Completed {
        result: Some(some(b"result")),
        workflow_task_completed_event_id: 4,
        new_execution_run_id: "next".into(),
    };
    let failed = close::Failed {
        failure: Some(failure()),
        retry_state: RetryState::RetryPolicyNotSet.into(),
        workflow_task_completed_event_id: 4,
        new_execution_run_id: "next".into(),
    };
    let timed_out =
        close::TimedOut { retry_state: RetryState::Timeout.into(), new_execution_run_id: "next".into() };
    let terminated = close::Terminated {
        reason: "enough".into(),
        details: Some(some(b"details")),
        identity: "operator".into(),
    };
    let canceled = close::Canceled { workflow_task_completed_event_id: 4, details: Some(some(b"details")) };
    let continued = close::ContinuedAsNew {
        new_execution_run_id: "next".into(),
        workflow_type: Some(WorkflowType { name: "Order".into() }),
        task_queue: Some(TaskQueue::normal("orders")),
        input: Some(some(b"input")),
        workflow_run_timeout: span(600),
        workflow_task_timeout: span(10),
        workflow_task_completed_event_id: 4,
        backoff_start_interval: span(7),
        initiator: Initiator::Workflow.into(),
        failure: Some(failure()),
        last_completion_result: Some(some(b"result")),
        header: Some(map()),
        memo: Some(map()),
        search_attributes: Some(map()),
        ..close::ContinuedAsNew::default()
    };
    vec![
        completed.into(),
        failed.into(),
        timed_out.into(),
        terminated.into(),
        canceled.into(),
        continued.into(),
    ]
}

fn tasks() -> Vec<Attributes> {
    let scheduled =
        workflow_task::Scheduled { task_queue: queue(), start_to_close_timeout: span(10), attempt: 2 };
    let started = workflow_task::Started {
        scheduled_event_id: 2,
        identity: "worker".into(),
        request_id: "poll".into(),
        suggest_continue_as_new: true,
        history_size_bytes: 5_000_000,
        worker_version: None,
        suggest_continue_as_new_reasons: vec![
            SuggestReason::HistorySizeTooLarge.into(),
            SuggestReason::TooManyHistoryEvents.into(),
        ],
    };
    let completed = workflow_task::Completed {
        scheduled_event_id: 2,
        started_event_id: 3,
        identity: "worker".into(),
        binary_checksum: "checksum".into(),
        worker_version: Some(Bytes::from_static(b"\x0a\x05build")),
        sdk_metadata: Some(Bytes::from_static(b"\x0a\x01\x05")),
        metering_metadata: Some(Bytes::from_static(b"\x68\x01")),
        ..workflow_task::Completed::default()
    };
    let timed_out = workflow_task::TimedOut {
        scheduled_event_id: 2,
        started_event_id: 3,
        timeout_type: TimeoutType::StartToClose.into(),
    };
    let failed = workflow_task::Failed {
        scheduled_event_id: 2,
        started_event_id: 3,
        cause: TaskFailedCause::NonDeterministicError.into(),
        failure: Some(failure()),
        identity: "worker".into(),
        ..Default::default()
    };
    vec![scheduled.into(), started.into(), completed.into(), timed_out.into(), failed.into()]
}

fn activities() -> Vec<Attributes> {
    let scheduled = activity::Scheduled {
        activity_id: "a".into(),
        activity_type: Some(ActivityType { name: "Charge".into() }),
        task_queue: Some(TaskQueue::normal("orders")),
        header: Some(map()),
        input: Some(some(b"input")),
        schedule_to_close_timeout: span(600),
        schedule_to_start_timeout: span(60),
        start_to_close_timeout: span(10),
        heartbeat_timeout: span(3),
        workflow_task_completed_event_id: 4,
        retry_policy: Some(policy()),
        priority: Some(Bytes::from_static(b"\x08\x03")),
        ..activity::Scheduled::default()
    };
    let started = activity::Started {
        scheduled_event_id: 5,
        identity: "hand".into(),
        request_id: "poll".into(),
        attempt: 3,
        last_failure: Some(failure()),
    };
    let requested = activity::CancelRequested { scheduled_event_id: 5, workflow_task_completed_event_id: 4 };
    vec![scheduled.into(), started.into(), requested.into()]
}

fn activity_ends() -> Vec<Attributes> {
    let completed = activity::Completed {
        result: Some(some(b"result")),
        scheduled_event_id: 5,
        started_event_id: 6,
        identity: "hand".into(),
        worker_version: None,
    };
    let failed = activity::Failed {
        failure: Some(failure()),
        scheduled_event_id: 5,
        started_event_id: 6,
        identity: "hand".into(),
        retry_state: RetryState::MaximumAttemptsReached.into(),
        ..Default::default()
    };
    let timed_out = activity::TimedOut {
        failure: Some(failure()),
        scheduled_event_id: 5,
        started_event_id: 6,
        retry_state: RetryState::NonRetryableFailure.into(),
    };
    let canceled = activity::Canceled {
        details: Some(some(b"details")),
        latest_cancel_requested_event_id: 7,
        scheduled_event_id: 5,
        started_event_id: 6,
        identity: "hand".into(),
        worker_version: None,
    };
    vec![completed.into(), failed.into(), timed_out.into(), canceled.into()]
}

fn others() -> Vec<Attributes> {
    let started = timer::Started {
        timer_id: "t".into(),
        start_to_fire_timeout: span(60),
        workflow_task_completed_event_id: 4,
    };
    let canceled = timer::Canceled {
        timer_id: "t".into(),
        started_event_id: 5,
        workflow_task_completed_event_id: 4,
        identity: "worker".into(),
    };
    let recorded = marker::Recorded {
        marker_name: "core_local_activity".into(),
        details: vec![MapEntry { key: "data".into(), value: some(b"payload") }],
        workflow_task_completed_event_id: 4,
        header: Some(map()),
        failure: Some(failure()),
    };
    let upserted = memo_and_search_attributes::SearchAttributesUpserted {
        workflow_task_completed_event_id: 4,
        search_attributes: Some(map()),
    };
    let modified = memo_and_search_attributes::Modified {
        workflow_task_completed_event_id: 4,
        upserted_memo: Some(map()),
    };
    vec![
        started.into(),
        timer::Fired { timer_id: "t".into(), started_event_id: 5 }.into(),
        canceled.into(),
        recorded.into(),
        upserted.into(),
        modified.into(),
    ]
}

/// Events that once had no place for a parent.
fn of_kin() -> Vec<Attributes> {
    let started = start::Started {
        parent_workflow_namespace: "shop".into(),
        parent_workflow_execution: execution("parent"),
        parent_initiated_event_id: 5,
        parent_workflow_namespace_id: NAMESPACE_ID.into(),
        ..start::Started::default()
    };
    let requested = cancel::Requested { external_initiated_event_id: 5, ..cancel::Requested::default() };
    vec![started.into(), requested.into()]
}

const NAMESPACE_ID: &str = "8a3c0000-0000-4000-8000-000000000001";

/// What passes between workflows.
fn kin() -> Vec<Attributes> {
    let (namespace, namespace_id) = ("shop".to_owned(), NAMESPACE_ID.to_owned());
    let (workflow_type, control) = (Some(WorkflowType { name: "Parcel".into() }), "control".to_owned());
    let initiated = child::Initiated {
        namespace: namespace.clone(),
        workflow_id: "parcel-1".into(),
        workflow_type: workflow_type.clone(),
        task_queue: Some(TaskQueue::normal("parcels")),
        input: Some(some(b"input")),
        workflow_execution_timeout: span(3_600),
        workflow_run_timeout: span(600),
        workflow_task_timeout: span(10),
        parent_close_policy: ParentClosePolicy::Abandon.into(),
        control: control.clone(),
        workflow_task_completed_event_id: 4,
        workflow_id_reuse_policy: ReusePolicy::RejectDuplicate.into(),
        retry_policy: Some(policy()),
        cron_schedule: "@daily".into(),
        header: Some(map()),
        memo: Some(map()),
        search_attributes: Some(map()),
        namespace_id: namespace_id.clone(),
        priority: Some(Bytes::from_static(b"\x08\x03")),
        ..child::Initiated::default()
    };
    let failed = child::StartFailed {
        namespace: namespace.clone(),
        workflow_id: "parcel-1".into(),
        workflow_type: workflow_type.clone(),
        cause: ChildFailedCause::WorkflowAlreadyExists.into(),
        control: control.clone(),
        initiated_event_id: 5,
        namespace_id: namespace_id.clone(),
    };
    let started = child::Started {
        namespace: namespace.clone(),
        initiated_event_id: 5,
        workflow_execution: execution("child"),
        workflow_type: workflow_type.clone(),
        header: Some(map()),
        namespace_id: namespace_id.clone(),
    };
    macro_rules! closed {
        ($name:ident $(, $field:ident = $value:expr)*) => {
            child::$name {
                namespace: namespace.clone(),
                namespace_id: namespace_id.clone(),
                workflow_execution: execution("child"),
                workflow_type: workflow_type.clone(),
                initiated_event_id: 5,
                started_event_id: 6,
                $($field: $value,)*
            }
            .into()
        };
    }
    let retry_state = RetryState::MaximumAttemptsReached.into();
    let mut all = vec![initiated.into(), failed.into(), started.into()];
    all.extend([
        closed!(Completed, result = Some(some(b"result"))),
        closed!(Failed, failure = Some(failure()), retry_state = retry_state),
        closed!(Canceled, details = Some(some(b"details"))),
        closed!(TimedOut, retry_state = retry_state),
        closed!(Terminated),
    ]);
    all.extend(externals());
    all
}

fn externals() -> Vec<Attributes> {
    let (namespace, namespace_id) = ("shop".to_owned(), NAMESPACE_ID.to_owned());
    let (to, control) = (execution("run"), "control".to_owned());
    let signal = external_workflow::SignalInitiated {
        workflow_task_completed_event_id: 4,
        namespace: namespace.clone(),
        workflow_execution: to.clone(),
        signal_name: "go".into(),
        input: Some(some(b"input")),
        control: control.clone(),
        child_workflow_only: true,
        header: Some(map()),
        namespace_id: namespace_id.clone(),
    };
    let signal_failed = external_workflow::SignalFailed {
        cause: ExternalFailedCause::SignalCountLimitExceeded.into(),
        namespace: namespace.clone(),
        workflow_execution: to.clone(),
        initiated_event_id: 5,
        control: control.clone(),
        namespace_id: namespace_id.clone(),
    };
    let signaled = external_workflow::Signaled {
        initiated_event_id: 5,
        namespace: namespace.clone(),
        workflow_execution: to.clone(),
        control: control.clone(),
        namespace_id: namespace_id.clone(),
    };
    let cancel = external_workflow::CancelInitiated {
        workflow_task_completed_event_id: 4,
        namespace: namespace.clone(),
        workflow_execution: to.clone(),
        control: control.clone(),
        child_workflow_only: true,
        reason: "enough".into(),
        namespace_id: namespace_id.clone(),
    };
    let cancel_failed = external_workflow::CancelFailed {
        cause: ExternalFailedCause::NotFound.into(),
        namespace: namespace.clone(),
        workflow_execution: to.clone(),
        initiated_event_id: 5,
        control,
        namespace_id: namespace_id.clone(),
    };
    let requested = external_workflow::CancelRequested {
        initiated_event_id: 5,
        namespace,
        workflow_execution: to,
        namespace_id,
    };
    vec![
        signal.into(),
        signal_failed.into(),
        signaled.into(),
        cancel.into(),
        cancel_failed.into(),
        requested.into(),
    ]
}

/// An update as a reset brings it over.
fn admitted() -> update::Admitted {
    let request = Bytes::from_static(
        b"\x0a\x12\x0a\x08update-1\x12\x06client\x12\x0d\x12\x03add\x1a\x06\x0a\x04\x12\x02in",
    );
    update::Admitted { request: Some(request), origin: 1 }
}

/// They came behind the others, and so do their ids.
fn updates() -> Vec<Attributes> {
    let accepted = update::Accepted {
        protocol_instance_id: "update-1".into(),
        accepted_request_message_id: "update-1/request".into(),
        accepted_request_sequencing_event_id: 7,
        accepted_request: Some(Bytes::from_static(
            b"\x0a\x12\x0a\x08update-1\x12\x06client\x12\x0d\x12\x03add\x1a\x06\x0a\x04\x12\x02in",
        )),
    };
    let completed = update::Completed {
        meta: Some(update::Meta { update_id: "update-1".into(), identity: "client".into() }),
        outcome: Some(Bytes::from_static(b"\x0a\x07\x0a\x05\x12\x03out")),
        accepted_event_id: 8,
    };
    let options = attached_requests::Updated { attached_request_id: "start-2".into(), ..Default::default() };
    vec![accepted.into(), completed.into(), options.into()]
}
