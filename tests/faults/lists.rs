//! Lists and counts hold whatever was acknowledged before they began, page tokens outlive a kill, and the doctor finds an index
//! that says something else than the state.

use std::path::Path;
use std::process::{Command as Spawned, Output};

use anyhow::{Context, ensure};
use bytes::Bytes;
use everlog_rocks::log::{Embedded, Options};
use everlog_rocks::rows::{DatabaseMemory, LocalRows, SharedRows};
use everlog_store::{CommittedRows, Space};
use everlog_temporal_api::workflowservice::{
    CountWorkflowExecutionsRequest, CountWorkflowExecutionsResponse, ListWorkflowExecutionsRequest,
    ListWorkflowExecutionsResponse, TerminateWorkflowExecutionRequest,
};
use everlog_tests::caller::{Caller, execution};
use everlog_tests::patience;
use everlog_tests::server::{Server, binary};
use prost::Message;

const RUNS: usize = 24;
const PAGE_RUNS: i32 = 5;

/// The Workflow Ids of a page, and the token of the next one.
async fn page(caller: &Caller, query: &str, token: Bytes) -> anyhow::Result<(Vec<String>, Bytes)> {
    let request = ListWorkflowExecutionsRequest {
        namespace: "default".into(),
        page_size: PAGE_RUNS,
        next_page_token: token,
        query: query.into(),
    };
    let page = ListWorkflowExecutionsResponse::decode(caller.send(request).await?)?;
    let ids = page.executions.into_iter().map(|run| run.execution.unwrap_or_default().workflow_id);
    Ok((ids.collect(), page.next_page_token))
}

/// The rest of a list, in its order.
async fn rest(caller: &Caller, query: &str, mut token: Bytes) -> anyhow::Result<Vec<String>> {
    let mut listed = Vec::new();
    loop {
        let (ids, next) = page(caller, query, token).await?;
        listed.extend(ids);
        token = next;
        if token.is_empty() {
            return Ok(listed);
        }
    }
}

async fn counted(caller: &Caller, query: &str) -> anyhow::Result<i64> {
    let request = CountWorkflowExecutionsRequest { namespace: "default".into(), query: query.into() };
    Ok(CountWorkflowExecutionsResponse::decode(caller.send(request).await?)?.count)
}

fn sorted(ids: &[String]) -> Vec<String> {
    let mut ids = ids.to_vec();
    ids.sort();
    ids
}

/// Lists and counts say that these run and those were terminated.
async fn exact(caller: &Caller, open: &[String], closed: &[String]) -> anyhow::Result<()> {
    for (query, ids) in [
        ("", [open, closed].concat()),
        ("ExecutionStatus = 'Running'", open.to_vec()),
        ("ExecutionStatus = 'Terminated' AND TaskQueue = 'orders'", closed.to_vec()),
    ] {
        let listed = rest(caller, query, Bytes::new()).await?;
        ensure!(sorted(&listed) == sorted(&ids), "{query:?} lists {listed:?} instead of {ids:?}");
        let count = counted(caller, query).await?;
        ensure!(count == i64::try_from(ids.len())?, "{query:?} counts {count} instead of {}", ids.len());
    }
    Ok(())
}

/// A caller of a server that has begun again, once every partition is served and has its index.
async fn again(server: &mut Server) -> anyhow::Result<Caller> {
    server.crash().await?;
    let caller = Caller(server.connect().await?);
    let (deadline, mut looks) = (patience::deadline(), patience::looks());
    while let Err(error) = counted(&caller, "").await {
        ensure!(!deadline.is_over(), "no count comes: {error:#}");
        looks.tick().await;
    }
    Ok(caller)
}

