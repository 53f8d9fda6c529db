//! The end of a node, in order: what others can take over goes to them, then connections, partitions, the log.

use std::sync::Arc;
use std::time::{Duration, Instant};

use everlog_cluster::Cluster;
use everlog_log::clock::elapsed_ms;
use tokio::sync::mpsc;

use crate::exit_cause::{Cause, Ended, Loss};
use crate::partitions::threads::Running;
use crate::services::commands::Commands;
use crate::services::gateway::Gateway;
use crate::storage::log_backend::LogBackend;

/// How long a log on Kafka may take to close: what was not committed by then is applied again by whoever has the partitions next.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);

/// What ends with the node, besides the partitions and their log.
pub struct ShutdownParts {
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
    ShutdownParts { commands, gateway, cluster }: ShutdownParts,
    running: Running,
    backend: LogBackend,
    mut failures: mpsc::Receiver<Loss>,
) -> Ended {
    if let Cause::LogEnded(reason) = cause {
        let ended = log_ended(&reason);
        leave(backend, &ended);
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
        depart(cluster, &mut failures, &mut unminded).await;
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
        std::mem::forget(backend);
    } else if !close(backend) {
        tracing::warn!("the log is still in use at the end; what was acknowledged is safe");
    }
    tracing::info!(took_ms = elapsed_ms(began), "stopped");
    let later = unminded.into_iter().chain(std::iter::from_fn(|| failures.try_recv().ok()));
    match cause {
        Cause::Asked => Ended::Asked,
        Cause::LogEnded(reason) | Cause::GatewayEnded(reason) => Ended::Failed(reason),
        Cause::PartitionEnded(loss) => Ended::Failed(loss.reason(later)),
    }
}

/// What others can take over goes to them; what they have taken already is not waited for, however long the brokers take to say so.
async fn depart(cluster: &Arc<Cluster>, failures: &mut mpsc::Receiver<Loss>, unminded: &mut Vec<Loss>) {
    let step_down = async {
        while let Some(loss) = failures.recv().await {
            match loss {
                Loss::TakenOver(partition, _) if cluster.step_down(partition).await => {}
                loss => unminded.push(loss),
            }
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = cluster.depart() => {}
        () = step_down => {}
    }
}

/// Closes the log; false where somebody else still uses it, or the brokers keep it from closing.
fn close(backend: LogBackend) -> bool {
    if !backend.is_remote() {
        return backend.close();
    }
    let (sender, closed) = std::sync::mpsc::channel();
    let thread = std::thread::Builder::new().name("close".into());
    // Nobody listens any more where it took too long.
    let spawned = thread.spawn(move || {
        let _ = sender.send(backend.close());
    });
    spawned.is_ok() && closed.recv_timeout(CLOSE_WITHIN) == Ok(true)
}

/// How a node ends whose log has failed.
pub fn log_ended(reason: &str) -> Ended {
    Ended::Failed(format!("{reason}; nothing acknowledged is lost: mend the disk, then start again"))
}

/// Ends with a log that is closed only where it is whole. PeerForwarder may still be about to go, on threads that nobody waits
/// for. Whoever goes last would close a database that has failed while the process ends around it, and RocksDB would
/// abort; so nobody is the last one.
pub fn leave(backend: LogBackend, ended: &Ended) {
    if *ended == Ended::Asked {
        backend.close();
    } else {
        std::mem::forget(backend);
    }
}

#[cfg(test)]
mod tests {
    use everlog_cluster::{DEPART_WITHIN, LEAVE_WITHIN};
    use everlog_config::Config;

    use super::*;
    use crate::node::LEFTOVERS_WITHIN;
    use crate::partitions::threads;
    use crate::services::commands;

    #[test]
    fn all_of_a_stop_takes_less_than_orchestrators_wait_before_they_kill() {
        let drain = Duration::from_millis(Config::default().gateway.drain_ms);
        let after = LEAVE_WITHIN + threads::END_WITHIN + CLOSE_WITHIN + LEFTOVERS_WITHIN;
        let all = DEPART_WITHIN + drain.max(commands::END_WITHIN) + after;
        assert!(all < Duration::from_secs(29), "{all:?}");
    }
}
