//! One journal record of every kind, with every field filled in.

use std::collections::BTreeMap;

use bytes::Bytes;
use everlog_engine::api_types::{
    ActivityType, ChildFailedCause, ConflictPolicy, ExternalFailedCause, Initiator, MapEntry,
    ParentClosePolicy, RetryState, ReusePolicy, Status, TaskFailedCause, TaskQueue, WorkflowType,
};
use everlog_engine::command::{Command, CommandAttributes as CommandOrder, Later};
use everlog_engine::machine::attached_requests::OnConflict;
use everlog_engine::machine::signal::Signal;
use everlog_engine::machine::workflow_task::{self, Sticky};
use everlog_engine::machine::{
    activity, activity_attempt, cancel, child, close, external_workflow, fire_timers, marker,
    memo_and_search_attributes, parent_child, reset, start, timer, update, workflow_task_completed,
};
use everlog_engine::request::{Delete, Request, RequestRecord, ResetSticky, Sender};
use everlog_wire::public_command::{DeliverDelayed, PublicCommand, SourcePosition};
use everlog_wire::{
    Barrier, Body, LevelRaised, MessageCursor, NamespaceDeleted, OutboxMessage, Owner, Position, Record,
};

use crate::events::{execution, failure, group, map, policy, some, span};
use crate::public_samples::{forwarded, source, unreadable};
use crate::rows::RUN_ID;
use crate::{operator_calls, schedules, settings, versioned};

pub fn samples() -> BTreeMap<String, Record> {
    let mut samples = BTreeMap::from([
        ("Owner".to_owned(), Record::new(0, Body::Owner(owner()))),
        ("Owner.more".to_owned(), {
            let owner = Owner { instance: vec![1, 2, 3].into(), ..owner() };
            Record { serial: 4, ..Record::new(0, Body::Owner(owner)) }
        }),
        (
            "Owner.level".to_owned(),
            Record::new(0, Body::Owner(Owner { instance: vec![1, 2, 3].into(), level: 1, ..owner() })),
        ),
        ("Barrier".to_owned(), Record { serial: 5, ..Record::new(7, Body::Barrier(Barrier {})) }),
        ("Forwarded".to_owned(), Record::new(0, Body::PublicCommand(forwarded()))),
        ("Unreadable".to_owned(), Record::new(0, Body::InvalidCommand(unreadable()))),
        ("Forwarded.more".to_owned(), {
            let source = Some(SourcePosition { follows: 1_230, ..source() });
            Record::new(0, Body::PublicCommand(PublicCommand { source, ..forwarded() }))
        }),
        ("Deliver".to_owned(), Record::new(7, Body::DeliverDelayed(DeliverDelayed { row: some(b"row") }))),
        ("Letter".to_owned(), Record::new(0, Body::OutboxMessage(letter()))),
        ("Letter.more".to_owned(), {
            Record::new(0, Body::OutboxMessage(OutboxMessage { sender_applied: 4_711, ..letter() }))
        }),
        ("Removal".to_owned(), {
            let namespace_id = "8a3c0000-0000-4000-8000-000000000001".into();
            Record::new(7, Body::NamespaceDeleted(NamespaceDeleted { namespace_id }))
        }),
        ("Level".to_owned(), Record::new(7, Body::Level(LevelRaised { level: 6 }))),
    ]);
    samples.extend(settings::samples());
    let orders = orders().into_iter().chain(letters()).map(|order| (name(&order).to_owned(), order));
    let grown = grown().into_iter().map(|order| (format!("{}.more", name(&order)), order));
    let complete =
        workflow_task_completed::Complete { commands: to_others(), namespace: "shop".into(), ..complete() };
    let kin = [
        ("CompleteTask.others".to_owned(), Request::CompleteTask(Box::new(complete))),
        (
            "Start.child".to_owned(),
            Request::Start(Box::new(start::Begin { parent: Some(Box::new(parent())), ..begin() })),
        ),
    ];
    let updates = updates().into_iter().map(|order| (format!("{}.update", name(&order)), order));
    let found = found().into_iter().map(|order| (format!("{}.found", name(&order)), order));
    let strange = strangers().map(|(what, order)| (format!("CompleteTask.{what}"), order));
    let versioned =
        versioned::orders().into_iter().map(|order| (format!("{}.versioned", name(&order)), order));
    let scheduled = schedules::orders().into_iter().map(|order| (name(&order).to_owned(), order));
    let watched = ("Start.watched".to_owned(), schedules::watched_start());
    let operators = operator_calls::orders().into_iter().map(|order| (name(&order).to_owned(), order));
    let more = operator_calls::grown().into_iter().map(|order| (format!("{}.operator", name(&order)), order));
    let later = updates.chain(found).chain(strange).chain(versioned).chain(scheduled).chain([watched]);
    let later = later.chain(operators).chain(more);
    for (name, order) in orders.chain(grown).chain(kin).chain(later) {
        let input = RequestRecord {
            namespace_id: "8a3c0000-0000-4000-8000-000000000001".into(),
            workflow_id: "order-1".into(),
            run_id: RUN_ID.into(),
            sender: None,
            request: Some(order),
        };
        samples.insert(name, Record::new(7, Body::Input(input)));
    }
    samples
}

