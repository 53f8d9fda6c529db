//! A partition: the single-threaded owner of a slice of the Workflow Ids.
//!
//! Orders are gathered, appended to the journal together, and applied in offset order once they are durable.
//! Replies leave when their record is applied; outputs are committed in the background.
//!
//! Its state is that of its components. Each owns its part, is told what it needs, and knows no partition. What goes from
//! one component to the next is a method of the partition, beside the component that it begins with.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use everlog_engine::request::{Request, RequestRecord};
use everlog_log::Log;
use everlog_store::{CommittedRows, Store};
use everlog_wire::{Body, Position, Record};

use crate::config::Config;
use crate::context::PartitionContext;
use crate::error::Error;
use crate::invariants::{AllRules, Rule, Rules};
use crate::journal::commits::Commits;
use crate::journal::journal_queue::JournalQueue;
use crate::matching::dispatcher::Dispatcher;
use crate::model::admission::CallFailure;
use crate::model::inbox_message::{InboxMessage, PartitionSender};
use crate::model::keys::RunKey;
use crate::model::pending::ReplyTo;
use crate::model::reply::send_reply;
use crate::outbox::Outbox;
use crate::public::ingest::{IngestQueue, mark_of};
use crate::public::outputs::Publisher;
use crate::reads::read_waiters::ReadWaiters;
use crate::recovery::history_backfill::HistoryBackfill;
use crate::recovery::ownership::Ownership;
use crate::state::history_deletion::HistoryDeletions;
use crate::state::namespace_deletion::NamespaceDeletions;
use crate::state::run_store::RunStore;
use crate::stats::Stats;
use crate::tasks::lost_deliveries::LostDeliveries;
use crate::tasks::task_offers::TaskOffers;
use crate::tasks::task_payload;
use crate::timers::timer_schedule::TimerSchedule;
use crate::visibility::reads::VisibilityReads;

/// How often what waits is looked through, in ms.
const SWEEP_MS: i64 = 1_000;

/// The owner of a partition.
pub struct Partition<L: Log + ?Sized, B: CommittedRows, R: Rules = AllRules> {
    pub(crate) context: PartitionContext,
    pub(crate) log: Arc<L>,
    /// What was applied, as it is committed with the rows.
    pub(crate) position: Position,
    pub(crate) runs: RunStore<B>,
    pub(crate) journal: JournalQueue,
    pub(crate) commits: Commits,
    pub(crate) timers: TimerSchedule,
    pub(crate) offers: TaskOffers,
    pub(crate) waiters: ReadWaiters,
    pub(crate) visibility: VisibilityReads,
    pub(crate) outbox: Outbox,
    pub(crate) ingest_queue: IngestQueue,
    pub(crate) ownership: Ownership,
    /// Histories that are still being brought.
    pub(crate) backfill: Option<HistoryBackfill>,
    pub(crate) lost_deliveries: LostDeliveries,
    pub(crate) history_deletions: HistoryDeletions,
    pub(crate) namespace_deletions: NamespaceDeletions,
    next_sweep_ms: i64,
    rules: PhantomData<fn() -> R>,
}

impl<L: Log + ?Sized, B: CommittedRows, R: Rules> Partition<L, B, R> {
    pub(crate) fn new(
        id: u32,
        log: Arc<L>,
        store: Store<B>,
        dispatcher: Arc<Dispatcher>,
        send: PartitionSender,
        config: Config,
        stats: Arc<Stats>,
    ) -> Result<Self, Error> {
        let commits = Commits::new(log.fence(id)?, &config);
        let buckets = everlog_log::buckets_of(id, log.partitions());
        let runs = RunStore::new(id, buckets, store, config.cached_runs_max);
        Ok(Self {
            context: PartitionContext::new(id, &*log, config, send, stats),
            log,
            position: Position::default(),
            runs,
            journal: JournalQueue::default(),
            commits,
            timers: TimerSchedule::default(),
            offers: TaskOffers::new(dispatcher),
            waiters: ReadWaiters::default(),
            visibility: VisibilityReads::default(),
            outbox: Outbox::default(),
            ingest_queue: IngestQueue::default(),
            ownership: Ownership::default(),
            backfill: None,
            lost_deliveries: LostDeliveries::default(),
            history_deletions: HistoryDeletions::default(),
            namespace_deletions: NamespaceDeletions::default(),
            next_sweep_ms: 0,
            rules: PhantomData,
        })
    }

