//! Why a node ends, and how it ended.

use crate::error_policy::LossScope;
use crate::storage::log_backend;

/// How a node ended that had started.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// As it was asked to.
    Asked,
    /// Because it could not go on, and why.
    Failed(String),
}

/// Why a node begins to end.
#[derive(Debug, PartialEq, Eq)]
pub enum Cause {
    /// Somebody asked it to.
    Asked,
    /// Nothing can be written any more: there is nothing to stop in order.
    LogEnded(String),
    /// The other partitions can be stopped in order.
    PartitionEnded(Loss),
    /// Nobody serves calls any more.
    GatewayEnded(String),
}

/// A partition that cannot go on.
#[derive(Debug, PartialEq, Eq)]
pub enum Loss {
    /// Somebody else has it, perhaps known by name.
    TakenOver(u32, Option<String>),
    /// What is in the log keeps it from being served by any node.
    Closed(String),
    /// Something else, in words.
    Other(String),
}

impl Loss {
    /// `from`: what is told of where it came from, if there is something.
    pub fn of(partition: u32, end: LossScope, error: &everlog_partition::Error, from: &str) -> Self {
        let told = |reason| match end {
            LossScope::Closed => Self::Closed(reason),
            LossScope::Lost => Self::Other(reason),
        };
        match error {
            everlog_partition::Error::Superseded { node, .. } => {
                Self::TakenOver(partition, Some(node.clone()))
            }
            everlog_partition::Error::Log(everlog_log::Error::Fenced { .. }) => {
                Self::TakenOver(partition, None)
            }
            everlog_partition::Error::Wire(everlog_wire::Error::Decode { .. }) => told(format!(
                "partition {partition}{from} has ended: {error}; {}",
                log_backend::UNDECODABLE_WAY_OUT
            )),
            _ => told(format!("partition {partition}{from} has ended: {error}")),
        }
    }

    /// What is told; a later loss may know who took over.
    pub fn reason(self, mut later: impl Iterator<Item = Loss>) -> String {
        let told = |partition, by: &str| {
            format!(
                "partition {partition} was taken over by {by}: this node steps down; nothing acknowledged is lost"
            )
        };
        match self {
            Self::Closed(reason) | Self::Other(reason) => reason,
            Self::TakenOver(partition, Some(node)) => told(partition, &format!("the node \"{node}\"")),
            Self::TakenOver(partition, None) => later
                .find_map(|loss| match loss {
                    Self::TakenOver(partition, Some(node)) => {
                        Some(told(partition, &format!("the node \"{node}\"")))
                    }
                    Self::TakenOver(_, None) | Self::Closed(_) | Self::Other(_) => None,
                })
                .unwrap_or_else(|| told(partition, "another node")),
        }
    }
}
