//! Which node has which partition group: the coordinator assigns them, each node reconciles what it has with that.

pub(crate) mod assign;
pub(crate) mod coordinator;
pub(crate) mod groups;
pub(crate) mod ownership_history;
pub(crate) mod reconciler;
pub(crate) mod standby;
pub(crate) mod takeover_backoff;
