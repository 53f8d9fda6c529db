//! Minutes of load from records, bare clients and SDK programs, while nodes die and brokers are bounced.

use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use crate::deliveries::Troubles;
use crate::net::Home;
use crate::program::Program;
use crate::rows::several::{rejoin, until_taken};
use crate::scene::{Outcome, Scene, Size, TOOK_A_GROUP};
use crate::site::Site;

const NODES: usize = 2;
const BROKERS: u32 = 3;
const KILL_EVERY: Duration = Duration::from_secs(15);
/// How long it takes, and how often each of three brokers is bounced.
const FULL: (Duration, u32) = (Duration::from_secs(300), 2);
const SHORT: (Duration, u32) = (Duration::from_secs(45), 1);
/// How long the program may take to see its workflows end when the time is over, and to judge them.
const PROGRAM_ENDS_WITHIN: Duration = Duration::from_secs(300);
/// Workflows at a time on one broker, which is to be busy, and those of the program.
const OPEN_HIGH: usize = 200;
const PROGRAM_OPEN_LOW: usize = 4;
const PROGRAM_OPEN_HIGH: usize = 16;

/// Two nodes on three brokers, at a low rate; brokers are bounced as well.
pub async fn three(_site: Site, size: Size) -> anyhow::Result<Outcome> {
    let site = Site::of_three().await?;
    let scene = Scene::of_quorum(&site, "soak3", size, &vec![Home::here(); NODES]).await?;
    let (span, times) = if size.is_full { FULL } else { SHORT };
    // Brokers end with the last who knows of them.
    let bounces = bounce(site.clone(), scene.troubles.clone(), span, times * BROKERS);
    let outcome = soak(scene, span, PROGRAM_OPEN_LOW, Some(bounces)).await;
    drop(site);
    outcome
}

/// Two nodes on one broker, at a high rate.
pub async fn one(site: Site, size: Size) -> anyhow::Result<Outcome> {
    let high = Size { open: OPEN_HIGH, workers: 24, ..size };
    let own = if size.is_full { high } else { Size { open: OPEN_HIGH / 4, workers: 8, ..size } };
    let scene = Scene::of_nodes(&site, "soak1", own, NODES).await?;
    let (span, _) = if size.is_full { FULL } else { SHORT };
    soak(scene, span, PROGRAM_OPEN_HIGH, None).await
}

/// One broker after the other, well and killed, spread over the time.
fn bounce(site: Site, troubles: Troubles, span: Duration, times: u32) -> JoinHandle<anyhow::Result<u32>> {
    tokio::spawn(async move {
        let mut moments = tokio::time::interval(span / (times + 1));
        moments.set_missed_tick_behavior(MissedTickBehavior::Delay);
        moments.tick().await;
        for time in 0..times {
            moments.tick().await;
            let broker = 1 + time % BROKERS;
            troubles.begin();
            if time % 2 == 0 {
                site.end(broker).await?;
            } else {
                site.kill(broker).await?;
            }
            site.restart(broker).await?;
            troubles.end();
        }
        Ok(times)
    })
}

async fn soak(
    mut scene: Scene,
    span: Duration,
    open: usize,
    bounces: Option<JoinHandle<anyhow::Result<u32>>>,
) -> anyhow::Result<Outcome> {
    let program = Program::start(&scene, span, open).await?;
    let (mut load, _) = scene.load_with_records()?;
    let mut outcome = Outcome::default();
    let (began, mut kills) = (Instant::now(), tokio::time::interval(KILL_EVERY));
    kills.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while began.elapsed() < span {
        kills.tick().await;
        let (before, victim) = (scene.times_said(TOOK_A_GROUP), outcome.injected as usize % NODES);
        scene.kill(victim)?;
        outcome.injected += 1;
        until_taken(&scene, before).await?;
        outcome.seen += 1;
        rejoin(scene.node_at(victim)).await?;
    }
    let bounced = match bounces {
        Some(bounces) => bounces.await??,
        None => 0,
    };
    let ended = load.ended();
    // The program replays what it has seen: nothing else is begun beside that.
    let (paused, program) = tokio::join!(
        tokio::time::timeout(PROGRAM_ENDS_WITHIN, load.pause()),
        program.ended(PROGRAM_ENDS_WITHIN)
    );
    paused.context("the workflows of the load do not end")??;
    let (wrong, did) = program?;
    outcome.violations.extend(wrong);
    outcome.how = format!(
        "{} kills, {bounced} bounces of brokers, {ended} workflows while it lasted; the SDK program: {did}",
        outcome.injected
    );
    Ok(scene.finish(load, outcome).await?.0)
}
