//! What an operator does to open activities: pause, unpause, reset, other options; of the API both forms, the older one that
//! means activities by id or type, and the newer one that means one by its id.

use everlog_engine::Reply;
use everlog_engine::machine::operator::activity_control::{
    ActivitySelection, ActivitySelector, PauseActivity, ResetActivity, UnpauseActivity, UpdateActivityOptions,
};
use everlog_engine::machine::operator::activity_options::ActivityOptionsPatch;
use everlog_engine::request::Request;
use everlog_temporal_api::common::WorkflowExecution;
use everlog_temporal_api::temporal::api::activity::v1::ActivityOptions;
use everlog_temporal_api::workflowservice::{
    PauseActivityExecutionRequest, PauseActivityExecutionResponse, PauseActivityRequest,
    PauseActivityResponse, ResetActivityExecutionRequest, ResetActivityExecutionResponse,
    ResetActivityRequest, ResetActivityResponse, UnpauseActivityExecutionRequest,
    UnpauseActivityExecutionResponse, UnpauseActivityRequest, UnpauseActivityResponse,
    UpdateActivityExecutionOptionsRequest, UpdateActivityExecutionOptionsResponse,
    UpdateActivityOptionsRequest, UpdateActivityOptionsResponse, pause_activity_request,
    reset_activity_request, unpause_activity_request, update_activity_options_request,
};
use prost_types::FieldMask;
use tonic::Status;

use crate::codec::activity_options;
use crate::codec::status::{self, invalid};
use crate::codec::validation::span_ms;
use crate::server::call::Call;

/// The run that a request of the older form names.
fn execution(call: &Call<'_>, given: Option<WorkflowExecution>) -> Result<WorkflowExecution, Status> {
    let given = given.unwrap_or_default();
    call.checks().run(given.workflow_id, given.run_id)
}

/// The run and the activity that a request of the newer form names. Without a Workflow Id it means an activity without a workflow, and
/// there are none.
fn named(
    call: &Call<'_>,
    workflow_id: String,
    run_id: String,
    activity_id: String,
) -> Result<(WorkflowExecution, ActivitySelector), Status> {
    if workflow_id.is_empty() {
        return Err(Status::unimplemented("activities without a workflow are not served"));
    }
    let checks = call.checks();
    let execution = checks.run(workflow_id, run_id)?;
    checks.id("ActivityId", &activity_id)?;
    Ok((execution, selector(ActivitySelection::Id(activity_id))))
}

fn selector(selection: ActivitySelection) -> ActivitySelector {
    ActivitySelector { selection: Some(selection) }
}

/// The activities that a request of the older form means.
fn selected(given: Option<ActivitySelection>) -> Result<ActivitySelector, Status> {
    let given =
        given.ok_or_else(|| invalid("Either Activity.Id or Activity.Type should be set on request."))?;
    Ok(selector(given))
}

/// Who asks, why, and under which id.
fn check(call: &Call<'_>, identity: &str, reason: &str, request_id: &str) -> Result<(), Status> {
    let checks = call.checks();
    checks.length("Identity", identity)?;
    checks.bytes("Reason", reason.len())?;
    checks.length("RequestId", request_id)
}

async fn carry_out_pause(
    call: &Call<'_>,
    execution: WorkflowExecution,
    order: PauseActivity,
) -> Result<(), Status> {
    check(call, &order.identity, &order.reason, &order.request_id)?;
    call.carry_out(execution, Request::PauseActivity(order)).await
}

pub(crate) async fn pause(
    call: &Call<'_>,
    request: PauseActivityRequest,
) -> Result<PauseActivityResponse, Status> {
    let execution = execution(call, request.execution)?;
    let selector = selected(request.activity.map(|activity| match activity {
        pause_activity_request::Activity::Id(id) => ActivitySelection::Id(id),
        pause_activity_request::Activity::Type(name) => ActivitySelection::Type(name),
    }))?;
    let (identity, reason, request_id) = (request.identity, request.reason, request.request_id);
    let order = PauseActivity { selector: Some(selector), identity, reason, request_id };
    carry_out_pause(call, execution, order).await?;
    Ok(PauseActivityResponse::default())
}

pub(crate) async fn pause_execution(
    call: &Call<'_>,
    request: PauseActivityExecutionRequest,
) -> Result<PauseActivityExecutionResponse, Status> {
    let (execution, selector) = named(call, request.workflow_id, request.run_id, request.activity_id)?;
    let (identity, reason, request_id) = (request.identity, request.reason, request.request_id);
    let order = PauseActivity { selector: Some(selector), identity, reason, request_id };
    carry_out_pause(call, execution, order).await?;
    Ok(PauseActivityExecutionResponse::default())
}

pub(crate) async fn unpause(
    call: &Call<'_>,
    request: UnpauseActivityRequest,
) -> Result<UnpauseActivityResponse, Status> {
    let execution = execution(call, request.execution)?;
    let selector = selected(request.activity.map(|activity| match activity {
        unpause_activity_request::Activity::Id(id) => ActivitySelection::Id(id),
        unpause_activity_request::Activity::Type(name) => ActivitySelection::Type(name),
        unpause_activity_request::Activity::UnpauseAll(all) => ActivitySelection::All(all),
    }))?;
    check(call, &request.identity, "", "")?;
    let order = UnpauseActivity {
        selector: Some(selector),
        resets_attempts: request.reset_attempts,
        resets_heartbeat: request.reset_heartbeat,
        jitter_ms: span_ms("Jitter", request.jitter)?,
    };
    call.carry_out(execution, Request::UnpauseActivity(order)).await?;
    Ok(UnpauseActivityResponse::default())
}

