//! Asking: a partition's part in bringing questions to workers.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use everlog_engine::api_types::Status;
use everlog_engine::request::{Request, ResetSticky};
use everlog_engine::{Rejection, Run};
use everlog_log::Log;
use everlog_store::CommittedRows;
use tokio::sync::oneshot;

use crate::TaskKind;
use crate::config::HOLD_MS;
use crate::error::Error;
use crate::invariants::Rules;
use crate::model::admission::{AdmissionSlot, CallResult};
use crate::model::inbox_message::InboxMessage;
use crate::model::keys::{Address, RunKey};
use crate::model::pending::ReplyTo;
use crate::model::reply::send_reply;
use crate::model::task_types::{QueueKey, Ready, Waiting};
use crate::model::types::{Delivery, Page, QueryOutcome, QueryRequest, QueryTask, Receipt};
use crate::partition::Partition;
use crate::reads::queries::{Direct, Question, Way, way, way_on};
use crate::tasks::task_payload;

impl<L: Log + ?Sized, B: CommittedRows, R: Rules> Partition<L, B, R> {
    /// Takes a question in: it goes to a worker, waits for a task, or is answered at once.
    pub(crate) fn ask(
        &mut self,
        request: QueryRequest,
        slot: AdmissionSlot,
        reply: oneshot::Sender<CallResult<QueryOutcome>>,
        now_ms: i64,
    ) -> Result<(), Error> {
        let resolved = self.runs.resolve(&request.address)?;
        let run = match &resolved {
            Some((key, _)) => self.runs.get(key)?,
            None => None,
        };
        // A schedule has no worker.
        let run = run.filter(|run| run.schedule.is_none());
        let (Some((key, _)), Some(run)) = (resolved, run) else {
            let Address { workflow_id, run_id, .. } = &request.address;
            send_reply(reply, Ok(QueryOutcome::Refused(Rejection::unknown_run(workflow_id, run_id))));
            return Ok(());
        };
        let until_ms = now_ms.saturating_add(request.patience_ms);
        let way = way(&run, until_ms);
        if let Some(outcome) = self.answer_at_once(&key, &run, way, &request) {
            send_reply(reply, Ok(outcome));
            return Ok(());
        }
        let id = self.waiters.queries.next_id(self.context.id, self.position.term);
        let question = Question { id, request, reply, _slot: slot };
        match way {
            Way::Direct => self.send_query_at(&key, &run, question, now_ms),
            Way::Buffered | Way::NotReady(_) => self.waiters.queries.buffer(&key, question),
        }
        Ok(())
    }

    fn answer_at_once(
        &self,
        key: &RunKey,
        run: &Run,
        way: Way,
        request: &QueryRequest,
    ) -> Option<QueryOutcome> {
        let status = run.head.status;
        let clean = run.is_open() || status == i32::from(Status::Completed);
        if run.is_paused() {
            // No worker gets a task of it, nor a query.
            return Some(QueryOutcome::NotWished(status));
        }
        if request.only_open && !run.is_open() || request.only_completed_cleanly && !clean {
            return Some(QueryOutcome::NotWished(status));
        }
        match way {
            Way::NotReady(reason) => Some(QueryOutcome::NotReady(reason.into())),
            Way::Buffered
                if self.waiters.queries.waiting(key) >= self.context.config.buffered_queries_max =>
            {
                Some(QueryOutcome::Busy)
            }
            Way::Buffered | Way::Direct => None,
        }
    }

    /// Offers a question to the run's worker.
    pub(crate) fn send_query(&mut self, key: &RunKey, run: &Run, question: Question) {
        let now_ms = self.timers.clock.node_ms();
        self.send_query_at(key, run, question, now_ms);
    }

    fn send_query_at(&mut self, key: &RunKey, run: &Run, question: Question, now_ms: i64) {
        let normal = normal_queue(run);
        // Workers forget a run that is over.
        let sticky = run.head.sticky.as_ref().filter(|_| run.is_open());
        let queue = sticky.map(|sticky| QueueKey { name: sticky.queue.clone(), ..normal.clone() });
        let queue = queue.filter(|queue| self.offers.dispatcher.may_be_live(queue, &normal.name));
        let patience_ms = sticky.map_or(0, |sticky| sticky.schedule_to_start_ms);
        let sticky_until_ms = if queue.is_some() { now_ms + patience_ms } else { 0 };
        let query_id = question.id.clone();
        self.waiters.queries.put_direct(Direct {
            key: key.clone(),
            question,
            sticky_until_ms,
            taken_until_ms: 0,
        });
        let normal_queue = queue.is_some().then(|| normal.name.clone());
        self.offer_query(&queue.unwrap_or(normal), key, query_id, normal_queue);
    }

