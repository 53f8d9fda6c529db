//! Events for partitions that are not at this node: refused, or forwarded to the owner.

use std::sync::Weak;

use everlog_engine::level;
use everlog_partition::{CallFailure, InboxMessage};

use crate::control_rows::{Assignment, Row};
use crate::local::RemotePartitions;
use crate::matching::remote::RemoteMatching;

/// Takes events for partitions that are not here.
pub struct RemoteOwners(pub Weak<RemoteMatching>);

impl RemotePartitions for RemoteOwners {
    fn bring(&self, partition: u32, event: InboxMessage) {
        let Some(matching) = self.0.upgrade() else { return event.refuse(CallFailure::Unavailable) };
        match event {
            // The new owner has offered its tasks again.
            InboxMessage::Claim { waiting, .. } | InboxMessage::HandQuery { waiting, .. } => {
                matching.poll_again(waiting);
            }
            InboxMessage::Release { .. }
            | InboxMessage::QueryLost { .. }
            | InboxMessage::PollsLost { .. } => {
                matching.forward_loss_later(partition, event);
            }
            asked => asked.refuse(CallFailure::Moved),
        }
    }

    fn moved_to(&self, partition: u32) -> Result<Option<String>, everlog_log::Error> {
        let Some(matching) = self.0.upgrade() else { return Ok(None) };
        let (key, _) = Row::Assignment(Assignment::default()).write();
        let Some(Row::Assignment(latest)) = matching.control.read(&key)? else { return Ok(None) };
        let assigned = latest.groups.into_iter().nth(matching.groups.group_of(partition)).flatten();
        Ok(assigned.filter(|node| *node != matching.node.name))
    }

    fn level_of_new(&self) -> u32 {
        self.0.upgrade().map_or(0, |matching| matching.control.view().level())
    }

    fn raised_level(&self) -> u32 {
        self.0.upgrade().map_or(0, |matching| matching.control.view().raised.min(level::LATEST))
    }
}
