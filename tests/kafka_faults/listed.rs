//! Lists and counts under faults: whatever was acknowledged is in the very next list, whichever node makes it.

use std::collections::BTreeMap;

use anyhow::ensure;
use bytes::Bytes;
use everlog_temporal_api::workflowservice::{
    CountWorkflowExecutionsRequest, CountWorkflowExecutionsResponse, ListWorkflowExecutionsRequest,
    ListWorkflowExecutionsResponse,
};
use prost::Message;

use crate::client::{Client, NAMESPACE};
use crate::event::RUNNING;
use crate::observations::Observations;

/// Smaller than what is listed, so that pages of several nodes have to fit together.
const PAGE_RUNS: i32 = 40;
/// Everything of a full load is more than one page.
const ALL_MAX: i32 = 1_000;

/// What the lists said of a run in the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedState {
    pub workflow_id: String,
    pub status: i64,
}

/// A workflow whose start was acknowledged is listed, by its id and among those that run or have closed latest.
pub async fn has_begun(client: &Client, id: &str) -> anyhow::Result<()> {
    let own = list(client, &format!("WorkflowId = '{id}'"), ALL_MAX).await?;
    ensure!(!own.is_empty(), "{id} was started, and the next list does not have it");
    let prefix = list(client, &format!("WorkflowId STARTS_WITH '{id}'"), ALL_MAX).await?;
    let is_there = prefix.values().any(|run| run.workflow_id == id);
    ensure!(is_there, "{id} was started, and the next list of all partitions does not have it");
    Ok(())
}

/// A workflow that has closed is counted as closed.
pub async fn has_closed(client: &Client, id: &str) -> anyhow::Result<()> {
    let open = count(client, &format!("WorkflowId = '{id}' AND ExecutionStatus = 'Running'")).await?;
    ensure!(open == 0, "{id} has closed, and the next count has {open} open runs of it");
    Ok(())
}

/// What is listed at the end, where nothing changes any more: as many as are counted, each once.
pub async fn all(client: &Client, faults: &mut Vec<String>) -> anyhow::Result<BTreeMap<String, ListedState>> {
    let listed = list(client, "", PAGE_RUNS).await?;
    let counted = count(client, "").await?;
    if i64::try_from(listed.len())? != counted {
        faults.push(format!("{} runs are listed, {counted} are counted", listed.len()));
    }
    Ok(listed)
}

/// Each page from any node. A run that comes twice is an error.
async fn list(client: &Client, query: &str, page_size: i32) -> anyhow::Result<BTreeMap<String, ListedState>> {
    let (mut listed, mut next_page_token) = (BTreeMap::new(), Bytes::new());
    loop {
        let request = ListWorkflowExecutionsRequest {
            namespace: NAMESPACE.into(),
            page_size,
            next_page_token,
            query: query.into(),
        };
        let page = ListWorkflowExecutionsResponse::decode(client.insist_on(&request).await?)?;
        for run in page.executions {
            let execution = run.execution.unwrap_or_default();
            let state = ListedState { workflow_id: execution.workflow_id, status: run.status.into() };
            let earlier = listed.insert(execution.run_id, state);
            ensure!(earlier.is_none(), "{query:?} lists a run twice: {earlier:?}");
        }
        next_page_token = page.next_page_token;
        if next_page_token.is_empty() {
            return Ok(listed);
        }
    }
}

async fn count(client: &Client, query: &str) -> anyhow::Result<i64> {
    let request = CountWorkflowExecutionsRequest { namespace: NAMESPACE.into(), query: query.into() };
    Ok(CountWorkflowExecutionsResponse::decode(client.insist_on(&request).await?)?.count)
}

/// Every workflow that a node told of is listed, and what is listed as closed has closed so.
pub fn check(observations: &Observations, found: &mut Vec<String>) {
    let Some(listed) = &observations.listed else { return };
    for (run_id, state) in listed {
        let head = observations.heads.get(run_id).map(|head| head.status);
        // What was open may have closed since.
        if head != Some(state.status) && (head.is_none() || state.status != RUNNING) {
            let id = &state.workflow_id;
            found.push(format!(
                "run {run_id} of {id} is listed with status {}, it has {head:?}",
                state.status
            ));
        }
    }
    for run_id in observations.told.keys().filter(|run_id| !listed.contains_key(*run_id)) {
        found.push(format!("run {run_id} is known, and not listed"));
    }
}
