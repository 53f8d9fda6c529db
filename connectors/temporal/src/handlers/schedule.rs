//! Schedules: created, described, changed, deleted, listed. When they start what is decided by the engine.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use everlog_engine::machine::schedule::Schedule;
use everlog_engine::machine::schedule::request::{
    CreateSchedule, DeleteSchedule, PatchRecord, PatchSchedule, UpdateSchedule,
};
use everlog_engine::request::Request;
use everlog_engine::{Reply, Run};
use everlog_partition::Want;
use everlog_schedules::state::NOTES_MAX_BYTES;
use everlog_temporal_api::common::WorkflowExecution;
use everlog_temporal_api::schedule::SchedulePatch;
use everlog_temporal_api::workflowservice::{
    CountSchedulesRequest, CountSchedulesResponse, CreateScheduleRequest, CreateScheduleResponse,
    DeleteScheduleRequest, DeleteScheduleResponse, DescribeScheduleRequest, DescribeScheduleResponse,
    ListScheduleMatchingTimesRequest, ListScheduleMatchingTimesResponse, ListSchedulesRequest,
    ListSchedulesResponse, PatchScheduleRequest, PatchScheduleResponse, UpdateScheduleRequest,
    UpdateScheduleResponse,
};
use everlog_visibility::query::RunAttributes;
use tonic::Status;

use crate::codec::payload::stored_copy;
use crate::codec::proto_time::{now_ms, timestamp};
use crate::codec::status::{self, invalid, not_found};
use crate::namespaces::search_attributes;
use crate::schedules::{definition, listed, shown, spec};
use crate::server::call::Call;
use crate::visibility::count::counts;
use crate::visibility::list::{PageRequest, page};

/// How long a description waits for starts that are under way.
const STARTED_WITHIN: Duration = Duration::from_secs(5);
/// Times that a list of matching times has, at most.
const MATCHING_TIMES_MAX: usize = 1_000;

/// The schedule is durable when this returns.
pub(crate) async fn create(
    call: &Call<'_>,
    request: CreateScheduleRequest,
) -> Result<CreateScheduleResponse, Status> {
    let execution = execution(call, &request.schedule_id)?;
    let checks = call.checks();
    checks.id("RequestId", &request.request_id)?;
    checks.length("Identity", &request.identity)?;
    let (definition, settings) = definition::read(call, &request.schedule_id, request.schedule)?;
    checks.memo(request.memo.as_ref())?;
    let search_attributes = typed(call, request.search_attributes)?;
    let create = CreateSchedule {
        request_id: request.request_id,
        definition,
        settings,
        memo: stored_copy(request.memo),
        search_attributes,
        patch: request.initial_patch.map(patch_record).transpose()?,
    };
    let conflict_token = send(call, execution, Request::CreateSchedule(Box::new(create))).await?;
    Ok(CreateScheduleResponse { conflict_token })
}

/// Replaces what the schedule is to do.
pub(crate) async fn update(
    call: &Call<'_>,
    request: UpdateScheduleRequest,
) -> Result<UpdateScheduleResponse, Status> {
    let execution = execution(call, &request.schedule_id)?;
    check_change(call, &request.request_id, &request.identity)?;
    let (definition, settings) = definition::read(call, &request.schedule_id, request.schedule)?;
    call.checks().memo(request.memo.as_ref())?;
    let search_attributes = typed(call, request.search_attributes)?;
    let update = UpdateSchedule {
        request_id: request.request_id,
        definition,
        settings,
        memo: stored_copy(request.memo),
        search_attributes,
        conflict_token: conflict_token(&request.conflict_token)?,
    };
    send(call, execution, Request::UpdateSchedule(Box::new(update))).await?;
    Ok(UpdateScheduleResponse {})
}

/// Triggers, backfills, pauses, unpauses.
pub(crate) async fn patch(
    call: &Call<'_>,
    request: PatchScheduleRequest,
) -> Result<PatchScheduleResponse, Status> {
    let execution = execution(call, &request.schedule_id)?;
    check_change(call, &request.request_id, &request.identity)?;
    let patch = request.patch.ok_or_else(|| invalid("Patch is not set on request."))?;
    let patch = PatchSchedule { request_id: request.request_id, patch: patch_record(patch)? };
    send(call, execution, Request::PatchSchedule(patch)).await?;
    Ok(PatchScheduleResponse {})
}

/// What it has started goes on.
pub(crate) async fn delete(
    call: &Call<'_>,
    request: DeleteScheduleRequest,
) -> Result<DeleteScheduleResponse, Status> {
    let execution = execution(call, &request.schedule_id)?;
    call.checks().length("Identity", &request.identity)?;
    call.send(call.request_record(execution, Request::DeleteSchedule(DeleteSchedule {}))).await?;
    Ok(DeleteScheduleResponse {})
}

/// The schedule as it stands, once the starts under way are answered.
pub(crate) async fn describe(
    call: &Call<'_>,
    request: DescribeScheduleRequest,
) -> Result<DescribeScheduleResponse, Status> {
    let execution = execution(call, &request.schedule_id)?;
    let (run, schedule) = settled(call, execution).await?;
    let properties = &run.properties;
    Ok(DescribeScheduleResponse {
        schedule: Some(shown::schedule(&schedule)),
        info: Some(shown::info(&schedule, now_ms(), run.head.state_bytes)),
        memo: shown::memo(&properties.memo),
        search_attributes: shown::search_attributes(&properties.search_attributes),
        conflict_token: shown::token(schedule.state().conflict_token),
    })
}

