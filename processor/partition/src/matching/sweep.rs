//! What is done for all queues once a second, and which of them are forgotten.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use crate::matching::dispatcher::{Dispatcher, FORGET_MS, Queue};
use crate::model::inbox_message::PartitionSender;

/// Of the queues without polls and tasks: the last poll of each in ms, and how many pollers are known there.
type Ended = Vec<(i64, usize)>;

/// The moment of the last poll, in ms, up to which queues without polls and tasks are forgotten.
struct Horizon {
    all_ms: i64,
    /// Of namespaces in which that is later.
    namespaces: HashMap<String, i64>,
}

impl Dispatcher {
    /// Hands out what a rate limit held back, takes what waits for workers that are gone to others, and forgets queues that
    /// nobody uses.
    pub fn sweep(&self, send: &PartitionSender) {
        let now_ms = self.now_ms();
        let horizon = self.horizon(now_ms);
        let mut remembered = 0;
        for shard in &self.shards {
            let mut released = Vec::new();
            let mut left = Vec::new();
            {
                let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
                shard.retain(|key, queue| {
                    let stays =
                        !queue.is_idle() || !horizon.has_passed(&key.namespace_id, queue.last_poll_ms);
                    remembered += usize::from(stays && queue.is_idle());
                    stays
                });
                if shard.len() < shard.capacity() / 4 {
                    let room = shard.len() * 2;
                    shard.shrink_to(room);
                }
                for (key, queue) in shard.iter_mut() {
                    if queue.is_left(now_ms) {
                        left.push((key.clone(), std::mem::take(&mut queue.ready)));
                    }
                    released.extend(std::iter::from_fn(|| queue.pair(now_ms)));
                }
            }
            for (key, ready) in left {
                self.leave_sticky_queue(&key, ready, send);
            }
            for (ready, waiting) in released {
                self.bring(ready, waiting, send);
            }
        }
        self.census.remembered.store(remembered, Ordering::Relaxed);
    }

    /// Of queues without polls and tasks the last ones are remembered for a while, as many as may be.
    fn horizon(&self, now_ms: i64) -> Horizon {
        let mut namespaces = HashMap::<String, Ended>::new();
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            for (key, queue) in shard.iter_mut() {
                queue.forget_closed();
                if !queue.is_idle() {
                    continue;
                }
                let ended = (queue.last_poll_ms, queue.pollers.len());
                match namespaces.get_mut(&key.namespace_id) {
                    Some(of_it) => of_it.push(ended),
                    None => drop(namespaces.insert(key.namespace_id.clone(), vec![ended])),
                }
            }
        }
        // One that names many queues takes no room of the others.
        let limits = &self.census.limits;
        let mut all = Ended::new();
        let mut of_each = |(id, mut ended): (String, Ended)| {
            let ms = beyond_ms(&mut ended, limits.namespace_remembered_max);
            all.extend(ended.into_iter().filter(|(last_poll_ms, _)| *last_poll_ms > ms));
            (id, ms)
        };
        let namespaces: Vec<_> = namespaces.into_iter().map(&mut of_each).collect();
        let all_ms = beyond_ms(&mut all, limits.remembered_max).max(now_ms - FORGET_MS - 1);
        Horizon { all_ms, namespaces: namespaces.into_iter().filter(|(_, ms)| *ms > all_ms).collect() }
    }
}

impl Horizon {
    fn has_passed(&self, namespace_id: &str, last_poll_ms: i64) -> bool {
        last_poll_ms <= self.namespaces.get(namespace_id).copied().unwrap_or(self.all_ms)
    }
}

/// The last poll of the first queue, from the latest on, for whose pollers there is no room.
fn beyond_ms(ended: &mut Ended, pollers_max: usize) -> i64 {
    ended.sort_unstable_by_key(|(last_poll_ms, _)| Reverse(*last_poll_ms));
    let mut room = pollers_max;
    for (last_poll_ms, pollers) in ended {
        match room.checked_sub(*pollers) {
            Some(left) => room = left,
            None => return *last_poll_ms,
        }
    }
    i64::MIN
}

