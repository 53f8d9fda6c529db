//! Faults of brokers: one of three or the only one ends, or its disk is full.

use std::time::Duration;

use anyhow::{Context, ensure};
use everlog_tests::patience;
use rdkafka::consumer::{BaseConsumer, Consumer};

use crate::cluster::FaultCluster;
use crate::environment::{Environment, OPEN_OF_THREE, Outcome, REPLICATED, Size};
use crate::reader;
use crate::rows::state::SmallDisk;

/// Each look is a new client.
const ASK_EVERY: Duration = Duration::from_millis(200);
/// As the brokers of these tests are set, of both logs that coordinators have.
const COORDINATED_PARTITIONS: i32 = 4;
/// Where transactions are kept, and where groups of consumers are.
pub const TRANSACTIONS: &str = "__transaction_state";
pub const GROUPS: &str = "__consumer_offsets";

/// F7: SIGTERM and SIGKILL in turn.
pub async fn ended(cluster: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    let environment = Environment::open(&cluster, "f7", size, &[]).await?;
    let mut load = environment.load();
    let mut outcome = Outcome::default();
    for round in 0..size.times.min(4) {
        load.further(size.open as u64 / 2).await?;
        if round % 2 == 0 {
            cluster.kill(1).await?;
        } else {
            cluster.end(1).await?;
        }
        outcome.injected += 1;
        outcome.seen += u64::from(!cluster.is_alive(1)?);
        cluster.restart(1).await?;
        load.further(size.open as u64 / 2).await?;
    }
    outcome.how = format!("partitions rested {} times", environment.node.times_said("partition backs off"));
    Ok(environment.finish(load, outcome).await?.0)
}

/// F8: each of three brokers in turn, well and killed.
pub async fn each_of_three(_site: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    let cluster = FaultCluster::of_three().await?;
    let size = Size { open: size.open.min(OPEN_OF_THREE), workers: 4, ..size };
    let environment = Environment::open(&cluster, "f8", size, REPLICATED).await?;
    let mut load = environment.load();
    let mut outcome = Outcome::default();
    for round in 0..if size.is_full { 2 } else { 1 } {
        for broker in 1..=3 {
            load.further(size.open as u64 / 2).await?;
            if (round + broker) % 2 == 0 {
                cluster.kill(broker).await?;
            } else {
                cluster.end(broker).await?;
            }
            outcome.injected += 1;
            // Two of three go on.
            load.further(size.open as u64 / 2).await?;
            outcome.seen += u64::from(!cluster.is_alive(broker)?);
            cluster.restart(broker).await?;
        }
    }
    outcome.how = format!("{} went on with two of three", outcome.seen);
    Ok(environment.finish(load, outcome).await?.0)
}

/// F10: the coordinator of the outputs' transactions goes, again and again.
pub async fn coordinator(_site: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    let cluster = FaultCluster::of_three().await?;
    let size = Size { open: size.open.min(OPEN_OF_THREE), workers: 4, ..size };
    let environment = Environment::open(&cluster, "f10", size, REPLICATED).await?;
    let mut load = environment.load();
    let mut outcome = Outcome::default();
    let id = format!("{}group-0", environment.prefix);
    for _ in 0..size.times {
        load.further(size.open as u64 / 2).await?;
        let before = coordinator_of(&environment.bootstrap, TRANSACTIONS, &id)?;
        cluster.kill(before).await?;
        outcome.injected += 1;
        load.further(size.open as u64).await?;
        until_moved(&environment.bootstrap, TRANSACTIONS, &id, before).await?;
        outcome.seen += 1;
        cluster.restart(before).await?;
    }
    outcome.how = format!("{} coordinators took over", outcome.seen);
    Ok(environment.finish(load, outcome).await?.0)
}

/// The broker that leads the partition in which an id is kept: by Java's hash of the id.
pub fn coordinator_of(bootstrap: &str, log: &str, id: &str) -> anyhow::Result<u32> {
    let hash = id.bytes().fold(0_i32, |hash, byte| hash.wrapping_mul(31).wrapping_add(i32::from(byte)));
    let partition = (hash & i32::MAX) % COORDINATED_PARTITIONS;
    let consumer: BaseConsumer = reader::client(bootstrap).create()?;
    let metadata = consumer.fetch_metadata(Some(log), patience::most())?;
    let topic = metadata.topics().first().context("it is there")?;
    let found =
        topic.partitions().iter().find(|found| found.id() == partition).context("so is the partition")?;
    Ok(u32::try_from(found.leader())?)
}

/// Waits until another broker coordinates.
pub async fn until_moved(bootstrap: &str, log: &'static str, id: &str, before: u32) -> anyhow::Result<()> {
    let (deadline, mut looks) = (patience::deadline(), tokio::time::interval(ASK_EVERY));
    loop {
        looks.tick().await;
        let (asked, id) = (bootstrap.to_owned(), id.to_owned());
        let told = tokio::task::spawn_blocking(move || coordinator_of(&asked, log, &id)).await?;
        // There may be none for a moment.
        if told.is_ok_and(|coordinator| coordinator != before) {
            return Ok(());
        }
        ensure!(!deadline.is_over(), "broker {before} still coordinates");
    }
}

/// F22: no space is left where the broker keeps its log: it ends, and serves again when there is some.
pub async fn full(_site: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    let disk = SmallDisk::new(400)?;
    let cluster = FaultCluster::start_in(size.seed, &[], Some(disk.dir.path())).await?;
    let environment = Environment::open(&cluster, "f22", size, &[]).await?;
    let mut load = environment.load();
    let mut outcome = Outcome::default();
    for _ in 0..size.times.min(3) {
        load.further(size.open as u64).await?;
        disk.fill()?;
        outcome.injected += 1;
        let ends = patience::until("the broker ends", async || cluster.is_alive(1).is_ok_and(|alive| !alive));
        outcome.seen += u64::from(ends.await.is_ok());
        disk.free()?;
        cluster.restart(1).await?;
    }
    ensure!(outcome.seen > 0, "the broker did not notice");
    outcome.how = format!("the broker ended {} times for want of space", outcome.seen);
    Ok(environment.finish(load, outcome).await?.0)
}
