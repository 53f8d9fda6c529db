//! GetWorkflowExecutionHistory: pages, the long poll for new events or the close event, and newest first.

use std::time::Instant;

use bytes::Bytes;
use everlog_engine::Run;
use everlog_partition::{Address, Reading, Want};
use everlog_temporal_api::enums::HistoryEventFilterType;
use everlog_temporal_api::workflowservice::{
    GetWorkflowExecutionHistoryRequest, GetWorkflowExecutionHistoryResponse,
    GetWorkflowExecutionHistoryReverseRequest, GetWorkflowExecutionHistoryReverseResponse,
};
use tonic::Status;

use crate::codec::status;
use crate::codec::{close_event, history_bytes};
use crate::server::call::Call;
use crate::tasks::page_token::PageToken;
use crate::tasks::token::Purpose;

pub(crate) async fn get(
    call: &Call<'_>,
    request: GetWorkflowExecutionHistoryRequest,
) -> Result<GetWorkflowExecutionHistoryResponse, Status> {
    let mut address = call.address(call.checks().execution(request.execution)?);
    let page_token =
        PageToken::open(call.response_context(), Purpose::History, &address, &request.next_page_token)?;
    let page_token = page_token.unwrap_or(PageToken { event_id: 1, ..PageToken::default() });
    if !page_token.run_id.is_empty() {
        address.run_id.clone_from(&page_token.run_id);
    }
    let only_close = request.history_event_filter_type == i32::from(HistoryEventFilterType::CloseEvent);
    let (history, next) = match (only_close, request.wait_new_event) {
        (true, wait) => close_event(call, address, wait).await?,
        (false, true) => tail(call, address, page_token, request.maximum_page_size).await?,
        (false, false) => page(call, address, page_token, request.maximum_page_size).await?,
    };
    let next_page_token = match next {
        Some((page_token, workflow_id)) => page_token.seal(call.response_context(), &workflow_id),
        None => Bytes::new(),
    };
    Ok(GetWorkflowExecutionHistoryResponse { history: Some(history), next_page_token, ..Default::default() })
}

/// Events, and the token of the next page with the Workflow Id that it is bound to.
type HistoryPage = (Bytes, Option<(PageToken, String)>);

fn next_page(run: &Run, event_id: i64, end_event_id: i64) -> Option<(PageToken, String)> {
    Some((PageToken { end_event_id, ..PageToken::of(run, event_id) }, run.start.workflow_id.clone()))
}

/// The close event only. While the run is open a caller that waits gets no event, and a token.
async fn close_event(call: &Call<'_>, mut address: Address, wait: bool) -> Result<HistoryPage, Status> {
    let deadline = Instant::now() + call.patience(call.gateway.limits.history_wait_ms);
    loop {
        let run = read(call, &address, Want::State).await?.run;
        address.run_id.clone_from(&run.start.run_id);
        if !run.is_open() {
            let reading = read(call, &address, Want::LastBatch).await?;
            let closed = history_bytes::last(&reading.page.history);
            return Ok((if call.follows_next_run { closed } else { close_event::continued(closed) }, None));
        }
        if !wait {
            return Ok((Bytes::new(), None));
        }
        if !wait_for_events(call, &address, i64::MAX, deadline).await? {
            return Ok((Bytes::new(), next_page(&run, 1, 0)));
        }
    }
}

/// The long poll for new events. After a while without one it returns no event and a token. After the close there is no token.
async fn tail(
    call: &Call<'_>,
    mut address: Address,
    from: PageToken,
    batches: i32,
) -> Result<HistoryPage, Status> {
    let deadline = Instant::now() + call.patience(call.gateway.limits.history_wait_ms);
    let want = Want::History { from_event_id: from.event_id, batches_max: batches_max(call, batches) };
    loop {
        let Reading { run, page, .. } = read(call, &address, want).await?;
        address.run_id.clone_from(&run.start.run_id);
        if page.next_event_id != 0 {
            return Ok((page.history, next_page(&run, page.next_event_id, 0)));
        }
        if !run.is_open() {
            return Ok((page.history, None));
        }
        if !page.history.is_empty() {
            return Ok((page.history, next_page(&run, run.head.next_event_id, 0)));
        }
        if !wait_for_events(call, &address, from.event_id - 1, deadline).await? {
            return Ok((Bytes::new(), next_page(&run, from.event_id, 0)));
        }
    }
}