fn owner() -> Owner {
    Owner { node: "node-1".into(), ..Owner::default() }
}

fn letter() -> OutboxMessage {
    let sender = Sender {
        namespace_id: "8a3c0000-0000-4000-8000-000000000001".into(),
        workflow_id: "order-1".into(),
        run_id: RUN_ID.into(),
        initiated_event_id: 5,
        child_only: true,
        original_run_id: String::new(),
    };
    let input = RequestRecord {
        namespace_id: "8a3c0000-0000-4000-8000-000000000001".into(),
        workflow_id: "parcel-1".into(),
        run_id: RUN_ID.into(),
        sender: Some(sender),
        request: Some(Request::Signal(signal())),
    };
    OutboxMessage { from: 3, number: 17, input: Some(input), sender_applied: 0 }
}

/// Commands for other workflows.
fn to_others() -> Vec<Command> {
    let child = child::Start {
        namespace: "shop".into(),
        workflow_id: "parcel-1".into(),
        workflow_type: Some(WorkflowType { name: "Parcel".into() }),
        task_queue: Some(TaskQueue::normal("parcels")),
        input: Some(some(b"input")),
        workflow_execution_timeout: span(3_600),
        workflow_run_timeout: span(600),
        workflow_task_timeout: span(10),
        parent_close_policy: ParentClosePolicy::Abandon.into(),
        control: "control".into(),
        workflow_id_reuse_policy: ReusePolicy::RejectDuplicate.into(),
        retry_policy: Some(policy()),
        cron_schedule: "@daily".into(),
        header: Some(map()),
        memo: Some(map()),
        search_attributes: Some(map()),
        priority: Some(Bytes::from_static(b"\x08\x03")),
        ..child::Start::default()
    };
    let signal = external_workflow::SignalOther {
        namespace: "shop".into(),
        execution: execution(RUN_ID),
        signal_name: "go".into(),
        input: Some(some(b"input")),
        control: "control".into(),
        child_workflow_only: true,
        header: Some(map()),
    };
    let cancel = external_workflow::CancelOther {
        namespace: "shop".into(),
        workflow_id: "parcel-1".into(),
        run_id: RUN_ID.into(),
        control: "control".into(),
        child_workflow_only: true,
        reason: "enough".into(),
    };
    let orders = [
        CommandOrder::StartChild(Box::new(child)),
        CommandOrder::SignalExternal(Box::new(signal)),
        CommandOrder::RequestCancelExternal(Box::new(cancel)),
    ];
    let command = |order: CommandOrder| Command {
        command_type: order.command_type(),
        order: Some(order),
        ..Command::default()
    };
    orders.into_iter().map(command).collect()
}

