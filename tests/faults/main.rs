//! Faults from outside: a full disk, a clock that jumps, a herd of timers, a kill between two calls, a system without memory.

mod client;
mod clock;
mod disk;
mod herd;
mod memory;
mod restart;
