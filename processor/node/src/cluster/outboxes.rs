//! Where offers wait for the other nodes: an outbox for each.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use everlog_partition::{KeptBack, QueueKey, Ready};
use tokio::sync::Notify;

use super::outbox::Outbox;

/// Where offers to other nodes wait, by node.
#[derive(Default)]
pub struct Outboxes(Mutex<HashMap<String, Arc<Post>>>);

/// The outbox of one node, and how its carrier hears that there is more to bring.
#[derive(Default)]
pub struct Post {
    outbox: Mutex<Outbox>,
    pub has_more: Notify,
}

impl Post {
    pub fn outbox(&self) -> MutexGuard<'_, Outbox> {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Outboxes {
    fn posts(&self) -> MutexGuard<'_, HashMap<String, Arc<Post>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The outbox of a node; `carried` hears of one that is new.
    pub fn post(&self, node: &str, carried: impl FnOnce(&Arc<Post>)) -> Arc<Post> {
        let mut posts = self.posts();
        if let Some(post) = posts.get(node) {
            return Arc::clone(post);
        }
        let post = Arc::<Post>::default();
        posts.insert(node.to_owned(), Arc::clone(&post));
        carried(&post);
        post
    }

    /// True while an outbox is the one of a node.
    pub fn has(&self, node: &str, post: &Arc<Post>) -> bool {
        self.posts().get(node).is_some_and(|own| Arc::ptr_eq(own, post))
    }

    /// The nodes are others, or have been started anew: what they were offered is offered again, and nothing is at a home.
    pub fn empty(&self) {
        let posts = std::mem::take(&mut *self.posts());
        // Whoever carries for one of these finds it gone.
        posts.values().for_each(|post| post.has_more.notify_one());
    }

    /// How many offers are not on their way yet.
    pub fn waiting(&self) -> usize {
        self.posts().values().map(|post| post.outbox().waiting()).sum()
    }

    /// What is not on its way yet of a queue, by level; how long it waits is by `now_ms`.
    pub fn kept_back(&self, queue: &QueueKey, now_ms: i64) -> KeptBack {
        let mut kept_back = KeptBack::new();
        for post in self.posts().values() {
            for (level, count, since_ms) in post.outbox().of_queue(queue) {
                add(&mut kept_back, level, (count, now_ms - since_ms));
            }
        }
        kept_back
    }

    /// Something that was offered is to be got by somebody.
    pub fn taken(&self, ready: &Ready) {
        for post in self.posts().values() {
            post.outbox().taken(ready);
            post.has_more.notify_one();
        }
    }

    /// These queues and partitions are another node's to offer, or nobody's.
    pub fn forget(&self, is_gone: impl Fn(&QueueKey, u32) -> bool) {
        for post in self.posts().values() {
            post.outbox().forget(&is_gone);
            post.has_more.notify_one();
        }
    }
}

/// Adds what another one keeps back at a level: how much it is, and for how many milliseconds the oldest of it has waited.
pub fn add(kept_back: &mut KeptBack, level: u8, (count, age_ms): (usize, i64)) {
    let row = kept_back.entry(level).or_default();
    *row = (row.0 + count, row.1.max(age_ms));
}
