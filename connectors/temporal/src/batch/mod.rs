//! Batch jobs: one operation at many runs, such as a termination of all that match a query.
//!
//! A job is an ordinary run of the engine in the caller's namespace, on a task queue that only the server may name. Its worker is
//! the node. The workflow (`workflow`) schedules one activity and reports what that has done; the activity (`work`) goes through
//! the runs and keeps its progress (`progress`) in heartbeats. So kills, moves and retries are the engine's business: what comes
//! after the last heartbeat is done once more, with the same request ids, and counts once.
//!
//! The worker (`worker`) polls a namespace while a job waits there. It reaches runs as any client does, by calls within the
//! process (`crate::routing::in_process`), which are forwarded to other nodes where needed.

pub(crate) mod job;
pub(crate) mod operation;
pub(crate) mod pace;
pub(crate) mod progress;
pub(crate) mod reset_target;
pub(crate) mod work;
pub(crate) mod worker;
pub(crate) mod workflow;
