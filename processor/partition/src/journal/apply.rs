//! Applying: a journal record becomes new states, events, and an answer.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use bytes::BytesMut;
use everlog_engine::event::{Attributes, HistoryEvent};
use everlog_engine::machine::update::Done;
use everlog_engine::request::{Request, RequestRecord};
use everlog_engine::{Outcome, Reply, Settings, Stamp, Step, View, decide};
use everlog_log::Log;
use everlog_store::{CommittedRows, Space};
use everlog_wire::{Body, Record};

use crate::error::Error;
use crate::invariants::{Rule, Rules, seed};
use crate::journal::observers::AppliedStep;
use crate::model::admission::CallFailure;
use crate::model::keys::{RunKey, WorkflowKey, history_key};
use crate::model::pending::ReplyTo;
use crate::partition::Partition;
use crate::state::run_store::EXPIRED_ROWS_MAX;
use crate::tasks::lost_deliveries::poll_of;

impl<L: Log + ?Sized, B: CommittedRows, R: Rules> Partition<L, B, R> {
    /// Applies one journal record.
    pub(crate) fn apply(
        &mut self,
        offset: u64,
        stamp_ms: i64,
        record: Record,
        waiter: ReplyTo,
    ) -> Result<(), Error> {
        self.pass_time(if R::keeps(Rule::JournalTime) { stamp_ms } else { self.offers.dispatcher.now_ms() });
        self.position.applied = offset + 1;
        self.commits.note_change();
        self.context.stats.applied.fetch_add(1, Ordering::Relaxed);
        if !self.ownership.is_replaying() {
            self.timers.clock.heard(self.position.last_stamp_ms);
        }
        match record.body {
            Some(Body::Owner(owner)) => {
                self.position.term = offset;
                self.raise_level(owner.level);
                self.position.owner_ms = if R::keeps(Rule::Grace) { self.position.last_stamp_ms } else { 0 };
                if !self.ownership.is_replaying() {
                    self.owner_appeared(&owner)?;
                }
            }
            Some(Body::PublicCommand(forwarded)) => self.ingest(offset, &forwarded)?,
            Some(Body::InvalidCommand(unreadable)) => self.ingest_unreadable(offset, &unreadable),
            Some(Body::OutboxMessage(message)) => self.open_message(offset, &message)?,
            Some(Body::Level(raised)) => self.raise_level(raised.level),
            _ if record.term != self.position.term && R::keeps(Rule::Terms) => {
                self.context.stats.voided.fetch_add(1, Ordering::Relaxed);
                self.refuse(waiter, CallFailure::Unavailable);
            }
            Some(Body::Settings(settings)) => self.position.settings = Some(settings),
            Some(Body::Input(input)) => self.apply_input(offset, &input, waiter)?,
            Some(Body::Barrier(_)) => {}
            Some(Body::DeliverDelayed(deliver)) => self.deliver(offset, &deliver)?,
            Some(Body::NamespaceDeleted(removal)) => self.namespace_deleted(offset, &removal),
            None => self.skip(offset, "the record has no body", waiter),
        }
        // Whoever waits for the record is answered before workers are.
        while let Some((key, step)) = self.offers.take_step() {
            self.offer_tasks(&key, &step);
        }
        Ok(())
    }

    /// A level is never lowered: whoever asked for a lower one did not know of this one yet.
    fn raise_level(&mut self, level: u32) {
        self.position.level = self.position.level.max(level);
        self.context.stats.level.store(u64::from(self.position.level), Ordering::Relaxed);
    }

    /// No record is earlier than the one before it.
    fn pass_time(&mut self, stamp_ms: i64) {
        let earliest_ms = if R::keeps(Rule::MonotoneTime) { self.position.last_stamp_ms } else { stamp_ms };
        self.position.last_stamp_ms = stamp_ms.max(earliest_ms);
    }

    pub(crate) fn skip(&mut self, offset: u64, why: &str, waiter: ReplyTo) {
        tracing::error!(partition = self.context.id, offset, why, "a journal record was skipped");
        self.context.stats.skipped.fetch_add(1, Ordering::Relaxed);
        self.refuse(waiter, CallFailure::Internal);
    }