pub fn parent() -> child::Parent {
    child::Parent {
        namespace: "shop".into(),
        namespace_id: "8a3c0000-0000-4000-8000-000000000001".into(),
        workflow_id: "order-1".into(),
        run_id: RUN_ID.into(),
        initiated_event_id: 5,
        root: execution("root"),
        original_run_id: String::new(),
    }
}

/// Orders with the fields that they once did not have.
fn grown() -> Vec<Request> {
    let version = || Some(Bytes::from_static(b"\x0a\x05build"));
    let (binary_checksum, worker_version) = ("checksum".to_owned(), version());
    let again = close::ContinueAsNew { initial_versioning_behavior: 1, ..Default::default() };
    let again = CommandOrder::ContinueAsNew(Box::new(again));
    let again = Command { command_type: again.command_type(), order: Some(again), ..Default::default() };
    vec![
        Request::Start(Box::new(start::Begin {
            retry_policy: Some(policy()),
            cron_schedule: "@daily".into(),
            ..Default::default()
        })),
        Request::Terminate(close::Terminate { links: vec![some(b"link")], ..Default::default() }),
        Request::FailTask(workflow_task::Fail { binary_checksum, worker_version, ..Default::default() }),
        Request::CompleteTask(Box::new(workflow_task_completed::Complete {
            commands: vec![again],
            ..Default::default()
        })),
        Request::CompleteActivity(activity_attempt::Complete {
            worker_version: version(),
            ..Default::default()
        }),
        Request::FailActivity(activity_attempt::Fail {
            worker_version: version(),
            cause: 1,
            ..Default::default()
        }),
        Request::CancelActivity(activity_attempt::Cancel { worker_version: version(), ..Default::default() }),
    ]
}

/// Orders with what they say of updates.
fn updates() -> Vec<Request> {
    let message = update::Message {
        id: "update-1/accept".into(),
        protocol_instance_id: "update-1".into(),
        body: Some(update::Body { type_url: "type.googleapis.com/x".into(), value: some(b"body") }),
    };
    let refer = CommandOrder::ProtocolMessage(update::Refer { message_id: "update-1/accept".into() });
    let refer = Command { command_type: refer.command_type(), order: Some(refer), ..Default::default() };
    vec![
        Request::Start(Box::new(start::Begin { update: Some(admit()), ..Default::default() })),
        Request::CompleteTask(Box::new(workflow_task_completed::Complete {
            commands: vec![refer],
            messages: vec![message],
            takes_events_again: true,
            ..Default::default()
        })),
    ]
}

/// Orders with what was found of ids and attributes.
fn found() -> Vec<Request> {
    let on_conflict = Some(OnConflict { request_id: true, links: true });
    let bad =
        workflow_task_completed::ValidationFailure { command: 1, reason: "of another type".into(), fault: 0 };
    vec![
        Request::Start(Box::new(start::Begin { on_conflict, ..Default::default() })),
        Request::CompleteTask(Box::new(workflow_task_completed::Complete {
            findings: vec![bad],
            ..Default::default()
        })),
    ]
}

/// Completions with what was found of values and of namespaces.
fn strangers() -> impl Iterator<Item = (&'static str, Request)> {
    let of = |fault: workflow_task_completed::Fault, reason: &str| {
        let found = workflow_task_completed::ValidationFailure {
            command: 2,
            reason: reason.into(),
            fault: fault.into(),
        };
        Request::CompleteTask(Box::new(workflow_task_completed::Complete {
            findings: vec![found],
            ..Default::default()
        }))
    };
    let values =
        of(workflow_task_completed::Fault::Values, "RunId attribute can't be set in SearchAttributes");
    [("values", values), ("stranger", of(workflow_task_completed::Fault::Namespace, "nowhere"))].into_iter()
}