/// By the stored specification, whatever else the schedule is.
pub(crate) async fn list_matching_times(
    call: &Call<'_>,
    request: ListScheduleMatchingTimesRequest,
) -> Result<ListScheduleMatchingTimesResponse, Status> {
    let execution = execution(call, &request.schedule_id)?;
    let (Some(start), Some(end)) = (request.start_time, request.end_time) else {
        return Err(invalid("missing or invalid query"));
    };
    let (start, end) = (spec::time("start_time", start)?, spec::time("end_time", end)?);
    let (_, schedule) = read(call, execution).await?;
    let times = schedule.plan.plan.matcher.matching_times(start, end, MATCHING_TIMES_MAX);
    let times = times.map_err(|error| invalid(error.to_string()))?;
    Ok(ListScheduleMatchingTimesResponse { start_time: times.into_iter().map(timestamp).collect() })
}

pub(crate) async fn list(
    call: &Call<'_>,
    request: ListSchedulesRequest,
) -> Result<ListSchedulesResponse, Status> {
    let namespace = &call.namespace.record;
    let request = PageRequest {
        namespace_id: &namespace.id,
        query: listed::query(&request.query, &names(call))?,
        // Of a list of runs the token is another.
        text: &format!("schedules {}", request.query),
        page_size: request.maximum_page_size,
        token: request.next_page_token,
    };
    let listed = page(call.gateway, request).await?;
    let now_ms = now_ms();
    let entries = listed.runs.into_iter().filter_map(|run| listed::entry(&namespace.id, run, now_ms));
    Ok(ListSchedulesResponse { schedules: entries.collect(), next_page_token: listed.token })
}

pub(crate) async fn count(
    call: &Call<'_>,
    request: CountSchedulesRequest,
) -> Result<CountSchedulesResponse, Status> {
    let query = listed::query(&request.query, &names(call))?;
    let counted = counts(call.gateway, &call.namespace.record.id, query).await?;
    Ok(CountSchedulesResponse { count: counted.count, groups: Vec::new() })
}

fn names<'a>(call: &'a Call<'_>) -> RunAttributes<'a> {
    RunAttributes { custom: &call.namespace.record.search_attributes }
}

/// The schedule's run.
fn execution(call: &Call<'_>, schedule_id: &str) -> Result<WorkflowExecution, Status> {
    let checks = call.checks();
    checks.id("ScheduleId", schedule_id)?;
    let workflow_id = definition::workflow_id(schedule_id);
    checks.length("ScheduleId", &workflow_id)?;
    Ok(WorkflowExecution { workflow_id, run_id: String::new() })
}

/// A change may have no request id: it is then one of its own each time that it arrives.
fn check_change(call: &Call<'_>, request_id: &str, identity: &str) -> Result<(), Status> {
    let checks = call.checks();
    checks.length("RequestId", request_id)?;
    checks.length("Identity", identity)
}

fn typed(call: &Call<'_>, given: Option<Bytes>) -> Result<Option<Bytes>, Status> {
    call.checks().search_attributes(given.as_ref())?;
    let typed = given.map(|given| search_attributes::typed(&call.namespace.record, &given));
    typed.transpose().map_err(invalid)
}

fn patch_record(patch: SchedulePatch) -> Result<PatchRecord, Status> {
    if patch.pause.len() > NOTES_MAX_BYTES || patch.unpause.len() > NOTES_MAX_BYTES {
        return Err(invalid("Schedule notes exceeds limit."));
    }
    definition::patch(patch)
}

/// None: whatever the schedule is. What is no token matches none.
fn conflict_token(given: &Bytes) -> Result<Option<u64>, Status> {
    if given.is_empty() {
        return Ok(None);
    }
    let bytes: Result<[u8; 8], _> = given.as_ref().try_into();
    let mismatched = |_no_token| Status::failed_precondition("mismatched conflict token");
    bytes.map(|bytes| Some(u64::from_be_bytes(bytes))).map_err(mismatched)
}

/// The conflict token behind the change.
async fn send(call: &Call<'_>, execution: WorkflowExecution, request: Request) -> Result<Bytes, Status> {
    match call.send(call.request_record(execution, request)).await? {
        Reply::Schedule(standing) => Ok(shown::token(standing.conflict_token)),
        _other => Err(status::unexpected_reply()),
    }
}

async fn read(call: &Call<'_>, execution: WorkflowExecution) -> Result<(Arc<Run>, Arc<Schedule>), Status> {
    let address = call.address(execution);
    let reading = call.gateway.router.read(address, Want::State).await.map_err(status::of_failure)?;
    let found = reading.filter(|reading| reading.run.is_open());
    let found =
        found.and_then(|reading| reading.run.schedule.clone().map(|schedule| (reading.run, schedule)));
    found.ok_or_else(|| not_found("schedule not found"))
}

/// Waits until no start is under way: who has triggered an action finds it in the next description.
async fn settled(call: &Call<'_>, execution: WorkflowExecution) -> Result<(Arc<Run>, Arc<Schedule>), Status> {
    let (run, schedule) = read(call, execution.clone()).await?;
    if !schedule.state().is_starting() {
        return Ok((run, schedule));
    }
    let latest = Instant::now() + STARTED_WITHIN;
    let until = call.deadline.map_or(latest, |deadline| latest.min(deadline));
    let started = call.gateway.router.watch(call.address(execution.clone()), i64::MAX);
    if let Ok(started) = tokio::time::timeout_at(until.into(), started).await {
        started.map_err(status::of_failure)?;
    }
    read(call, execution).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_eight_bytes_or_is_absent() {
        let read = |bytes: &'static [u8]| conflict_token(&Bytes::from_static(bytes)).ok();
        assert_eq!(read(b""), Some(None));
        assert_eq!(read(&[0, 0, 0, 0, 0, 0, 1, 2]), Some(Some(258)));
        assert_eq!(read(&[1]), None);
        assert_eq!(conflict_token(&shown::token(7)).ok(), Some(Some(7)));
    }
}
