//! Records that wait to be appended, and who waits for each.

use everlog_engine::Reply;
use everlog_wire::Record;
use tokio::sync::{mpsc, oneshot};

use crate::model::admission::{Answer, Slot};
use crate::model::inbox_message::Event;
use crate::model::task_types::{TaskRef, Waiting};
use crate::model::types::{Completion, QueryAnswer, UpdateNews};

/// Who waits for a journal record.
pub(crate) enum Waiter {
    Nobody,
    Order(oneshot::Sender<Answer<Reply>>, Slot),
    Update(oneshot::Sender<Answer<Reply>>, mpsc::Sender<UpdateNews>, Slot),
    Completion(oneshot::Sender<Answer<Completion>>, Vec<QueryAnswer>, Slot),
    Claim(TaskRef, Box<Waiting>),
}

/// A record to append, and what is to happen once it is applied.
pub(crate) struct Entry {
    pub(crate) record: Record,
    pub(crate) waiter: Waiter,
    /// Reads that came before it was sent.
    pub(crate) reads: Vec<Event>,
}

impl Entry {
    pub(crate) fn new(record: Record, waiter: Waiter) -> Self {
        Self { record, waiter, reads: Vec::new() }
    }
}
