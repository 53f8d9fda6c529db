//! The same on a log on Kafka: from an embedded log to a prefix, to another count of partitions, and back.

mod load;
mod programs;
mod tool;
mod under_way;
mod worker;

use std::path::Path;

use anyhow::ensure;
use everlog_tests::caller::Caller;
use everlog_tests::kafka::{self, Cluster};
use everlog_tests::server::Server;

use load::Load;
use programs::Programs;
use worker::Worker;

async fn node(dir: &Path, variables: &[(&str, &str)]) -> anyhow::Result<(Server, Worker)> {
    let server =
        Server::start(dir, &[variables, &[("EVERLOG_GATEWAY__POLL_WAIT_MS", "1000")]].concat()).await?;
    let worker = Worker::new(Caller(server.connect().await?), server.http_address());
    Ok((server, worker))
}

fn state(words: &[&str], variables: &[(&str, &str)]) -> anyhow::Result<()> {
    let ended = tool::state(words, variables)?;
    ensure!(ended.code == Some(0), "{words:?}: {ended:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn workflows_go_from_a_directory_to_kafka_and_back() -> anyhow::Result<()> {
    let cluster = tokio::task::spawn_blocking(Cluster::shared).await??;
    let dir = tempfile::tempdir()?;
    let shown = |name: &str| dir.path().join(name).display().to_string();
    let on = |prefix: &'static str| {
        [
            ("EVERLOG_KAFKA__BOOTSTRAP_SERVERS", cluster.bootstrap()),
            ("EVERLOG_KAFKA__PREFIX", prefix),
            ("EVERLOG_KAFKA__REPLICATION", "1"),
        ]
    };
    let (mut server, worker) = node(&dir.path().join("data"), &[("EVERLOG_LOG__PARTITIONS", "4")]).await?;
    let mut programs = Programs::default();
    for number in 0..4 {
        programs.begin(&worker, number).await?;
    }
    tool::export_from(&dir.path().join("data"), &dir.path().join("one"))?;
    server.stop()?;
    state(&["import", "--from", &shown("one"), "--partitions", "8"], &on("first."))?;
    let again = tool::state(&["import", "--from", &shown("one"), "--partitions", "8"], &on("first."))?;
    ensure!(again.code == Some(1) && again.err.contains("import under a new prefix"), "{again:?}");

    let (mut server, worker) = node(&dir.path().join("rows-1"), &on("first.")).await?;
    programs.finish(&worker, 0).await?;
    state(&["export", "--to", &shown("served")], &on("first."))?;
    server.stop()?;
    state(&["export", "--to", &shown("two")], &on("first."))?;
    state(&["import", "--from", &shown("two"), "--partitions", "3"], &on("second."))?;

    let (mut server, worker) = node(&dir.path().join("rows-2"), &on("second.")).await?;
    programs.finish(&worker, 1).await?;
    programs.finish(&worker, 2).await?;
    server.stop()?;
    state(&["export", "--to", &shown("three")], &on("second."))?;
    tool::import_into(&dir.path().join("three"), &dir.path().join("back"), 8)?;
    let (_server, worker) = node(&dir.path().join("back"), &[]).await?;
    programs.finish(&worker, 3).await
}

/// Sets for how long brokers keep what was changed in a topic.
fn lags_behind(bootstrap: &str, topic: &str, lag_ms: u64) -> anyhow::Result<()> {
    let setting = format!("min.compaction.lag.ms={lag_ms}");
    let change = ["--bootstrap-server", bootstrap, "--alter", "--entity-type", "topics"];
    let what = ["--entity-name", topic, "--add-config", &setting];
    kafka::tool("kafka.admin.ConfigCommand", &[&change[..], &what].concat(), "").map(drop)
}

/// Exports that are made in a row while nodes serve.
const EXPORTS: usize = 10;
/// Workflows that end between two exports, at least.
const ENDED: usize = 20;