    /// Which partition it is.
    pub fn id(&self) -> u32 {
        self.context.id
    }

    /// What the partition counts.
    pub fn stats(&self) -> Arc<Stats> {
        self.context.stats.clone()
    }

    /// The term that it serves under: the offset of its record in the journal.
    pub fn term(&self) -> u64 {
        self.position.term
    }

    /// The level of its decisions.
    pub fn level(&self) -> u32 {
        self.position.level
    }

    /// True once orders are taken.
    pub fn is_serving(&self) -> bool {
        self.ownership.is_serving()
    }

    /// Takes an event in.
    ///
    /// # Errors
    /// The partition cannot go on: drop it.
    pub fn handle(&mut self, event: InboxMessage, now_ms: i64) -> Result<(), Error> {
        self.timers.clock.tick(now_ms);
        if self.journal.is_shared()
            && R::keeps(Rule::ReadsBehindAppends)
            && matches!(
                event,
                InboxMessage::Read { .. }
                    | InboxMessage::Visibility { .. }
                    | InboxMessage::Watch { .. }
                    | InboxMessage::Query { .. }
                    | InboxMessage::AwaitUpdate { .. }
            )
        {
            // Somebody else may own the partition by now: what is appended from here on will tell.
            self.journal.push_read(event);
            return Ok(());
        }
        self.dispatch(event, now_ms)
    }

    pub(crate) fn dispatch(&mut self, event: InboxMessage, now_ms: i64) -> Result<(), Error> {
        match self.wait_for_history(event, now_ms)? {
            Some(event) => self.execute(event, now_ms),
            None => Ok(()),
        }
    }

    pub(crate) fn execute(&mut self, event: InboxMessage, now_ms: i64) -> Result<(), Error> {
        match event {
            InboxMessage::Request { input, slot, reply } => {
                if self.is_overfull()
                    && !matches!(input.request, Some(Request::Cancel(_) | Request::Terminate(_)))
                {
                    send_reply(reply, Err(CallFailure::Busy));
                } else if !self.has_past_of(&input)? {
                    send_reply(reply, Err(CallFailure::Unavailable));
                } else {
                    self.enqueue(input, ReplyTo::Order(reply, slot));
                }
            }
            InboxMessage::Update { input, slot, reply, news } => {
                if self.is_overfull() {
                    send_reply(reply, Err(CallFailure::Busy));
                } else {
                    self.enqueue(input, ReplyTo::Update(reply, news, slot));
                }
            }
            InboxMessage::AwaitUpdate { address, update_id, slot: _slot, reply, news } => {
                self.await_update(&address, &update_id, reply, news)?;
            }
            InboxMessage::CompleteTask { input, answers, slot, reply } => {
                self.enqueue(input, ReplyTo::Completion(reply, answers, slot));
            }
            InboxMessage::Claim { task, waiting } => self.claim(task, waiting),
            InboxMessage::PollsLost { poll_ids, run } => self.polls_lost(poll_ids, run, now_ms)?,
            InboxMessage::Release { input } => {
                self.context.stats.released.fetch_add(1, Ordering::Relaxed);
                self.enqueue(input, ReplyTo::Nobody);
            }
            InboxMessage::Read { address, want, slot: _slot, reply } => {
                let reading = self.read(&address, want)?;
                send_reply(reply, reading);
            }
            InboxMessage::Visibility { read, slot, reply } => self.read_visibility(&read, slot, reply)?,
            InboxMessage::Watch { address, known_event_id, slot: _slot, reply } => {
                self.watch(&address, known_event_id, reply)?;
            }
            InboxMessage::Query { request, slot, reply } => self.ask(request, slot, reply, now_ms)?,
            InboxMessage::QueryAnswered { answer, slot: _slot, reply } => {
                send_reply(reply, self.waiters.queries.answer_direct(answer));
            }
            InboxMessage::HandQuery { query_id, waiting } => self.hand_query(&query_id, waiting)?,
            InboxMessage::QueryLost { query_id } => self.requeue_query(&query_id)?,
            InboxMessage::LoadTask { grant, reply } => {
                let key = RunKey::of(&grant.run);
                let task = task_payload::workflow_task(&mut self.runs, &key, grant)?;
                send_reply(reply, Ok(task));
            }
            InboxMessage::Ingest { bodies, done } => self.ingest_queue.push(bodies, done),
            InboxMessage::Mark { source, reply } => send_reply(reply, mark_of(&self.position, &source)),
            InboxMessage::Messages { from, messages } => self.messages_came(from, messages),
            InboxMessage::MessagesTaken { by, number } => self.messages_taken(by, number),
            InboxMessage::MessagesLost { by } => self.outbox.lost(by, now_ms),
            InboxMessage::OfferAgain => self.offer_all_again()?,
            InboxMessage::Nudge => {}
            InboxMessage::Appended(result) => self.appended(result, now_ms)?,
            InboxMessage::Committed(result) => self.committed(result, now_ms)?,
            InboxMessage::Restored(result) => self.restored(result, now_ms)?,
        }
        Ok(())
    }

