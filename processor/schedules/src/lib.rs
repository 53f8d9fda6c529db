//! Schedules: which times they mean, and what is to be started when.
//!
//! A [`ScheduleSpec`](spec::ScheduleSpec) is the stored form of a specification, a [`Matcher`](matcher::Matcher) finds
//! its times, and a [`ScheduleState`](state::ScheduleState) decides what becomes of them. The crate has no clock, no
//! randomness and no IO: times are arguments, the next alarm is a return value. The engine keeps the state and carries
//! out its effects, the gateway converts the public API.

mod civil;
pub mod jitter;
pub mod matcher;
pub mod overlap;
pub mod spec;
pub mod state;
pub mod zone;
