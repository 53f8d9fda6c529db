//! Laws: whatever comes, in whatever order, each step keeps them. The steps are drawn by dice with a seed; a case that
//! breaks a law is told as a story.

mod case;
mod commands;
mod dice;
mod liveness;
mod operators;
mod orders;
mod schedules;
mod sights;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use case::{Case, STEPS};
use sights::Sights;

/// Steps in all; `EVERLOG_LAW_STEPS` takes its place.
const STEPS_MIN: u64 = 1_000_000;
/// The first case's seed; `EVERLOG_LAW_SEED` takes its place.
const SEED: u64 = 1;

fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_error| panic!("{name} = {text:?} is no number")),
        Err(_absent) => default,
    }
}

#[test]
fn a_million_steps_keep_every_law() {
    let (first, steps) = (number("EVERLOG_LAW_SEED", SEED), number("EVERLOG_LAW_STEPS", STEPS_MIN));
    let last = first + steps.div_ceil(STEPS);
    let (next, all) = (AtomicU64::new(first), Mutex::new(Sights::default()));
    let failed = Mutex::new(None);
    let work = || {
        let mut sights = Sights::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= last || failed.lock().expect("no panic while it is held").is_some() {
                break;
            }
            if catch_unwind(AssertUnwindSafe(|| Case::new(seed).play(&mut sights))).is_err() {
                *failed.lock().expect("no panic while it is held") = Some(seed);
            }
        }
        all.lock().expect("no panic while it is held").add(&sights);
    };
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _worker in 0..workers {
            scope.spawn(work);
        }
    });
    if let Some(seed) = failed.into_inner().expect("no panic while it was held") {
        tell(seed);
        panic!("EVERLOG_LAW_SEED={seed} EVERLOG_LAW_STEPS=1 breaks a law; its story is above");
    }
    let sights = all.into_inner().expect("no panic while it was held");
    println!("seeds {first} to {}, {} steps\n{sights}", last - 1, sights.steps);
    assert!(sights.steps >= steps, "the cases are too short");
    if steps >= STEPS_MIN {
        sights.expect_everything();
    }
}

/// Plays a case once more, aloud.
fn tell(seed: u64) {
    let mut case = Case::new(seed);
    case.world.loud = true;
    let end = catch_unwind(AssertUnwindSafe(|| case.play(&mut Sights::default())));
    println!("the story of seed {seed}:\n{}", case.world.story());
    assert!(end.is_err(), "the same seed came to another end");
}

#[test]
fn the_same_seed_is_the_same_case() {
    let events = |seed| {
        let mut case = Case::new(seed);
        case.play(&mut Sights::default());
        case.world.replica.all().flat_map(|stored| stored.events.clone()).collect::<Vec<_>>()
    };
    assert_eq!(events(42), events(42));
    assert_ne!(events(42), events(43));
}
