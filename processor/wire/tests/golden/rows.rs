//! A run with everything in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use everlog_engine::api_types::{MapEntry, ParentClosePolicy, Status, SuggestReason, WorkflowType};
use everlog_engine::event::HistoryEvent;
use everlog_engine::machine::activity::Activity;
use everlog_engine::machine::attached_requests::Attached;
use everlog_engine::machine::child::{Child, Parent};
use everlog_engine::machine::continuation::Chain;
use everlog_engine::machine::external_workflow::{Answered, External};
use everlog_engine::machine::parent_child::Opened;
use everlog_engine::machine::timer::Timer;
use everlog_engine::machine::update::{Done, Update};
use everlog_engine::machine::workflow_task::{Sticky, Task};
use everlog_engine::{CopyOnWrite, ExecutionInfo, Properties, Run, Start};

use crate::events::{execution, failure, map, points, policy, queue, samples, some};
use crate::records::parent;
use crate::schedules;

pub const RUN_ID: &str = "0b6f2f06-36cb-5b5e-a2a5-5c4c30f9b8d1";

pub fn sample() -> Run {
    let timer = Timer { timer_id: "t".into(), started_event_id: 12, fire_ms: 1_763_700_060_000 };
    let entry = |key: &str| MapEntry { key: key.into(), value: some(b"value") };
    let properties = Properties {
        memo: vec![entry("a"), entry("b")],
        search_attributes: vec![entry("c")],
        ..Properties::default()
    };
    Run {
        start: Arc::new(start()),
        head: head(),
        properties: properties.into(),
        activities: CopyOnWrite::from(BTreeMap::from([
            (9, Arc::new(activity())),
            (10, Arc::new(Activity { scheduled_event_id: 10, ..with_priority() })),
        ])),
        timers: CopyOnWrite::from(BTreeMap::from([("t".into(), timer)])),
        children: CopyOnWrite::from(BTreeMap::from([(13, Arc::new(child())), (17, Arc::new(late_child()))])),
        externals: CopyOnWrite::from(BTreeMap::from([
            (14, Arc::new(external())),
            (18, Arc::new(late_external())),
        ])),
        buffered: CopyOnWrite::from(vec![HistoryEvent {
            event_id: 0,
            task_id: 0,
            ..samples().remove("WorkflowSignaled").expect("there is a sample")
        }]),
        chain: Some(Arc::new(chain())),
        updates: CopyOnWrite::from(BTreeMap::from([
            ("update-1".into(), Arc::new(update())),
            ("update-2".into(), Arc::new(accepted_update())),
        ])),
        attached: CopyOnWrite::from(BTreeMap::from([(
            "start-2".into(),
            Attached { request_id: "start-2".into(), event_id: 16 },
        )])),
        schedule: Some(Arc::new(schedules::schedule(&start()))),
    }
}

/// What a run shows of itself, with builds.
pub fn built() -> Properties {
    Properties {
        reset_points: points().points,
        build_ids: vec!["build".into()],
        worker_version: Some(Bytes::from_static(b"\x0a\x05build")),
        ..Properties::default()
    }
}

fn child() -> Child {
    Child {
        initiated_event_id: 13,
        namespace: "shop".into(),
        namespace_id: "8a3c0000-0000-4000-8000-000000000001".into(),
        workflow_id: "parcel-1".into(),
        workflow_type: Some(WorkflowType { name: "Parcel".into() }),
        close_policy: ParentClosePolicy::Abandon.into(),
        run_id: RUN_ID.into(),
        started_event_id: 15,
        control: "control".into(),
        header: Some(some(b"header")),
        late: None,
    }
}

/// Its parent had closed when it heard of the child.
fn late_child() -> Child {
    let opened = Opened { initiated_event_id: 17, run_id: String::new(), cause: 1 };
    Child { initiated_event_id: 17, late: Some(opened), ..child() }
}

/// Its sender had closed when the answer came.
fn late_external() -> External {
    External {
        initiated_event_id: 18,
        late: Some(Answered { initiated_event_id: 18, cause: 1 }),
        ..external()
    }
}

fn external() -> External {
    External {
        initiated_event_id: 14,
        cancels: true,
        namespace: "shop".into(),
        namespace_id: "8a3c0000-0000-4000-8000-000000000001".into(),
        execution: execution("run"),
        control: "control".into(),
        late: None,
    }
}

/// Of a child's run.
pub fn of_parent() -> Start {
    Start { parent: Some(Box::new(parent())), ..start() }
}

fn update() -> Update {
    Update {
        update_id: "update-1".into(),
        number: 3,
        request: Some(some(b"request")),
        accepted_event_id: 0,
        this_run_only: true,
        patient: true,
        is_written: false,
    }
}

fn accepted_update() -> Update {
    Update { update_id: "update-2".into(), request: None, accepted_event_id: 15, ..update() }
}

/// Where the outcome of an update stands.
pub fn done() -> Done {
    Done { event_id: 9, batch_event_id: 7 }
}

/// Of a run that has had updates.
pub fn updated() -> ExecutionInfo {
    let task = Task {
        attempt: 1,
        speculative: true,
        updates_given: 4,
        updates_held: 2,
        ..head().task.unwrap_or_default()
    };
    ExecutionInfo { task: Some(task), updates_admitted: 4, updates_completed: 1, ..head() }
}

