//! The state machines, one noun a file: its orders, commands, events, state and transitions.

pub mod activity;
pub mod attempt;
pub(crate) mod attributes;
pub(crate) mod buffer;
pub mod build;
pub mod cancel;
pub mod chain;
pub mod child;
pub mod close;
pub mod completion;
pub mod deployment;
pub mod external;
pub mod family;
pub mod marker;
pub(crate) mod message;
pub mod options;
pub mod properties;
pub mod reset;
pub mod signal;
pub mod start;
pub mod task;
pub mod timer;
pub(crate) mod turn;
pub mod update;
pub mod wake;
