//! The parts of requests and responses: checks, errors, times, payloads, versions and events. Nothing here knows a call or a
//! node.

pub(crate) mod activity_options;
pub(crate) mod body_buffer;
pub(crate) mod callbacks;
pub(crate) mod close_event;
pub(crate) mod failure;
pub(crate) mod grpc_timeout;
pub(crate) mod history_bytes;
pub(crate) mod payload;
pub(crate) mod proto_map;
pub(crate) mod proto_time;
pub(crate) mod random_ids;
pub(crate) mod retry_policy;
pub(crate) mod status;
pub(crate) mod update_messages;
pub(crate) mod validation;
pub(crate) mod versioning;
pub(crate) mod worker_filter;
