//! The private queue of a worker that goes: what waits there goes to the normal queue.

use crate::TaskKind;
use crate::matching::dispatcher::{Backlog, Dispatcher};
use crate::model::inbox_message::{InboxMessage, PartitionSender};
use crate::model::task_types::{QueueKey, Ready};

impl Dispatcher {
    /// See [`crate::Router::retire_sticky_queue`].
    pub fn retire_sticky_queue(&self, namespace_id: &str, name: &str, send: &PartitionSender) {
        let key = QueueKey { namespace_id: namespace_id.into(), name: name.into(), kind: TaskKind::Workflow };
        let ready = {
            let mut shard = self.shard(&key);
            // One that nobody has polled is not live anyway.
            let Some(queue) = shard.get_mut(&key) else { return };
            queue.retired = true;
            queue.end_polls();
            std::mem::take(&mut queue.ready)
        };
        self.leave_sticky_queue(&key, ready, send);
    }

    /// The worker of a sticky queue has gone while a poll of it waited. Where no other one waits, what is there goes to the
    /// normal queue at once, and so does what comes until it polls again.
    pub fn abandon_sticky_queue(&self, namespace_id: &str, name: &str, send: &PartitionSender) {
        let key = QueueKey { namespace_id: namespace_id.into(), name: name.into(), kind: TaskKind::Workflow };
        let ready = {
            let mut shard = self.shard(&key);
            let Some(queue) = shard.get_mut(&key) else { return };
            queue.forget_closed();
            if !queue.waiting.is_empty() {
                return;
            }
            queue.retired = true;
            std::mem::take(&mut queue.ready)
        };
        self.leave_sticky_queue(&key, ready, send);
    }

    /// What waits in a sticky queue without a worker goes to the normal queue.
    pub(super) fn leave_sticky_queue(&self, key: &QueueKey, ready: Backlog, send: &PartitionSender) {
        for ready in ready.into_all() {
            match ready {
                Ready::Task(mut task) => {
                    // Without one, the queue is a normal one by another name.
                    let name = task.normal_queue.take().unwrap_or_else(|| key.name.clone());
                    let normal = QueueKey { name, ..key.clone() };
                    if let Some((ready, waiting)) = self.put(&normal, Ready::Task(task)) {
                        self.bring(ready, waiting, send);
                    }
                }
                // Whoever asks knows the run's normal queue.
                Ready::Query { partition, query_id, offered_by, .. } => {
                    match (offered_by, self.homes.get()) {
                        (Some(node), Some(homes)) => homes.lost(node, partition, query_id),
                        (None, _) | (_, None) => drop(send(partition, InboxMessage::QueryLost { query_id })),
                    }
                }
            }
        }
    }
}
