//! Pages of a history that is read across the death of its node: a token says where the next page begins, whoever reads it.

use anyhow::{Context, ensure};
use bytes::Bytes;
use everlog_temporal_api::full::temporal::api::history::v1::{History, HistoryEvent};
use everlog_temporal_api::workflowservice::{
    GetWorkflowExecutionHistoryRequest, GetWorkflowExecutionHistoryResponse,
    GetWorkflowExecutionHistoryReverseRequest, GetWorkflowExecutionHistoryReverseResponse,
};
use everlog_tests::caller::{Caller, execution};
use everlog_tests::kafka::Cluster;
use everlog_tests::patience;
use prost::Message;
use tonic::{Code, Status};

use crate::test_log::TestLog;

const ID: &str = "pages";
const SIGNALS: usize = 30;
const PAGE_EVENTS: i32 = 7;

/// How a history is read.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Forward,
    Back,
    /// As one who waits for what comes next.
    Along,
}

/// A page, and the token of the next one.
async fn page(client: &Caller, way: Way, token: Bytes) -> anyhow::Result<(Vec<HistoryEvent>, Bytes)> {
    let (deadline, mut looks) = (patience::deadline(), patience::looks());
    loop {
        looks.tick().await;
        match ask(client, way, token.clone()).await {
            Ok((history, next)) => {
                return Ok((History::decode(history.unwrap_or_default())?.events, next));
            }
            // The partition moves.
            Err(status) if status.code() == Code::Unavailable => {
                ensure!(!deadline.is_over(), "{way:?}: {status}");
            }
            Err(status) => return Err(status).with_context(|| format!("{way:?}")),
        }
    }
}

async fn ask(client: &Caller, way: Way, token: Bytes) -> Result<(Option<Bytes>, Bytes), Status> {
    let undecodable = |error: prost::DecodeError| Status::data_loss(error.to_string());
    if way == Way::Back {
        let request = GetWorkflowExecutionHistoryReverseRequest {
            namespace: "default".into(),
            execution: execution(ID),
            maximum_page_size: PAGE_EVENTS,
            next_page_token: token,
        };
        let answer = client.send(request).await?;
        let answer = GetWorkflowExecutionHistoryReverseResponse::decode(answer).map_err(undecodable)?;
        return Ok((answer.history, answer.next_page_token));
    }
    let request = GetWorkflowExecutionHistoryRequest {
        namespace: "default".into(),
        execution: execution(ID),
        maximum_page_size: PAGE_EVENTS,
        next_page_token: token,
        wait_new_event: way == Way::Along,
        ..Default::default()
    };
    let answer = client.send(request).await?;
    let answer = GetWorkflowExecutionHistoryResponse::decode(answer).map_err(undecodable)?;
    Ok((answer.history, answer.next_page_token))
}

/// All pages from a token on, and the last token; of one who waits, until nothing has come for a while.
async fn rest(client: &Caller, way: Way, mut token: Bytes) -> anyhow::Result<(Vec<HistoryEvent>, Bytes)> {
    let mut events = Vec::new();
    while !token.is_empty() {
        let (page, next) = page(client, way, token).await?;
        token = next;
        if page.is_empty() {
            break;
        }
        events.extend(page);
    }
    Ok((events, token))
}

/// The first page of one who waits that is not empty: the server lets nobody wait for longer than it was told to.
async fn heard(client: Caller, mut token: Bytes) -> anyhow::Result<Vec<HistoryEvent>> {
    let deadline = patience::deadline();
    loop {
        let (events, next) = page(&client, Way::Along, token).await?;
        if !events.is_empty() {
            return Ok(events);
        }
        ensure!(!deadline.is_over() && !next.is_empty(), "nothing is heard");
        token = next;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_history_is_read_on_where_the_node_before_had_come_to() -> anyhow::Result<()> {
    let mut test_log = TestLog::new(Cluster::shared()?.bootstrap())?;
    test_log.settings = vec![("EVERLOG_GATEWAY__HISTORY_WAIT_MS", "1000".into())];
    let (mut node, client) = test_log.start("one").await?;
    client.start(ID).await?;
    for number in 0..SIGNALS {
        client.signal(ID, &number.to_string()).await?;
    }
    let whole = client.history(ID).await?;
    let mut reading = Vec::new();
    for way in [Way::Forward, Way::Back, Way::Along] {
        let (first, token) = page(&client, way, Bytes::new()).await?;
        ensure!(!first.is_empty() && !token.is_empty() && first.len() < whole.len(), "{way:?}: it has pages");
        reading.push((way, first, token));
    }
    let (_, at_end) = rest(&client, Way::Along, reading[2].2.clone()).await?;
    ensure!(!at_end.is_empty(), "who waits at the end has a token");
    // Once with the rows that it had, once with none, as on a node that takes the partition over.
    for has_rows in [true, false] {
        node.kill()?;
        if !has_rows {
            std::fs::remove_dir_all(test_log.data())?;
        }
        let (next, client) = test_log.start("one").await?;
        node = next;
        for (way, first, token) in &reading {
            let mut events = first.clone();
            events.extend(rest(&client, *way, token.clone()).await?.0);
            if *way == Way::Back {
                events.reverse();
            }
            ensure!(events.starts_with(&whole), "{way:?}: {} of {} events", events.len(), whole.len());
        }
        let waiting = tokio::spawn(heard(client.clone(), at_end.clone()));
        client.signal(ID, &format!("more {has_rows}")).await?;
        let heard = waiting.await??;
        let next_id = whole.len() as i64 + 1;
        ensure!(heard.first().is_some_and(|event| event.event_id == next_id), "{heard:?}");
    }
    Ok(())
}
