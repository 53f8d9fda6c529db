//! A child: a workflow that another one starts and hears the end of, wherever it lives.
//!
//! (none)     --command-->                                 initiated
//! initiated  --it is there-->                             started
//! initiated  --it cannot be-->                            (none)
//! started    --the last run of its chain has closed-->    (none)
//!
//! What parent and child tell each other stands in `parent_child.rs`.

use std::sync::Arc;

use bytes::Bytes;

use crate::api_types::{
    ChildFailedCause as FailedCause, ConflictPolicy, Execution, ParentClosePolicy as ClosePolicy,
    RetryPolicy, RetryState, TaskFailedCause as Cause, TaskQueue, WorkflowType,
};
use crate::command::Command;
use crate::draft::{Draft, bytes};
use crate::event::HistoryEvent;
use crate::machine::close::within_size;
use crate::machine::parent_child::Opened;
use crate::machine::start::{Begin, filled_in};
use crate::machine::worker_versioning::{self, Versioning};
use crate::machine::workflow_task_completed::{Complete, OtherNamespace, TaskFailure, extras};
use crate::machine::{command_validation, memo_and_search_attributes};
use crate::request::{Request, RequestRecord, Sender};
use crate::run::Run;
use crate::time::{Duration, span_ms};

/// Command: start a child.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Start {
    /// The name of its namespace; empty = the parent's.
    #[prost(string, tag = "1")]
    pub namespace: String,
    /// Its Workflow Id.
    #[prost(string, tag = "2")]
    pub workflow_id: String,
    /// Its type.
    #[prost(message, optional, tag = "3")]
    pub workflow_type: Option<WorkflowType>,
    /// The queue of its tasks; the parent's where absent.
    #[prost(message, optional, tag = "4")]
    pub task_queue: Option<TaskQueue>,
    /// Arguments, opaque.
    #[prost(bytes = "bytes", optional, tag = "5")]
    pub input: Option<Bytes>,
    /// Limit over its chain of runs.
    #[prost(message, optional, tag = "6")]
    pub workflow_execution_timeout: Option<Duration>,
    /// Limit of each of its runs.
    #[prost(message, optional, tag = "7")]
    pub workflow_run_timeout: Option<Duration>,
    /// Timeout of its tasks; that of the parent's where absent.
    #[prost(message, optional, tag = "8")]
    pub workflow_task_timeout: Option<Duration>,
    /// What becomes of it when the parent's run closes.
    #[prost(enumeration = "ClosePolicy", tag = "9")]
    pub parent_close_policy: i32,
    /// Of old SDKs, carried along.
    #[prost(string, tag = "10")]
    pub control: String,
    /// What to do about a closed run of the id.
    #[prost(int32, tag = "11")]
    pub workflow_id_reuse_policy: i32,
    /// Refused: workflow retry policies come later.
    #[prost(message, optional, tag = "12")]
    pub retry_policy: Option<RetryPolicy>,
    /// Refused: cron schedules come later.
    #[prost(string, tag = "13")]
    pub cron_schedule: String,
    /// Headers, opaque.
    #[prost(bytes = "bytes", optional, tag = "14")]
    pub header: Option<Bytes>,
    /// An encoded map.
    #[prost(bytes = "bytes", optional, tag = "15")]
    pub memo: Option<Bytes>,
    /// An encoded map.
    #[prost(bytes = "bytes", optional, tag = "16")]
    pub search_attributes: Option<Bytes>,
    /// Its workers are to be of the build of the parent's.
    #[prost(bool, tag = "17")]
    pub inherit_build_id: bool,
    /// Priority, opaque; the parent's where absent.
    #[prost(bytes = "bytes", optional, tag = "18")]
    pub priority: Option<Bytes>,
}

