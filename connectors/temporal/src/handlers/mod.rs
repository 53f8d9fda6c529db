//! The handlers of the RPCs: each checks its request, sends it to a partition, and makes the response from the reply.

pub(crate) mod activity;
pub(crate) mod activity_control;
pub(crate) mod batch;
pub(crate) mod build_ids;
pub(crate) mod cluster_info;
pub(crate) mod describe;
pub(crate) mod history;
pub(crate) mod long_poll;
pub(crate) mod multi_operation;
pub(crate) mod operator;
pub(crate) mod query;
pub(crate) mod reset;
pub(crate) mod run_control;
pub(crate) mod schedule;
pub(crate) mod signal;
pub(crate) mod start;
pub(crate) mod task_queue;
pub(crate) mod task_queue_config;
pub(crate) mod update;
pub(crate) mod visibility;
pub(crate) mod worker_registry;
pub(crate) mod workflow_task;
pub(crate) mod workflow_task_completed;
