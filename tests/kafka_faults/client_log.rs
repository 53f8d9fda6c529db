//! The requests of clients and workers and their replies. Each request, by gRPC or by a record, has an identity of its
//! own.

use std::sync::{Arc, Mutex, MutexGuard};

use everlog_tests::fate::Fate;

use crate::register::Read;

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    Start,
    /// Of those that are `in_order` each is sent when the one before is acknowledged.
    Signal {
        name: String,
        in_order: bool,
    },
    Terminate,
    /// A workflow task completed, with commands that leave so many events which name the task. Of one that does nothing but
    /// refuse updates nothing may be written.
    Complete {
        events: usize,
        refuses: bool,
    },
    /// An attempt of an activity completed.
    Return,
    /// A payment, under its identity as its id. It is refused where its worker refuses it.
    Update,
    /// Back to a task of a run, under its identity as reason and request id.
    Reset {
        base_run_id: String,
        finish_event_id: i64,
    },
}

/// What an order was answered with, beyond that it was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The run that a reset has made.
    Run(String),
    /// A worker has taken the update.
    Accepted,
    /// A worker has answered the update with this.
    Completed(String),
}

/// How it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    Grpc,
    /// A record of `commands`: acknowledged means committed, refused means that its transaction was aborted.
    Record,
}

/// An order. Its identity stands in the event that comes of it.
#[derive(Clone, Debug)]
pub struct Call {
    pub identity: String,
    pub workflow_id: String,
    pub deed: Deed,
    pub via: Via,
    pub fate: Fate,
    /// One for each time that it was answered.
    pub answers: Vec<Answer>,
}

/// All orders, in the order in which they were sent, and what was read of registers meanwhile.
#[derive(Clone, Default)]
pub struct ClientLog {
    calls: Arc<Mutex<Vec<Call>>>,
    reads: Arc<Mutex<Vec<Read>>>,
}

impl ClientLog {
    fn open(&self) -> MutexGuard<'_, Vec<Call>> {
        self.calls.lock().expect("nobody panics while it is open")
    }

    /// Notes what somebody saw.
    pub fn read(&self, read: Read) {
        self.reads.lock().expect("nobody panics while it is open").push(read);
    }

    pub fn reads(&self) -> Vec<Read> {
        self.reads.lock().expect("nobody panics while it is open").clone()
    }

    /// Notes an order before it is sent; its number and identity.
    pub fn sent(&self, workflow_id: &str, deed: Deed, via: Via) -> (usize, String) {
        let mut calls = self.open();
        let identity = format!("call-{}", calls.len());
        let workflow_id = workflow_id.to_owned();
        let (fate, answers) = (Fate::Unknown, Vec::new());
        calls.push(Call { identity: identity.clone(), workflow_id, deed, via, fate, answers });
        (calls.len() - 1, identity)
    }

    pub fn settle(&self, call: usize, fate: Fate) {
        self.open()[call].fate = fate;
    }

    /// Notes what an order was answered with.
    pub fn hear(&self, call: usize, answer: Answer) {
        self.open()[call].answers.push(answer);
    }

    /// How many were acknowledged.
    pub fn acked(&self) -> usize {
        self.open().iter().filter(|call| call.fate == Fate::Acked).count()
    }

    pub fn calls(&self) -> Vec<Call> {
        self.open().clone()
    }
}