    /// Does what is due: appends what has gathered, turns alarms into records, begins a commit. Returns the moment
    /// of the next turn that is needed even if nothing comes in. `now_ms` grows with time; how far it is off does not
    /// matter, since deadlines are moments of the log.
    ///
    /// # Errors
    /// The partition cannot go on: drop it.
    pub fn turn(&mut self, now_ms: i64) -> Result<Option<i64>, Error> {
        self.context.stats.turns.fetch_add(1, Ordering::Relaxed);
        self.context.stats.turned_ms.store(now_ms, Ordering::Relaxed);
        self.timers.clock.tick(now_ms);
        self.mind_clock(now_ms);
        if self.ownership.is_serving() {
            self.wake_due()?;
            self.offer_waiting()?;
            self.ask_time();
            if let Some(backfill) = &mut self.backfill {
                backfill.fetch(&*self.log, &self.context, now_ms);
            }
            self.delete_histories(now_ms)?;
            self.remove_runs(now_ms)?;
            self.sweep(now_ms)?;
            self.mind_index()?;
            self.send_next();
            self.outbox.send(&*self.log, &self.context, &mut self.journal, now_ms);
        } // What others append is bounded by nothing else.
        let more = !self.is_overfull() && self.follow(now_ms)?;
        self.journal.append(&*self.log, &self.context, &self.position, self.ownership.is_serving(), now_ms);
        self.commit_if_due(now_ms)?;
        let uncommitted_bytes = self.uncommitted_bytes();
        self.commits.share(uncommitted_bytes);
        self.context.stats.overlay_bytes.store(uncommitted_bytes as u64, Ordering::Relaxed);
        if let Some(failure) = self.offers.take_failure() {
            return Err(failure);
        }
        let has_more = self.offers.has_unoffered() || self.has_index_work();
        let more = more || (self.ownership.is_serving() && has_more);
        Ok(if more { Some(now_ms) } else { self.next_turn_ms(now_ms) })
    }

    /// A clock that was set back must not put off what is done at intervals.
    fn mind_clock(&mut self, now_ms: i64) {
        self.commits.mind_clock(&self.context.config, now_ms);
        self.next_sweep_ms = self.next_sweep_ms.min(now_ms + SWEEP_MS);
        self.journal.mind_clock(now_ms);
    }

    /// True where nothing is on its way and nothing waits to be committed.
    pub fn is_idle(&self) -> bool {
        self.journal.is_idle() && self.commits.is_idle()
    }

    /// True where no history is missing that the log has.
    pub fn is_whole(&self) -> bool {
        self.backfill.is_none()
    }

