//! The end of a node, in order: partition groups are handed over, then connections, partitions and the log are
//! closed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use everlog_cluster::Cluster;
use everlog_log::clock::elapsed_ms;
use tokio::sync::mpsc;

use crate::exit_cause::{Cause, Ended, Loss};
use crate::partitions::threads::Running;
use crate::services::commands::CommandReader;
use crate::services::gateway::NodeGateway;
use crate::storage::log_backend::LogBackend;

/// How long a log on Kafka may take to close. What is not committed by then is applied again by the next owner.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);

/// What ends with the node, besides the partitions and their log.
pub struct ShutdownParts {
    /// The reader of commands.
    pub commands: Option<CommandReader>,
    /// The gateway.
    pub gateway: Option<NodeGateway>,
    /// The cluster.
    pub cluster: Option<Arc<Cluster>>,
}

/// Stops everything in order: hands partition groups over, then closes connections, partitions with their last
/// commit, and the log.
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
        tracing::warn!("partitions still being taken over at the end; acknowledged requests are durable");
        std::mem::forget(backend);
    } else if !close(backend) {
        tracing::warn!("log still in use at the end; acknowledged requests are durable");
    }
    tracing::info!(took_ms = elapsed_ms(began), "stopped");
    let later = unminded.into_iter().chain(std::iter::from_fn(|| failures.try_recv().ok()));
    match cause {
        Cause::Asked => Ended::Asked,
        Cause::LogEnded(reason) | Cause::GatewayEnded(reason) => Ended::Failed(reason),
        Cause::PartitionEnded(loss) => Ended::Failed(loss.reason(later)),
    }
}

/// Hands partition groups over. Groups that others have taken already are not waited for.
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

/// Closes the log. False where it is still in use, or the brokers keep it from closing.
fn close(backend: LogBackend) -> bool {
    if !backend.is_remote() {
        return backend.close();
    }
    let (sender, closed) = std::sync::mpsc::channel();
    let thread = std::thread::Builder::new().name("close".into());
    // If it took too long, nobody receives this.
    let spawned = thread.spawn(move || {
        let _ = sender.send(backend.close());
    });
    spawned.is_ok() && closed.recv_timeout(CLOSE_WITHIN) == Ok(true)
}

/// How a node ends whose log has failed.
pub fn log_ended(reason: &str) -> Ended {
    Ended::Failed(format!("{reason}; nothing acknowledged is lost: mend the disk, then start again"))
}

/// Closes the log only where it is whole. Threads that nobody waits for may still use it. The last user would close a
/// failed database while the process ends, and RocksDB would abort. So the handle is leaked.
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
