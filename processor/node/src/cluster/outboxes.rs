//! Where offers wait for the other nodes: an outbox for each.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use everlog_partition::{KeptBack, QueueKey, Ready};
use tokio::sync::Notify;

use super::outbox::Outbox;

/// Where offers to other nodes wait, by node.
#[derive(Default)]
pub struct Outboxes(Mutex<Posts>);

#[derive(Default)]
struct Posts {
    /// See [`Outboxes::era`].
    era: u64,
    by_node: HashMap<String, Arc<Post>>,
}

/// The outbox of one node, and how its carrier hears that there is more to bring.
pub struct Post {
    /// When it was made, see [`Outboxes::era`]. What is in it goes as of then, whatever is now: a home forgets what it was
    /// offered of an era when the next one begins, and the outbox is thrown away then.
    pub era: u64,
    outbox: Mutex<Outbox>,
    pub has_more: Notify,
}

impl Post {
    fn new(era: u64) -> Self {
        Self { era, outbox: Mutex::default(), has_more: Notify::new() }
    }

    pub fn outbox(&self) -> MutexGuard<'_, Outbox> {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Outboxes {
    fn posts(&self) -> MutexGuard<'_, Posts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The outbox of a node; `carried` hears of one that is new.
    pub fn post(&self, node: &str, carried: impl FnOnce(&Arc<Post>)) -> Arc<Post> {
        let mut posts = self.posts();
        if let Some(post) = posts.by_node.get(node) {
            return Arc::clone(post);
        }
        let post = Arc::new(Post::new(posts.era));
        posts.by_node.insert(node.to_owned(), Arc::clone(&post));
        carried(&post);
        post
    }

    /// True while an outbox is the one of a node.
    pub fn has(&self, node: &str, post: &Arc<Post>) -> bool {
        self.posts().by_node.get(node).is_some_and(|own| Arc::ptr_eq(own, post))
    }

    /// What the nodes that homes are chosen among are known by; another one whenever they, or one of their processes, are others.
    /// As of when this node has seen to what follows from that; 0 before.
    pub fn era(&self) -> u64 {
        self.posts().era
    }

    /// The nodes are others, or have been started anew: nothing is at a home any more, and what they were offered is to be
    /// offered again. Both at once: what was offered between the two would be at a home that forgets it, and be thought there.
    pub fn begin(&self, era: u64) {
        let before = std::mem::replace(&mut *self.posts(), Posts { era, by_node: HashMap::new() });
        // Whoever carries for one of these finds it gone.
        before.by_node.values().for_each(|post| post.has_more.notify_one());
    }

    /// How many offers are not on their way yet.
    pub fn waiting(&self) -> usize {
        self.posts().by_node.values().map(|post| post.outbox().waiting()).sum()
    }

    /// What is not on its way yet of a queue, by level; how long it waits is by `now_ms`.
    pub fn kept_back(&self, queue: &QueueKey, now_ms: i64) -> KeptBack {
        let mut kept_back = KeptBack::new();
        for post in self.posts().by_node.values() {
            for (level, count, since_ms) in post.outbox().of_queue(queue) {
                add(&mut kept_back, level, (count, now_ms - since_ms));
            }
        }
        kept_back
    }

    /// Something that was offered is to be got by somebody.
    pub fn taken(&self, ready: &Ready) {
        for post in self.posts().by_node.values() {
            post.outbox().taken(ready);
            post.has_more.notify_one();
        }
    }

    /// These queues and partitions are another node's to offer, or nobody's.
    pub fn forget(&self, is_gone: impl Fn(&QueueKey, u32) -> bool) {
        for post in self.posts().by_node.values() {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_an_era_goes_as_of_the_next() {
        let outboxes = Outboxes::default();
        let mut carried = Vec::new();
        outboxes.begin(7);
        let before = outboxes.post("b", |post| carried.push(post.era));
        assert!(Arc::ptr_eq(&before, &outboxes.post("b", |_| panic!("it is there"))));
        outboxes.begin(8);
        // Whoever carries may have taken something out of it, or somebody may put something in just now.
        assert!((before.era, outboxes.has("b", &before)) == (7, false));
        let after = outboxes.post("b", |post| carried.push(post.era));
        assert!(outboxes.has("b", &after) && !outboxes.has("c", &after));
        assert_eq!((outboxes.era(), carried), (8, vec![7, 8]));
    }
}