/// A page of the events so far. Only the worker with the started task gets the task's events that are not in the history yet.
async fn page(
    call: &Call<'_>,
    address: Address,
    from: PageToken,
    batches: i32,
) -> Result<HistoryPage, Status> {
    let want = Want::History { from_event_id: from.event_id, batches_max: batches_max(call, batches) };
    let Reading { run, page, .. } = read(call, &address, want).await?;
    let end = from.end_event_id;
    let is_last = page.next_event_id == 0 || (end != 0 && page.next_event_id >= end);
    let history = if is_last && end != 0 { history_bytes::until(&page.history, end) } else { page.history };
    if !is_last {
        return Ok((history, next_page(&run, page.next_event_id, end)));
    }
    let task = run.started_task().filter(|task| task.started_event_id + 1 == end);
    let unwritten = task.map(|task| task.tail()).unwrap_or_default();
    Ok((history_bytes::with_tail(history, unwritten), None))
}

pub(crate) async fn get_reverse(
    call: &Call<'_>,
    request: GetWorkflowExecutionHistoryReverseRequest,
) -> Result<GetWorkflowExecutionHistoryReverseResponse, Status> {
    let mut address = call.address(call.checks().execution(request.execution)?);
    let page_token =
        PageToken::open(call.response_context(), Purpose::Reverse, &address, &request.next_page_token)?;
    let below_event_id = match page_token {
        Some(page_token) => {
            address.run_id = page_token.run_id;
            page_token.event_id
        }
        None => 0,
    };
    let want = Want::Reverse { below_event_id, batches_max: batches_max(call, request.maximum_page_size) };
    let Reading { run, page, .. } = read(call, &address, want).await?;
    let next_page_token = match page.next_event_id {
        0 => Bytes::new(),
        below => PageToken::of(&run, below).seal_for(
            call.response_context(),
            Purpose::Reverse,
            &run.start.workflow_id,
        ),
    };
    let history = Some(history_bytes::reversed(&page.history));
    Ok(GetWorkflowExecutionHistoryReverseResponse { history, next_page_token })
}

pub(crate) async fn read(call: &Call<'_>, address: &Address, want: Want) -> Result<Reading, Status> {
    if matches!(want, Want::History { .. } | Want::Reverse { .. }) {
        call.acquire_history_permit().await;
    }
    let reading = call.gateway.router.read(address.clone(), want).await.map_err(status::of_failure)?;
    let unknown = || everlog_engine::Rejection::unknown_run(&address.workflow_id, &address.run_id);
    reading.ok_or_else(|| status::of_rejection(unknown()))
}

/// Waits until the run has events after `known_event_id` or is closed; false at the deadline.
async fn wait_for_events(
    call: &Call<'_>,
    address: &Address,
    known_event_id: i64,
    deadline: Instant,
) -> Result<bool, Status> {
    if Instant::now() >= deadline {
        return Ok(false);
    }
    tokio::select! {
        watched = call.gateway.router.watch(address.clone(), known_event_id) => {
            watched.map(|()| true).map_err(status::of_failure)
        }
        () = tokio::time::sleep_until(deadline.into()) => Ok(false),
        () = call.gateway.stopped() => Ok(false),
    }
}

fn batches_max(call: &Call<'_>, wanted: i32) -> usize {
    let most = call.gateway.limits.history_page_batches_max;
    match usize::try_from(wanted) {
        Ok(wanted) if wanted > 0 => wanted.min(most),
        Ok(_) | Err(_) => most,
    }
}