impl Queue {
    /// No poll waits here, and nothing is ready.
    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.ready.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::dispatcher::tests::{Polling, bounded, brought, key, task, try_poll};
    use crate::matching::dispatcher::{QueueCounts, QueueLimits};
    use crate::model::admission::CallFailure;

    fn limits(polled: usize, remembered: usize) -> QueueLimits {
        QueueLimits {
            namespace_polled_max: polled,
            polled_max: polled + 1,
            namespace_remembered_max: remembered,
            remembered_max: remembered + 1,
        }
    }

    fn counts(dispatcher: &Dispatcher) -> (usize, usize) {
        let QueueCounts { polled, remembered, .. } = dispatcher.queue_counts();
        (polled, remembered)
    }

    #[test]
    fn polls_wait_at_so_many_queues_of_a_namespace_and_in_all() {
        let (dispatcher, _now_ms, send, sent) = bounded(limits(2, 10));
        let poll = |namespace_id, name| try_poll(&dispatcher, (namespace_id, name), None, &send);
        let refused = |polling: Result<Polling, CallFailure>| polling.err();
        let one = poll("n", "1").expect("there is room");
        let two = poll("n", "2").expect("there is room");
        assert_eq!(refused(poll("n", "3")), Some(CallFailure::NamespaceCrowded { queues: 2 }));
        drop(poll("n", "2").expect("polls wait there already"));
        let other = poll("other", "1").expect("it is another namespace's");
        assert_eq!(refused(poll("third", "1")), Some(CallFailure::Crowded { queues: 3 }));
        assert!(dispatcher.offer(&key("4"), task(1, 4), &send).is_none());
        let fourth = poll("n", "4").expect("something is ready there");
        assert_eq!(brought(&sent), [(1, 4)]);
        assert_eq!(counts(&dispatcher).0, 3, "it waits no more");
        drop((one, fourth));
        let third = poll("n", "3").expect("there is room again");
        assert!(dispatcher.offer(&key("3"), task(1, 3), &send).is_some());
        let last = poll("n", "5").expect("whoever has got a task is gone");
        assert_eq!((counts(&dispatcher).0, dispatcher.queue_counts().refused), (3, 2));
        drop((two, other, third, last));
        assert_eq!(counts(&dispatcher).0, 0);
    }

    #[test]
    fn the_last_queues_are_remembered_and_a_flood_of_names_takes_nothing_of_other_namespaces() {
        let (dispatcher, now_ms, send, _sent) = bounded(limits(1_000, 10));
        let pollers = |namespace_id: &str, name: &str| {
            let key = crate::model::task_types::QueueKey { namespace_id: namespace_id.into(), ..key(name) };
            dispatcher.status(&key).pollers.len()
        };
        drop(try_poll(&dispatcher, ("quiet", "q"), None, &send));
        for number in 0..500 {
            now_ms.fetch_add(1, Ordering::Relaxed);
            drop(try_poll(&dispatcher, ("n", &number.to_string()), None, &send));
        }
        let waits = try_poll(&dispatcher, ("n", "0"), None, &send);
        dispatcher.sweep(&send);
        assert_eq!(counts(&dispatcher), (1, 11), "ten of the flood, and the quiet one");
        assert_eq!(["489", "490", "499", "0"].map(|name| pollers("n", name)), [0, 1, 1, 1]);
        assert_eq!(pollers("quiet", "q"), 1);
        drop(waits);
        now_ms.fetch_add(FORGET_MS + 1, Ordering::Relaxed);
        dispatcher.sweep(&send);
        assert_eq!((counts(&dispatcher), pollers("quiet", "q")), ((0, 0), 0));
        let kept = dispatcher.shards.iter().map(|shard| shard.lock().expect("nobody panics").capacity());
        assert!(kept.sum::<usize>() < 100, "nor is the room for them kept");
    }

    #[test]
    fn a_worker_that_shuts_down_makes_no_queue() {
        let (dispatcher, _now_ms, send, _sent) = bounded(limits(10, 10));
        dispatcher.retire_sticky_queue("n", "never polled", &send);
        assert!(dispatcher.shards.iter().all(|shard| shard.lock().expect("nobody panics").is_empty()));
    }
}
