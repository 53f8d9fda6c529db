//! The end of a node, in order: what others can take over goes to them, then connections, partitions, the log.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc;

use crate::cluster::Cluster;
use crate::commands::Commands;
use crate::driver::Running;
use crate::gateway::Gateway;
use crate::home::Home;
use crate::node::{Cause, Ended, Loss, millis};

/// What ends with the node, besides the partitions and their log.
pub struct Ends {
    /// The reading of commands.
    pub commands: Option<Commands>,
    /// Whoever serves calls.
    pub gateway: Option<Gateway>,
    /// This node among the others.
    pub cluster: Option<Arc<Cluster>>,
}

/// Stops everything in order: what others can take over goes to them, then connections, partitions with their last
/// commit, the log.
pub async fn end(
    cause: Cause,
    Ends { commands, gateway, cluster }: Ends,
    running: Running,
    home: Home,
    mut failures: mpsc::Receiver<Loss>,
) -> Ended {
    if let Cause::LogEnded(reason) = cause {
        let ended = log_ended(&reason);
        leave(home, &ended);
        return ended;
    }
    let began = Instant::now();
    let no_commands = async {
        if let Some(commands) = commands {
            commands.stop().await;
        }
    };
    let mut unminded = Vec::new();
    if let Some(cluster) = &cluster {
        let mut departs = std::pin::pin!(cluster.depart());
        loop {
            tokio::select! {
                () = &mut departs => break,
                // What another node has taken is not waited for.
                Some(loss) = failures.recv() => match loss {
                    Loss::TakenOver(partition, _) if cluster.steps_down(partition).await => {}
                    loss => unminded.push(loss),
                },
            }
        }
    }
    let no_calls = async {
        if let Some(gateway) = gateway {
            gateway.stop().await;
        }
    };
    tokio::join!(no_calls, no_commands);
    if let Some(cluster) = cluster {
        cluster.end().await;
    }
    running.stop_polls();
    if !running.stop() {
        tracing::warn!("partitions are still being taken over at the end; what was acknowledged is safe");
        std::mem::forget(home);
    } else if !home.close() {
        tracing::warn!("the log is still in use at the end; what was acknowledged is safe");
    }
    tracing::info!(took_ms = millis(began), "stopped");
    let later = unminded.into_iter().chain(std::iter::from_fn(|| failures.try_recv().ok()));
    match cause {
        Cause::Asked => Ended::Asked,
        Cause::LogEnded(reason) | Cause::GatewayEnded(reason) => Ended::Failed(reason),
        Cause::PartitionEnded(loss) => Ended::Failed(loss.reason(later)),
    }
}

/// How a node ends whose log has failed.
pub fn log_ended(reason: &str) -> Ended {
    Ended::Failed(format!("{reason}; nothing acknowledged is lost: mend the disk, then start again"))
}

/// Ends with a log that is closed only where it is whole. Others may still be about to go, on threads that nobody waits
/// for. Whoever goes last would close a database that has failed while the process ends around it, and RocksDB would
/// abort; so nobody is the last one.
pub fn leave(home: Home, ended: &Ended) {
    if *ended == Ended::Asked {
        home.close();
    } else {
        std::mem::forget(home);
    }
}
