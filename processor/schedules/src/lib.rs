//! Schedules: which times they mean, and what is to be started when.
//!
//! A [`ScheduleSpec`](spec::ScheduleSpec) is the stored form of a specification, a [`Matcher`](matcher::Matcher) finds
//! its times. The crate has no clock, no randomness and no IO: times are arguments.

mod civil;
pub mod jitter;
pub mod matcher;
pub mod spec;
pub mod zone;
