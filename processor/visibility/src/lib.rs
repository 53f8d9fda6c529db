//! Visibility: which runs there are, found by what they show of themselves.
//!
//! A [`Record`](record::Record) is what lists and filters know of a run. This crate holds the filter language, the
//! attributes, and the index rows as pure functions: it reads no clock and writes nowhere. The partition keeps the rows,
//! the gateway reads the queries.

pub mod attribute;
pub mod derived;
pub mod index;
mod payload;
pub mod query;
pub mod record;
pub mod value;
