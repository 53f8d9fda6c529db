//! DescribeWorkflowExecution, from the applied state of the run.

use std::collections::BTreeMap;

use bytes::Bytes;
use everlog_engine::Run;
use everlog_engine::api_types::{Fields, MapEntry};
use everlog_engine::machine::activity::Activity;
use everlog_engine::machine::child::{Child, root};
use everlog_engine::machine::operator::activity_control::ActivityPause;
use everlog_engine::machine::reset_points::Points;
use everlog_partition::Want;
use everlog_temporal_api::common::{ActivityType, WorkflowExecution, WorkflowType};
use everlog_temporal_api::enums::{EventType, PendingActivityState, PendingWorkflowTaskState, TaskQueueKind};
use everlog_temporal_api::taskqueue::TaskQueue;
use everlog_temporal_api::temporal::api::workflow::v1::pending_activity_info::PauseInfo;
use everlog_temporal_api::temporal::api::workflow::v1::pending_activity_info::pause_info::{
    Manual, PausedBy,
};
use everlog_temporal_api::workflow::{
    PendingActivityInfo, PendingChildExecutionInfo, PendingWorkflowTaskInfo, RequestIdInfo,
    WorkflowExecutionConfig, WorkflowExecutionExtendedInfo, WorkflowExecutionInfo,
    WorkflowExecutionPauseInfo,
};
use everlog_temporal_api::workflowservice::{
    DescribeWorkflowExecutionRequest, DescribeWorkflowExecutionResponse,
};
use everlog_visibility::derived::search_attributes;
use prost::Message;
use tonic::Status;

use crate::codec::activity_options;
use crate::codec::proto_time::{duration, timestamp, timestamp_if_set};
use crate::codec::versioning;
use crate::handlers::history::read;
use crate::server::call::Call;
use crate::tasks::response::execution;

pub(crate) async fn describe(
    call: &Call<'_>,
    request: DescribeWorkflowExecutionRequest,
) -> Result<DescribeWorkflowExecutionResponse, Status> {
    let address = call.address(call.checks().execution(request.execution)?);
    let run = read(call, &address, Want::State).await?.run;
    Ok(description(&run))
}

fn description(run: &Run) -> DescribeWorkflowExecutionResponse {
    DescribeWorkflowExecutionResponse {
        execution_config: Some(config(run)),
        workflow_execution_info: Some(info(run)),
        pending_activities: run.activities.values().map(|activity| pending_activity(activity)).collect(),
        pending_children: run.children.values().map(|child| pending_child(child)).collect(),
        pending_workflow_task: pending_task(run),
        workflow_extended_info: Some(extended(run)),
        ..DescribeWorkflowExecutionResponse::default()
    }
}

fn config(run: &Run) -> WorkflowExecutionConfig {
    let start = &run.start;
    WorkflowExecutionConfig {
        task_queue: Some(queue(&start.task_queue)),
        workflow_execution_timeout: Some(start.execution_timeout_ms).filter(|ms| *ms > 0).map(duration),
        workflow_run_timeout: start.named_run_timeout_ms().map(duration),
        default_workflow_task_timeout: Some(duration(start.task_timeout_ms)),
        user_metadata: start.user_metadata.clone(),
    }
}

fn info(run: &Run) -> WorkflowExecutionInfo {
    let (start, head) = (&run.start, &run.head);
    let start_ms = if start.reset_ms == 0 { start.start_ms } else { start.reset_ms };
    let execution_ms = if start.reset_ms == 0 { start_ms + start.first_task_backoff_ms } else { start_ms };
    let (parent, root) = (start.parent.as_ref(), root(run));
    WorkflowExecutionInfo {
        execution: Some(execution(run)),
        r#type: Some(WorkflowType { name: run.workflow_type().to_owned() }),
        start_time: Some(timestamp(start_ms)),
        close_time: timestamp_if_set(head.close_ms),
        status: head.status,
        history_length: head.next_event_id - 1,
        execution_time: Some(timestamp(execution_ms)),
        memo: Some(map(&run.properties.memo)),
        search_attributes: Some(map(&search_attributes(run))),
        auto_reset_points: Some(Points { points: run.reset_points() }.encode_to_vec().into()),
        most_recent_worker_version_stamp: run.properties.worker_version.clone(),
        task_queue: start.task_queue.clone(),
        state_transition_count: head.transitions,
        history_size_bytes: head.history_bytes,
        execution_duration: (head.close_ms != 0).then(|| duration((head.close_ms - execution_ms).max(0))),
        parent_namespace_id: parent.map_or_else(String::new, |parent| parent.namespace_id.clone()),
        parent_execution: parent.map(|parent| named(&parent.workflow_id, &parent.run_id)),
        root_execution: Some(named(&root.workflow_id, &root.run_id)),
        first_run_id: start.first_run_id.clone(),
        versioning_info: versioning::info(run),
        worker_deployment_name: run.properties.deployment_name.clone(),
        priority: run.priority().cloned(),
        ..WorkflowExecutionInfo::default()
    }
}

