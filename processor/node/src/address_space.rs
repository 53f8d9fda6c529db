//! The address space of the process (`ulimit -v`), checked at the start against what the process will reserve.
//!
//! Most of it is reserved and never used, so it says little about memory. But a process that gets no more of it fails
//! in the middle of something: the database cannot start threads, and no library goes on without memory.

use std::fs;

use anyhow::{Result, ensure};
use everlog_config::Config;

const MIB: u64 = 1 << 20;
/// What the allocator reserves at its start.
const ALLOCATOR_BYTES: u64 = 1 << 30;
/// What the C library's allocator reserves for a thread, and its most arenas per core.
const ARENA_BYTES: u64 = 64 * MIB;
const ARENAS_PER_CORE: u64 = 8;
/// The default stack of a thread.
const STACK_BYTES: u64 = 8 * MIB;
/// Threads besides those of the settings: of the database, of the log, and blocking ones.
const OTHER_THREADS: u64 = 16 + crate::node::BLOCKING_THREADS_MAX as u64;
/// Code, and what calls need.
const REST_BYTES: u64 = 256 * MIB;

/// What the process will reserve, in bytes.
#[derive(Debug)]
struct Needs {
    threads: u64,
    arenas: u64,
    settings: u64,
}

impl Needs {
    fn of(config: &Config, cores: u64, arenas_max: Option<u64>) -> Self {
        let or_cores = |threads: usize| if threads == 0 { cores } else { threads as u64 };
        let threads = or_cores(config.threads.processor) + or_cores(config.threads.gateway) + OTHER_THREADS;
        let arenas = arenas_max.unwrap_or(ARENAS_PER_CORE * cores).min(threads);
        let memory = &config.memory;
        let log = if config.kafka.is_used() { 0 } else { config.log.waiting_bytes_max };
        let settings = (memory.database_bytes + memory.uncommitted_bytes_max + log) as u64;
        Self { threads: threads * STACK_BYTES, arenas: arenas * ARENA_BYTES, settings }
    }

    fn all(&self) -> u64 {
        ALLOCATOR_BYTES + REST_BYTES + self.threads + self.arenas + self.settings
    }

    /// Why a limit is too low; none where it is not.
    fn fault(&self, limit: u64) -> Option<String> {
        let mib = |bytes: u64| bytes / MIB;
        (limit < self.all()).then(|| {
            format!(
                "the address space of this process is limited to {} MiB, and it takes {} MiB: {} for the allocator, {} for \
                 stacks, {} for arenas, {} by the settings, {} for the rest. Most of it is never used, so limit the memory \
                 of its control group (MemoryMax=) instead and lift this limit (ulimit -v unlimited, LimitAS=infinity); or \
                 set fewer threads.*, a smaller memory.*, or MALLOC_ARENA_MAX=2",
                mib(limit), mib(self.all()), mib(ALLOCATOR_BYTES), mib(self.threads), mib(self.arenas),
                mib(self.settings), mib(REST_BYTES)
            )
        })
    }
}

/// Checks that the limit of the address space is high enough.
///
/// # Errors
/// It is too low. The error has the limit, what reserves how much, and the ways out.
pub fn check(config: &Config) -> Result<()> {
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let Some(limit) = limit_of(&limits) else { return Ok(()) };
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let arenas = std::env::var("MALLOC_ARENA_MAX").ok().and_then(|given| given.parse().ok());
    let fault = Needs::of(config, cores, arenas).fault(limit);
    ensure!(fault.is_none(), fault.unwrap_or_default());
    Ok(())
}

/// The limit in bytes; none where there is no limit.
fn limit_of(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_read_and_where_there_is_none_nothing_is() {
        let line = |soft: &str| {
            format!(
                "Max cpu time 1 2 s\nMax address space         {soft}           unlimited            bytes\n"
            )
        };
        assert_eq!(limit_of(&line("2048000000")), Some(2_048_000_000));
        assert_eq!(limit_of(&line("unlimited")), None);
        assert_eq!(limit_of(""), None);
    }

    #[test]
    fn a_limit_that_is_too_low_is_told_with_what_is_needed_and_the_ways_out() {
        let config = Config::default();
        let needs = Needs::of(&config, 2, None);
        assert_eq!(needs.all() / MIB, 1024 + 256 + 52 * 8 + 16 * 64 + 384);
        assert_eq!(needs.fault(needs.all()), None);
        let fault = needs.fault(2_000 * MIB).expect("it is too low");
        for part in ["limited to 2000 MiB", "it takes 3104 MiB", "ulimit -v unlimited", "MALLOC_ARENA_MAX=2"]
        {
            assert!(fault.contains(part), "{part}: {fault}");
        }
        assert!(Needs::of(&config, 2, Some(2)).all() < needs.all());
    }
}
