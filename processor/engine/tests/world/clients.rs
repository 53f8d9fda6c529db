//! What clients do: start, signal, cancel, terminate.

use bytes::Bytes;
use everlog_engine::machine::reset::Reset;
use everlog_engine::machine::{cancel, close, signal, start};
use everlog_engine::request::{Delete, Request, ResetSticky};
use everlog_engine::{Outcome, Rejection, Reply, payload};

use super::World;

/// An ordinary start, to be changed as a story needs it.
pub fn start(request_id: &str) -> start::Begin {
    start::Begin {
        request_id: request_id.into(),
        workflow_type: "Order".into(),
        task_queue: "orders".into(),
        identity: "client".into(),
        retention_ms: 86_400_000,
        ..start::Begin::default()
    }
}

impl World {
    pub fn start(&mut self, workflow_id: &str) -> &mut Self {
        self.start_with(workflow_id, "", |_begin| {})
    }

    /// A start that differs from the ordinary; `note` says how.
    pub fn start_with(
        &mut self,
        workflow_id: &str,
        note: &str,
        change: impl FnOnce(&mut start::Begin),
    ) -> &mut Self {
        self.on(workflow_id);
        let mut begin = start(&format!("start-{}", self.journal_len()));
        change(&mut begin);
        let what = if begin.signal.is_some() { "signal with start" } else { "start" };
        let text = format!("{what} {workflow_id} {note}");
        self.verb(text.trim_end(), Request::Start(Box::new(begin)));
        self
    }

    pub fn signal(&mut self, name: &str) -> &mut Self {
        self.signal_with(name, "", |_signal| {})
    }

    pub fn signal_with(
        &mut self,
        name: &str,
        note: &str,
        change: impl FnOnce(&mut signal::Signal),
    ) -> &mut Self {
        let mut order = a_signal(name, &format!("signal-{}", self.journal_len()));
        change(&mut order);
        let text = format!("signal {name} {note}");
        self.verb(text.trim_end(), Request::Signal(order));
        self
    }

    pub fn signals(&mut self, names: &[&str]) -> &mut Self {
        for name in names {
            self.signal(name);
        }
        self
    }

    pub fn cancel(&mut self) -> &mut Self {
        let order = cancel::Request { reason: "changed my mind".into(), ..cancel::Request::default() };
        self.verb("cancel", Request::Cancel(order));
        self
    }

    pub fn cancel_chain(&mut self, first_run_id: &str, note: &str) -> &mut Self {
        let order = cancel::Request { first_run_id: first_run_id.into(), ..cancel::Request::default() };
        self.verb(&format!("cancel, {note}"), Request::Cancel(order));
        self
    }

    pub fn delete(&mut self) -> &mut Self {
        self.verb("delete", Request::Delete(Delete {}));
        self
    }

    pub fn terminate(&mut self, reason: &str) -> &mut Self {
        let order = close::Terminate { reason: reason.into(), ..close::Terminate::default() };
        self.verb(&format!("terminate: {reason}"), Request::Terminate(order));
        self
    }

    pub fn terminate_chain(&mut self, first_run_id: &str, note: &str) -> &mut Self {
        let order = close::Terminate { first_run_id: first_run_id.into(), ..close::Terminate::default() };
        self.verb(&format!("terminate, {note}"), Request::Terminate(order));
        self
    }

    /// The current run goes back to the task that ends with this event.
    pub fn reset(&mut self, finish_event_id: i64) -> &mut Self {
        self.reset_with("", finish_event_id, |_order| {})
    }

    /// A run goes back; the current one where none is named.
    pub fn reset_with(
        &mut self,
        run_id: &str,
        finish_event_id: i64,
        change: impl FnOnce(&mut Reset),
    ) -> &mut Self {
        let outcome = self.reset_order(run_id, finish_event_id, change);
        self.say(&format!("> reset to {finish_event_id}"));
        self.tell(&outcome);
        self.replay();
        self
    }

    /// Why the current run cannot go back there.
    pub fn refused_reset(&mut self, finish_event_id: i64) -> Rejection {
        match self.reset_order("", finish_event_id, |_order| {}).reply {
            Reply::Rejected(rejection) => rejection,
            other => panic!("it was not refused: {other:?}"),
        }
    }

    fn reset_order(
        &mut self,
        run_id: &str,
        finish_event_id: i64,
        change: impl FnOnce(&mut Reset),
    ) -> Outcome {
        let request_id = format!("reset-{}", self.journal_len());
        let mut order = Reset { finish_event_id, reason: "again".into(), request_id, ..Reset::default() };
        change(&mut order);
        self.order_for(run_id.to_owned(), Request::Reset(order))
    }

    pub fn reset_sticky(&mut self) -> &mut Self {
        self.verb("forget the sticky worker", Request::ResetSticky(ResetSticky {}));
        self
    }

    pub fn journal_len(&self) -> usize {
        self.journal.len()
    }
}

/// A signal with its request id.
pub fn a_signal(name: &str, request_id: &str) -> signal::Signal {
    signal::Signal {
        name: name.into(),
        input: Some(text(name)),
        identity: "client".into(),
        request_id: request_id.into(),
        ..signal::Signal::default()
    }
}

/// A JSON text as encoded payloads.
pub fn text(text: &str) -> Bytes {
    payload::json_text(text)
}