/// Event: a child is to be started.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Initiated {
    /// The name of its namespace.
    #[prost(string, tag = "1")]
    pub namespace: String,
    /// Its Workflow Id.
    #[prost(string, tag = "2")]
    pub workflow_id: String,
    /// Its type.
    #[prost(message, optional, tag = "3")]
    pub workflow_type: Option<WorkflowType>,
    /// The queue of its tasks.
    #[prost(message, optional, tag = "4")]
    pub task_queue: Option<TaskQueue>,
    /// Arguments, opaque.
    #[prost(bytes = "bytes", optional, tag = "5")]
    pub input: Option<Bytes>,
    /// Limit over its chain of runs.
    #[prost(message, optional, tag = "6")]
    pub workflow_execution_timeout: Option<Duration>,
    /// Limit of each of its runs.
    #[prost(message, optional, tag = "7")]
    pub workflow_run_timeout: Option<Duration>,
    /// Timeout of its tasks.
    #[prost(message, optional, tag = "8")]
    pub workflow_task_timeout: Option<Duration>,
    /// What becomes of it when the parent's run closes.
    #[prost(enumeration = "ClosePolicy", tag = "9")]
    pub parent_close_policy: i32,
    /// Of old SDKs, carried along.
    #[prost(string, tag = "10")]
    pub control: String,
    /// The task that asked for it.
    #[prost(int64, tag = "11")]
    pub workflow_task_completed_event_id: i64,
    /// What to do about a closed run of the id.
    #[prost(int32, tag = "12")]
    pub workflow_id_reuse_policy: i32,
    /// When and how often a failed run of it is made again.
    #[prost(message, optional, tag = "13")]
    pub retry_policy: Option<RetryPolicy>,
    /// When its runs begin.
    #[prost(string, tag = "14")]
    pub cron_schedule: String,
    /// Headers, opaque.
    #[prost(bytes = "bytes", optional, tag = "15")]
    pub header: Option<Bytes>,
    /// An encoded map.
    #[prost(bytes = "bytes", optional, tag = "16")]
    pub memo: Option<Bytes>,
    /// An encoded map.
    #[prost(bytes = "bytes", optional, tag = "17")]
    pub search_attributes: Option<Bytes>,
    /// Its namespace's UUID.
    #[prost(string, tag = "18")]
    pub namespace_id: String,
    /// Its workers are to be of the build of the parent's.
    #[prost(bool, tag = "19")]
    pub inherit_build_id: bool,
    /// Priority, opaque.
    #[prost(bytes = "bytes", optional, tag = "20")]
    pub priority: Option<Bytes>,
}

/// Event: a child could not be started.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct StartFailed {
    /// The name of its namespace.
    #[prost(string, tag = "1")]
    pub namespace: String,
    /// Its Workflow Id.
    #[prost(string, tag = "2")]
    pub workflow_id: String,
    /// Its type.
    #[prost(message, optional, tag = "3")]
    pub workflow_type: Option<WorkflowType>,
    /// Why.
    #[prost(enumeration = "FailedCause", tag = "4")]
    pub cause: i32,
    /// Of old SDKs, carried along.
    #[prost(string, tag = "5")]
    pub control: String,
    /// Its Initiated event.
    #[prost(int64, tag = "6")]
    pub initiated_event_id: i64,
    /// Its namespace's UUID.
    #[prost(string, tag = "8")]
    pub namespace_id: String,
}

/// Event: a child is there.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Started {
    /// The name of its namespace.
    #[prost(string, tag = "1")]
    pub namespace: String,
    /// Its Initiated event.
    #[prost(int64, tag = "2")]
    pub initiated_event_id: i64,
    /// Its first run.
    #[prost(message, optional, tag = "3")]
    pub workflow_execution: Option<Execution>,
    /// Its type.
    #[prost(message, optional, tag = "4")]
    pub workflow_type: Option<WorkflowType>,
    /// Headers, opaque.
    #[prost(bytes = "bytes", optional, tag = "5")]
    pub header: Option<Bytes>,
    /// Its namespace's UUID.
    #[prost(string, tag = "6")]
    pub namespace_id: String,
}

macro_rules! closing {
    ($(#[$doc:meta])* $name:ident {
        $(payload $payload:ident = $payload_tag:literal;)?
        $(retry_state = $retry_tag:literal;)?
        namespace = $namespace:literal, namespace_id = $namespace_id:literal, execution = $execution:literal,
        workflow_type = $workflow_type:literal, initiated = $initiated:literal, started = $started:literal
    }) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, prost::Message)]
        pub struct $name {
            $(
                /// What it had to say, opaque.
                #[prost(bytes = "bytes", optional, tag = $payload_tag)]
                pub $payload: Option<Bytes>,
            )?
            $(
                /// Why there was no other attempt.
                #[prost(enumeration = "RetryState", tag = $retry_tag)]
                pub retry_state: i32,
            )?
            /// The name of its namespace.
            #[prost(string, tag = $namespace)]
            pub namespace: String,
            /// Its namespace's UUID.
            #[prost(string, tag = $namespace_id)]
            pub namespace_id: String,
            /// The run that ended it.
            #[prost(message, optional, tag = $execution)]
            pub workflow_execution: Option<Execution>,
            /// Its type.
            #[prost(message, optional, tag = $workflow_type)]
            pub workflow_type: Option<WorkflowType>,
            /// Its Initiated event.
            #[prost(int64, tag = $initiated)]
            pub initiated_event_id: i64,
            /// Its Started event.
            #[prost(int64, tag = $started)]
            pub started_event_id: i64,
        }
    };
}