pub(crate) async fn unpause_execution(
    call: &Call<'_>,
    request: UnpauseActivityExecutionRequest,
) -> Result<UnpauseActivityExecutionResponse, Status> {
    let (execution, selector) = named(call, request.workflow_id, request.run_id, request.activity_id)?;
    check(call, &request.identity, &request.reason, &request.request_id)?;
    let order = UnpauseActivity {
        selector: Some(selector),
        jitter_ms: span_ms("Jitter", request.jitter)?,
        ..UnpauseActivity::default()
    };
    call.carry_out(execution, Request::UnpauseActivity(order)).await?;
    Ok(UnpauseActivityExecutionResponse::default())
}

pub(crate) async fn reset(
    call: &Call<'_>,
    request: ResetActivityRequest,
) -> Result<ResetActivityResponse, Status> {
    let execution = execution(call, request.execution)?;
    let selector = selected(request.activity.map(|activity| match activity {
        reset_activity_request::Activity::Id(id) => ActivitySelection::Id(id),
        reset_activity_request::Activity::Type(name) => ActivitySelection::Type(name),
        reset_activity_request::Activity::MatchAll(all) => ActivitySelection::All(all),
    }))?;
    check(call, &request.identity, "", "")?;
    let order = ResetActivity {
        selector: Some(selector),
        keeps_paused: request.keep_paused,
        resets_heartbeat: request.reset_heartbeat,
        jitter_ms: span_ms("Jitter", request.jitter)?,
        restores_options: request.restore_original_options,
    };
    call.carry_out(execution, Request::ResetActivity(order)).await?;
    Ok(ResetActivityResponse::default())
}

pub(crate) async fn reset_execution(
    call: &Call<'_>,
    request: ResetActivityExecutionRequest,
) -> Result<ResetActivityExecutionResponse, Status> {
    let (execution, selector) = named(call, request.workflow_id, request.run_id, request.activity_id)?;
    check(call, &request.identity, "", &request.request_id)?;
    let order = ResetActivity {
        selector: Some(selector),
        keeps_paused: request.keep_paused,
        resets_heartbeat: request.reset_heartbeat,
        jitter_ms: span_ms("Jitter", request.jitter)?,
        restores_options: request.restore_original_options,
    };
    call.carry_out(execution, Request::ResetActivity(order)).await?;
    Ok(ResetActivityExecutionResponse::default())
}

/// What is to change of options, by a mask, or that the original ones are restored.
type OptionsChange = (Option<ActivityOptions>, Option<FieldMask>, bool);

/// The patch of a change; none where the original options are restored.
pub(crate) fn patch_of(
    (options, mask, restores): OptionsChange,
) -> Result<Option<ActivityOptionsPatch>, Status> {
    // The CLI sends a mask without paths where it has nothing to say.
    let mask = mask.filter(|mask| !restores || !mask.paths.is_empty());
    match (restores, mask, options) {
        (true, Some(_), _) => Err(invalid("Both UpdateMask and RestoreOriginal are provided")),
        (true, None, _) => Ok(None),
        (false, _, None) => Err(invalid("ActivityOptions are not provided")),
        (false, None, Some(_)) => Err(invalid("UpdateMask is not provided")),
        (false, Some(mask), Some(options)) => activity_options::patch(&mask, options).map(Some),
    }
}

async fn change_options(
    call: &Call<'_>,
    execution: WorkflowExecution,
    selector: ActivitySelector,
    change: OptionsChange,
) -> Result<ActivityOptions, Status> {
    let patch = patch_of(change)?.map(Box::new);
    let order = UpdateActivityOptions { selector: Some(selector), patch };
    match call.send(call.request_record(execution, Request::UpdateActivityOptions(order))).await? {
        Reply::ActivityOptions(options) => Ok(activity_options::outer(*options)),
        _other => Err(status::unexpected_reply()),
    }
}

pub(crate) async fn update_options(
    call: &Call<'_>,
    request: UpdateActivityOptionsRequest,
) -> Result<UpdateActivityOptionsResponse, Status> {
    let execution = execution(call, request.execution)?;
    check(call, &request.identity, "", "")?;
    let selector = selected(request.activity.map(|activity| match activity {
        update_activity_options_request::Activity::Id(id) => ActivitySelection::Id(id),
        update_activity_options_request::Activity::Type(name) => ActivitySelection::Type(name),
        update_activity_options_request::Activity::MatchAll(all) => ActivitySelection::All(all),
    }))?;
    let change = (request.activity_options, request.update_mask, request.restore_original);
    let options = change_options(call, execution, selector, change).await?;
    Ok(UpdateActivityOptionsResponse { activity_options: Some(options) })
}

pub(crate) async fn update_execution_options(
    call: &Call<'_>,
    request: UpdateActivityExecutionOptionsRequest,
) -> Result<UpdateActivityExecutionOptionsResponse, Status> {
    let (execution, selector) = named(call, request.workflow_id, request.run_id, request.activity_id)?;
    check(call, &request.identity, "", &request.request_id)?;
    let change = (request.activity_options, request.update_mask, request.restore_original);
    let options = change_options(call, execution, selector, change).await?;
    Ok(UpdateActivityExecutionOptionsResponse { activity_options: Some(options) })
}