/// Of a run that a reset has made.
pub fn reset() -> Start {
    Start {
        original_run_id: "base".into(),
        former_run_id: "former".into(),
        reset_ms: 1_763_700_060_000,
        parent: Some(Box::new(Parent { original_run_id: "parent".into(), ..parent() })),
        ..start()
    }
}

/// Of a run that knows where in the journal it began.
pub fn begun() -> Start {
    Start { start_offset: 1_000_000, ..start() }
}

/// Of a run that knows where in the journal it closed.
pub fn closed() -> ExecutionInfo {
    ExecutionInfo { close_offset: 2_000_000, ..head() }
}

/// Of a run of which task after task fails.
pub fn failing() -> ExecutionInfo {
    let cause = everlog_engine::api_types::TaskFailedCause::NonDeterministicError;
    let task = Task { problems: 6, failed_cause: cause.into(), ..head().task.unwrap_or_default() };
    ExecutionInfo { task: Some(task), ..head() }
}

/// Of a run that was reset.
pub fn replaced() -> ExecutionInfo {
    ExecutionInfo { reset_run_id: "new".into(), reset_event_id: 4, is_replaced: true, ..head() }
}

/// An update that a reset has brought over.
pub fn written_update() -> Update {
    Update { is_written: true, ..update() }
}

/// Of a run that continues another.
pub fn continued() -> Start {
    Start { continued_run_id: "0c1d6b6a-6f0e-5c3c-9a36-6a4b7f1d2c3f".into(), ..start() }
}

/// Of a run whose run timeout was named.
pub fn named() -> Start {
    Start { run_timeout_ms: 0, names_run_timeout: true, ..start() }
}

fn start() -> Start {
    Start {
        namespace_id: "8a3c0000-0000-4000-8000-000000000001".into(),
        workflow_id: "order-1".into(),
        run_id: RUN_ID.into(),
        first_run_id: "2f1d6b6a-6f0e-5c3c-9a36-6a4b7f1d2c3e".into(),
        workflow_type: Some(WorkflowType { name: "Order".into() }),
        task_queue: "orders".into(),
        execution_timeout_ms: 3_600_000,
        run_timeout_ms: 600_000,
        task_timeout_ms: 10_000,
        start_ms: 1_763_700_000_000,
        execution_expires_ms: 1_763_703_600_000,
        run_expires_ms: 1_763_700_600_000,
        first_task_backoff_ms: 7_000,
        request_id: "start".into(),
        retention_ms: 86_400_000,
        user_metadata: Some(some(b"summary")),
        priority: Some(Bytes::from_static(b"\x08\x03")),
        chain_start_ms: 1_763_690_000_000,
        continued_run_id: String::new(),
        names_run_timeout: false,
        parent: None,
        ..Start::default()
    }
}

fn chain() -> Chain {
    Chain {
        retry_policy: Some(policy()),
        cron_schedule: "@daily".into(),
        attempt: 2,
        input: Some(some(b"input")),
        header: Some(map()),
        memo: Some(map()),
        search_attributes: Some(map()),
        last_completion_result: Some(some(b"result")),
        links: vec![some(b"link")],
    }
}

fn head() -> ExecutionInfo {
    let task = Task {
        scheduled_event_id: 20,
        started_event_id: 21,
        attempt: 3,
        written: true,
        queue: queue(),
        scheduled_ms: 1_763_700_010_000,
        first_scheduled_ms: 1_763_700_009_000,
        started_ms: 1_763_700_011_000,
        claim: 4_711,
        timeout_ms: 15_000,
        identity: "worker".into(),
        request_id: "poll".into(),
        suggest_reasons: vec![SuggestReason::TooManyHistoryEvents.into()],
        history_bytes: 3_000,
        ..Task::default()
    };
    ExecutionInfo {
        next_event_id: 22,
        history_bytes: 3_300,
        status: Status::Running.into(),
        close_ms: 1_763_700_099_000,
        previous_started_event_id: 17,
        task: Some(task),
        sticky: Some(Sticky { queue: "cache".into(), schedule_to_start_ms: 10_000 }),
        cancel_requested: true,
        signals: 2,
        close_attempted: true,
        backoff_until_ms: 1_763_700_007_000,
        transitions: 14,
        successor_run_id: "next".into(),
        state_bytes: 900,
        ..ExecutionInfo::default()
    }
}

fn activity() -> Activity {
    Activity {
        scheduled_event_id: 9,
        batch_event_id: 8,
        activity_id: "a".into(),
        activity_type: "Charge".into(),
        task_queue: "orders".into(),
        expires_ms: 1_763_700_600_000,
        schedule_to_start_ms: 60_000,
        start_to_close_ms: 10_000,
        heartbeat_timeout_ms: 3_000,
        retry_policy: Some(policy()),
        attempt: 2,
        first_scheduled_ms: 1_763_700_002_000,
        scheduled_ms: 1_763_700_005_000,
        backing_off: true,
        started_ms: 1_763_700_006_000,
        claim: 4_712,
        identity: "hand".into(),
        request_id: "poll".into(),
        heartbeat_details: Some(some(b"half")),
        heartbeat_ms: 1_763_700_007_000,
        cancel_requested_event_id: 11,
        last_failure: Some(failure()),
        ..Activity::default()
    }
}

/// With the fields that an activity once did not have.
fn with_priority() -> Activity {
    Activity {
        priority: Some(Bytes::from_static(b"\x08\x03")),
        last_attempt_ms: 1_763_700_004_000,
        retry_delay_ms: 1_000,
        ..Activity::default()
    }
}