closing! {
    /// Event: a child returned.
    Completed {
        payload result = "1";
        namespace = "2", namespace_id = "7", execution = "3", workflow_type = "4", initiated = "5", started = "6"
    }
}
closing! {
    /// Event: a child failed.
    Failed {
        payload failure = "1";
        retry_state = "7";
        namespace = "2", namespace_id = "8", execution = "3", workflow_type = "4", initiated = "5", started = "6"
    }
}
closing! {
    /// Event: a child ended as canceled.
    Canceled {
        payload details = "1";
        namespace = "2", namespace_id = "7", execution = "3", workflow_type = "4", initiated = "5", started = "6"
    }
}
closing! {
    /// Event: a child took too long.
    TimedOut {
        retry_state = "6";
        namespace = "1", namespace_id = "7", execution = "2", workflow_type = "3", initiated = "4", started = "5"
    }
}
closing! {
    /// Event: a child was ended from outside.
    Terminated {
        namespace = "1", namespace_id = "6", execution = "2", workflow_type = "3", initiated = "4", started = "5"
    }
}

/// Whose child a chain of runs is.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Parent {
    /// The name of its namespace.
    #[prost(string, tag = "1")]
    pub namespace: String,
    /// Its namespace's UUID.
    #[prost(string, tag = "2")]
    pub namespace_id: String,
    /// Its Workflow Id.
    #[prost(string, tag = "3")]
    pub workflow_id: String,
    /// Its run.
    #[prost(string, tag = "4")]
    pub run_id: String,
    /// The child's Initiated event in its history.
    #[prost(int64, tag = "5")]
    pub initiated_event_id: i64,
    /// The workflow at the root of the tree.
    #[prost(message, optional, tag = "6")]
    pub root: Option<Execution>,
    /// The run whose beginning the parent has by a reset; empty = none.
    #[prost(string, tag = "7")]
    pub original_run_id: String,
}

/// A child that has not closed.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Child {
    /// Its Initiated event.
    #[prost(int64, tag = "1")]
    pub initiated_event_id: i64,
    /// The name of its namespace.
    #[prost(string, tag = "2")]
    pub namespace: String,
    /// Its namespace's UUID.
    #[prost(string, tag = "3")]
    pub namespace_id: String,
    /// Its Workflow Id.
    #[prost(string, tag = "4")]
    pub workflow_id: String,
    /// Its type.
    #[prost(message, optional, tag = "5")]
    pub workflow_type: Option<WorkflowType>,
    /// What becomes of it when the parent's run closes.
    #[prost(enumeration = "ClosePolicy", tag = "6")]
    pub close_policy: i32,
    /// Its first run; empty until it is there.
    #[prost(string, tag = "7")]
    pub run_id: String,
    /// Its Started event; 0 until that is written.
    #[prost(int64, tag = "8")]
    pub started_event_id: i64,
    /// Of old SDKs, carried along.
    #[prost(string, tag = "9")]
    pub control: String,
    /// Headers that it was started with, opaque.
    #[prost(bytes = "bytes", optional, tag = "10")]
    pub header: Option<Bytes>,
    /// What came of its start when its parent had closed.
    #[prost(message, optional, tag = "11")]
    pub late: Option<Opened>,
}

impl Parent {
    /// Where a message about the child goes.
    pub(crate) fn sender(&self) -> Sender {
        Sender {
            namespace_id: self.namespace_id.clone(),
            workflow_id: self.workflow_id.clone(),
            run_id: self.run_id.clone(),
            initiated_event_id: self.initiated_event_id,
            child_only: true,
            original_run_id: self.original_run_id.clone(),
        }
    }

    /// The parent's run, as the child's Started event names it.
    pub(crate) fn execution(&self) -> Execution {
        Execution { workflow_id: self.workflow_id.clone(), run_id: self.run_id.clone() }
    }
}

impl Child {
    pub(crate) fn execution(&self, run_id: &str) -> Option<Execution> {
        Some(Execution { workflow_id: self.workflow_id.clone(), run_id: run_id.into() })
    }

    pub(crate) fn message(&self, parent: &Run, order: Request) -> RequestRecord {
        RequestRecord {
            namespace_id: self.namespace_id.clone(),
            workflow_id: self.workflow_id.clone(),
            run_id: String::new(),
            sender: Some(Sender { child_only: true, ..Sender::of(parent, 0) }),
            request: Some(order),
        }
    }
}

