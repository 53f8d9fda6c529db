//! Handing out: ready tasks are offered to polls, claimed through the journal, and furnished for their workers.

use everlog_engine::machine::{activity_attempt, workflow_task};
use everlog_engine::request::Request;
use everlog_engine::{Change, Reply, Run, Step, TaskGrant};
use everlog_log::Log;
use everlog_store::CommittedRows;

use crate::TaskKind;
use crate::error::Error;
use crate::invariants::Rules;
use crate::model::inbox_message::InboxMessage;
use crate::model::keys::RunKey;
use crate::model::pending::ReplyTo;
use crate::model::reply::send_reply;
use crate::model::task_types::{QueueKey, Ready, TaskRef, Waiting};
use crate::model::types::{Completion, Delivery, PARKED_MAX, Receipt, WorkflowTask};
use crate::partition::Partition;
use crate::tasks::task_offers::activity_task;
use crate::tasks::task_payload;

impl<L: Log + ?Sized, B: CommittedRows, R: Rules> Partition<L, B, R> {
    pub(crate) fn offer_tasks(&mut self, key: &RunKey, step: &Step) {
        let mut task_changed = false;
        let mut activities = Vec::new();
        for change in &step.changes {
            match change {
                Change::Task(Some(_)) => task_changed = true,
                Change::Activity(activity) => activities.push(activity.scheduled_event_id),
                _no_task => {}
            }
        }
        if task_changed {
            self.offer_workflow_task(key, &step.run);
        }
        activities.dedup();
        for id in activities {
            self.offer_activity(key, &step.run, id);
        }
    }

    pub(crate) fn offer_workflow_task(&mut self, key: &RunKey, run: &Run) {
        if let Some((queue, task)) = self.offers.workflow_task(&self.context, self.position.term, key, run) {
            self.offer(&queue, task);
        }
    }

    pub(crate) fn offer_activity(&mut self, key: &RunKey, run: &Run, id: i64) {
        if let Some((queue, task)) = activity_task(&self.context, self.position.term, key, run, id) {
            self.offer(&queue, task);
        }
    }

    pub(crate) fn offer(&mut self, queue: &QueueKey, task: TaskRef) {
        if self.namespace_deletions.has(&queue.namespace_id) {
            return;
        }
        match self.offers.dispatcher.offer(queue, Ready::Task(task), &self.context.send) {
            Some((Ready::Task(task), waiting)) => self.claim(task, waiting),
            Some((Ready::Query { partition, query_id, .. }, waiting)) => {
                // The partition's own, and not from within this step.
                self.context.send(partition, InboxMessage::HandQuery { query_id, waiting });
            }
            None => {}
        }
    }

    /// Hands a task to a poll, by way of the journal.
    pub(crate) fn claim(&mut self, task: TaskRef, waiting: Waiting) {
        let Some(address) = task.run.address() else { return };
        if waiting.reply.is_closed() {
            self.offer(&QueueKey::of(&waiting.poll), task);
            return;
        }
        if self.takes_no_work() {
            self.offers.hold(&self.context, task, waiting);
            return;
        }
        let Some((task, waiting)) = self.with_history(task, waiting) else { return };
        let poll = &waiting.poll;
        let order = match poll.kind {
            TaskKind::Activity => Request::ClaimActivity(activity_attempt::Claim {
                scheduled_event_id: task.scheduled_event_id,
                attempt: task.attempt,
                identity: poll.identity.clone(),
                poll_id: poll.poll_id.clone(),
                stamp: task.stamp,
            }),
            TaskKind::Workflow => Request::ClaimTask(workflow_task::Claim {
                scheduled_event_id: task.scheduled_event_id,
                attempt: task.attempt,
                sticky: poll.sticky,
                identity: poll.identity.clone(),
                poll_id: poll.poll_id.clone(),
                stamp: task.stamp,
            }),
        };
        self.enqueue(address.request(order), ReplyTo::Claim(task, Box::new(waiting)));
    }

    /// Tasks that waited for a commit are offered again once there is room for what comes of them, some at a time.
    pub(crate) fn offer_held(&mut self) -> Result<(), Error> {
        if self.offers.held().next().is_none() || self.takes_no_work() {
            return Ok(());
        }
        let held = self.offers.take_held(PARKED_MAX);
        self.offer_parked(held)
    }

    /// A task whose history is still being brought waits for it, and the poll for another task.
    fn with_history(&mut self, task: TaskRef, waiting: Waiting) -> Option<(TaskRef, Waiting)> {
        let poll = &waiting.poll;
        let has_all = self.has_all_of(&task, poll.kind, poll.sticky);
        let has_all = has_all.unwrap_or_else(|error| {
            self.offers.note_failure(error);
            true
        });
        match &mut self.backfill {
            Some(backfill) if !has_all => {
                backfill.park(task, poll.kind);
                self.offers.poll_again(&self.context, waiting);
                None
            }
            Some(_) | None => Some((task, waiting)),
        }
    }

