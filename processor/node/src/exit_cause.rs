//! Why a node ends, and how it ended.

use crate::error_policy::LossScope;
use crate::storage::log_backend;

/// How a node ended that had started.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was asked to end.
    Asked,
    /// It could not go on; why.
    Failed(String),
}

/// Why a node begins to end.
#[derive(Debug, PartialEq, Eq)]
pub enum Cause {
    /// It was asked to.
    Asked,
    /// The log is closed for writes, so nothing can be stopped in order.
    LogEnded(String),
    /// A partition failed. The others are stopped in order.
    PartitionEnded(Loss),
    /// The gateway ended by itself.
    GatewayEnded(String),
}

/// A partition that failed.
#[derive(Debug, PartialEq, Eq)]
pub enum Loss {
    /// Another node has taken it over, whose name may be known.
    TakenOver(u32, Option<String>),
    /// It cannot be served at any node because of what is in the log.
    Closed(String),
    /// Another reason, as text.
    Other(String),
}

impl Loss {
    /// `from`: where the partition was restored from, for the text; may be empty.
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

    /// The reason as text. A later loss may know the name of the new owner.
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
