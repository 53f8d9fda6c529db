//! Minutes of load from records, bare clients and SDK programs, while nodes die and brokers are bounced.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use crate::checker::deliveries::Troubles;
use crate::cluster::FaultCluster;
use crate::environment::{Environment, Outcome, Size, TOOK_A_GROUP};
use crate::net::Host;
use crate::program::Errands;
use crate::rows::several::{rejoin, until_taken};

const NODES: usize = 2;
const KILL_EVERY: Duration = Duration::from_secs(15);
/// How often nodes are killed, and how often each broker is bounced meanwhile.
const FULL: (u32, u32) = (20, 2);
const SHORT: (u32, u32) = (3, 1);
/// Workflows at a time on one broker, which is to be busy, and those of the program there.
const OPEN_HIGH: usize = 200;
const ERRANDS_LOW: usize = 4;
const ERRANDS_HIGH: usize = 16;

/// Two nodes on three brokers, at a low rate.
pub async fn three(_site: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    let cluster = FaultCluster::of_three().await?;
    let own = Size { errands: Errands { open: ERRANDS_LOW, ..size.errands }, ..size };
    let environment = Environment::of_quorum(&cluster, "soak3", own, &vec![Host::here(); NODES]).await?;
    let outcome = soak(environment, &cluster, 3).await;
    // Brokers end with the last who knows of them.
    drop(cluster);
    outcome
}

/// Two nodes on one broker, at a high rate.
pub async fn one(cluster: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    let (open, workers) = if size.is_full { (OPEN_HIGH, 24) } else { (OPEN_HIGH / 4, 8) };
    let errands = Errands { open: ERRANDS_HIGH, ..size.errands };
    let environment =
        Environment::of_nodes(&cluster, "soak1", Size { open, workers, errands, ..size }, NODES).await?;
    soak(environment, &cluster, 1).await
}

/// One broker after the other, well and killed, spread over the time.
fn bounce(
    cluster: FaultCluster,
    troubles: Troubles,
    span: Duration,
    brokers: u32,
    times: u32,
) -> JoinHandle<anyhow::Result<u32>> {
    tokio::spawn(async move {
        let mut moments = tokio::time::interval(span / (times + 1));
        moments.set_missed_tick_behavior(MissedTickBehavior::Delay);
        moments.tick().await;
        for time in 0..times {
            moments.tick().await;
            let broker = 1 + time % brokers;
            troubles.begin();
            if time % 2 == 0 {
                cluster.end(broker).await?;
            } else {
                cluster.kill(broker).await?;
            }
            cluster.restart(broker).await?;
            troubles.end();
        }
        Ok(times)
    })
}

async fn soak(mut environment: Environment, cluster: &FaultCluster, brokers: u32) -> anyhow::Result<Outcome> {
    let (kills, times) = if environment.size.is_full { FULL } else { SHORT };
    let span = KILL_EVERY * kills;
    let bounces = bounce(cluster.clone(), environment.troubles.clone(), span, brokers, times * brokers);
    let (load, _) = environment.load_with_records()?;
    let mut outcome = Outcome::default();
    let mut moments = tokio::time::interval(KILL_EVERY);
    moments.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for _ in 0..kills {
        moments.tick().await;
        let (before, victim) = (environment.times_said(TOOK_A_GROUP), outcome.injected as usize % NODES);
        environment.kill(victim)?;
        outcome.injected += 1;
        until_taken(&environment, before).await?;
        outcome.seen += 1;
        rejoin(environment.node_at(victim)).await?;
    }
    let bounced = bounces.await??;
    let ended = load.ended();
    outcome.how = format!(
        "{} kills, {bounced} bounces of brokers, {ended} workflows while it lasted",
        outcome.injected
    );
    Ok(environment.finish(load, outcome).await?.0)
}
