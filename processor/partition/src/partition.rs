//! A partition: the single-threaded owner of a slice of the Workflow Ids.
//!
//! Orders are gathered, appended to the journal together, and applied in offset order once they are durable.
//! Replies leave when their record is applied; outputs are committed in the background.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use everlog_engine::input::{Input, Order};
use everlog_engine::machine::wake;
use everlog_engine::{Reply, Settings, TaskGrant};
use everlog_log::{Appended, Commit, Fence, Log, Output, Topic};
use everlog_store::{Base, Space, Store};
use everlog_wire::{Body, Position, Record};
use tokio::sync::oneshot;

use crate::address::{Address, RunKey, WorkflowKey};
use crate::delivery::{Completion, QueryAnswer, QueryOutcome, QueryRequest, Reading, Want, WorkflowTask};
use crate::dispatch::{Dispatcher, TaskRef, Waiting};
use crate::due::Due;
use crate::error::Error;
use crate::furnish;
use crate::query::Queries;
use crate::refusal::Refusal;
use crate::reply::tell;
use crate::router::{Answer, Failure, Send, Slot};
use crate::runs::Runs;
use crate::stats::Stats;
use crate::watch::Watchers;

/// Bytes of records from which an append takes no further one.
const APPEND_BYTES_MAX: usize = 8 << 20;
/// How often what waits is looked through, in ms.
const SWEEP_MS: i64 = 1_000;
/// How long appends and commits rest after the log had no room, in ms.
const HOLD_MS: i64 = 200;

/// What a partition is told to keep to.
#[derive(Clone, Debug)]
pub struct Config {
    /// The node's name, for its `Owner` records.
    pub node: String,
    /// Limits of the engine; they reach decisions as a record.
    pub settings: Settings,
    /// How long outputs are gathered before they are committed, in ms.
    pub commit_interval_ms: i64,
    /// Uncommitted bytes at which a commit begins early; at twice as many, ordinary orders are refused.
    pub overlay_bytes_max: usize,
    /// Runs that stay in memory.
    pub cached_runs_max: usize,
    /// Appends on their way at once.
    pub appends_max: usize,
    /// Records of one append.
    pub append_records_max: usize,
    /// Alarms that become records in one turn.
    pub wakes_max: usize,
    /// Questions that may wait for a workflow task of one run.
    pub buffered_queries_max: usize,
    /// Applied journal records that are kept, for forensics.
    pub journal_keep_records: u64,
}

/// What reaches a partition.
pub enum Event {
    /// An order to journal.
    Order {
        /// The order.
        input: Input,
        /// Its place among the waiting requests.
        slot: Slot,
        /// Where the answer goes.
        reply: oneshot::Sender<Answer<Reply>>,
    },
    /// A completed workflow task, with answers to the queries that went along with it.
    CompleteTask {
        /// The order.
        input: Input,
        /// The worker's answers.
        answers: Vec<QueryAnswer>,
        /// Its place among the waiting requests.
        slot: Slot,
        /// Where the answer goes.
        reply: oneshot::Sender<Answer<Completion>>,
    },
    /// A reader.
    Read {
        /// The run.
        address: Address,
        /// What to read of it.
        want: Want,
        /// Its place among the waiting readers.
        slot: Slot,
        /// Where the answer goes.
        reply: oneshot::Sender<Answer<Option<Reading>>>,
    },
    /// A caller that waits for news of a run.
    Watch {
        /// The run.
        address: Address,
        /// The last event that the caller knows.
        known_event_id: i64,
        /// Its place among the waiting readers; given back once it is noted who waits.
        slot: Slot,
        /// Where the answer goes.
        reply: oneshot::Sender<()>,
    },
    /// A question to a run's worker.
    Query {
        /// The question.
        request: QueryRequest,
        /// Its place among the waiting requests.
        slot: Slot,
        /// Where the answer goes.
        reply: oneshot::Sender<Answer<QueryOutcome>>,
    },
    /// A worker's answer to a direct question.
    QueryAnswered {
        /// The answer.
        answer: QueryAnswer,
        /// Its place among the waiting requests.
        slot: Slot,
        /// False where nobody waits for it.
        reply: oneshot::Sender<bool>,
    },
    /// A task that was granted with another order wants its history.
    Furnish {
        /// The task.
        grant: TaskGrant,
        /// Where the answer goes.
        reply: oneshot::Sender<Answer<WorkflowTask>>,
    },
    /// The dispatcher found a poll for a task of this partition. As many can wait as polls were let in.
    Claim {
        /// The task.
        task: TaskRef,
        /// The poll.
        waiting: Waiting,
    },
    /// The dispatcher found a poll for a question of this partition.
    HandQuery {
        /// The question.
        query_id: String,
        /// The poll.
        waiting: Waiting,
    },
    /// A question that was given to a worker reached nobody.
    QueryLost {
        /// The question.
        query_id: String,
    },
    /// A task that was handed out reached nobody. As many can wait as tasks were claimed, each for a poll that was let
    /// in.
    Release {
        /// The order that takes it back.
        input: Input,
    },
    /// Nothing but an occasion to take a turn.
    Nudge,
    /// An append is durable, or has failed.
    Appended(Result<Option<Appended>, everlog_log::Error>),
    /// A commit is done, or has failed.
    Committed(Result<(), everlog_log::Error>),
}

