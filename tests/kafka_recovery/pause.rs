//! A process that slept past every timeout while another took over: nothing that it does afterwards counts, and it
//! answers nothing that is not true any more. It goes on as a node among others.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::ensure;
use everlog_tests::caller::{Caller, signals};
use everlog_tests::kafka::Cluster;
use everlog_tests::patience;

use crate::client::{histories, work};
use crate::test_log::TestLog;

const ID: &str = "register";
/// After so long a node gives an append, and after twice as long a transaction, up for unknown.
const TIMEOUT: Duration = Duration::from_secs(3);
const TIMEOUTS: [&str; 3] = [
    "EVERLOG_KAFKA__CALL_TIMEOUT_MS",
    "EVERLOG_KAFKA__APPEND_TIMEOUT_MS",
    "EVERLOG_KAFKA__TRANSACTION_TIMEOUT_MS",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_slept_past_every_timeout_writes_nothing_and_answers_nothing_stale()
-> anyhow::Result<()> {
    let mut test_log = TestLog::new(Cluster::shared()?.bootstrap())?;
    test_log.settings = TIMEOUTS.map(|name| (name, TIMEOUT.as_millis().to_string())).into();
    let (mut first, old) = test_log.start("one").await?;
    patience::until("it is started", async || old.start(ID).await.is_ok()).await?;
    for number in 0..20 {
        let name = format!("before {number}");
        patience::until(&name, async || old.signal(ID, &name).await.is_ok()).await?;
    }
    // Some are under way when it falls asleep.
    let under_way: Vec<_> =
        (0..20).map(|number| tokio::spawn(write(old.clone(), format!("during {number}")))).collect();
    tokio::task::yield_now().await;
    first.signal("STOP")?;
    let slept = Instant::now();
    let mut second = test_log.spawn("two", &test_log.dir.path().join("two"))?;
    let new = second.ready().await?;
    let (mut acked, mut unknown, deadline) = (Vec::new(), 0, patience::deadline());
    let has_slept = || slept.elapsed() >= TIMEOUT * 4;
    while !has_slept() || acked.len() < 20 {
        ensure!(!deadline.is_over(), "nobody takes over: {}", second.said()?);
        let (name, is_acked) = write(new.clone(), format!("after {} {unknown}", acked.len())).await;
        // Until its session is over the one that sleeps is asked.
        if is_acked {
            acked.push(name)
        } else {
            unknown += 1
        }
        work(&new).await.ok();
    }
    let ids = [ID.to_owned()];
    let truth = histories(&new, &ids).await?.remove(0);
    // Whoever asks the first one while it wakes up is told the truth or nothing.
    let askers: Vec<_> = (0..8).map(|_| tokio::spawn(ask(old.clone()))).collect();
    let writers: Vec<_> =
        (0..8).map(|number| tokio::spawn(write(old.clone(), format!("late {number}")))).collect();
    tokio::task::yield_now().await;
    first.signal("CONT")?;
    let mut stale_answers = 0;
    for asker in askers {
        stale_answers += asker.await?.into_iter().filter(|count| *count < acked.len() + 20).count();
    }
    ensure!(stale_answers == 0, "{stale_answers} answers were stale");
    let mut written = Vec::new();
    for writer in under_way.into_iter().chain(writers) {
        let (name, is_acked) = writer.await?;
        if is_acked { written.push(name) } else { unknown += 1 }
    }
    ensure!(first.is_running(), "the first one is a node among others: {}", first.said()?);
    ensure!(second.is_running(), "the second one serves");
    let after = histories(&new, &ids).await?.remove(0);
    ensure!(after.len() >= truth.len() && after[..truth.len()] == truth[..], "what was there is as it was");
    let there = signals(&after);
    for name in (0..20).map(|n| format!("before {n}")).chain(acked.clone()).chain(written) {
        let count = there.iter().filter(|there| **there == name).count();
        ensure!(count == 1, "{name} was acknowledged and is there {count} times");
    }
    let once: BTreeSet<_> = there.iter().collect();
    ensure!(once.len() == there.len(), "nothing is there twice");
    // Nor is anything else in the topics: a third process that has nothing but them reads the same.
    first.kill()?;
    second.kill()?;
    let mut third = test_log.spawn("three", &test_log.dir.path().join("three"))?;
    let client = third.ready().await?;
    ensure!(histories(&client, &ids).await?.remove(0) == after, "it is the same from the log alone");
    println!("{} signals were acknowledged, of {unknown} nobody knows", acked.len() + 20);
    Ok(())
}

async fn write(client: Caller, name: String) -> (String, bool) {
    let is_acked = client.signal(ID, &name).await.is_ok();
    (name, is_acked)
}

/// Reads until it is refused for good; how many signals each answer has.
async fn ask(client: Caller) -> Vec<usize> {
    let mut counts = Vec::new();
    for _ in 0..50 {
        match client.history(ID).await {
            Ok(history) => counts.push(signals(&history).len()),
            Err(_refused) => tokio::task::yield_now().await,
        }
    }
    counts
}
