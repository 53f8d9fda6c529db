//! A commit with an unknown outcome: the partition recovers in the same process only if its node still owns it.

use bytes::Bytes;
use everlog_partition::Error;
use everlog_wire::{Body, Owner, Record};

use crate::clock::Clock;
use crate::dice::Dice;
use crate::disk::Disk;
use crate::log::{Broker, Nasty, Shared};
use crate::node::{Node, PARTITION, PARTITIONS};
use crate::scenarios::one_node::unreadable;

/// Two processes and the broker that they fight over; everything happens within the call.
struct Pair {
    broker: Shared,
    clock: Clock,
    nodes: [Node; 2],
    lives: u64,
}

impl Pair {
    fn build() -> Self {
        let nasty = Nasty { immediate: true, ..Nasty::calm() };
        let broker = Shared::new(Broker::new(PARTITIONS, nasty, Dice::new(5)));
        let clock = Clock::new(broker.lock().now_ms);
        let node = |id| Node::start(id, &broker, &clock.shared(), Disk::default());
        let nodes = [node(0), node(1)];
        Self { broker, clock, nodes, lives: 0 }
    }

    /// Each of its lives has an instance of its own that begins with its process.
    fn instance(&mut self, node: usize) -> u64 {
        self.lives += 1;
        ((node as u64 + 1) << 32) | self.lives
    }

    fn take_over(&mut self, node: usize) {
        let instance = self.instance(node);
        self.nodes[node].recover(instance, self.clock.now_ms()).unwrap();
        self.serve(node).unwrap();
    }

    fn serve(&mut self, node: usize) -> Result<(), Error> {
        for _ in 0..10 {
            self.clock.advance(self.clock.now_ms() + 100);
            self.broker.lock().now_ms = self.clock.now_ms();
            self.nodes[node].turn(usize::MAX, self.clock.now_ms())?;
        }
        assert!(self.nodes[node].partition.as_ref().is_some_and(|partition| partition.is_serving()));
        Ok(())
    }

    /// A life ends with an outcome that nobody knows; how far it had come.
    fn lose_sight(&mut self, node: usize) -> u64 {
        self.nodes[node].partition.take().unwrap().applied()
    }

    fn resume(&mut self, node: usize, applied: u64) -> Result<(), Error> {
        let instance = self.instance(node);
        self.nodes[node].resume(applied, instance, self.clock.now_ms())?;
        self.serve(node)
    }

    fn fence(&self) -> u64 {
        self.broker.lock().stored(PARTITION).fence
    }
}

#[test]
fn who_lost_sight_of_a_commit_takes_the_partition_over_again_while_nobody_else_has_it() {
    let mut pair = Pair::build();
    pair.take_over(0);
    for _ in 0..3 {
        let applied = pair.lose_sight(0);
        pair.resume(0, applied).unwrap();
    }
}

#[test]
fn who_lost_sight_of_a_commit_does_not_fence_a_later_owner() {
    let mut pair = Pair::build();
    pair.take_over(0);
    let applied = pair.lose_sight(0);
    pair.take_over(1);
    let fence = pair.fence();
    for _ in 0..3 {
        let refused = pair.resume(0, applied);
        assert!(matches!(&refused, Err(Error::Superseded { node, .. }) if node == "node-1"), "{refused:?}");
    }
    assert_eq!(pair.fence(), fence, "the later owner was left alone");
    pair.serve(1).unwrap();
    // Nor once the journal has been trimmed up to what the later owner has committed.
    pair.broker.lock().stored(PARTITION).start = pair.nodes[1].partition.as_ref().unwrap().applied();
    let refused = pair.resume(0, applied);
    assert!(matches!(refused, Err(Error::Superseded { .. })), "{refused:?}");
}

#[test]
fn who_lost_sight_amid_a_long_journal_is_not_stopped_by_an_owner_of_before() {
    let mut pair = Pair::build();
    pair.take_over(0);
    let instance = Bytes::copy_from_slice(&(2_u64 << 32).to_be_bytes());
    let before = Owner { node: "node-1".into(), instance, ..Owner::default() };
    let owner = Record::new(0, Body::Owner(before)).encode();
    let brought = (0..100).map(unreadable).chain([owner]).collect();
    let (told, _) = pair.broker.lock().arrive(PARTITION, brought);
    told.into_iter().for_each(|tell| tell());
    pair.nodes[0].overlay_bytes_max = 30_000;
    let instance = pair.instance(0);
    pair.nodes[0].recover(instance, pair.clock.now_ms()).unwrap();
    let applied = pair.lose_sight(0);
    pair.resume(0, applied).unwrap();
}

#[test]
fn of_two_who_lost_sight_only_the_latest_owner_comes_back() {
    let mut pair = Pair::build();
    pair.take_over(0);
    let first = pair.lose_sight(0);
    pair.take_over(1);
    let second = pair.lose_sight(1);
    for _ in 0..5 {
        assert!(matches!(pair.resume(0, first), Err(Error::Superseded { .. })));
    }
    pair.resume(1, second).unwrap();
    assert!(matches!(pair.resume(0, first), Err(Error::Superseded { .. })));
    pair.serve(1).unwrap();
}