/// Who waits for a journal record.
pub(crate) enum Waiter {
    Nobody,
    Order(oneshot::Sender<Answer<Reply>>, Slot),
    Completion(oneshot::Sender<Answer<Completion>>, Vec<QueryAnswer>, Slot),
    Claim(TaskRef, Waiting),
}

pub(crate) struct Entry {
    pub(crate) record: Record,
    pub(crate) waiter: Waiter,
}

/// The owner of a partition.
pub struct Partition<L: Log, B: Base> {
    pub(crate) id: u32,
    pub(crate) log: Arc<L>,
    pub(crate) runs: Runs<B>,
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) send: Send,
    pub(crate) config: Config,
    pub(crate) stats: Arc<Stats>,
    pub(crate) fence: Fence,
    pub(crate) incarnation: [u8; 16],
    pub(crate) position: Position,
    pub(crate) due: Due,
    pub(crate) queries: Queries,
    pub(crate) watchers: Watchers,
    pub(crate) pending: VecDeque<Entry>,
    pub(crate) in_flight: VecDeque<Vec<Entry>>,
    pub(crate) events: Vec<Output>,
    committing_events: Vec<Output>,
    pub(crate) serving: bool,
    pub(crate) replaying: bool,
    pub(crate) wants_term: bool,
    hold_until_ms: i64,
    refused_appends: Refusal,
    refused_commits: Refusal,
    committing: Option<u64>,
    pub(crate) changed: bool,
    next_commit_ms: i64,
    next_sweep_ms: i64,
    query_serial: u64,
}

impl<L: Log, B: Base> Partition<L, B> {
    pub(crate) fn new(
        id: u32,
        log: Arc<L>,
        store: Store<B>,
        dispatcher: Arc<Dispatcher>,
        send: Send,
        config: Config,
    ) -> Result<Self, Error> {
        let fence = log.fence(id)?;
        let runs = Runs::new(store, config.cached_runs_max);
        Ok(Self {
            id,
            incarnation: log.incarnation(),
            log,
            runs,
            dispatcher,
            send,
            config,
            stats: Arc::default(),
            fence,
            position: Position::default(),
            due: Due::default(),
            queries: Queries::default(),
            watchers: Watchers::default(),
            pending: VecDeque::new(),
            in_flight: VecDeque::new(),
            events: Vec::new(),
            committing_events: Vec::new(),
            serving: false,
            replaying: false,
            wants_term: false,
            hold_until_ms: 0,
            refused_appends: Refusal::of("appends"),
            refused_commits: Refusal::of("commits"),
            committing: None,
            changed: false,
            next_commit_ms: 0,
            next_sweep_ms: 0,
            query_serial: 0,
        })
    }

    /// Which partition it is.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// What the partition counts.
    pub fn stats(&self) -> Arc<Stats> {
        self.stats.clone()
    }

    /// True once orders are taken.
    pub fn is_serving(&self) -> bool {
        self.serving
    }

