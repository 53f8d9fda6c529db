//! Task queues of the server itself: their workers are the nodes, which poll them only while something waits there.
//!
//! The dispatcher notes a queue of this kind when something joins it and no poll waits. What it notes is memory: owners offer
//! again whatever is ready after a restart, a move, or a change of the nodes.

use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use crate::model::task_types::QueueKey;

/// The prefix of their names. No client may name such a queue.
pub const SERVER_QUEUE_PREFIX: &str = "/_sys/";

/// Queues where something waits for a poll. As many as there are namespaces with work of the server's, for each kind.
#[derive(Default)]
pub(crate) struct ServerQueues {
    unpolled: Mutex<Vec<QueueKey>>,
    noted: Notify,
}

impl ServerQueues {
    /// Something waits, and no poll does.
    pub(crate) fn note(&self, key: &QueueKey) {
        if !key.name.starts_with(SERVER_QUEUE_PREFIX) {
            return;
        }
        let mut unpolled = self.unpolled.lock().unwrap_or_else(PoisonError::into_inner);
        if !unpolled.contains(key) {
            unpolled.push(key.clone());
            self.noted.notify_one();
        }
    }

    /// The next queue that was noted: the longest ago first, each once. For one caller at a time.
    pub(crate) async fn next(&self) -> QueueKey {
        loop {
            let next = {
                let mut unpolled = self.unpolled.lock().unwrap_or_else(PoisonError::into_inner);
                (!unpolled.is_empty()).then(|| unpolled.remove(0))
            };
            match next {
                Some(key) => return key,
                None => self.noted.notified().await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::matching::dispatcher::tests::{bounded, brought, key, task, try_poll};
    use crate::matching::dispatcher::{Dispatcher, QueueLimits};

    const QUEUE: &str = "/_sys/jobs";

    /// What is noted, without waiting for it.
    fn noted(dispatcher: &Dispatcher) -> Option<QueueKey> {
        match pin!(dispatcher.unpolled_server_queue()).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(key) => Some(key),
            Poll::Pending => None,
        }
    }

    #[test]
    fn a_queue_of_the_server_is_noted_once_while_nobody_polls_it() {
        let (dispatcher, _now_ms, send, _sent) = bounded(QueueLimits::default());
        for id in 0..3 {
            assert!(dispatcher.offer(&key(QUEUE), task(1, id), &send).is_none());
            assert!(dispatcher.offer(&key("orders"), task(1, id), &send).is_none());
        }
        assert_eq!(noted(&dispatcher), Some(key(QUEUE)));
        assert_eq!(noted(&dispatcher), None, "of a client's queue the server is no worker");
        assert!(dispatcher.offer(&key(QUEUE), task(1, 3), &send).is_none());
        assert_eq!(noted(&dispatcher), Some(key(QUEUE)), "whoever was told of it may have stopped to poll");
    }

    #[test]
    fn what_a_poll_takes_is_not_noted_and_what_comes_behind_a_poll_that_ended_is() {
        let (dispatcher, _now_ms, send, sent) = bounded(QueueLimits::default());
        let (ticket, receiver) =
            try_poll(&dispatcher, ("n", QUEUE), None, &send).expect("there are few queues");
        assert!(dispatcher.offer(&key(QUEUE), task(1, 1), &send).is_some());
        assert_eq!(noted(&dispatcher), None);
        drop((ticket, receiver));
        let (ticket, receiver) =
            try_poll(&dispatcher, ("n", QUEUE), None, &send).expect("there are few queues");
        drop(receiver);
        assert!(dispatcher.offer(&key(QUEUE), task(1, 2), &send).is_none());
        assert_eq!(noted(&dispatcher), Some(key(QUEUE)));
        drop(ticket);
        assert!(brought(&sent).is_empty());
    }

    #[test]
    fn after_a_change_of_the_nodes_it_is_noted_again() {
        let (dispatcher, _now_ms, send, _sent) = bounded(QueueLimits::default());
        assert!(dispatcher.offer(&key(QUEUE), task(1, 1), &send).is_none());
        assert_eq!(noted(&dispatcher), Some(key(QUEUE)));
        dispatcher.rehome();
        assert!(dispatcher.offer(&key(QUEUE), task(1, 1), &send).is_none());
        assert_eq!(noted(&dispatcher), Some(key(QUEUE)));
    }
}
