//! Lists and counts of runs: ListWorkflowExecutions, CountWorkflowExecutions, and the older calls that list.

use bytes::Bytes;
use everlog_engine::api_types::MapEntry;
use everlog_engine::payload::Payload;
use everlog_temporal_api::enums::WorkflowExecutionStatus;
use everlog_temporal_api::temporal::api::filter::v1::StartTimeFilter;
use everlog_temporal_api::workflow::WorkflowExecutionInfo;
use everlog_temporal_api::workflowservice::count_workflow_executions_response::AggregationGroup;
use everlog_temporal_api::workflowservice::list_closed_workflow_executions_request::Filters as ClosedFilters;
use everlog_temporal_api::workflowservice::list_open_workflow_executions_request::Filters as OpenFilters;
use everlog_temporal_api::workflowservice::{
    CountWorkflowExecutionsRequest, CountWorkflowExecutionsResponse, ListArchivedWorkflowExecutionsRequest,
    ListArchivedWorkflowExecutionsResponse, ListClosedWorkflowExecutionsRequest,
    ListClosedWorkflowExecutionsResponse, ListOpenWorkflowExecutionsRequest,
    ListOpenWorkflowExecutionsResponse, ListWorkflowExecutionsRequest, ListWorkflowExecutionsResponse,
    ScanWorkflowExecutionsRequest, ScanWorkflowExecutionsResponse,
};
use everlog_visibility::query::{
    Filter, FilterError, LegacyFilter, Moments, Query, QueryError, RunAttributes, status_name,
};
use prost::Message;
use prost_types::Timestamp;
use tonic::Status;

use crate::codec::status::invalid;
use crate::server::call::Call;
use crate::visibility::count::{Grouped, counts};
use crate::visibility::list::{ListedPage, PageRequest, page};
use crate::visibility::listed::execution_info;

pub(crate) async fn list(
    call: &Call<'_>,
    request: ListWorkflowExecutionsRequest,
) -> Result<ListWorkflowExecutionsResponse, Status> {
    let query = Query::for_list(&request.query, &names(call)).map_err(refused)?;
    let (executions, next_page_token) =
        executions(call, query, &request.query, request.page_size, request.next_page_token).await?;
    Ok(ListWorkflowExecutionsResponse { executions, next_page_token })
}

pub(crate) async fn scan(
    call: &Call<'_>,
    request: ScanWorkflowExecutionsRequest,
) -> Result<ScanWorkflowExecutionsResponse, Status> {
    let query = Query::for_list(&request.query, &names(call)).map_err(refused)?;
    let (executions, next_page_token) =
        executions(call, query, &request.query, request.page_size, request.next_page_token).await?;
    Ok(ScanWorkflowExecutionsResponse { executions, next_page_token })
}

pub(crate) async fn list_open(
    call: &Call<'_>,
    request: ListOpenWorkflowExecutionsRequest,
) -> Result<ListOpenWorkflowExecutionsResponse, Status> {
    let filter = match request.filters {
        None => LegacyFilter::All,
        Some(OpenFilters::ExecutionFilter(of)) => of_execution(of.workflow_id),
        Some(OpenFilters::TypeFilter(of)) => LegacyFilter::WorkflowType(of.name),
    };
    let filter = Filter::open_runs(moments(request.start_time_filter)?, filter).map_err(too_long)?;
    let (executions, next_page_token) =
        legacy(call, filter, request.maximum_page_size, request.next_page_token).await?;
    Ok(ListOpenWorkflowExecutionsResponse { executions, next_page_token })
}

pub(crate) async fn list_closed(
    call: &Call<'_>,
    request: ListClosedWorkflowExecutionsRequest,
) -> Result<ListClosedWorkflowExecutionsResponse, Status> {
    let filter = match request.filters {
        None => LegacyFilter::All,
        Some(ClosedFilters::ExecutionFilter(of)) => of_execution(of.workflow_id),
        Some(ClosedFilters::TypeFilter(of)) => LegacyFilter::WorkflowType(of.name),
        Some(ClosedFilters::StatusFilter(of)) => match of.status() {
            WorkflowExecutionStatus::Unspecified | WorkflowExecutionStatus::Running => {
                return Err(invalid("StatusFilter must be specified and must be not Running."));
            }
            status => LegacyFilter::Status(status.into()),
        },
    };
    let filter = Filter::closed_runs(moments(request.start_time_filter)?, filter).map_err(too_long)?;
    let (executions, next_page_token) =
        legacy(call, filter, request.maximum_page_size, request.next_page_token).await?;
    Ok(ListClosedWorkflowExecutionsResponse { executions, next_page_token })
}

