//! The types that the folders share: keys of rows, messages to the partition, tasks, polls, and admission. It has no logic of its own.

pub(crate) mod admission;
pub(crate) mod inbox_message;
pub(crate) mod keys;
pub(crate) mod pending;
pub(crate) mod priority;
pub(crate) mod reply;
pub(crate) mod task_types;
pub(crate) mod types;
pub(crate) mod visibility_messages;
