//! What `everlog state` exports of an embedded log goes on after an import, with any count of partitions; and what it refuses.

mod load;
mod programs;
mod refusals;
mod tool;
mod under_way;
mod worker;

use std::path::Path;

use anyhow::ensure;
use everlog_temporal_api::workflowservice::{
    CountWorkflowExecutionsRequest, CountWorkflowExecutionsResponse,
};
use everlog_tests::caller::Caller;
use everlog_tests::patience;
use everlog_tests::server::Server;
use prost::Message;

use load::Load;
use programs::Programs;
use worker::Worker;

/// Open runs that nobody works at, so that there is something in every partition.
const IDLE_RUNS: usize = 200;

/// A node with an embedded log of so many partitions.
async fn node(dir: &Path, partitions: &str) -> anyhow::Result<Server> {
    let variables = [("EVERLOG_LOG__PARTITIONS", partitions), ("EVERLOG_GATEWAY__POLL_WAIT_MS", "1000")];
    Server::start(dir, &variables).await
}

async fn worker(server: &Server) -> anyhow::Result<Worker> {
    Ok(Worker::new(Caller(server.connect().await?), server.http_address()))
}

async fn counts_reach(worker: &Worker, wanted: i64) -> anyhow::Result<()> {
    let (deadline, mut looks) = (patience::deadline(), patience::looks());
    loop {
        looks.tick().await;
        let (namespace, query) = (worker::NAMESPACE.into(), "WorkflowType = 'idle'".into());
        let counted = worker.caller.send(CountWorkflowExecutionsRequest { namespace, query }).await?;
        let found = CountWorkflowExecutionsResponse::decode(counted)?.count;
        if found == wanted {
            return Ok(());
        }
        ensure!(!deadline.is_over(), "{found} idle runs are found, there are {wanted}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn workflows_go_on_in_64_partitions_and_then_in_8() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let place = |name: &str| dir.path().join(name);
    let server = node(&place("16"), "16").await?;
    let first = worker(&server).await?;
    let idle: Vec<_> = (0..IDLE_RUNS).map(|number| format!("idle-{number}")).collect();
    for id in &idle {
        first.start(id, "idle", "").await?;
    }
    let mut programs = Programs::default();
    for number in 0..6 {
        programs.begin(&first, number).await?;
    }
    // The node serves meanwhile, and what it does from here on is not exported.
    tool::export_from(&place("16"), &place("one"))?;
    drop(server);
    tool::import_into(&place("one"), &place("64"), 64)?;

    let server = node(&place("64"), "64").await?;
    let second = worker(&server).await?;
    for number in 0..3 {
        programs.finish(&second, number).await?;
    }
    for number in 6..8 {
        programs.begin(&second, number).await?;
    }
    counts_reach(&second, i64::try_from(IDLE_RUNS)?).await?;
    // It is killed, so its journals have more than its last commits.
    drop(server);
    tool::export_from(&place("64"), &place("two"))?;
    tool::import_into(&place("two"), &place("8"), 8)?;

    let server = node(&place("8"), "8").await?;
    let third = worker(&server).await?;
    for number in 3..8 {
        programs.finish(&third, number).await?;
    }
    counts_reach(&third, i64::try_from(IDLE_RUNS)?).await?;
    for id in &idle {
        third.signal(id, "look").await?;
    }
    Ok(())
}

/// Calls go on while the log is copied: what was acknowledged before is there, and the copy is of one moment.
#[tokio::test(flavor = "multi_thread")]
async fn a_busy_node_is_exported_at_one_moment() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let place = |name: &str| dir.path().join(name);
    let server = node(&place("data"), "4").await?;
    let load = Load::begin(&[worker(&server).await?]).await?;
    let mut known = Vec::new();
    for round in 0..3 {
        load.goes_on(20).await?;
        known = load.begun();
        tokio::task::block_in_place(|| {
            let (export, copy) = (place(&format!("export-{round}")), place(&format!("copy-{round}")));
            tool::export_from(&place("data"), &export)?;
            tool::import_into(&export, &copy, 7)
        })?;
    }
    load.goes_on(20).await?;
    let begun = load.begun();
    load.stop().await;
    drop(server);
    let server = node(&place("copy-2"), "7").await?;
    let found = load::finish(&worker(&server).await?, &known, &begun).await?;
    ensure!(found < begun.len(), "it has what began after it");
    Ok(())
}

/// Exports an embedded log, and keeps so many of the exports beside it.
fn export_and_keep(data_dir: &Path, to: &Path, keep: &str) -> anyhow::Result<()> {
    let words = [
        "export",
        "--to",
        &to.display().to_string(),
        "--data-dir",
        &data_dir.display().to_string(),
        "--keep",
        keep,
    ];
    let ended = tool::state(&words, &[])?;
    ensure!(ended.code == Some(0), "{ended:?}");
    Ok(())
}

/// Only whole exports of the same log are removed, the oldest first, and only behind a new one.
#[tokio::test]
async fn older_exports_are_removed_and_nothing_else() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let (data, above) = (dir.path().join("data"), dir.path().join("exports"));
    drop(node(&data, "2").await?);
    let export = |name: &str| export_and_keep(&data, &above.join(name), "2");
    let here = || -> anyhow::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&above)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    };
    export("first")?;
    std::fs::create_dir_all(above.join("unfinished"))?;
    std::fs::write(above.join("unfinished/changelog-0.rows"), "evlrows1")?;
    export("second")?;
    // Another log's, which is the oldest.
    drop(node(&dir.path().join("other"), "2").await?);
    tool::export_from(&dir.path().join("other"), &above.join("others"))?;
    std::os::unix::fs::symlink(above.join("others"), above.join("linked"))?;
    export("third")?;
    assert_eq!(here()?, ["linked", "others", "second", "third", "unfinished"]);
    // One that fails removes nothing.
    anyhow::ensure!(export_and_keep(&data, &above.join("third"), "1").is_err());
    assert_eq!(here()?, ["linked", "others", "second", "third", "unfinished"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_begun_goes_on_after_an_import() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let place = |name: &str| dir.path().join(name);
    let server = node(&place("16"), "16").await?;
    let first = worker(&server).await?;
    under_way::begin(&first).await?;
    tool::export_from(&place("16"), &place("export"))?;
    drop(server);
    tool::import_into(&place("export"), &place("8"), 8)?;
    let server = node(&place("8"), "8").await?;
    under_way::finish(&worker(&server).await?, |name| {
        tool::export_from(&place("8"), &place(name))?;
        Ok(place(name))
    })
    .await
}
