//! The event that a run is reset to, found in its history or among its reset points, as Temporal's server finds it.

use everlog_engine::event::{Attributes, History};
use everlog_engine::machine::reset_points::{Point, Points};
use everlog_temporal_api::common::WorkflowExecution;
use everlog_temporal_api::common::reset_options::Target;
use everlog_temporal_api::workflowservice::{
    DescribeWorkflowExecutionRequest, GetWorkflowExecutionHistoryRequest,
    GetWorkflowExecutionHistoryReverseRequest,
};
use prost::Message;
use tonic::Status;

use crate::routing::in_process::{ApiClient, answer};

/// The run that is reset, and the end of the workflow task that it goes back to.
pub(crate) type ResetTo = (WorkflowExecution, i64);

/// Finds the event.
///
/// # Errors
/// FAILED_PRECONDITION if the run has no such event; else what a call says.
pub(crate) async fn find(
    client: &ApiClient,
    namespace: &str,
    execution: WorkflowExecution,
    target: &Target,
    current_run_only: bool,
    now_ms: i64,
) -> Result<ResetTo, Status> {
    match target {
        Target::WorkflowTaskId(event_id) => Ok((execution, *event_id)),
        Target::FirstWorkflowTask(()) => {
            let event_id = first_task(client, namespace, &execution).await?;
            Ok((execution, event_id))
        }
        Target::LastWorkflowTask(()) => {
            let event_id = last_task(client, namespace, &execution).await?;
            Ok((execution, event_id))
        }
        Target::BuildId(build_id) => {
            let points = points(client, namespace, &execution).await?;
            let point = point(&points, build_id, &execution.run_id, current_run_only, now_ms)?;
            let run = WorkflowExecution { run_id: point.run_id.clone(), ..execution };
            Ok((run, point.first_workflow_task_completed_id))
        }
    }
}

fn without_task() -> Status {
    Status::failed_precondition("unable to find any scheduled or completed task")
}

/// The end of the first completed task, or what would be the start of the first scheduled one.
async fn first_task(
    client: &ApiClient,
    namespace: &str,
    execution: &WorkflowExecution,
) -> Result<i64, Status> {
    let mut request = GetWorkflowExecutionHistoryRequest {
        namespace: namespace.into(),
        execution: Some(execution.clone()),
        ..Default::default()
    };
    let mut scheduled = None;
    loop {
        let page = answer(client.clone().get_workflow_execution_history(request.clone())).await?;
        let history = History::decode(page.history.unwrap_or_default()).map_err(unreadable)?;
        for event in &history.events {
            match &event.attributes {
                Some(Attributes::TaskCompleted(_)) => return Ok(event.event_id),
                Some(Attributes::TaskScheduled(_)) => scheduled = scheduled.or(Some(event.event_id + 1)),
                _others => {}
            }
        }
        if page.next_page_token.is_empty() {
            return scheduled.ok_or_else(without_task);
        }
        request.next_page_token = page.next_page_token;
    }
}

/// The end of the last completed task, or what would be the start of the last scheduled one.
async fn last_task(
    client: &ApiClient,
    namespace: &str,
    execution: &WorkflowExecution,
) -> Result<i64, Status> {
    let mut request = GetWorkflowExecutionHistoryReverseRequest {
        namespace: namespace.into(),
        execution: Some(execution.clone()),
        ..Default::default()
    };
    let mut scheduled = None;
    loop {
        let page = answer(client.clone().get_workflow_execution_history_reverse(request.clone())).await?;
        let history = History::decode(page.history.unwrap_or_default()).map_err(unreadable)?;
        for event in &history.events {
            match &event.attributes {
                Some(Attributes::TaskCompleted(_)) => return Ok(event.event_id),
                Some(Attributes::TaskScheduled(_)) => scheduled = scheduled.or(Some(event.event_id + 1)),
                _others => {}
            }
        }
        if page.next_page_token.is_empty() {
            return scheduled.ok_or_else(without_task);
        }
        request.next_page_token = page.next_page_token;
    }
}

fn unreadable(_error: prost::DecodeError) -> Status {
    Status::internal("the history cannot be read")
}

async fn points(
    client: &ApiClient,
    namespace: &str,
    execution: &WorkflowExecution,
) -> Result<Vec<Point>, Status> {
    let request =
        DescribeWorkflowExecutionRequest { namespace: namespace.into(), execution: Some(execution.clone()) };
    let described = answer(client.clone().describe_workflow_execution(request)).await?;
    let points = described.workflow_execution_info.and_then(|info| info.auto_reset_points);
    let points = Points::decode(points.unwrap_or_default());
    Ok(points.map_err(|_error| Status::internal("the reset points cannot be read"))?.points)
}

/// The point of a build, if a run can be reset to it.
fn point<'a>(
    points: &'a [Point],
    build_id: &str,
    run_id: &str,
    current_run_only: bool,
    now_ms: i64,
) -> Result<&'a Point, Status> {
    let refused = |why: &str| Err(Status::failed_precondition(format!("Reset point for {build_id} {why}")));
    let Some(point) = points.iter().find(|point| point.build_id == build_id) else {
        return Err(Status::failed_precondition(format!("Can't find reset point for {build_id}")));
    };
    if !point.resettable {
        return refused("is not resettable.");
    }
    if point.expire_time.is_some_and(|expires| expires.to_ms() <= now_ms) {
        return refused("is expired.");
    }
    if current_run_only && point.run_id != run_id {
        return refused("points to previous run and CurrentRunOnly is set.");
    }
    Ok(point)
}

#[cfg(test)]
mod tests {
    use everlog_engine::time::Timestamp;

    use super::*;

    #[test]
    fn a_build_is_gone_back_to_where_that_can_be_done() {
        let good = Point {
            build_id: "good".into(),
            run_id: "former".into(),
            first_workflow_task_completed_id: 4,
            expire_time: Some(Timestamp::from_ms(5_000)),
            resettable: true,
            ..Point::default()
        };
        let fixed = Point { build_id: "fixed".into(), resettable: false, ..good.clone() };
        let points = [good, fixed];
        let found = |build_id, current_run_only, now_ms| {
            let found = point(&points, build_id, "current", current_run_only, now_ms);
            found
                .map(|point| point.first_workflow_task_completed_id)
                .map_err(|status| status.message().to_owned())
        };
        assert_eq!(found("good", false, 4_999), Ok(4));
        assert_eq!(found("good", false, 5_000), Err("Reset point for good is expired.".into()));
        let elsewhere = "Reset point for good points to previous run and CurrentRunOnly is set.";
        assert_eq!(found("good", true, 4_999), Err(elsewhere.into()));
        assert_eq!(found("fixed", false, 0), Err("Reset point for fixed is not resettable.".into()));
        assert_eq!(found("", false, 0), Err("Can't find reset point for ".into()));
    }
}