    /// Takes an event in.
    ///
    /// # Errors
    /// The partition cannot go on: drop it.
    pub fn handle(&mut self, event: Event, now_ms: i64) -> Result<(), Error> {
        match event {
            Event::Order { input, slot, reply } => {
                if self.is_overfull() && !matches!(input.order, Some(Order::Cancel(_) | Order::Terminate(_)))
                {
                    tell(reply, Err(Failure::Busy));
                } else {
                    self.enqueue(input, Waiter::Order(reply, slot));
                }
            }
            Event::CompleteTask { input, answers, slot, reply } => {
                self.enqueue(input, Waiter::Completion(reply, answers, slot));
            }
            Event::Claim { task, waiting } => self.claim(task, waiting),
            Event::Release { input } => {
                self.stats.released.fetch_add(1, Ordering::Relaxed);
                self.enqueue(input, Waiter::Nobody);
            }
            Event::Read { address, want, slot: _slot, reply } => {
                let reading = self.read(&address, want)?;
                tell(reply, Ok(reading));
            }
            Event::Watch { address, known_event_id, slot: _slot, reply } => {
                self.watch(&address, known_event_id, reply)?;
            }
            Event::Query { request, slot, reply } => self.ask(request, slot, reply, now_ms)?,
            Event::QueryAnswered { answer, slot: _slot, reply } => {
                tell(reply, self.queries.answer_direct(answer));
            }
            Event::HandQuery { query_id, waiting } => self.hand_query(&query_id, waiting)?,
            Event::QueryLost { query_id } => self.requeue_query(&query_id)?,
            Event::Furnish { grant, reply } => {
                let key = run_key(&grant.run);
                let task = furnish::workflow_task(&mut self.runs, &key, grant)?;
                tell(reply, Ok(task));
            }
            Event::Nudge => {}
            Event::Appended(result) => self.appended(result, now_ms)?,
            Event::Committed(result) => self.committed(result, now_ms)?,
        }
        Ok(())
    }

    /// Does what is due: appends what has gathered, turns alarms into records, begins a commit. Returns the moment
    /// of the next turn that is needed even if nothing comes in.
    ///
    /// # Errors
    /// The partition cannot go on: drop it.
    pub fn turn(&mut self, now_ms: i64) -> Result<Option<i64>, Error> {
        self.stats.turns.fetch_add(1, Ordering::Relaxed);
        self.stats.turned_ms.store(now_ms, Ordering::Relaxed);
        self.mind_clock(now_ms);
        if self.serving {
            self.wake_due(now_ms)?;
            self.sweep(now_ms)?;
        }
        self.append(now_ms);
        self.commit_if_due(now_ms);
        Ok(self.next_turn_ms(now_ms))
    }

    /// A clock that was set back must not put off what is done at intervals.
    fn mind_clock(&mut self, now_ms: i64) {
        self.next_commit_ms = self.next_commit_ms.min(now_ms + self.config.commit_interval_ms.max(HOLD_MS));
        self.next_sweep_ms = self.next_sweep_ms.min(now_ms + SWEEP_MS);
        self.hold_until_ms = self.hold_until_ms.min(now_ms + HOLD_MS);
    }

    /// True where nothing is on its way and nothing waits to be committed.
    pub fn is_idle(&self) -> bool {
        self.pending.is_empty() && self.in_flight.is_empty() && self.committing.is_none() && !self.changed
    }

    /// Begins the last commit without waiting for the interval.
    pub fn hurry(&mut self) {
        self.next_commit_ms = 0;
    }

    pub(crate) fn enqueue(&mut self, input: Input, waiter: Waiter) {
        let record = Record::new(self.position.term, Body::Input(input));
        self.pending.push_back(Entry { record, waiter });
    }

    fn is_overfull(&self) -> bool {
        self.runs.overlay_bytes() > self.config.overlay_bytes_max.saturating_mul(2)
    }

