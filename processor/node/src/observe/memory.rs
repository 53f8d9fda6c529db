//! The process's memory: chooses the size of pages by load, and gives free memory back to the system.
#![allow(unsafe_code, reason = "the allocator's binding has no safe call for giving back")]

use std::ffi::{c_int, c_void};
use std::io::Write;
use std::time::{Duration, Instant};

use rustix::thread::disable_transparent_huge_pages;
use rustix::time::{ClockId, clock_gettime};

/// A shorter time between two looks says nothing about the load.
const LOOK_APART: Duration = Duration::from_millis(100);
/// Busy from this percentage of a core on, idle below the other. In between the state stays.
const BUSY_PERCENT: u128 = 10;
const IDLE_PERCENT: u128 = 5;
/// So many looks in a row must agree, because a process that has just started is not busy.
const LOOKS_ALIKE: u32 = 3;

/// The memory of the process.
///
/// The allocator asks for pages of 2 MiB, which save a twentieth of the CPU under load. But the threads of an idle
/// server touch a little of some of them each, so that they hold four times what is in use. Large pages are refused
/// until there is load.
pub struct ProcessMemory {
    load: Load,
    looked: (Instant, Duration),
}

impl ProcessMemory {
    /// With small pages, because there is no load yet.
    pub fn of_idle_process() -> Self {
        allow_huge_pages(false);
        tell_of_the_end();
        ProcessMemory { load: Load::default(), looked: (Instant::now(), cpu_time()) }
    }

    /// Chooses the page size from now on, and gives back what has been free for a second.
    pub fn look(&mut self) {
        let (now, cpu) = (Instant::now(), cpu_time());
        let (elapsed, used) = (now - self.looked.0, cpu.saturating_sub(self.looked.1));
        if elapsed >= LOOK_APART {
            self.looked = (now, cpu);
            if let Some(is_busy) = self.load.look(elapsed, used) {
                allow_huge_pages(is_busy);
            }
        }
        give_back();
    }
}

/// Whether there is load.
#[derive(Default)]
struct Load {
    is_busy: bool,
    /// Looks in a row that disagree with the state.
    otherwise: u32,
}

impl Load {
    /// The new state, if it changes. `used`: CPU time of all threads within `elapsed`.
    fn look(&mut self, elapsed: Duration, used: Duration) -> Option<bool> {
        let least = if self.is_busy { IDLE_PERCENT } else { BUSY_PERCENT };
        let is_busy = 100 * used.as_micros() >= least * elapsed.as_micros();
        self.otherwise = if is_busy == self.is_busy { 0 } else { self.otherwise + 1 };
        if self.otherwise < LOOKS_ALIKE {
            return None;
        }
        *self = Load { is_busy, otherwise: 0 };
        Some(is_busy)
    }
}

/// Where the system has no such setting, or refuses it, pages stay as they are.
fn allow_huge_pages(are_allowed: bool) {
    let _ = disable_transparent_huge_pages(!are_allowed);
}

/// Of all threads, since the process started.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The allocator does so only when it is asked for more. An idle process would keep what its start or its last burst
/// needed.
fn give_back() {
    // SAFETY: it takes no pointer, and any thread may call it at any time.
    unsafe { libmimalloc_sys::mi_collect(false) };
}

/// What the allocator calls when it gets no more memory.
const NO_MEMORY: c_int = 12;

/// Writes a line when the system gives the process no more memory, because the caller will end the process.
fn tell_of_the_end() {
    // SAFETY: the function takes no memory, uses no argument and does not unwind; any thread may call it at any time.
    unsafe { libmimalloc_sys::mi_register_error(Some(tell_of_no_memory), std::ptr::null_mut()) };
}

unsafe extern "C" fn tell_of_no_memory(code: c_int, _none: *mut c_void) {
    if code == NO_MEMORY {
        // If even this cannot be written, nobody can be told.
        let _ = std::io::stderr().write_all(
            b"everlog: the system gives this process no more memory (a limit such as ulimit -v, or none is left); \
              what was acknowledged is safe\n",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks a quarter of a second apart, each with the CPU of so many percent of a core.
    fn looks(load: &mut Load, percents: &[u64]) -> Vec<Option<bool>> {
        let elapsed = Duration::from_millis(250);
        percents.iter().map(|percent| load.look(elapsed, Duration::from_micros(2_500 * percent))).collect()
    }

    #[test]
    fn a_process_is_busy_once_three_looks_in_sequence_say_so() {
        let mut load = Load::default();
        assert_eq!(
            looks(&mut load, &[90, 200, 9, 10, 10, 10, 50]),
            [None, None, None, None, None, Some(true), None]
        );
    }

    #[test]
    fn it_stays_busy_until_it_is_nearly_idle_for_as_long() {
        let mut load = Load::default();
        looks(&mut load, &[100, 100, 100]);
        assert_eq!(
            looks(&mut load, &[5, 4, 4, 9, 4, 4, 0, 0]),
            [None, None, None, None, None, None, Some(false), None]
        );
    }
}
