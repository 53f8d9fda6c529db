//! Crash points of a whole node: a kill or an error at each step of the write path, then recovery and the checker.
//!
//! A step is a write, a sync, a rename or such of a file in the data directory, or a reply to a client; with
//! `EVERLOG_TEST_HOME=kafka` also a request that changes something on a broker, and its answer. A few of them are walked
//! each time, from a start that the commit chooses. `EVERLOG_CRASH_EVERY=1` walks all, with a loss of power at every
//! other one; which ones is turned around by `EVERLOG_CRASH_FIRST=2`. `EVERLOG_CRASH_TALK=1` prints the outcome of each.

mod checker;
mod checker_mutations;
mod client;
mod client_log;
mod node;
mod power;
mod scenario;
mod workflows;

use std::cell::{Cell, RefCell};
use std::time::Instant;

use everlog_tests::dice::seed_of_the_commit;
use everlog_tests::server::is_on_kafka;

use crate::node::{Blow, NodeDir};
use crate::power::Notes;
use crate::scenario::live;

/// Steps of the whole script: it has some 380, of which a few dozen depend on when commits come. It may only grow.
const STEPS_MIN: u64 = 300;
/// The same on Kafka: it has some 500, and more of them depend on when commits come.
const STEPS_MIN_ON_KAFKA: u64 = 400;
const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// Which steps are walked.
#[derive(Clone, Copy, Debug)]
struct Stride {
    first: u64,
    every: u64,
}

impl Stride {
    /// `EVERLOG_CRASH_EVERY` and `EVERLOG_CRASH_FIRST` go before what a run of CI walks.
    fn of(every: u64) -> Self {
        let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
        let every = number("EVERLOG_CRASH_EVERY").unwrap_or(every).max(1);
        let first = number("EVERLOG_CRASH_FIRST").unwrap_or_else(|| 1 + seed_of_the_commit() % every);
        Self { first: first.max(1), every }
    }
}

/// The walk over the steps of one kind of blow.
struct Walk {
    blow: Blow,
    stride: Stride,
    next: Cell<u64>,
    points: Cell<u64>,
    interrupted: Cell<u64>,
    went_on: Cell<u64>,
    lost_bytes: Cell<u64>,
    found: RefCell<Vec<String>>,
}

async fn walk(name: &str, blow: Blow, every: u64) -> anyhow::Result<()> {
    let begun = Instant::now();
    let walk = Walk {
        blow,
        stride: Stride::of(every),
        next: Cell::default(),
        points: Cell::default(),
        interrupted: Cell::default(),
        went_on: Cell::default(),
        lost_bytes: Cell::default(),
        found: RefCell::default(),
    };
    // Two scenarios at a time, because one mostly waits.
    tokio::try_join!(walk.take_steps(), walk.take_steps())?;
    let Walk { stride, points, interrupted, went_on, lost_bytes, found, .. } = walk;
    println!(
        "{name}: {} points ({stride:?}); {} interrupted the script, {} nodes went on, {} bytes went with the power; {:?}",
        points.get(),
        interrupted.get(),
        went_on.get(),
        lost_bytes.get(),
        begun.elapsed()
    );
    let found = found.into_inner();
    anyhow::ensure!(found.is_empty(), "{name}: {} scenarios went wrong:\n{}", found.len(), found.join("\n"));
    let points_min = steps_min().saturating_sub(stride.first) / stride.every;
    anyhow::ensure!(points.get() >= points_min, "fewer than {points_min} points");
    Ok(())
}

fn steps_min() -> u64 {
    if is_on_kafka() { STEPS_MIN_ON_KAFKA } else { STEPS_MIN }
}

impl Walk {
    /// Runs scenarios, each with a fault at the next step, until the script has no such step any more.
    async fn take_steps(&self) -> anyhow::Result<()> {
        loop {
            let number = self.next.replace(self.next.get() + 1);
            // Every second time the power fails too.
            if !self.point(self.stride.first + number * self.stride.every, number.is_multiple_of(2)).await? {
                return Ok(());
            }
        }
    }

    async fn point(&self, step: u64, power_fails: bool) -> anyhow::Result<bool> {
        let node_dir = NodeDir::new(&[])?;
        let (outcome, _ledger, _runs) = live(&node_dir, step, self.blow, power_fails).await?;
        if std::env::var_os("EVERLOG_CRASH_TALK").is_some() {
            println!("{step} {power_fails} {outcome:?}");
        }
        if !outcome.violations.is_empty() {
            let (lines, said) =
                (outcome.violations.join("\n    "), node_dir.last_words().replace('\n', "\n    "));
            let named = format!("step {step}, {:?}, power fails: {power_fails}", self.blow);
            self.found.borrow_mut().push(format!("{named}\n    {lines}\n    {said}"));
        }
        add(&self.interrupted, u64::from(outcome.interrupted));
        add(&self.went_on, u64::from(outcome.went_on));
        add(&self.lost_bytes, outcome.lost_bytes);
        add(&self.points, u64::from(outcome.hit));
        Ok(outcome.hit)
    }
}

fn add(counter: &Cell<u64>, more: u64) {
    counter.set(counter.get() + more);
}

#[tokio::test]
async fn the_script_comes_to_its_end_without_a_blow() -> anyhow::Result<()> {
    let node_dir = NodeDir::new(&[])?;
    let begun = Instant::now();
    let (outcome, client_log, runs) = live(&node_dir, 0, Blow::Kill, false).await?;
    anyhow::ensure!(outcome.violations.is_empty(), "{:#?}\n{}", outcome.violations, node_dir.last_words());
    let (calls, steps) = (client_log.open().calls.len(), outcome.notes.steps.unwrap_or(0));
    let Notes { syncs, replies, talks, .. } = outcome.notes;
    println!(
        "{calls} calls, {} runs, {steps} steps, {syncs} of them syncs, {replies} replies, {talks} with brokers; {:?}",
        runs.len(),
        begun.elapsed()
    );
    anyhow::ensure!(steps >= steps_min(), "{steps} steps, not {}", steps_min());
    Ok(())
}

#[tokio::test]
async fn a_kill_at_any_step_loses_nothing() -> anyhow::Result<()> {
    walk("kill", Blow::Kill, if is_on_kafka() { 50 } else { 7 }).await
}

#[tokio::test]
async fn an_error_at_any_step_loses_nothing() -> anyhow::Result<()> {
    walk("EIO", Blow::Error(EIO), 9).await
}

#[tokio::test]
async fn a_full_disk_at_any_step_loses_nothing() -> anyhow::Result<()> {
    walk("ENOSPC", Blow::Error(ENOSPC), 9).await
}
