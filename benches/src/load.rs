//! A load generator in raw gRPC: one process is the clients and the worker of a Temporal-compatible server.

pub mod options;
pub mod report;

mod activity_worker;
mod calls;
mod connection;
mod disk;
mod orders;
mod pace;
mod process;
mod progress;
mod scenario;
mod session;
mod steps;
mod tally;
mod updates;
mod wait;
mod window;
mod worker;

pub use scenario::run;
