//! Faults from outside: a full disk, a clock that jumps, ten thousand timers at once, a kill between two calls, a
//! system without memory, an index that is not what the state is.

mod client;
mod clock;
mod disk;
mod herd;
mod lists;
mod memory;
mod restart;
