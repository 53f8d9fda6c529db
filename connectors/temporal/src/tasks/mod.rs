//! What a worker gets and gives back: responses with tasks, the tokens in them, and the open polls of each worker.

pub(crate) mod page_token;
pub(crate) mod poller_registry;
pub(crate) mod response;
pub(crate) mod token;
