//! The state machines, one noun a file: its orders, commands, events, state and transitions.

pub mod activity;
pub mod activity_attempt;
pub mod attached_requests;
pub(crate) mod buffered_events;
pub mod cancel;
pub mod child;
pub mod close;
pub(crate) mod command_validation;
pub mod continuation;
pub mod external_workflow;
pub mod fire_timers;
pub mod marker;
pub mod memo_and_search_attributes;
pub mod operator;
pub mod parent_child;
pub mod reset;
pub mod reset_points;
pub mod schedule;
pub mod signal;
pub mod start;
pub mod timer;
pub mod update;
pub mod worker_versioning;
pub mod workflow_task;
pub mod workflow_task_completed;
pub(crate) mod workflow_task_started;