/// An encoded map of opaque values: a memo, or search attributes.
fn map(entries: &[MapEntry]) -> Bytes {
    Fields { entries: entries.to_vec() }.encode_to_vec().into()
}

fn extended(run: &Run) -> WorkflowExecutionExtendedInfo {
    let start = &run.start;
    WorkflowExecutionExtendedInfo {
        execution_expiration_time: timestamp_if_set(start.execution_expires_ms),
        run_expiration_time: timestamp_if_set(start.run_expires_ms),
        cancel_requested: run.head.cancel_requested,
        last_reset_time: timestamp_if_set(start.reset_ms),
        original_start_time: Some(timestamp(start.start_ms)),
        reset_run_id: run.head.reset_run_id.clone(),
        request_id_infos: request_ids(run),
        pause_info: run.pause().map(|pause| WorkflowExecutionPauseInfo {
            identity: pause.identity.clone(),
            paused_time: Some(timestamp(pause.paused_ms)),
            reason: pause.reason.clone(),
        }),
        ..WorkflowExecutionExtendedInfo::default()
    }
}

/// The request that started the run, and requests that were attached to it.
fn request_ids(run: &Run) -> BTreeMap<String, RequestIdInfo> {
    let info = |event_type: EventType, event_id| RequestIdInfo {
        event_type: event_type.into(),
        event_id,
        buffered: event_id == 0,
    };
    let attached = run.attached.values().map(|attached| {
        let event_type = EventType::WorkflowExecutionOptionsUpdated;
        (attached.request_id.clone(), info(event_type, attached.event_id))
    });
    let made = (run.start.request_id.clone(), info(EventType::WorkflowExecutionStarted, 1));
    std::iter::once(made).chain(attached).collect()
}

fn pending_task(run: &Run) -> Option<PendingWorkflowTaskInfo> {
    let task = run.head.task.as_ref()?;
    let state = if task.is_started() {
        PendingWorkflowTaskState::Started
    } else {
        PendingWorkflowTaskState::Scheduled
    };
    Some(PendingWorkflowTaskInfo {
        state: state.into(),
        scheduled_time: Some(timestamp(task.scheduled_ms)),
        original_scheduled_time: Some(timestamp(task.first_scheduled_ms)),
        started_time: timestamp_if_set(task.started_ms),
        attempt: task.attempt,
    })
}

fn pending_child(child: &Child) -> PendingChildExecutionInfo {
    PendingChildExecutionInfo {
        workflow_id: child.workflow_id.clone(),
        run_id: child.run_id.clone(),
        workflow_type_name: child.workflow_type.as_ref().map_or_else(String::new, |given| given.name.clone()),
        initiated_id: child.initiated_event_id,
        parent_close_policy: child.close_policy,
    }
}

fn named(workflow_id: &str, run_id: &str) -> WorkflowExecution {
    WorkflowExecution { workflow_id: workflow_id.into(), run_id: run_id.into() }
}

fn pending_activity(activity: &Activity) -> PendingActivityInfo {
    let state = match (activity.is_started(), activity.pause.is_some()) {
        _any if activity.cancel_requested_event_id > 0 => PendingActivityState::CancelRequested,
        (true, true) => PendingActivityState::PauseRequested,
        (true, false) => PendingActivityState::Started,
        (false, true) => PendingActivityState::Paused,
        (false, false) => PendingActivityState::Scheduled,
    };
    let waits = activity.backing_off
        && matches!(state, PendingActivityState::Scheduled | PendingActivityState::Paused);
    // For an attempt that waits for a worker it is the interval after that attempt.
    let interval_ms = match (waits, state) {
        (true, _) => Some(activity.retry_delay_ms),
        (false, PendingActivityState::Scheduled | PendingActivityState::Paused) => activity.next_delay_ms(),
        (false, _others) => None,
    };
    PendingActivityInfo {
        activity_id: activity.activity_id.clone(),
        activity_type: Some(ActivityType { name: activity.activity_type.clone() }),
        state: state.into(),
        heartbeat_details: activity.heartbeat_details.clone(),
        last_heartbeat_time: timestamp_if_set(activity.heartbeat_ms),
        last_started_time: timestamp_if_set(activity.started_ms),
        attempt: activity.attempt,
        maximum_attempts: activity.retry_policy.as_ref().map_or(0, |policy| policy.maximum_attempts),
        scheduled_time: Some(timestamp(activity.scheduled_ms)),
        expiration_time: timestamp_if_set(activity.expires_ms),
        last_failure: activity.last_failure.clone(),
        last_worker_identity: activity.identity.clone(),
        current_retry_interval: interval_ms.map(duration),
        last_attempt_complete_time: timestamp_if_set(activity.last_attempt_ms),
        next_attempt_schedule_time: waits.then(|| timestamp(activity.scheduled_ms)),
        priority: activity.priority.clone(),
        activity_options: Some(activity_options::outer(activity.options())),
        paused: activity.pause.is_some(),
        pause_info: activity.pause.as_ref().map(pause_info),
        ..PendingActivityInfo::default()
    }
}