/// The run at the root of the tree that `run` belongs to.
pub fn root(run: &Run) -> Execution {
    let own = || Execution { workflow_id: run.start.workflow_id.clone(), run_id: run.start.run_id.clone() };
    run.start.parent.as_ref().and_then(|parent| parent.root.clone()).unwrap_or_else(own)
}

/// Takes the command, and sends the child on its way.
pub(crate) fn start(
    draft: &mut Draft<'_>,
    command: &Command,
    order: &Start,
    completed: i64,
    from: &Complete,
) -> Result<(), TaskFailure> {
    let cause = Cause::BadStartChildExecutionAttributes;
    let policy = command_validation::of_child(draft, order, &from.namespace)?;
    let target = from.target(draft, &order.namespace).map_err(|reason| TaskFailure::new(cause, &reason))?;
    check_sizes(draft, order)?;
    if draft.run.children.len() as i64 >= draft.settings.pending_children_max() {
        let (count, limit) = (draft.run.children.len(), draft.settings.pending_children_max());
        let reason = format!(
            "the number of pending child workflow executions, {count}, has reached the per-workflow limit of {limit}"
        );
        return Err(TaskFailure::new(Cause::PendingChildWorkflowsLimitExceeded, &reason));
    }
    let initiated = initiated(draft, order, policy, completed, &target);
    let begin = begin(draft, order, &initiated, command, &from.namespace);
    let mut begin = Begin { retention_ms: target.retention_ms, ..begin };
    let (namespace_id, workflow_id) = (initiated.namespace_id.clone(), initiated.workflow_id.clone());
    let initiated_event_id = draft.emit_at(draft.now_ms(), initiated.into(), extras(command));
    let sender = Sender::of(&draft.run, initiated_event_id);
    if let Some(parent) = &mut begin.parent {
        parent.initiated_event_id = initiated_event_id;
    }
    begin.request_id = draft.stamp.id(REQUEST_IDS + u32::try_from(initiated_event_id).unwrap_or_default());
    let order = Some(Request::Start(Box::new(begin)));
    draft.send(RequestRecord {
        namespace_id,
        workflow_id,
        run_id: String::new(),
        sender: Some(sender),
        request: order,
    });
    Ok(())
}

/// Request ids of children are numbered from here, apart from the other ids of a record.
const REQUEST_IDS: u32 = 1 << 24;

/// What is too large would be so again: it ends the run.
fn check_sizes(draft: &Draft<'_>, order: &Start) -> Result<(), TaskFailure> {
    let cause = Cause::BadStartChildExecutionAttributes;
    let memo = order.memo.as_ref();
    if memo.is_some_and(|memo| memo.len() as i64 > draft.settings.memo_bytes_max)
        || memo_and_search_attributes::has_too_many_keys(memo, draft.settings)
    {
        let reason = "StartChildWorkflowExecutionCommandAttributes.Memo exceeds size limit.";
        return Err(TaskFailure::fatal(cause, reason));
    }
    memo_and_search_attributes::check_sizes(
        &memo_and_search_attributes::read(order.search_attributes.as_ref()),
        draft.settings,
    )
    .map_err(|reason| TaskFailure::fatal(cause, &reason))?;
    within_size(draft, cause, order.input.as_ref(), "StartChildWorkflowExecutionCommandAttributes. Input")
}

fn initiated(
    draft: &Draft<'_>,
    order: &Start,
    policy: Option<RetryPolicy>,
    completed: i64,
    target: &OtherNamespace,
) -> Initiated {
    let start = &draft.run.start;
    let spans = [order.workflow_execution_timeout, order.workflow_run_timeout, order.workflow_task_timeout];
    let (run_timeout, task_timeout) = filled_in(spans, draft.settings);
    let queue = order.task_queue.as_ref().map(|queue| queue.name.as_str()).filter(|name| !name.is_empty());
    let close_policy = match order.parent_close_policy {
        0 => ClosePolicy::Terminate.into(),
        policy => policy,
    };
    Initiated {
        namespace: target.name.clone(),
        workflow_id: order.workflow_id.clone(),
        workflow_type: order.workflow_type.clone(),
        task_queue: Some(TaskQueue::normal(queue.unwrap_or(&start.task_queue))),
        input: order.input.clone(),
        workflow_execution_timeout: order.workflow_execution_timeout,
        workflow_run_timeout: Some(run_timeout),
        workflow_task_timeout: Some(task_timeout),
        parent_close_policy: close_policy,
        control: order.control.clone(),
        workflow_task_completed_event_id: completed,
        workflow_id_reuse_policy: order.workflow_id_reuse_policy.max(1),
        retry_policy: policy,
        cron_schedule: order.cron_schedule.clone(),
        header: order.header.clone(),
        memo: order.memo.clone(),
        search_attributes: order.search_attributes.clone(),
        namespace_id: target.id.clone(),
        inherit_build_id: order.inherit_build_id,
        priority: order.priority.clone(),
    }
}

