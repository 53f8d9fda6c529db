//! The stages that every call passes: limits of bytes and time, compression, admission, namespace and metrics.

pub(crate) mod body_limits;
pub(crate) mod call;
pub(crate) mod client_version;
pub(crate) mod compression;
pub(crate) mod history_pacing;
pub(crate) mod request_scope;
pub(crate) mod response_body;
pub(crate) mod transport;