fn pause_info(pause: &ActivityPause) -> PauseInfo {
    let manual = Manual { identity: pause.identity.clone(), reason: pause.reason.clone() };
    PauseInfo { pause_time: Some(timestamp(pause.paused_ms)), paused_by: Some(PausedBy::Manual(manual)) }
}

fn queue(name: &str) -> TaskQueue {
    TaskQueue { name: name.into(), kind: TaskQueueKind::Normal.into(), normal_name: String::new() }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use everlog_engine::machine::workflow_task::Task;
    use everlog_engine::{Start, normalized_retry_policy};

    use super::*;

    fn run() -> Run {
        Run::begin(Start {
            workflow_id: "order-1".into(),
            run_id: "run".into(),
            first_run_id: "first".into(),
            task_queue: "orders".into(),
            request_id: "request".into(),
            start_ms: 5_000,
            first_task_backoff_ms: 1_000,
            task_timeout_ms: 10_000,
            run_expires_ms: 65_000,
            ..Start::default()
        })
    }

    #[test]
    fn an_open_run_is_described_from_its_state() {
        let mut run = run();
        run.head.task =
            Some(Task { attempt: 2, scheduled_ms: 6_000, first_scheduled_ms: 6_000, ..Task::default() });
        let description = description(&run);
        let info = description.workflow_execution_info.expect("always there");
        assert_eq!((info.status, info.history_length, info.close_time), (1, 0, None));
        assert_eq!(info.execution_time, Some(timestamp(6_000)));
        assert_eq!(info.first_run_id, "first");
        let task = description.pending_workflow_task.expect("one is pending");
        assert_eq!(
            (task.state(), task.attempt, task.started_time),
            (PendingWorkflowTaskState::Scheduled, 2, None)
        );
        let extended = description.workflow_extended_info.expect("always there");
        assert_eq!(extended.run_expiration_time, Some(timestamp(65_000)));
        assert_eq!(extended.request_id_infos["request"].event_id, 1);
    }

    #[test]
    fn an_activity_between_two_attempts_says_when_it_goes_on() {
        let activity = Activity {
            scheduled_event_id: 5,
            attempt: 3,
            scheduled_ms: 9_000,
            backing_off: true,
            last_attempt_ms: 2_000,
            retry_delay_ms: 7_000,
            identity: "worker".into(),
            priority: Some(Bytes::from_static(b"\x08\x02")),
            retry_policy: normalized_retry_policy(None).ok(),
            ..Activity::default()
        };
        let mut run = run();
        run.activities.make_mut().insert(5, Arc::new(activity));
        let pending = &description(&run).pending_activities[0];
        assert_eq!(pending.state(), PendingActivityState::Scheduled);
        assert_eq!(pending.next_attempt_schedule_time, Some(timestamp(9_000)));
        // What the failure asked for, whatever the policy says.
        assert_eq!(pending.current_retry_interval, Some(duration(7_000)));
        assert_eq!(pending.last_attempt_complete_time, Some(timestamp(2_000)));
        assert_eq!(pending.last_worker_identity, "worker");
        assert_eq!(pending.priority.as_deref(), Some(&b"\x08\x02"[..]));
        let options = pending.activity_options.as_ref().expect("always there");
        assert_eq!(options.priority, pending.priority);
        let changed = |change: &dyn Fn(&mut Activity)| {
            let mut run = run.clone();
            change(Arc::make_mut(run.activities.make_mut().get_mut(&5).expect("it is there")));
            description(&run).pending_activities[0].current_retry_interval
        };
        // 1 s, doubled with each attempt.
        assert_eq!(changed(&|activity| activity.backing_off = false), Some(duration(4_000)));
        let take = |activity: &mut Activity| {
            (activity.backing_off, activity.started_ms) = (false, 9_500);
        };
        assert_eq!(changed(&take), None, "a worker has it");
        assert_eq!(
            changed(&|activity| activity.cancel_requested_event_id = 7),
            None,
            "there is no further attempt"
        );
    }

    #[test]
    fn memo_and_search_attributes_pass_byte_for_byte() {
        let mut run = run();
        let entry = MapEntry { key: "k".into(), value: Bytes::from_static(b"opaque") };
        run.properties.make_mut().memo.push(entry.clone());
        let info = description(&run).workflow_execution_info.expect("always there");
        let memo = Fields::decode(info.memo.expect("always there")).expect("a map");
        assert_eq!(memo.entries, [entry]);
    }
}
