//! Public commands that come in, and the records of the public topics that go out.

pub(crate) mod command_observer;
pub(crate) mod deferred_reply;
pub(crate) mod ingest;
pub(crate) mod outputs;
