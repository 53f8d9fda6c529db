//! Benchmarks of Everlog: what it costs, measured from outside and from inside.

pub mod engine;
pub mod index;
pub mod kafka;
pub mod load;
pub mod log;