fn of_execution(workflow_id: String) -> LegacyFilter {
    LegacyFilter::WorkflowId(workflow_id)
}

fn too_long(error: FilterError) -> Status {
    invalid(error.to_string())
}

/// The moments that a request names, both of which match.
fn moments(filter: Option<StartTimeFilter>) -> Result<Moments, Status> {
    let Some(StartTimeFilter { earliest_time, latest_time }) = filter else { return Ok(Moments::default()) };
    let ns = |at: Timestamp| at.seconds.saturating_mul(1_000_000_000).saturating_add(i64::from(at.nanos));
    let (earliest_ns, latest_ns) = (earliest_time.map(ns), latest_time.map(ns));
    match (earliest_ns, latest_ns) {
        (Some(earliest), Some(latest)) if earliest > latest => {
            Err(invalid("EarliestTime in StartTimeFilter should not be larger than LatestTime."))
        }
        _in_order => Ok(Moments { earliest_ns, latest_ns }),
    }
}

/// A page of a list without a query: its token belongs to the filter.
async fn legacy(
    call: &Call<'_>,
    filter: Filter,
    page_size: i32,
    token: Bytes,
) -> Result<(Vec<WorkflowExecutionInfo>, Bytes), Status> {
    let text = format!("{filter:?}");
    executions(call, Query { filter, order: None, group_by: None }, &text, page_size, token).await
}

/// As a server without archival answers.
pub(crate) async fn list_archived(
    _call: &Call<'_>,
    _request: ListArchivedWorkflowExecutionsRequest,
) -> Result<ListArchivedWorkflowExecutionsResponse, Status> {
    Err(invalid("Cluster is not configured for visibility archival."))
}

pub(crate) async fn count(
    call: &Call<'_>,
    request: CountWorkflowExecutionsRequest,
) -> Result<CountWorkflowExecutionsResponse, Status> {
    let query = Query::for_count(&request.query, &names(call)).map_err(refused)?;
    let counted = counts(call.gateway, &call.namespace.record.id, query).await?;
    let groups = counted
        .groups
        .into_iter()
        .map(|(value, count)| AggregationGroup { group_values: vec![group_payload(&value)], count });
    Ok(CountWorkflowExecutionsResponse { count: counted.count, groups: groups.collect() })
}

/// Checks a query of a list that is made later.
pub(crate) fn check(call: &Call<'_>, query: &str) -> Result<(), Status> {
    Query::for_list(query, &names(call)).map(drop).map_err(refused)
}

fn names<'a>(call: &'a Call<'_>) -> RunAttributes<'a> {
    RunAttributes { custom: &call.namespace.record.search_attributes }
}

fn refused(error: QueryError) -> Status {
    invalid(error.to_string())
}

/// Executions of a page, and the token of the next one.
async fn executions(
    call: &Call<'_>,
    query: Query,
    text: &str,
    page_size: i32,
    token: Bytes,
) -> Result<(Vec<WorkflowExecutionInfo>, Bytes), Status> {
    let namespace = &call.namespace.record;
    let request = PageRequest { namespace_id: &namespace.id, query, text, page_size, token };
    let ListedPage { runs, token } = page(call.gateway, request).await?;
    Ok((runs.into_iter().map(|run| execution_info(namespace, run)).collect(), token))
}

/// The value of a group as a client decodes it: a keyword.
fn group_payload(value: &Grouped) -> Bytes {
    let said = |key: &str, value: &'static str| MapEntry { key: key.into(), value: value.into() };
    let json = match value {
        Grouped::Missing => {
            let metadata = vec![said("encoding", "binary/null"), said("type", "Keyword")];
            return Payload { metadata, data: Bytes::new() }.encode_to_vec().into();
        }
        Grouped::Keyword(word) => serde_json::to_vec(word),
        Grouped::Status(status) => serde_json::to_vec(status_name(*status).unwrap_or("Unspecified")),
    };
    let metadata = vec![said("encoding", "json/plain"), said("type", "Keyword")];
    Payload { metadata, data: json.expect("texts are JSON").into() }.encode_to_vec().into()
}