/// What the child is started with.
fn begin(
    draft: &Draft<'_>,
    order: &Start,
    initiated: &Initiated,
    command: &Command,
    namespace: &str,
) -> Begin {
    let start = &draft.run.start;
    let name = initiated.workflow_type.as_ref().map_or("", |workflow_type| &workflow_type.name);
    let task_queue = initiated.task_queue.as_ref().map_or_else(String::new, |queue| queue.name.clone());
    let versioning = worker_versioning::handed_on(&draft.run, &task_queue);
    let overriding = versioning.and_then(|versioning| versioning.overriding.as_ref());
    Begin {
        workflow_type: name.to_owned(),
        task_queue,
        input: order.input.clone(),
        execution_timeout_ms: span_ms(order.workflow_execution_timeout),
        run_timeout_ms: span_ms(order.workflow_run_timeout),
        task_timeout_ms: span_ms(initiated.workflow_task_timeout),
        memo: order.memo.clone(),
        search_attributes: order.search_attributes.clone(),
        header: order.header.clone(),
        reuse_policy: initiated.workflow_id_reuse_policy,
        conflict_policy: ConflictPolicy::Fail.into(),
        user_metadata: command.user_metadata.clone(),
        priority: inherited(draft.run.priority(), order.priority.as_ref()),
        retention_ms: start.retention_ms,
        retry_policy: initiated.retry_policy.clone(),
        cron_schedule: order.cron_schedule.clone(),
        parent: Some(Box::new(Parent {
            namespace: namespace.to_owned(),
            namespace_id: start.namespace_id.clone(),
            workflow_id: start.workflow_id.clone(),
            run_id: start.run_id.clone(),
            initiated_event_id: 0,
            root: Some(root(&draft.run)),
            original_run_id: start.original_run_id.clone(),
        })),
        versioning_override: overriding.filter(|overriding| overriding.pinned.is_some()).cloned(),
        inherited_pinned_version: versioning.and_then(Versioning::pinned).cloned(),
        ..Begin::default()
    }
}

/// The encoded priority of a child: what it leaves out is its parent's. Of two encodings in a row the later says what both say.
fn inherited(parent: Option<&Bytes>, child: Option<&Bytes>) -> Option<Bytes> {
    match (parent, child) {
        (Some(parent), Some(child)) => Some([parent.as_ref(), child.as_ref()].concat().into()),
        (one, other) => other.or(one).cloned(),
    }
}

pub(crate) fn apply_initiated(run: &mut Run, event: &HistoryEvent, initiated: &Initiated) {
    let child = Child {
        initiated_event_id: event.event_id,
        namespace: initiated.namespace.clone(),
        namespace_id: initiated.namespace_id.clone(),
        workflow_id: initiated.workflow_id.clone(),
        workflow_type: initiated.workflow_type.clone(),
        close_policy: initiated.parent_close_policy,
        run_id: String::new(),
        started_event_id: 0,
        control: initiated.control.clone(),
        header: initiated.header.clone(),
        late: None,
    };
    run.head.state_bytes += bytes(&child);
    run.children.make_mut().insert(event.event_id, Arc::new(child));
}

/// The event may be buffered: then its id comes when it is written.
pub(crate) fn apply_started(run: &mut Run, event: &HistoryEvent, started: &Started) {
    let children = run.children.make_mut();
    let Some(child) = children.get_mut(&started.initiated_event_id).map(Arc::make_mut) else { return };
    run.head.state_bytes -= bytes(child);
    child.run_id =
        started.workflow_execution.as_ref().map_or_else(String::new, |execution| execution.run_id.clone());
    child.started_event_id = event.event_id;
    child.header = None;
    run.head.state_bytes += bytes(child);
}

pub(crate) fn apply_late(run: &mut Run, opened: &Opened) {
    let children = run.children.make_mut();
    let Some(child) = children.get_mut(&opened.initiated_event_id).map(Arc::make_mut) else { return };
    run.head.state_bytes -= bytes(child);
    child.late = Some(opened.clone());
    run.head.state_bytes += bytes(child);
}

pub(crate) fn apply_closed(run: &mut Run, initiated_event_id: i64) {
    if run.children.contains_key(&initiated_event_id)
        && let Some(closed) = run.children.make_mut().remove(&initiated_event_id)
    {
        run.head.state_bytes -= bytes(closed.as_ref());
    }
}
