//! Measures the engine (steps per second of one core, allocations per step) and the log (appends, syncs).

use std::alloc::System;

use everlog_benches::{engine, log};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("engine") => engine::run(ALLOCATOR),
        Some("log") => log::run(arguments.next().map(Into::into)),
        _other => anyhow::bail!("usage: everlog-bench engine | everlog-bench log [DIR]"),
    }
}