    /// A claim did nothing: the task waits for another poll, and the poll for another task.
    pub(crate) fn offer_again(&mut self, task: TaskRef, waiting: Waiting) {
        let queue = QueueKey::of(&waiting.poll);
        self.offers.poll_again(&self.context, waiting);
        self.offer(&queue, task);
    }

    /// Tells whoever waits for a record what it came to.
    pub(crate) fn answer(&mut self, key: &RunKey, reply: Reply, waiter: ReplyTo) -> Result<(), Error> {
        if matches!(reply, Reply::Rejected(_)) {
            self.context.stats.refused.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
        match waiter {
            ReplyTo::Nobody => {}
            ReplyTo::Order(sender, _slot) => send_reply(sender, Ok(reply)),
            ReplyTo::Completion(sender, _, _slot) => {
                let completion = self.furnish_completion(key, reply)?;
                send_reply(sender, Ok(completion));
            }
            ReplyTo::Update(sender, news, _slot) => self.answer_update(key, reply, sender, news)?,
            ReplyTo::Claim(_, waiting) => self.hand_out(key, reply, *waiting)?,
        }
        Ok(())
    }

    pub(crate) fn hand_out(&mut self, key: &RunKey, reply: Reply, waiting: Waiting) -> Result<(), Error> {
        let delivery = match reply {
            Reply::Task(grant) => {
                let mut task = task_payload::workflow_task(&mut self.runs, key, *grant)?;
                self.equip(key, &mut task, &waiting);
                Delivery::Workflow(Box::new(task))
            }
            Reply::Activity(grant) => {
                let mut task = task_payload::activity_task(&mut self.runs, key, *grant)?;
                let target = activity_attempt::Target {
                    scheduled_event_id: task.activity.scheduled_event_id,
                    attempt: task.activity.attempt,
                    claim: task.activity.claim,
                    activity_id: String::new(),
                };
                let order = Request::ReleaseActivity(activity_attempt::Release { target: Some(target) });
                task.receipt = Some(self.receipt(key, order));
                Delivery::Activity(Box::new(task))
            }
            Reply::Gone
            | Reply::Done
            | Reply::Rejected(_)
            | Reply::Started(_)
            | Reply::Completed(_)
            | Reply::Heartbeat(_)
            | Reply::ActivityOptions(_)
            | Reply::RunOptions(_)
            | Reply::Update(_)
            | Reply::Schedule(_) => {
                self.offers.poll_again(&self.context, waiting);
                return Ok(());
            }
        };
        // Dropped undelivered, the task goes back by its receipt.
        send_reply(waiting.reply, delivery);
        Ok(())
    }

    pub(crate) fn equip(&mut self, key: &RunKey, task: &mut WorkflowTask, waiting: &Waiting) {
        task.backlog = self.offers.dispatcher.backlog(&QueueKey::of(&waiting.poll));
        let token = task.run.head.task.as_ref().map(workflow_task::Task::token);
        task.queries = self.waiters.queries.attach(key, token.as_ref().map_or(0, |token| token.claim));
        task.receipt = Some(self.receipt(key, Request::ReleaseTask(workflow_task::Release { token })));
    }

    pub(crate) fn receipt(&self, key: &RunKey, order: Request) -> Receipt {
        let (send, id, address) = (self.context.send.clone(), self.context.id, key.address());
        let receipt = Receipt::new(move || {
            if let Some(address) = address {
                // A partition that is gone gives its started tasks up by their timeouts.
                send(id, InboxMessage::Release { input: address.request(order) });
            }
        });
        receipt.of_task(self.context.id, key.clone())
    }

    pub(crate) fn furnish_completion(&mut self, key: &RunKey, reply: Reply) -> Result<Completion, Error> {
        let mut task = None;
        let mut activities = Vec::new();
        if let Reply::Completed(completed) = &reply {
            if let Some(grant) = completed.task.clone() {
                task = self.furnish_next(key, grant)?;
            }
            for grant in completed.activities.clone() {
                activities.push(task_payload::activity_task(&mut self.runs, key, grant)?);
            }
        }
        Ok(Completion { reply, task, activities })
    }

    /// The task that a completion asks for, unless its history is still being brought: then it goes back.
    fn furnish_next(&mut self, key: &RunKey, grant: TaskGrant) -> Result<Option<WorkflowTask>, Error> {
        let from_event_id = if grant.sticky { grant.run.head.previous_started_event_id + 1 } else { 1 };
        let token = grant.run.head.task.as_ref().map(workflow_task::Task::token);
        if !self.has_history(key, &grant.run, from_event_id)? {
            drop(self.receipt(key, Request::ReleaseTask(workflow_task::Release { token })));
            return Ok(None);
        }
        let mut next = task_payload::workflow_task(&mut self.runs, key, grant)?;
        next.queries = self.waiters.queries.attach(key, token.map_or(0, |token| token.claim));
        Ok(Some(next))
    }
}