    fn offer_query(
        &mut self,
        queue: &QueueKey,
        key: &RunKey,
        query_id: String,
        normal_queue: Option<String>,
    ) {
        let (partition, run) = (self.context.id, key.clone());
        let ready = Ready::Query { partition, run, query_id, normal_queue, offered_by: None };
        match self.offers.dispatcher.offer(queue, ready, &self.context.send) {
            Some((Ready::Query { query_id, .. }, waiting)) => {
                if let Err(error) = self.hand_query(&query_id, waiting) {
                    tracing::error!(partition = self.context.id, %error, "a query could not be handed out");
                }
            }
            Some((Ready::Task(task), waiting)) => self.claim(task, waiting),
            None => {}
        }
    }

    /// Whoever was asked is late: others are asked, and the worker that is said to have the run in its cache is waited for
    /// once, not with the next question or task as well.
    pub(crate) fn give_up_worker(&mut self, query_id: &str) -> Result<(), Error> {
        let sticky = self.waiters.queries.direct(query_id).filter(|direct| direct.sticky_until_ms > 0);
        if let Some(address) = sticky.and_then(|direct| direct.key.address()) {
            self.enqueue(address.request(Request::ResetSticky(ResetSticky {})), ReplyTo::Nobody);
        }
        self.requeue_query(query_id)
    }

    /// The run's own worker did not come for the question, or whoever took it does not answer: any worker may answer
    /// it, from the whole history.
    pub(crate) fn requeue_query(&mut self, query_id: &str) -> Result<(), Error> {
        let Some(direct) = self.waiters.queries.direct(query_id) else { return Ok(()) };
        direct.sticky_until_ms = 0;
        direct.taken_until_ms = 0;
        let key = direct.key.clone();
        if let Some(run) = self.runs.get(&key)? {
            self.offer_query(&normal_queue(&run), &key, query_id.to_owned(), None);
        }
        Ok(())
    }

    /// Gives a question to a poll, unless it was taken or given up.
    pub(crate) fn hand_query(&mut self, query_id: &str, waiting: Waiting) -> Result<(), Error> {
        let asked = self
            .waiters
            .queries
            .direct(query_id)
            .filter(|direct| direct.taken_until_ms == 0 && !direct.question.reply.is_closed());
        let Some(direct) = asked else {
            self.offers.poll_again(&self.context, waiting);
            return Ok(());
        };
        let (key, query): (RunKey, Bytes) = (direct.key.clone(), direct.question.request.query.clone());
        let Some(run) = self.runs.get(&key)? else {
            self.waiters.queries.refuse(&key);
            self.offers.poll_again(&self.context, waiting);
            return Ok(());
        };
        // A worker has as long for a question as for a task of the run.
        direct.taken_until_ms =
            self.offers.dispatcher.now_ms().saturating_add(run.start.task_timeout_ms.max(1));
        if way_on(&run) != Way::Direct {
            // Something happened since the question was sent on its way. A worker must not see it outside a
            // workflow task: it would run the workflow ahead of its history.
            self.waiters.queries.hold_back(query_id);
            for question in self.waiters.queries.settle(&key, &run) {
                self.send_query(&key, &run, question);
            }
            self.offers.poll_again(&self.context, waiting);
            return Ok(());
        }
        if !waiting.poll.sticky && !self.has_history(&key, &run, 1)? {
            // As if a worker had taken it and did not answer: it is offered again.
            if let Some(direct) = self.waiters.queries.direct(query_id) {
                direct.taken_until_ms = self.offers.dispatcher.now_ms().saturating_add(HOLD_MS);
            }
            self.offers.poll_again(&self.context, waiting);
            return Ok(());
        }
        let history = if waiting.poll.sticky {
            Page::default()
        } else {
            task_payload::page(&mut self.runs, &key, 1, 0)?
        };
        let (send, id, lost) = (self.context.send.clone(), self.context.id, query_id.to_owned());
        let receipt = Receipt::new(move || {
            // A partition that is gone has told its callers so.
            send(id, InboxMessage::QueryLost { query_id: lost });
        });
        if let Some(direct) = self.waiters.queries.direct(query_id) {
            direct.question.request.is_taken.store(true, Ordering::Relaxed);
        }
        let (sticky, query_id, receipt) = (waiting.poll.sticky, query_id.into(), Some(receipt));
        let task = QueryTask { run, sticky, history, query, query_id, receipt };
        // Dropped undelivered, the question comes back by its receipt.
        send_reply(waiting.reply, Delivery::Query(Box::new(task)));
        Ok(())
    }
}

fn normal_queue(run: &Run) -> QueueKey {
    QueueKey {
        namespace_id: run.start.namespace_id.clone(),
        name: run.start.task_queue.clone(),
        kind: TaskKind::Workflow,
    }
}