    pub(crate) fn refuse(&mut self, waiter: ReplyTo, failure: CallFailure) {
        if let Some((task, waiting)) = waiter.refuse(failure) {
            self.offer_again(task, *waiting);
        }
    }

    pub(crate) fn apply_input(
        &mut self,
        offset: u64,
        input: &RequestRecord,
        mut waiter: ReplyTo,
    ) -> Result<(), Error> {
        match self.decided(offset, input, &mut waiter)? {
            Some((key, reply)) => self.answer(&key, reply, waiter),
            None => {
                self.skip(offset, "the engine panicked", waiter);
                Ok(())
            }
        }
    }

    /// Decides an order and takes over what that yields; none where the engine panicked.
    pub(crate) fn decided(
        &mut self,
        offset: u64,
        input: &RequestRecord,
        waiter: &mut ReplyTo,
    ) -> Result<Option<(RunKey, Reply)>, Error> {
        let workflow = WorkflowKey::new(&input.namespace_id, &input.workflow_id);
        let (key, view) = self.view(&workflow, input)?;
        let stamp = Stamp {
            incarnation: seed::<R>(self.context.incarnation, &self.context.config.instance),
            partition: self.context.id,
            offset,
            now_ms: self.position.last_stamp_ms,
            owner_ms: self.position.owner_ms,
            level: if R::keeps(Rule::Level) {
                self.position.level
            } else {
                self.context.config.levels.raised()
            },
        };
        let settings = match &self.position.settings {
            _ if !R::keeps(Rule::Settings) => self.context.config.settings.clone(),
            Some(settings) => settings.clone(),
            None => Settings::standard(),
        };
        let decide = || {
            R::before(input);
            decide(&view, input, &stamp, &settings)
        };
        let decided = match R::keeps(Rule::Poison) {
            true => std::panic::catch_unwind(std::panic::AssertUnwindSafe(decide)),
            false => Ok(decide()),
        };
        let Ok(outcome) = decided else { return Ok(None) };
        let expired = outcome.expired;
        if let (Reply::Completed(_), ReplyTo::Completion(_, answers, _)) = (&outcome.reply, waiter) {
            self.waiters.queries.answer_attached(&key, std::mem::take(answers));
        }
        self.publisher().schedule_events(input, &outcome.schedule_events);
        if !self.ownership.is_replaying() {
            self.context.stats.schedule_actions.count(&outcome.schedule_events);
        }
        let reply = self.apply_outcome(&workflow, outcome)?;
        if !self.ownership.is_serving()
            && let (Some(poll_id), Reply::Task(_) | Reply::Activity(_)) = (poll_of(input), &reply)
        {
            self.lost_deliveries.note(stamp.now_ms, poll_id, &key);
        }
        if expired {
            self.expire(&key)?;
        }
        let wakes = matches!(input.request, Some(Request::FireTimers(_))) && R::keeps(Rule::EarlyAlarms);
        if wakes && !self.ownership.is_replaying() {
            // What is not woken any more needs no alarm.
            let run = view.run.as_ref().filter(|_| !view.is_namespace_deleted);
            let deadline_ms = run.and_then(|run| run.next_deadline_ms(stamp.grace()));
            let is_resident = self.runs.is_resident(&key);
            let stats = &self.context.stats;
            self.timers.fired(&key, deadline_ms, is_resident, stamp.now_ms, stats);
        }
        Ok(Some((key, reply)))
    }