/// A new kind of order does not compile here: give it a name, and a sample in [`orders`].
fn name(order: &Request) -> &'static str {
    match order {
        Request::Start(_) => "Start",
        Request::Signal(_) => "Signal",
        Request::Cancel(_) => "Cancel",
        Request::Terminate(_) => "Terminate",
        Request::ClaimTask(_) => "ClaimTask",
        Request::CompleteTask(_) => "CompleteTask",
        Request::FailTask(_) => "FailTask",
        Request::ReleaseTask(_) => "ReleaseTask",
        Request::ClaimActivity(_) => "ClaimActivity",
        Request::CompleteActivity(_) => "CompleteActivity",
        Request::FailActivity(_) => "FailActivity",
        Request::CancelActivity(_) => "CancelActivity",
        Request::HeartbeatActivity(_) => "HeartbeatActivity",
        Request::ReleaseActivity(_) => "ReleaseActivity",
        Request::FireTimers(_) => "Wake",
        Request::ResetSticky(_) => "ResetSticky",
        Request::Update(_) => "Update",
        Request::ChildOpened(_) => "ChildOpened",
        Request::BeginChild(_) => "BeginChild",
        Request::ChildClosed(_) => "ChildClosed",
        Request::ExternalAnswered(_) => "ExternalAnswered",
        Request::Delete(_) => "Delete",
        Request::Reset(_) => "Reset",
        Request::CreateSchedule(_) => "CreateSchedule",
        Request::UpdateSchedule(_) => "UpdateSchedule",
        Request::PatchSchedule(_) => "PatchSchedule",
        Request::DeleteSchedule(_) => "DeleteSchedule",
        Request::ScheduleActionOpened(_) => "ScheduleActionOpened",
        Request::ScheduleActionClosed(_) => "ScheduleActionClosed",
        Request::PauseActivity(_) => "PauseActivity",
        Request::UnpauseActivity(_) => "UnpauseActivity",
        Request::ResetActivity(_) => "ResetActivity",
        Request::UpdateActivityOptions(_) => "UpdateActivityOptions",
        Request::PauseRun(_) => "PauseRun",
        Request::UnpauseRun(_) => "UnpauseRun",
        Request::UpdateRunOptions(_) => "UpdateRunOptions",
    }
}

/// Letters that nothing but a run sends.
fn letters() -> Vec<Request> {
    vec![
        Request::ChildOpened(parent_child::Opened {
            initiated_event_id: 5,
            run_id: RUN_ID.into(),
            cause: ChildFailedCause::WorkflowAlreadyExists.into(),
        }),
        Request::BeginChild(parent_child::Begin {}),
        Request::ChildClosed(parent_child::Closed {
            initiated_event_id: 5,
            run_id: RUN_ID.into(),
            status: Status::Failed.into(),
            payload: Some(failure()),
            retry_state: RetryState::MaximumAttemptsReached.into(),
            workflow_type: Some(WorkflowType { name: "Parcel".into() }),
        }),
        Request::ExternalAnswered(external_workflow::Answered {
            initiated_event_id: 5,
            cause: ExternalFailedCause::NotFound.into(),
        }),
    ]
}

fn orders() -> Vec<Request> {
    let (token, target) = (Some(token()), Some(target()));
    let (identity, poll_id) = ("worker".to_owned(), "poll".to_owned());
    let blob = Some(some(b"blob"));
    vec![
        Request::Start(Box::new(begin())),
        Request::Signal(signal()),
        Request::Cancel(cancel::Request {
            reason: "changed my mind".into(),
            identity: identity.clone(),
            first_run_id: "first".into(),
            links: vec![some(b"link")],
        }),
        Request::Terminate(close::Terminate {
            reason: "enough".into(),
            details: blob.clone(),
            identity: identity.clone(),
            first_run_id: "first".into(),
            links: Vec::new(),
        }),
        Request::ClaimTask(workflow_task::Claim {
            scheduled_event_id: 2,
            attempt: 1,
            sticky: true,
            identity: identity.clone(),
            poll_id: poll_id.clone(),
            stamp: 0,
        }),
        Request::CompleteTask(Box::new(complete())),
        Request::FailTask(workflow_task::Fail {
            token: token.clone(),
            cause: TaskFailedCause::NonDeterministicError.into(),
            failure: Some(failure()),
            identity: identity.clone(),
            ..Default::default()
        }),
        Request::ReleaseTask(workflow_task::Release { token }),
        Request::ClaimActivity(claim(identity.clone(), poll_id)),
        Request::CompleteActivity(activity_attempt::Complete {
            target: target.clone(),
            result: blob.clone(),
            identity: identity.clone(),
            worker_version: None,
        }),
        Request::FailActivity(activity_attempt::Fail {
            target: target.clone(),
            failure: Some(failure()),
            identity: identity.clone(),
            last_heartbeat_details: blob.clone(),
            ..Default::default()
        }),
        Request::CancelActivity(activity_attempt::Cancel {
            target: target.clone(),
            details: blob.clone(),
            identity,
            worker_version: None,
        }),
        Request::HeartbeatActivity(activity_attempt::Heartbeat { target: target.clone(), details: blob }),
        Request::ReleaseActivity(activity_attempt::Release { target }),
        Request::FireTimers(fire_timers::FireTimers {}),
        Request::ResetSticky(ResetSticky {}),
        Request::Delete(Delete {}),
        Request::Update(admit()),
        Request::Reset(reset()),
    ]
}

