//! One node and its broker, each with a clock of its own.

use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use everlog_engine::machine::start;
use everlog_engine::request::Request;
use everlog_partition::Want;
use everlog_wire::{Body, Record};

use crate::clients::{address, input};
use crate::clock::Clock;
use crate::dice::Dice;
use crate::disk::Disk;
use crate::log::{Broker, Nasty, Shared};
use crate::node::{Node, PARTITION, PARTITIONS};

const YEAR_MS: i64 = 365 * 24 * 3_600_000;

/// A node and its broker, each with a clock of its own.
pub struct Harness {
    pub broker: Shared,
    pub clock: Clock,
    pub node: Node,
    begin_ms: i64,
    /// How far the node's clock is off at the beginning, and by how much it runs fast since, in ms per ms of a million.
    pub off_ms: i64,
    fast_ppm: i64,
}

impl Harness {
    pub fn build(off_ms: i64, fast_ppm: i64) -> Self {
        Self::at_level(off_ms, fast_ppm, 0)
    }

    /// The same, where the node names a level of decisions.
    pub fn at_level(off_ms: i64, fast_ppm: i64, level: u32) -> Self {
        let broker = Shared::new(Broker::new(PARTITIONS, Nasty::calm(), Dice::new(7)));
        let begin_ms = broker.lock().now_ms;
        let clock = Clock::new(begin_ms);
        let node = Node::start(0, &broker, &clock.shared(), Disk::default());
        node.level.0.store(level, Ordering::Relaxed);
        let mut harness = Self { broker, clock, node, begin_ms, off_ms, fast_ppm };
        harness.set_clock();
        harness.node.recover(1, begin_ms).unwrap();
        harness.until(|harness| harness.node.partition.as_ref().unwrap().is_serving());
        harness
    }

    fn set_clock(&self) {
        let since_ms = self.clock.now_ms() - self.begin_ms;
        let off_ms = self.off_ms + since_ms * self.fast_ppm / 1_000_000;
        self.node.clock_ms.store(off_ms, Ordering::Relaxed);
    }

    /// The earliest thing happens; time goes on by a second at most.
    fn step(&mut self) {
        let now_ms = self.clock.now_ms();
        let moments = [self.broker.lock().next_ms(), self.node.due_ms(now_ms)];
        let next_ms = moments.into_iter().flatten().min().unwrap_or(i64::MAX);
        self.clock.advance(next_ms.clamp(now_ms, now_ms + 1_000));
        self.set_clock();
        let now_ms = self.clock.now_ms();
        self.broker.lock().now_ms = now_ms;
        if self.broker.lock().next_ms().is_some_and(|at_ms| at_ms <= now_ms) {
            self.broker.happen();
        }
        if self.node.due_ms(now_ms).is_some_and(|at_ms| at_ms <= now_ms) {
            self.node.turn(usize::MAX, now_ms).unwrap();
        }
    }

    pub fn until(&mut self, mut holds: impl FnMut(&mut Self) -> bool) {
        for _ in 0..2_000_000 {
            if holds(self) {
                return;
            }
            self.step();
        }
        panic!("it did not come to pass");
    }

    pub fn call<T>(&mut self, call: impl Future<Output = T> + 'static) -> T {
        let mut call: Pin<Box<dyn Future<Output = T>>> = Box::pin(call);
        let mut answer = None;
        self.until(|_| {
            if let Poll::Ready(value) = call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                answer = Some(value);
            }
            answer.is_some()
        });
        answer.unwrap()
    }

    /// A run that times out, since no worker polls for it.
    pub fn start(&mut self, id: &str, run_timeout_ms: i64) {
        self.start_with(id, run_timeout_ms, YEAR_MS);
    }

    /// The same, with the time after which it is forgotten.
    pub fn start_with(&mut self, id: &str, run_timeout_ms: i64, retention_ms: i64) {
        let begin = start::Begin {
            request_id: format!("{id} {}", self.clock.now_ms()),
            workflow_type: "Order".into(),
            task_queue: "orders".into(),
            run_timeout_ms,
            retention_ms,
            ..start::Begin::default()
        };
        let (router, input) = (self.node.router.clone(), input(id, "", Request::Start(Box::new(begin))));
        self.call(async move { router.order(input).await }).unwrap();
    }

    pub fn is_open(&mut self, id: &str) -> bool {
        let (router, address) = (self.node.router.clone(), address(id, ""));
        let reading = self.call(async move { router.read(address, Want::State).await });
        reading.unwrap().unwrap().run.is_open()
    }

    /// Timestamps of the timers' records, and how many records the journal has.
    pub fn wakes(&self) -> (Vec<i64>, usize) {
        let mut broker = self.broker.lock();
        let journal = &broker.stored(PARTITION).journal;
        let wakes = journal.iter().filter(|record| {
            let body = Record::read(record.bytes.clone()).unwrap().body;
            matches!(body, Some(Body::Input(input)) if matches!(input.request, Some(Request::FireTimers(_))))
        });
        (wakes.map(|record| record.stamp_ms).collect(), journal.len())
    }

    /// The log's clock is set, and so is the node's, which notices it.
    pub fn set_clocks(&mut self, by_ms: i64) {
        self.broker.lock().clock_ms += by_ms;
        self.off_ms += by_ms;
        self.node.partition.as_mut().unwrap().clock_was_set(by_ms);
    }

    /// Advances until so much time has passed since the beginning.
    pub fn clock_has_passed(&self, ms: i64) -> bool {
        self.clock.now_ms() >= self.begin_ms + ms
    }

    /// Time passes without calls.
    pub fn pass(&mut self, ms: i64) {
        let until_ms = self.clock.now_ms() + ms;
        self.until(|harness| harness.clock.now_ms() >= until_ms);
    }
}

/// Ids of workflows that are in the partition.
pub fn ids() -> impl Iterator<Item = String> {
    let ids = (0..).map(|number| format!("w{number}"));
    ids.filter(|id| address(id, "").partition(PARTITIONS) == PARTITION)
}
