//! Taking a partition over: its rows are restored, its journal is replayed, and long histories are fetched behind.

pub(crate) mod history_backfill;
pub(crate) mod ownership;
pub(crate) mod previous_owner;
pub(crate) mod recover;
pub(crate) mod restore;
