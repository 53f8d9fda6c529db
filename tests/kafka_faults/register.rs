//! The register test: a workflow is set to a value by a signal, and once that is acknowledged whoever asks at another
//! node must see it: a query, which a worker answers, the history, and the description.

use everlog_temporal_api::full::temporal::api::common::v1::{Payload, Payloads};
use everlog_temporal_api::full::temporal::api::history::v1::history_event::Attributes;
use everlog_temporal_api::full::temporal::api::history::v1::{History, HistoryEvent};
use everlog_temporal_api::query::WorkflowQuery;
use everlog_temporal_api::workflowservice::{
    DescribeWorkflowExecutionResponse, GetWorkflowExecutionHistoryRequest,
    GetWorkflowExecutionHistoryResponse, QueryWorkflowRequest, QueryWorkflowResponse,
};
use prost::Message;

use anyhow::{Context, ensure};
use bytes::Bytes;
use everlog_tests::fate::Fate;

use crate::client::{Client, Connection, NAMESPACE, execution};

/// Of the Workflow Ids whose workflows are registers.
pub const PREFIX: &str = "register";
/// Each is set so often, to 1, 2, 3 and so on.
const VALUES: i64 = 3;
const SIGNAL: &str = "set-";
const QUERY: &str = "value";

/// What somebody saw, and what had been acknowledged before he asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    pub workflow_id: String,
    /// A query, a history or a description.
    pub by: &'static str,
    pub acknowledged: i64,
    pub saw: i64,
}

/// Sets a register again and again; each value is looked for at another node than the one that took it.
pub async fn turn(client: &Client, id: &str) -> anyhow::Result<()> {
    for value in 1..=VALUES {
        let (fate, taken_at) = client.signal_at(id, &format!("{SIGNAL}{value}")).await?;
        ensure!(fate != Fate::Refused, "{id} takes no value");
        if fate != Fate::Acked {
            // A refusal behind a try without an answer tells nothing of it.
            continue;
        }
        let elsewhere = taken_at + 1;
        let note = |by, acknowledged, saw| {
            client.client_log.read(Read { workflow_id: id.to_owned(), by, acknowledged, saw });
        };
        let answer = match client.read_from(elsewhere, &question(id)).await {
            Ok(answer) => answer,
            Err(error) => return Err(error.context(standing(client, id).await)),
        };
        note("query", value, answered(answer).with_context(|| format!("the query of {id}"))?);
        let history = client.history_from(elsewhere, id, "").await?;
        note("history", value, in_history(&history));
        // Somebody who saw so many events must see no fewer elsewhere.
        let described = client.describe_from(elsewhere + 1, id, "").await?;
        note("description", history.len() as i64, length(described)?);
    }
    Ok(())
}

/// How a register stands that nobody can read.
async fn standing(client: &Client, id: &str) -> String {
    let described = client.describe(id, "").await.ok();
    let described = described.and_then(|described| DescribeWorkflowExecutionResponse::decode(described).ok());
    let task = described.as_ref().map(|described| &described.pending_workflow_task);
    let events = client.history(id, "").await.unwrap_or_default();
    let last: Vec<_> = events.iter().rev().take(4).map(|event| (event.event_id, event.event_type)).collect();
    format!("the query of {id}, whose task is {task:?}, and whose last events are {last:?}")
}

/// Sets a register to a value at whichever node takes it.
pub async fn set(client: &Client, id: &str, value: i64) -> anyhow::Result<()> {
    let fate = client.signal(id, &format!("{SIGNAL}{value}")).await?;
    ensure!(fate == Fate::Acked, "{id} takes no value");
    Ok(())
}

/// One try to read a register's history at one node; none where it does not answer.
pub async fn read_at(client: &Client, connection: &Connection, id: &str, acknowledged: i64) -> Option<i64> {
    let request = GetWorkflowExecutionHistoryRequest {
        namespace: NAMESPACE.into(),
        execution: execution(id, ""),
        ..Default::default()
    };
    let page = client.ask_of(connection, &request).await.ok()?;
    let page = GetWorkflowExecutionHistoryResponse::decode(page).ok()?;
    let saw = in_history(&History::decode(page.history.unwrap_or_default()).ok()?.events);
    client.client_log.read(Read { workflow_id: id.to_owned(), by: "history", acknowledged, saw });
    Some(saw)
}

/// What a worker answers to the query of a register.
pub fn answer(history: &[HistoryEvent]) -> Bytes {
    let data = in_history(history).to_string().into_bytes().into();
    Payloads { payloads: vec![Payload { data, ..Payload::default() }] }.encode_to_vec().into()
}

fn question(id: &str) -> QueryWorkflowRequest {
    QueryWorkflowRequest {
        namespace: NAMESPACE.into(),
        execution: execution(id, ""),
        query: Some(WorkflowQuery { query_type: QUERY.into(), ..Default::default() }),
        ..Default::default()
    }
}

fn answered(answer: Bytes) -> anyhow::Result<i64> {
    let result = QueryWorkflowResponse::decode(answer)?.query_result.context("it has no result")?;
    let payloads = Payloads::decode(result)?.payloads;
    let value = payloads.first().context("a worker answers with a number")?;
    Ok(std::str::from_utf8(&value.data)?.parse()?)
}

/// The highest value that a history has; 0 = it was never set.
fn in_history(history: &[HistoryEvent]) -> i64 {
    let values = history.iter().filter_map(|event| match &event.attributes {
        Some(Attributes::WorkflowExecutionSignaledEventAttributes(signal)) => {
            signal.signal_name.strip_prefix(SIGNAL)?.parse().ok()
        }
        _ => None,
    });
    values.max().unwrap_or(0)
}

fn length(described: Bytes) -> anyhow::Result<i64> {
    let described = DescribeWorkflowExecutionResponse::decode(described)?;
    Ok(described.workflow_execution_info.context("it is described")?.history_length)
}

/// Reads that did not see what had been acknowledged.
pub fn check(reads: &[Read], found: &mut Vec<String>) {
    for read in reads.iter().filter(|read| read.saw < read.acknowledged) {
        let Read { workflow_id, by, acknowledged, saw } = read;
        found.push(format!(
            "a stale answer: {workflow_id} was at {acknowledged} when a {by} was asked for elsewhere, and that saw {saw}"
        ));
    }
}
