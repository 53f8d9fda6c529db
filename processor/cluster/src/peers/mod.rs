//! How nodes talk: one connection to each, what they send each other, and how they know each other.

pub(crate) mod body_timeout;
pub(crate) mod client;
pub(crate) mod local_gateway;
pub(crate) mod protocol;
pub(crate) mod tls;