fn claim(identity: String, poll_id: String) -> activity_attempt::Claim {
    activity_attempt::Claim { scheduled_event_id: 5, attempt: 2, identity, poll_id, stamp: 0 }
}

fn reset() -> reset::Reset {
    reset::Reset {
        finish_event_id: 4,
        reason: "again".into(),
        request_id: "reset-1".into(),
        without_signals: true,
        without_updates: true,
        without_options: false,
        options: None,
    }
}

pub fn token() -> workflow_task::Token {
    workflow_task::Token { scheduled_event_id: 2, attempt: 3, claim: 4_711 }
}

pub fn target() -> activity_attempt::Target {
    activity_attempt::Target { scheduled_event_id: 5, attempt: 2, claim: 4_712, activity_id: "a".into() }
}

pub fn signal() -> Signal {
    Signal {
        name: "go".into(),
        input: Some(some(b"input")),
        identity: "client".into(),
        header: Some(map()),
        request_id: "signal-1".into(),
        links: vec![some(b"link")],
    }
}

fn begin() -> start::Begin {
    start::Begin {
        request_id: "start".into(),
        workflow_type: "Order".into(),
        task_queue: "orders".into(),
        input: Some(some(b"input")),
        execution_timeout_ms: 3_600_000,
        run_timeout_ms: 600_000,
        task_timeout_ms: 10_000,
        identity: "client".into(),
        memo: Some(map()),
        search_attributes: Some(map()),
        header: Some(map()),
        reuse_policy: ReusePolicy::AllowDuplicateFailedOnly.into(),
        conflict_policy: ConflictPolicy::UseExisting.into(),
        start_delay_ms: 7_000,
        user_metadata: Some(some(b"summary")),
        links: vec![some(b"link")],
        priority: Some(Bytes::from_static(b"\x08\x03")),
        eager: true,
        retention_ms: 86_400_000,
        signal: Some(signal()),
        continued_failure: Some(failure()),
        last_completion_result: Some(some(b"result")),
        parent: None,
        watcher: None,
        retry_policy: None,
        cron_schedule: String::new(),
        ..start::Begin::default()
    }
}

fn admit() -> update::Admit {
    update::Admit {
        update_id: "update-1".into(),
        request: some(b"request"),
        first_run_id: "first".into(),
        this_run_only: true,
        patient: true,
    }
}

fn complete() -> workflow_task_completed::Complete {
    let command = |order: CommandOrder| Command {
        command_type: order.command_type(),
        user_metadata: Some(some(b"metadata")),
        event_group_markers: vec![group()],
        order: Some(order),
    };
    workflow_task_completed::Complete {
        token: Some(token()),
        commands: commands().into_iter().map(command).collect(),
        identity: "worker".into(),
        sticky: Some(Sticky { queue: "cache".into(), schedule_to_start_ms: 10_000 }),
        return_new_task: true,
        force_new_task: true,
        sdk_metadata: Some(Bytes::from_static(b"\x0a\x01\x05")),
        metering_metadata: Some(Bytes::from_static(b"\x68\x01")),
        binary_checksum: "checksum".into(),
        worker_version: Some(Bytes::from_static(b"\x0a\x05build")),
        has_messages: true,
        ..workflow_task_completed::Complete::default()
    }
}