#[tokio::test]
async fn lists_hold_what_was_acknowledged_also_after_a_kill() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut server = Server::start(dir.path(), &[]).await?;
    let caller = Caller(server.connect().await?);
    let (mut open, mut closed) = (Vec::new(), Vec::new());
    for number in 0..RUNS {
        let id = format!("order-{number}");
        caller.start(&id).await?;
        let (first, _) = page(&caller, "", Bytes::new()).await?;
        ensure!(first.contains(&id), "{id} was started, and {first:?} is listed");
        open.push(id);
    }
    for id in open.drain(..RUNS / 3).collect::<Vec<_>>() {
        let terminate = TerminateWorkflowExecutionRequest {
            namespace: "default".into(),
            workflow_execution: execution(&id),
            ..TerminateWorkflowExecutionRequest::default()
        };
        caller.send(terminate).await?;
        let count = counted(&caller, "ExecutionStatus = 'Terminated'").await?;
        closed.push(id);
        ensure!(count == i64::try_from(closed.len())?, "{closed:?} were terminated, {count} are counted");
    }
    exact(&caller, &open, &closed).await?;
    let (mut read, token) = page(&caller, "", Bytes::new()).await?;

    let caller = again(&mut server).await?;
    exact(&caller, &open, &closed).await?;
    // What starts meanwhile is not of a list that was begun before.
    caller.start("later").await?;
    read.extend(rest(&caller, "", token).await?);
    ensure!(sorted(&read) == sorted(&[&open[..], &closed].concat()), "{read:?}");
    ensure!(sorted(&read[..open.len()]) == sorted(&open), "open runs come first: {read:?}");
    open.push("later".into());
    exact(&caller, &open, &closed).await?;
    Ok(())
}

/// Deletes rows of the index, of which `chosen` is given the keys; each begins with its partition.
fn delete(data: &Path, chosen: fn(Vec<Bytes>) -> Vec<Bytes>) -> anyhow::Result<()> {
    if data.join("db").exists() {
        let log = Embedded::open(Options::new(data))?;
        let database = log.database();
        let family = database.cf_handle("index").context("the database has an index")?;
        let rows = chosen(keys(&SharedRows::new(log.database())?)?);
        ensure!(!rows.is_empty(), "no partition has such a row");
        return rows.iter().try_for_each(|row| Ok(database.delete_cf(family, row)?));
    }
    let mut deleted = 0;
    for partition in std::fs::read_dir(data.join("rows"))? {
        let rows = LocalRows::open(&partition?.path(), &DatabaseMemory::new(16 << 20))?;
        let keys = chosen(keys(&rows)?);
        deleted += keys.len();
        rows.write(&mut keys.iter().map(|key| (Space::Index, &key[..], None)), None)?;
    }
    ensure!(deleted > 0, "no partition has such a row");
    Ok(())
}

fn keys(rows: &impl CommittedRows) -> anyhow::Result<Vec<Bytes>> {
    let mut keys = Vec::new();
    rows.scan(Space::Index, &[], &[u8::MAX; 64], &mut |key, _value| {
        keys.push(Bytes::copy_from_slice(key));
        true
    })?;
    Ok(keys)
}

/// One by which a run is looked up.
fn longest(keys: Vec<Bytes>) -> Vec<Bytes> {
    keys.into_iter().max_by_key(Bytes::len).into_iter().collect()
}

/// Those that say which format the index has: the partition, and one byte.
fn formats(keys: Vec<Bytes>) -> Vec<Bytes> {
    keys.into_iter().filter(|key| key.len() == 5).collect()
}

#[tokio::test]
async fn an_index_that_is_made_anew_has_each_run_once() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut server = Server::start(dir.path(), &[]).await?;
    let caller = Caller(server.connect().await?);
    let mut open = Vec::new();
    for number in 0..RUNS {
        open.push(format!("order-{number}"));
        caller.start(&open[number]).await?;
    }
    server.stop()?;
    delete(dir.path(), formats)?;
    let caller = again(&mut server).await?;
    exact(&caller, &open, &[]).await?;
    server.stop()?;
    let well = doctor(dir.path())?;
    ensure!(said(&well).contains("ok    index: it says what the state does"), "{well:?}");
    Ok(())
}

fn doctor(data: &Path) -> anyhow::Result<Output> {
    Ok(Spawned::new(binary()?).arg("doctor").arg("--data-dir").arg(data).output()?)
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[tokio::test]
async fn the_doctor_finds_an_index_that_lacks_a_row() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut server = Server::start(dir.path(), &[]).await?;
    let caller = Caller(server.connect().await?);
    for number in 0..8 {
        caller.start(&format!("order-{number}")).await?;
    }
    server.stop()?;
    let well = said(&doctor(dir.path())?);
    ensure!(well.contains("ok    index: it says what the state does"), "{well}");
    delete(dir.path(), longest)?;
    let ill = doctor(dir.path())?;
    ensure!(ill.status.code() == Some(3) && said(&ill).contains("fail  index: partition "), "{ill:?}");
    Ok(())
}
