//! Faults from outside: a full disk, a clock that jumps, ten thousand timers at once, a kill between two calls, a
//! system without memory.

mod client;
mod clock;
mod disk;
mod herd;
mod memory;
mod restart;
