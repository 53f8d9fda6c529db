//! Runs seed after seed, and prints how many there were, how fast, and which one failed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::plan::{Plan, Shock};
use crate::rule_mutations::{crashes, late_appends, take_overs};
use crate::world::{self, Verdict};

/// Seeds of an ordinary run: half a minute's on two cores.
const SEEDS: u64 = 1_500;

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

pub fn run(seed: u64) -> Verdict {
    run_plan(Plan::of(seed))
}

pub fn run_plan(plan: Plan) -> Verdict {
    let verdict = catch_unwind(AssertUnwindSafe(|| world::run(plan)));
    verdict.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        let what = format!("it panicked: {}", text.unwrap_or_default());
        Verdict { violations: vec![what], ..Verdict::default() }
    })
}

fn command(seed: u64) -> String {
    format!("EVERLOG_SIM_SEED={seed} cargo test --workspace --test simulation -- seeds --nocapture")
}

#[test]
fn every_seed_keeps_every_law() {
    if let Some(seed) = variable("EVERLOG_SIM_SEED") {
        println!("{:#?}", Plan::of(seed));
        let verdict = run_plan(Plan { loud: true, ..Plan::of(seed) });
        println!("{verdict:#?}");
        assert_eq!(verdict.violations, Vec::<String>::new());
        return;
    }
    let wanted = variable("EVERLOG_SIM_SEEDS").unwrap_or(SEEDS);
    let from = variable("EVERLOG_SIM_FROM").unwrap_or(1);
    let begun = Instant::now();
    let next = AtomicU64::new(from);
    let failed: Mutex<Vec<u64>> = Mutex::default();
    let sum: Mutex<Verdict> = Mutex::default();
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed - from >= wanted || failed.lock().unwrap().len() >= 5 {
                        return;
                    }
                    let verdict = run(seed);
                    let mut sum = sum.lock().unwrap();
                    sum.steps += verdict.steps;
                    sum.answers += verdict.answers;
                    sum.queries += verdict.queries;
                    sum.records += verdict.records;
                    for (name, count) in &verdict.ends {
                        *sum.ends.entry(name.clone()).or_default() += count;
                    }
                    drop(sum);
                    if !verdict.violations.is_empty() {
                        println!("seed {seed}: {:?}\n  {}", verdict.violations, command(seed));
                        failed.lock().unwrap().push(seed);
                    }
                }
            });
        }
    });
    let seeds = next.load(Ordering::Relaxed) - from - threads as u64;
    let sum = sum.into_inner().unwrap();
    let per_hour = seeds as f64 * 3_600.0 / begun.elapsed().as_secs_f64();
    println!(
        "{seeds} seeds, {per_hour:.0} an hour: {} steps, {} records, {} answers, {} of them to queries; owners ended: {:?}",
        sum.steps, sum.records, sum.answers, sum.queries, sum.ends
    );
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "seeds failed: {failed:?}");
}

#[test]
fn the_same_seed_is_the_same_run() {
    for seed in 1..20 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
    }
}

/// The log's clock goes behind, from the beginning or with the last thing that breaks, and is right once there is peace.
#[test]
fn whoever_waits_for_peace_finds_the_logs_clock_right() {
    for seed in 1..450 {
        let mut plan = Plan::of(seed);
        plan.forwards = true;
        let at_ms = if seed % 2 == 0 { 0 } else { plan.chaos_ms };
        plan.shocks = vec![(at_ms, Shock::LogClock { by_ms: -10_000 })];
        assert_eq!(run_plan(plan).violations, Vec::<String>::new(), "seed {seed}");
    }
}

/// The log's clock steps forward by more than a schedule catches up, and back, while messages come late and owners change.
#[test]
fn a_schedule_accounts_for_each_time_whatever_clocks_and_owners_do() {
    for seed in 1..200 {
        let mut plan = Plan { homes: false, schedules: true, ..Plan::of(seed) };
        late_appends(&mut plan);
        if seed % 2 == 0 {
            take_overs(&mut plan)
        } else {
            crashes(&mut plan)
        }
        let by_ms = if seed % 4 < 2 { 20_000 } else { -20_000 };
        for number in 0..6 {
            let shock = Shock::LogClock { by_ms: if number % 2 == 0 { by_ms } else { -by_ms } };
            plan.shocks.push((number * plan.chaos_ms / 6, shock));
            plan.shocks.push((number * plan.chaos_ms / 6, Shock::NodeClock { node: 0, by_ms: -by_ms }));
        }
        plan.chaos_ms += 10_000;
        assert_eq!(run_plan(plan).violations, Vec::<String>::new(), "seed {seed}");
    }
}

/// Operators pause and change what runs while nodes crash, lose the partition and append late: no task gets lost or is doubled, and
/// every run that is unpaused comes to its end.
#[test]
fn what_operators_pause_goes_on_when_they_unpause_it() {
    for seed in 1..200 {
        let mut plan = Plan { homes: false, operators: true, ..Plan::of(seed) };
        match seed % 3 {
            0 => take_overs(&mut plan),
            1 => crashes(&mut plan),
            _late => late_appends(&mut plan),
        }
        assert_eq!(run_plan(plan).violations, Vec::<String>::new(), "seed {seed}");
    }
}