/// Two nodes commit at their own pace, and messages go between all partitions: each export is of one moment all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_nodes_serve_is_exported_at_one_moment() -> anyhow::Result<()> {
    let cluster = tokio::task::spawn_blocking(Cluster::shared).await??;
    let dir = tempfile::tempdir()?;
    let place = |name: &str| dir.path().join(name);
    let on = |prefix: &'static str, more: &[(&'static str, &'static str)]| {
        let common = [
            ("EVERLOG_KAFKA__BOOTSTRAP_SERVERS", cluster.bootstrap()),
            ("EVERLOG_KAFKA__PREFIX", prefix),
            ("EVERLOG_KAFKA__REPLICATION", "1"),
            ("EVERLOG_KAFKA__PARTITIONS", "16"),
        ];
        [&common[..], more].concat()
    };
    let (first, one) = node(&place("one"), &on("busy.", &[("EVERLOG_SERVER__NAME", "one")])).await?;
    let (second, two) = node(&place("two"), &on("busy.", &[("EVERLOG_SERVER__NAME", "two")])).await?;
    let load = Load::begin(&[one.clone(), two.clone()]).await?;
    let (mut known, variables, mut programs) = (Vec::new(), on("busy.", &[]), Programs::default());
    for round in 0..EXPORTS {
        load.goes_on(ENDED).await?;
        if round + 1 == EXPORTS {
            // A worker may keep a task for two minutes only.
            for (number, worker) in [&one, &two, &one, &two].into_iter().enumerate() {
                programs.begin_on_any_log(worker, number).await?;
            }
        }
        known = load.begun();
        let export = place(&format!("export-{round}"));
        let (to, copy) = (export.display().to_string(), place(&format!("copy-{round}")));
        tokio::task::block_in_place(|| {
            state(&["export", "--to", &to], &variables)?;
            tool::import_into(&export, &copy, 8)
        })?;
    }
    let copy = place(&format!("copy-{}", EXPORTS - 1));
    let (_copy, copied) = node(&copy, &[("EVERLOG_LOG__PARTITIONS", "8")]).await?;
    programs.finish(&copied, 0).await?;
    programs.finish(&copied, 1).await?;
    lags_behind(cluster.bootstrap(), "busy.history", 0)?;
    let too_late = tool::state(&["export", "--to", &place("too-late").display().to_string()], &variables)?;
    let why = "nodes change rows while they are exported";
    ensure!(too_late.code == Some(1) && too_late.err.contains(why), "{too_late:?}");
    ensure!(!place("too-late").join("manifest.json").exists(), "it is no export");
    lags_behind(cluster.bootstrap(), "busy.history", 3_600_000)?;
    drop((first, second));
    let begun = load.begun();
    load.stop().await;

    // Both nodes were killed: their journals have more than their last commits.
    let to = place("killed").display().to_string();
    state(&["export", "--to", &to], &variables)?;
    state(&["import", "--from", &to, "--partitions", "8"], &on("after.", &[]))?;
    let (_after, worker) = node(&place("after"), &on("after.", &[])).await?;
    programs.finish(&worker, 2).await?;
    programs.finish(&worker, 3).await?;
    load::finish(&worker, &begun, &begun).await?;
    load::finish(&copied, &known, &begun).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_begun_goes_on_after_an_import_into_kafka() -> anyhow::Result<()> {
    let cluster = tokio::task::spawn_blocking(Cluster::shared).await??;
    let dir = tempfile::tempdir()?;
    let place = |name: &str| dir.path().join(name);
    let on = |prefix: &'static str| {
        [
            ("EVERLOG_KAFKA__BOOTSTRAP_SERVERS", cluster.bootstrap()),
            ("EVERLOG_KAFKA__PREFIX", prefix),
            ("EVERLOG_KAFKA__REPLICATION", "1"),
        ]
    };
    let (server, first) = node(&place("first"), &on("begun.")).await?;
    under_way::begin(&first).await?;
    let to = place("export").display().to_string();
    state(&["export", "--to", &to], &on("begun."))?;
    drop(server);
    state(&["import", "--from", &to, "--partitions", "8"], &on("ended."))?;
    let (_server, second) = node(&place("second"), &on("ended.")).await?;
    under_way::finish(&second, |name| {
        state(&["export", "--to", &place(name).display().to_string()], &on("ended."))?;
        Ok(place(name))
    })
    .await
}
