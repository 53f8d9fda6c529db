//! Faults of nodes: they are killed, paused, or fenced by a successor.

use std::time::Duration;

use anyhow::{Context, ensure};
use everlog_tests::dice::Dice;
use everlog_tests::patience;

use crate::cluster::FaultCluster;
use crate::environment::{Environment, Outcome, SERVES, Size};
use crate::node::Node;

/// How long after its start a node is killed at the latest that is to be still taking over.
const EARLY_MS: u64 = 400;

/// F1: SIGKILL at random moments under load.
pub async fn killed(cluster: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    let mut environment = Environment::open(&cluster, "f1", size, &[]).await?;
    let (mut load, _) = environment.load_with_records()?;
    let mut dice = Dice::new(size.seed);
    let mut outcome = Outcome::default();
    for _ in 0..size.times {
        load.further(dice.below(size.open as u64) + 1).await?;
        let before = environment.client.client_log.acked();
        environment.node.kill()?;
        outcome.injected += 1;
        environment.node.start_again()?;
        environment.node.ready().await?;
        // It was in the middle of something, and went on.
        load.further(1).await?;
        environment.until_acked(before).await?;
        outcome.seen += 1;
    }
    outcome.how = format!("{} kills", outcome.injected);
    Ok(environment.finish(load, outcome).await?.0)
}

/// F2, F14: SIGSTOP while the outputs' transaction is open; a second node takes over; SIGCONT.
pub async fn overtaken(cluster: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    let mut environment = Environment::open(&cluster, "f2", size, &[]).await?;
    let (mut load, _) = environment.load_with_records()?;
    let mut outcome = Outcome::default();
    for round in 0..size.times {
        load.further(size.open as u64 / 2).await?;
        environment.node.pause()?;
        outcome.injected += 1;
        let name = format!("next-{round}");
        // It goes by the same name: it takes the other's place, which must not go on.
        let mut next = Node::start_as("one", &name, environment.dir.path(), &environment.variables)?;
        next.ready().await?;
        environment.client.turn_to(vec![next.place()?]);
        load.further(size.open as u64 / 2).await?;
        environment.node.resume()?;
        let status = environment.node.ended().await.context("the node that was overtaken goes on")?;
        ensure!(status.code() == Some(2), "the node that was overtaken ended with {status}");
        outcome.seen += u64::from(environment.node.said().contains("was taken over by"));
        environment.node = next;
    }
    outcome.how = format!("{} former owners ended with code 2", outcome.seen);
    Ok(environment.finish(load, outcome).await?.0)
}

/// F36: the owner is killed while it takes over, before it serves.
pub async fn killed_early(cluster: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    let mut environment = Environment::open(&cluster, "f36", size, &[]).await?;
    let mut load = environment.load();
    let mut dice = Dice::new(size.seed);
    let mut outcome = Outcome::default();
    for round in 0..size.times {
        load.further(size.open as u64).await?;
        environment.node.kill()?;
        if round % 2 == 0 {
            std::fs::remove_dir_all(environment.node.rows())?;
        }
        for _ in 0..3 {
            let served = environment.node.times_said(SERVES);
            environment.node.start_again()?;
            // The moment is the fault: it falls anywhere in the taking over.
            patience::pass(Duration::from_millis(dice.below(EARLY_MS))).await;
            ensure!(environment.node.is_alive()?, "it ended: {}", environment.node.last_words());
            environment.node.kill()?;
            outcome.injected += 1;
            outcome.seen += u64::from(environment.node.times_said(SERVES) == served);
        }
        environment.node.start_again()?;
        environment.node.ready().await?;
    }
    outcome.how = format!("{} of {} kills came before it served", outcome.seen, outcome.injected);
    Ok(environment.finish(load, outcome).await?.0)
}
