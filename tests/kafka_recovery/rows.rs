//! Rows beside the log that are old, damaged, or of another log: each is brought up to date or made anew, never served.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use everlog_tests::caller::{Caller, signals};
use everlog_tests::kafka::Cluster;
use everlog_tests::process::Process;

use crate::client::histories;
use crate::test_log::{TestLog, copy};

fn ids() -> Vec<String> {
    (0..8).map(|number| format!("register-{number}")).collect()
}

async fn write(client: &Caller, round: u32) -> anyhow::Result<()> {
    for id in ids() {
        if round == 0 {
            client.start(&id).await?;
        }
        for number in 0..5 {
            client.signal(&id, &format!("{round}-{number}")).await?;
        }
    }
    Ok(())
}

async fn set_aside(process: &Process, reason: &str) -> anyhow::Result<f64> {
    process.metric("everlog_rows_set_aside_total", &format!("reason=\"{reason}\"")).await
}

#[tokio::test]
async fn an_old_copy_of_the_rows_is_brought_up_to_date() -> anyhow::Result<()> {
    let test_log = TestLog::new(Cluster::shared()?.bootstrap())?;
    let (mut node, client) = test_log.start("one").await?;
    write(&client, 0).await?;
    node.stop().await?;
    let old = test_log.dir.path().join("old");
    copy(&test_log.rows(), &old)?;
    let (mut node, client) = test_log.start("one").await?;
    write(&client, 1).await?;
    // One that was copied under load, whose transaction is then aborted.
    node.kill()?;
    let torn = test_log.dir.path().join("torn");
    copy(&test_log.rows(), &torn)?;
    let (mut node, client) = test_log.start("one").await?;
    write(&client, 2).await?;
    let before = histories(&client, &ids()).await?;
    for copied in [old, torn] {
        node.stop().await?;
        std::fs::remove_dir_all(test_log.rows())?;
        copy(&copied, &test_log.rows())?;
        let (next, client) = test_log.start("one").await?;
        node = next;
        ensure!(histories(&client, &ids()).await? == before, "{} was brought up to date", copied.display());
        for reason in ["ahead", "corrupt", "foreign", "old", "unfinished"] {
            ensure!(set_aside(&node, reason).await? == 0.0, "{reason}: {}", node.said()?);
        }
    }
    Ok(())
}

#[tokio::test]
async fn damaged_rows_are_set_aside_and_made_anew() -> anyhow::Result<()> {
    let test_log = TestLog::new(Cluster::shared()?.bootstrap())?;
    let (mut node, client) = test_log.start("one").await?;
    write(&client, 0).await?;
    let before = histories(&client, &ids()).await?;
    for (round, harm) in (1..).zip([flip as fn(&Path) -> anyhow::Result<()>, cut, remove]) {
        node.stop().await?;
        for partition in 0..4 {
            harm(&test_log.rows().join(partition.to_string()))?;
        }
        let (next, client) = test_log.start("one").await?;
        node = next;
        ensure!(histories(&client, &ids()).await? == before, "round {round}: it reads as before");
        let count = set_aside(&node, "corrupt").await?;
        ensure!(count >= 4.0, "round {round}: {count} of 4 were set aside: {}", node.said()?);
        ensure!(node.said()?.contains("rows set aside"), "it says so");
        let kept = kept(&test_log.rows())?;
        ensure!(kept.len() == 4, "one of each partition stays: {kept:?}");
        ensure!(kept.iter().all(|name| name.ends_with("-corrupt")), "named after what was wrong: {kept:?}");
    }
    ensure!(signals(&before[0]).len() == 5);
    Ok(())
}

#[tokio::test]
async fn rows_of_another_log_or_partition_are_set_aside() -> anyhow::Result<()> {
    let cluster = Cluster::shared()?;
    let (test_log, other) = (TestLog::new(cluster.bootstrap())?, TestLog::new(cluster.bootstrap())?);
    let (mut node, client) = test_log.start("one").await?;
    write(&client, 0).await?;
    write(&client, 1).await?;
    let before = histories(&client, &ids()).await?;
    node.stop().await?;
    let (mut stranger, client) = other.start("other").await?;
    write(&client, 0).await?;
    stranger.stop().await?;
    std::fs::remove_dir_all(test_log.rows())?;
    copy(&other.rows(), &test_log.rows())?;
    let (mut node, client) = test_log.start("one").await?;
    ensure!(histories(&client, &ids()).await? == before, "it has its own histories");
    ensure!(set_aside(&node, "foreign").await? == 4.0, "{}", node.said()?);
    node.stop().await?;
    for (from, to) in [("0", "swap"), ("1", "0"), ("swap", "1")] {
        std::fs::rename(test_log.rows().join(from), test_log.rows().join(to))?;
    }
    let (node, client) = test_log.start("one").await?;
    ensure!(histories(&client, &ids()).await? == before, "it has its own histories");
    ensure!(set_aside(&node, "foreign").await? == 2.0, "{}", node.said()?);
    Ok(())
}

fn tables(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let files = std::fs::read_dir(dir).with_context(|| dir.display().to_string())?;
    let files: Result<Vec<_>, _> = files.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut files = files?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "sst"));
    ensure!(!files.is_empty(), "{} has tables", dir.display());
    Ok(files)
}

/// A byte of each table: in the first block, which the first read of all needs.
fn flip(dir: &Path) -> anyhow::Result<()> {
    for path in tables(dir)? {
        let mut bytes = std::fs::read(&path)?;
        bytes[5] ^= 1;
        std::fs::write(&path, bytes)?;
    }
    Ok(())
}

fn cut(dir: &Path) -> anyhow::Result<()> {
    for path in tables(dir)? {
        let length = std::fs::metadata(&path)?.len();
        std::fs::OpenOptions::new().write(true).open(&path)?.set_len(length / 2)?;
    }
    Ok(())
}

fn remove(dir: &Path) -> anyhow::Result<()> {
    Ok(std::fs::remove_file(dir.join("CURRENT"))?)
}

fn kept(rows: &Path) -> anyhow::Result<Vec<String>> {
    let names: Result<Vec<_>, _> =
        std::fs::read_dir(rows)?.map(|entry| entry.map(|entry| entry.file_name())).collect();
    let names = names?.into_iter().map(|name| name.to_string_lossy().into_owned());
    Ok(names.filter(|name| name.contains(".aside-")).collect())
}