    fn append(&mut self, now_ms: i64) {
        // Until the `Owner` record is applied nothing else has a term to stand under.
        let (appends_max, records_max) =
            if self.serving { (self.config.appends_max, self.config.append_records_max) } else { (1, 1) };
        let allowed = (self.serving || self.wants_term) && now_ms >= self.hold_until_ms;
        while allowed && !self.pending.is_empty() && self.in_flight.len() < appends_max {
            self.wants_term = false;
            let (mut entries, mut records, mut bytes) = (Vec::new(), Vec::new(), 0);
            while records.len() < records_max && bytes < APPEND_BYTES_MAX {
                let Some(entry) = self.pending.pop_front() else { break };
                let record = entry.record.encode();
                bytes += record.len();
                records.push(record);
                entries.push(entry);
            }
            self.in_flight.push_back(entries);
            let (send, id) = (self.send.clone(), self.id);
            let done = Box::new(move |result| {
                // A partition that is gone has no waiters left to tell.
                send(id, Event::Appended(result));
            });
            self.log.append(self.id, records, done);
        }
    }

    fn appended(
        &mut self,
        result: Result<Option<Appended>, everlog_log::Error>,
        now_ms: i64,
    ) -> Result<(), Error> {
        let Some(entries) = self.in_flight.pop_front() else {
            return Err(self.unsound("an append was acknowledged that was not made"));
        };
        let appended = match result {
            Ok(Some(appended)) => appended,
            Ok(None) => return Err(self.unsound("somebody else appends")),
            Err(error @ (everlog_log::Error::Full { .. } | everlog_log::Error::Busy { .. })) => {
                self.refused_appends.begins(self.id, &error);
                let is_full = matches!(error, everlog_log::Error::Full { .. });
                self.not_appended(entries, if is_full { Failure::Full } else { Failure::Busy }, now_ms);
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        self.refused_appends.ends(self.id);
        if appended.first != self.position.applied {
            return Err(self.unsound("somebody else has appended"));
        }
        for entry in entries {
            let offset = self.position.applied;
            self.apply(offset, appended.stamp_ms, entry.record, entry.waiter, now_ms)?;
        }
        Ok(())
    }

    /// The log had no room: callers are told so; what the partition itself wants is tried again in a while.
    fn not_appended(&mut self, entries: Vec<Entry>, failure: Failure, now_ms: i64) {
        self.hold_until_ms = now_ms + HOLD_MS;
        self.wants_term = !self.serving;
        for entry in entries.into_iter().rev() {
            match entry.waiter {
                waiter @ (Waiter::Order(..) | Waiter::Completion(..)) => self.refuse(waiter, failure),
                waiter @ (Waiter::Nobody | Waiter::Claim(..)) => {
                    self.pending.push_front(Entry { record: entry.record, waiter });
                }
            }
        }
    }

    fn unsound(&self, detail: &str) -> Error {
        Error::Journal { partition: self.id, detail: detail.into() }
    }

    fn wake_due(&mut self, now_ms: i64) -> Result<(), Error> {
        if now_ms + crate::due::REACH_MS / 2 > self.due.horizon_ms() {
            self.reach(now_ms + crate::due::REACH_MS)?;
        }
        for _ in 0..self.config.wakes_max {
            let Some(key) = self.due.take(now_ms) else { break };
            if let Some(address) = key.address() {
                self.stats.wakes.fetch_add(1, Ordering::Relaxed);
                self.enqueue(input(&address, Order::Wake(wake::Wake {})), Waiter::Nobody);
            }
        }
        Ok(())
    }

    fn sweep(&mut self, now_ms: i64) -> Result<(), Error> {
        if now_ms < self.next_sweep_ms {
            return Ok(());
        }
        self.next_sweep_ms = now_ms + SWEEP_MS;
        if self.id == 0 {
            self.dispatcher.sweep(&self.send);
        }
        self.watchers.sweep();
        for query_id in self.queries.sweep(now_ms) {
            self.requeue_query(&query_id)?;
        }
        self.stats.resident_runs.store(self.runs.resident() as u64, Ordering::Relaxed);
        self.stats.overlay_bytes.store(self.runs.overlay_bytes() as u64, Ordering::Relaxed);
        self.stats.alarms.store(self.due.len() as u64, Ordering::Relaxed);
        self.stats.next_offset.store(self.position.applied, Ordering::Relaxed);
        Ok(())
    }

    fn commit_if_due(&mut self, now_ms: i64) {
        let early = self.runs.overlay_bytes() > self.config.overlay_bytes_max;
        if self.committing.is_some() || !self.changed || (now_ms < self.next_commit_ms && !early) {
            return;
        }
        self.runs.flush();
        self.committing_events = std::mem::take(&mut self.events);
        let mut outputs = self.committing_events.clone();
        for (space, key, value) in self.runs.store().begin_commit() {
            let topic = match space {
                Space::State => Topic::Changelog,
                Space::History => Topic::History,
                Space::Timers => Topic::Timers,
            };
            outputs.push(Output { topic, key, value });
        }
        let (send, id) = (self.send.clone(), self.id);
        let commit = Commit {
            partition: self.id,
            fence: self.fence,
            applied: self.position.applied,
            position: self.position.encode(),
            outputs,
        };
        self.committing = Some(self.position.applied);
        self.changed = false;
        self.next_commit_ms = self.next_commit_slot_ms(now_ms);
        let done = Box::new(move |result| {
            // A partition that is gone restores from what is committed.
            send(id, Event::Committed(result));
        });
        self.log.commit(commit, done);
    }

    /// Partitions commit one after the other within the interval: all at once, they would keep appends waiting.
    fn next_commit_slot_ms(&self, now_ms: i64) -> i64 {
        let interval_ms = self.config.commit_interval_ms;
        let slot_ms = interval_ms * i64::from(self.id) / i64::from(self.log.partitions());
        now_ms + interval_ms - (now_ms - slot_ms).rem_euclid(interval_ms)
    }

    fn committed(&mut self, result: Result<(), everlog_log::Error>, now_ms: i64) -> Result<(), Error> {
        match result {
            Ok(()) => self.refused_commits.ends(self.id),
            Err(error @ everlog_log::Error::Full { .. }) => {
                self.refused_commits.begins(self.id, &error);
                self.not_committed(now_ms);
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
        self.committing_events = Vec::new();
        let applied = self.committing.take().unwrap_or_default();
        self.runs.store().committed(None).map_err(Error::from)?;
        self.runs.evict();
        self.stats.commits.fetch_add(1, Ordering::Relaxed);
        self.stats.committed_offset.store(applied, Ordering::Relaxed);
        let below = applied.saturating_sub(self.config.journal_keep_records);
        if below > self.trimmed_to() + self.config.journal_keep_records / 2 {
            self.trim(below);
        }
        Ok(())
    }

    /// The log had no room for the outputs: they join those that come, and are committed later. The journal has it all.
    fn not_committed(&mut self, now_ms: i64) {
        self.committing = None;
        self.runs.store().commit_failed();
        let later = std::mem::take(&mut self.events);
        self.events = std::mem::take(&mut self.committing_events);
        self.events.extend(later);
        self.changed = true;
        self.next_commit_ms = now_ms + HOLD_MS;
    }

    fn next_turn_ms(&self, now_ms: i64) -> Option<i64> {
        let mut next_ms = self.serving.then_some(self.next_sweep_ms);
        if self.changed && self.committing.is_none() {
            next_ms = Some(next_ms.map_or(self.next_commit_ms, |next_ms| next_ms.min(self.next_commit_ms)));
        }
        if !self.pending.is_empty() && self.hold_until_ms > now_ms {
            next_ms = Some(next_ms.map_or(self.hold_until_ms, |next_ms| next_ms.min(self.hold_until_ms)));
        }
        if let (true, Some(due_ms)) = (self.serving, self.due.next_ms()) {
            next_ms = Some(next_ms.map_or(due_ms, |next_ms| next_ms.min(due_ms)));
        }
        next_ms.map(|next_ms| next_ms.max(now_ms))
    }

    pub(crate) fn next_query_id(&mut self) -> String {
        self.query_serial += 1;
        format!("{}-{}-{}", self.id, self.position.term, self.query_serial)
    }
}

pub(crate) fn run_key(run: &everlog_engine::Run) -> RunKey {
    WorkflowKey::new(&run.start.namespace_id, &run.start.workflow_id).run(&run.start.run_id)
}

pub(crate) fn input(address: &Address, order: Order) -> Input {
    Input {
        namespace_id: address.namespace_id.clone(),
        workflow_id: address.workflow_id.clone(),
        run_id: address.run_id.clone(),
        order: Some(order),
    }
}
