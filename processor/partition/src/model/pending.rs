//! Records that wait to be appended, and who waits for each.

use everlog_engine::Reply;
use everlog_wire::Record;
use tokio::sync::{mpsc, oneshot};

use crate::model::admission::{AdmissionSlot, CallFailure, CallResult};
use crate::model::inbox_message::InboxMessage;
use crate::model::reply::send_reply;
use crate::model::task_types::{TaskRef, Waiting};
use crate::model::types::{Completion, QueryAnswer, UpdateNews};

/// Who waits for a journal record.
pub(crate) enum ReplyTo {
    Nobody,
    Order(oneshot::Sender<CallResult<Reply>>, AdmissionSlot),
    Update(oneshot::Sender<CallResult<Reply>>, mpsc::Sender<UpdateNews>, AdmissionSlot),
    Completion(oneshot::Sender<CallResult<Completion>>, Vec<QueryAnswer>, AdmissionSlot),
    Claim(TaskRef, Box<Waiting>),
}

impl ReplyTo {
    /// Replies with a failure. A claim is given back: its task waits for another poll, and its poll for another task.
    pub(crate) fn refuse(self, failure: CallFailure) -> Option<(TaskRef, Box<Waiting>)> {
        match self {
            Self::Nobody => {}
            Self::Order(reply, _slot) | Self::Update(reply, _, _slot) => send_reply(reply, Err(failure)),
            Self::Completion(reply, _, _slot) => send_reply(reply, Err(failure)),
            Self::Claim(task, waiting) => return Some((task, waiting)),
        }
        None
    }
}

/// A record to append, and what is to happen once it is applied.
pub(crate) struct PendingRecord {
    pub(crate) record: Record,
    pub(crate) waiter: ReplyTo,
    /// Reads that came before it was sent.
    pub(crate) reads: Vec<InboxMessage>,
}

impl PendingRecord {
    pub(crate) fn new(record: Record, waiter: ReplyTo) -> Self {
        Self { record, waiter, reads: Vec::new() }
    }
}
