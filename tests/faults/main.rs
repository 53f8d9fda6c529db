//! Faults from outside: a full disk, a clock that jumps, a herd of timers.

mod client;
mod clock;
mod disk;
mod herd;