    pub(crate) fn view(
        &mut self,
        workflow: &WorkflowKey,
        input: &RequestRecord,
    ) -> Result<(RunKey, View), Error> {
        let run_id = match input.run_id.as_str() {
            "" => self.runs.current(workflow)?.unwrap_or_default(),
            run_id => run_id.to_owned(),
        };
        let key = workflow.run(&run_id);
        let run = if run_id.is_empty() { None } else { self.runs.get(&key)? };
        let mut done = BTreeMap::new();
        for update_id in run.iter().flat_map(|run| input.update_ids(run)) {
            if let Some(found) = self.runs.done_update(&key, update_id)? {
                done.insert(update_id.to_owned(), found);
            }
        }
        let mut past = Vec::new();
        let current = match &input.request {
            Some(Request::Start(_)) => run.clone(),
            Some(Request::Reset(_)) => {
                if let Some(run) = &run {
                    past = self.past(workflow, run)?;
                }
                match self.runs.current(workflow)? {
                    Some(current) => self.runs.get(&workflow.run(&current))?,
                    None => None,
                }
            }
            _other => None,
        };
        let seen =
            self.runs.taker(self.position.last_stamp_ms, workflow, input, run.as_ref(), current.as_ref())?;
        let done_before = match (&input.request, &seen) {
            (Some(Request::Start(begin)), Some(taker)) if taker.start.run_id != run_id => {
                let taker = workflow.run(&taker.start.run_id);
                let update = begin.update.as_ref();
                update.map(|update| self.runs.done_update(&taker, &update.update_id)).transpose()?.flatten()
            }
            _other => None,
        };
        let is_namespace_deleted = self.namespace_deletions.has(&input.namespace_id);
        Ok((key, View { run, current, is_namespace_deleted, seen, done, done_before, past }))
    }

    /// Takes over what a decision yields; returns the answer.
    pub(crate) fn apply_outcome(&mut self, workflow: &WorkflowKey, outcome: Outcome) -> Result<Reply, Error> {
        let last = outcome.steps.len();
        for (index, step) in outcome.steps.into_iter().enumerate() {
            let key = workflow.run(&step.run.start.run_id);
            if index + 1 == last
                && let Some(request_id) = &outcome.seen
            {
                self.runs.add_request(&key, request_id);
            }
            self.apply_step(key, step)?;
        }
        if let Some(current) = &outcome.current {
            self.runs.set_current(workflow, current);
        }
        self.outbox.write(&self.context, &mut self.position, outcome.messages);
        Ok(outcome.reply)
    }

    /// Writes the rows and events of a step, and runs the observers.
    fn apply_step(&mut self, key: RunKey, step: Step) -> Result<(), Error> {
        let batches = step.batches();
        let has_new_events = !batches.is_empty();
        for batch in batches {
            self.write_batch(&key, &step, &batch);
        }
        for request_id in step.requests_taken_over() {
            self.runs.add_request(&key, request_id);
        }
        let before = self.runs.put(&key, step.run.clone());
        let applied = AppliedStep { key, before, step, has_new_events };
        self.observe(&applied)?;
        if !self.ownership.is_replaying() {
            self.offers.note_step(applied.key, applied.step);
        }
        Ok(())
    }

    fn write_batch(&mut self, key: &RunKey, step: &Step, events: &[&HistoryEvent]) {
        let mut history = BytesMut::new();
        for event in events {
            prost::encoding::message::encode(1, *event, &mut history);
        }
        let first_event_id = events.first().map_or(0, |event| event.event_id);
        for event in events {
            if let Some(Attributes::UpdateCompleted(completed)) = &event.attributes {
                let update_id = completed.meta.as_ref().map_or("", |meta| meta.update_id.as_str());
                let done = Done { event_id: event.event_id, batch_event_id: first_event_id };
                self.runs.add_done_update(key, update_id, done);
            }
        }
        self.runs.store().put_new(Space::History, history_key(key, first_event_id), history.freeze());
        let start = &step.run.start;
        self.publisher().events(&start.namespace_id, &start.workflow_id, &start.run_id, events);
    }

    /// A run is forgotten: at once as far as decisions read it, so that they never depend on how much of its history is
    /// here, and of its history as much as a step may.
    pub(crate) fn expire(&mut self, key: &RunKey) -> Result<(), Error> {
        let is_whole = self.backfill.is_none() && self.runs.delete_history(key, EXPIRED_ROWS_MAX)?;
        self.runs.delete_state(key)?;
        if !is_whole {
            self.history_deletions.add(self.runs.store(), key);
        }
        self.observe_deletion(key);
        self.context.stats.forgotten.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}