fn commands() -> Vec<CommandOrder> {
    let schedule = activity::Schedule {
        activity_id: "a".into(),
        activity_type: Some(ActivityType { name: "Charge".into() }),
        task_queue: Some(TaskQueue::normal("orders")),
        header: Some(map()),
        input: Some(some(b"input")),
        schedule_to_close_timeout: span(600),
        schedule_to_start_timeout: span(60),
        start_to_close_timeout: span(10),
        heartbeat_timeout: span(3),
        retry_policy: Some(policy()),
        request_eager_execution: true,
        priority: Some(Bytes::from_static(b"\x08\x03")),
        ..activity::Schedule::default()
    };
    let record = marker::Record {
        marker_name: "Version".into(),
        details: vec![MapEntry { key: "data".into(), value: some(b"payload") }],
        header: Some(map()),
        failure: Some(failure()),
    };
    let upsert = memo_and_search_attributes::UpsertSearchAttributes { search_attributes: Some(map()) };
    vec![
        CommandOrder::ScheduleActivity(Box::new(schedule)),
        CommandOrder::RequestCancelActivity(activity::RequestCancel { scheduled_event_id: 5 }),
        CommandOrder::StartTimer(timer::Start { timer_id: "t".into(), start_to_fire_timeout: span(60) }),
        CommandOrder::CancelTimer(timer::Cancel { timer_id: "t".into() }),
        CommandOrder::RecordMarker(Box::new(record)),
        CommandOrder::UpsertSearchAttributes(upsert),
        CommandOrder::ModifyProperties(memo_and_search_attributes::Modify { upserted_memo: Some(map()) }),
        CommandOrder::StartChild(Box::default()),
        CommandOrder::RequestCancelExternal(Box::default()),
        CommandOrder::SignalExternal(Box::default()),
        CommandOrder::ProtocolMessage(update::Refer::default()),
        CommandOrder::ScheduleNexusOperation(Later {}),
        CommandOrder::RequestCancelNexusOperation(Later {}),
        CommandOrder::CompleteWorkflow(close::Complete { result: Some(some(b"result")) }),
        CommandOrder::FailWorkflow(close::Fail { failure: Some(failure()) }),
        CommandOrder::CancelWorkflow(close::Cancel { details: Some(some(b"details")) }),
        CommandOrder::ContinueAsNew(Box::new(again())),
    ]
}

fn again() -> close::ContinueAsNew {
    close::ContinueAsNew {
        workflow_type: Some(WorkflowType { name: "Order".into() }),
        task_queue: Some(TaskQueue::normal("orders")),
        input: Some(some(b"input")),
        workflow_run_timeout: span(600),
        workflow_task_timeout: span(10),
        backoff_start_interval: span(7),
        retry_policy: Some(policy()),
        initiator: Initiator::Workflow.into(),
        failure: Some(failure()),
        last_completion_result: Some(some(b"result")),
        cron_schedule: "@daily".into(),
        header: Some(map()),
        memo: Some(map()),
        search_attributes: Some(map()),
        ..close::ContinueAsNew::default()
    }
}

pub fn position() -> Position {
    Position {
        applied: 42,
        last_stamp_ms: 1_763_700_000_000,
        term: 7,
        owner_ms: 1_763_600_000_000,
        settings: Some(settings::first()),
        incarnation: Bytes::from_static(&[7; 16]),
        level: 0,
        marks: Vec::new(),
        posts: Vec::new(),
    }
}

pub fn marked() -> Position {
    Position { marks: vec![source()], ..position() }
}

pub fn levelled() -> Position {
    Position { level: 1, ..position() }
}

pub fn posted() -> Position {
    Position { posts: vec![MessageCursor { partition: 3, sent: 17, taken: 4 }], ..position() }
}
