//! What happens to nodes: they are killed, stopped, overtaken.

use std::time::Duration;

use anyhow::{Context, ensure};
use everlog_tests::dice::Dice;
use everlog_tests::patience;

use crate::node::Node;
use crate::scene::{Outcome, SERVES, Scene, Size};
use crate::site::Site;

/// How long after its start a node is killed at the latest that is to be still taking over.
const EARLY_MS: u64 = 400;

/// F1: SIGKILL at random moments under load.
pub async fn killed(site: Site, size: Size) -> anyhow::Result<Outcome> {
    let mut scene = Scene::open(&site, "f1", size, &[]).await?;
    let (mut load, _) = scene.load_with_records()?;
    let mut dice = Dice::new(size.seed);
    let mut outcome = Outcome::default();
    for _ in 0..size.times {
        load.further(dice.below(size.open as u64) + 1).await?;
        let before = scene.client.ledger.acked();
        scene.node.kill()?;
        outcome.injected += 1;
        scene.node.start_again()?;
        scene.node.ready().await?;
        // It was in the middle of something, and went on.
        load.further(1).await?;
        scene.until_acked(before).await?;
        outcome.seen += 1;
    }
    outcome.how = format!("{} kills", outcome.injected);
    Ok(scene.finish(load, outcome).await?.0)
}

/// F2, F14: SIGSTOP while the outputs' transaction is open; a second node takes over; SIGCONT.
pub async fn overtaken(site: Site, size: Size) -> anyhow::Result<Outcome> {
    let mut scene = Scene::open(&site, "f2", size, &[]).await?;
    let (mut load, _) = scene.load_with_records()?;
    let mut outcome = Outcome::default();
    for round in 0..size.times {
        load.further(size.open as u64 / 2).await?;
        scene.node.pause()?;
        outcome.injected += 1;
        let name = format!("next-{round}");
        // It goes by the same name: it takes the other's place, which must not go on.
        let mut next = Node::start_as("one", &name, scene.dir.path(), &scene.variables)?;
        next.ready().await?;
        scene.client.turn_to(vec![next.place()?]);
        load.further(size.open as u64 / 2).await?;
        scene.node.resume()?;
        let status = scene.node.ended().await.context("the node that was overtaken goes on")?;
        ensure!(status.code() == Some(2), "the node that was overtaken ended with {status}");
        outcome.seen += u64::from(scene.node.said().contains("was taken over by"));
        scene.node = next;
    }
    outcome.how = format!("{} former owners ended with code 2", outcome.seen);
    Ok(scene.finish(load, outcome).await?.0)
}

/// F36: the owner is killed while it takes over, before it serves.
pub async fn killed_early(site: Site, size: Size) -> anyhow::Result<Outcome> {
    let mut scene = Scene::open(&site, "f36", size, &[]).await?;
    let mut load = scene.load();
    let mut dice = Dice::new(size.seed);
    let mut outcome = Outcome::default();
    for round in 0..size.times {
        load.further(size.open as u64).await?;
        scene.node.kill()?;
        if round % 2 == 0 {
            std::fs::remove_dir_all(scene.node.rows())?;
        }
        for _ in 0..3 {
            let served = scene.node.times_said(SERVES);
            scene.node.start_again()?;
            // The moment is the fault: it falls anywhere in the taking over.
            patience::pass(Duration::from_millis(dice.below(EARLY_MS))).await;
            ensure!(scene.node.is_alive()?, "it ended: {}", scene.node.last_words());
            scene.node.kill()?;
            outcome.injected += 1;
            outcome.seen += u64::from(scene.node.times_said(SERVES) == served);
        }
        scene.node.start_again()?;
        scene.node.ready().await?;
    }
    outcome.how = format!("{} of {} kills came before it served", outcome.seen, outcome.injected);
    Ok(scene.finish(load, outcome).await?.0)
}