    /// Begins the last commit without waiting for the interval.
    pub fn commit_soon(&mut self) {
        self.commits.begin_soon();
    }

    pub(crate) fn enqueue(&mut self, input: RequestRecord, waiter: ReplyTo) {
        let record = Record::new(self.position.term, Body::Input(input));
        self.journal.push(record, waiter);
    }

    pub(crate) fn is_overfull(&self) -> bool {
        self.uncommitted_bytes() > self.overfull_bytes() && R::keeps(Rule::Bounds)
    }

    /// Too much waits for a commit: alarms and tasks wait as well, or what they lead to would be bounded by nothing.
    pub(crate) fn takes_no_work(&self) -> bool {
        self.is_overfull() && R::keeps(Rule::NoWorkBeyond)
    }

    pub(crate) fn overfull_bytes(&self) -> usize {
        self.commits.overfull_bytes(&self.context.config, self.uncommitted_bytes())
    }

    /// Bytes that wait for a commit.
    pub(crate) fn uncommitted_bytes(&self) -> usize {
        self.runs.overlay_bytes() + self.commits.outputs.size_bytes()
    }

    /// Writes into the outputs of the record that is applied.
    pub(crate) fn publisher(&mut self) -> Publisher<'_> {
        let now_ms = self.position.last_stamp_ms;
        Publisher { outputs: &mut self.commits.outputs, context: &self.context, now_ms }
    }

    fn sweep(&mut self, now_ms: i64) -> Result<(), Error> {
        if now_ms < self.next_sweep_ms {
            return Ok(());
        }
        self.next_sweep_ms = now_ms + SWEEP_MS;
        if self.context.id == 0 {
            self.offers.dispatcher.sweep(&self.context.send);
        }
        self.waiters.sweep();
        self.lost_deliveries.forget(self.position.last_stamp_ms);
        self.look_at_parked()?;
        self.look_at_calls(now_ms)?;
        self.journal_removals(now_ms);
        self.journal.raise_level(self.context.config.levels.raised(), &self.position);
        self.offer_held()?;
        for query_id in self.waiters.queries.sweep(now_ms) {
            self.give_up_worker(&query_id)?;
        } // A commit does the same; there is none while everybody only reads.
        self.runs.evict();
        self.context.stats.resident_runs.store(self.runs.resident() as u64, Ordering::Relaxed);
        self.context.stats.alarms.store(self.timers.len() as u64, Ordering::Relaxed);
        self.context.stats.leftovers.store(self.history_deletions.len() as u64, Ordering::Relaxed);
        self.context.stats.messages.store(self.outbox.len() as u64, Ordering::Relaxed);
        self.context.stats.next_offset.store(self.position.applied, Ordering::Relaxed);
        Ok(())
    }

    fn next_turn_ms(&self, now_ms: i64) -> Option<i64> {
        let mut next_ms = self.ownership.is_serving().then_some(self.next_sweep_ms);
        for due_ms in [self.commits.next_ms(), self.journal.next_ms(now_ms)].into_iter().flatten() {
            next_ms = Some(next_ms.map_or(due_ms, |next_ms| next_ms.min(due_ms)));
        }
        let due_ms =
            self.timers.next_turn_ms().filter(|_| !self.takes_no_work() && !self.has_slice_waiting());
        let left_ms = self.history_deletions.next_ms().filter(|_| !self.is_overfull());
        let removal_ms = self.namespace_deletions.next_ms().filter(|_| !self.takes_no_work());
        let wanted = [
            due_ms,
            self.backfill.as_ref().and_then(HistoryBackfill::next_fetch_ms),
            left_ms,
            removal_ms,
            self.outbox.next_ms(),
        ];
        for due_ms in wanted.into_iter().flatten().filter(|_| self.ownership.is_serving()) {
            next_ms = Some(next_ms.map_or(due_ms, |next_ms| next_ms.min(due_ms)));
        }
        next_ms.map(|next_ms| next_ms.max(now_ms))
    }
}
