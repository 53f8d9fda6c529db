//! A schedule as Describe and List show it.

use bytes::Bytes;
use everlog_engine::api_types::{Fields, MapEntry};
use everlog_engine::machine::schedule::definition::ScheduleDefinition;
use everlog_engine::machine::schedule::{DIVISION_ATTRIBUTE, PAUSED_ATTRIBUTE, Schedule};
use everlog_engine::machine::start::Begin;
use everlog_schedules::state::{RecentAction, RunningAction, SchedulePolicies};
use everlog_temporal_api::common::{WorkflowExecution, WorkflowType};
use everlog_temporal_api::enums::TaskQueueKind;
use everlog_temporal_api::schedule as api;
use everlog_temporal_api::schedule::schedule_action::Action;
use everlog_temporal_api::taskqueue::TaskQueue;
use everlog_temporal_api::workflow::NewWorkflowExecutionInfo;
use prost::Message;

use crate::codec::proto_time::{duration, timestamp, timestamp_if_set};
use crate::codec::{retry_policy, versioning};
use crate::schedules::spec;

/// Times to come that a description has.
const FUTURE_MAX: usize = 10;

/// What a schedule is to do, as it stands.
pub(crate) fn schedule(schedule: &Schedule) -> api::Schedule {
    let definition = schedule.definition();
    let settings = &schedule.state().settings;
    api::Schedule {
        spec: Some(spec::shown(&definition.spec)),
        action: Some(action(definition)),
        policies: Some(policies(definition.policies.clone())),
        state: Some(api::ScheduleState {
            notes: settings.notes.clone(),
            paused: settings.is_paused,
            limited_actions: settings.is_limited,
            remaining_actions: settings.remaining,
        }),
    }
}

/// How far a schedule is.
pub(crate) fn info(schedule: &Schedule, now_ms: i64, state_bytes: i64) -> api::ScheduleInfo {
    let state = schedule.state();
    let counts = &state.counts;
    let future = schedule.future_times_ms(now_ms, FUTURE_MAX);
    api::ScheduleInfo {
        action_count: number(counts.started),
        missed_catchup_window: number(counts.missed),
        overlap_skipped: number(counts.skipped),
        buffer_dropped: number(counts.dropped),
        buffer_size: i64::try_from(state.buffer_size()).unwrap_or(i64::MAX),
        running_workflows: state.running_runs().map(running).collect(),
        recent_actions: recent(&state.recent, usize::MAX),
        future_action_times: future.into_iter().map(timestamp).collect(),
        create_time: Some(timestamp(state.create_ms)),
        update_time: timestamp_if_set(state.update_ms),
        state_size_bytes: state_bytes,
        ..api::ScheduleInfo::default()
    }
}

/// The latest of them, in the order in which their starts were tried.
pub(crate) fn recent(actions: &[RecentAction], most: usize) -> Vec<api::ScheduleActionResult> {
    let mut tried: Vec<_> = actions.iter().collect();
    tried.sort_by_key(|action| (action.first_tried_ms, action.number));
    let last = tried.len().saturating_sub(most);
    tried[last..].iter().map(|action| action_result(action)).collect()
}

fn action_result(action: &RecentAction) -> api::ScheduleActionResult {
    api::ScheduleActionResult {
        schedule_time: Some(timestamp(action.actual_ms)),
        actual_time: Some(timestamp(action.start_ms)),
        start_workflow_result: Some(WorkflowExecution {
            workflow_id: action.workflow_id.clone(),
            run_id: action.first_run_id.clone(),
        }),
        start_workflow_status: action.status,
    }
}

fn running(action: &RunningAction) -> WorkflowExecution {
    WorkflowExecution { workflow_id: action.workflow_id.clone(), run_id: action.first_run_id.clone() }
}

fn policies(given: SchedulePolicies) -> api::SchedulePolicies {
    let policies = given.resolved();
    api::SchedulePolicies {
        overlap_policy: policies.overlap,
        catchup_window: policies.catchup_window.map(spec::duration),
        pause_on_failure: policies.pause_on_failure,
        keep_original_workflow_id: policies.keep_original_workflow_id,
    }
}

fn action(definition: &ScheduleDefinition) -> api::ScheduleAction {
    let begin: &Begin = &definition.action;
    let span = |ms: i64| (ms > 0).then(|| duration(ms));
    let kind = TaskQueueKind::Normal.into();
    let start = NewWorkflowExecutionInfo {
        workflow_id: definition.workflow_id.clone(),
        workflow_type: Some(WorkflowType { name: begin.workflow_type.clone() }),
        task_queue: Some(TaskQueue { name: begin.task_queue.clone(), kind, ..TaskQueue::default() }),
        input: begin.input.clone(),
        workflow_execution_timeout: span(begin.execution_timeout_ms),
        workflow_run_timeout: span(begin.run_timeout_ms),
        workflow_task_timeout: span(begin.task_timeout_ms),
        retry_policy: begin.retry_policy.clone().map(retry_policy::outer),
        memo: begin.memo.clone(),
        search_attributes: begin.search_attributes.clone(),
        header: begin.header.clone(),
        user_metadata: begin.user_metadata.clone(),
        versioning_override: begin.versioning_override.as_ref().map(versioning::override_message),
        priority: begin.priority.clone(),
        ..NewWorkflowExecutionInfo::default()
    };
    api::ScheduleAction { action: Some(Action::StartWorkflow(start)) }
}

/// A memo: none if it is empty.
pub(crate) fn memo(entries: &[MapEntry]) -> Option<Bytes> {
    map(entries.iter())
}

/// Search attributes of the user: none if there are none.
pub(crate) fn search_attributes(entries: &[MapEntry]) -> Option<Bytes> {
    map(entries.iter().filter(|entry| ![DIVISION_ATTRIBUTE, PAUSED_ATTRIBUTE].contains(&entry.key.as_str())))
}

fn map<'a>(entries: impl Iterator<Item = &'a MapEntry>) -> Option<Bytes> {
    let entries: Vec<MapEntry> = entries.cloned().collect();
    (!entries.is_empty()).then(|| Fields { entries }.encode_to_vec().into())
}

/// The token of a schedule's conflict token: eight bytes.
pub(crate) fn token(number: u64) -> Bytes {
    Bytes::copy_from_slice(&number.to_be_bytes())
}

fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_that_waited_is_shown_where_its_start_was_tried() {
        let action = |number, first_tried_ms| RecentAction {
            number,
            first_tried_ms,
            workflow_id: format!("report-{number}"),
            ..RecentAction::default()
        };
        // The second waited for the end of the first, while a trigger overtook it.
        let actions = [action(1, 1_000), action(2, 3_000), action(3, 2_000), action(4, 3_000)];
        let shown = |most| {
            let shown = recent(&actions, most).into_iter();
            let ids: Vec<_> =
                shown.map(|result| result.start_workflow_result.unwrap_or_default().workflow_id).collect();
            ids.join(" ")
        };
        assert_eq!(shown(usize::MAX), "report-1 report-3 report-2 report-4");
        assert_eq!(shown(2), "report-2 report-4");
    }
}
