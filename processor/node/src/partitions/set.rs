//! The partitions that one thread owns, each in a slot with its state. Recovery runs in the `recovery_pool`, so that
//! active partitions do not wait.
//!
//! absent               --take-------->  recovering  --recovered-->  active
//! recovering, active   --may go away->  backing off --pause over->  recovering
//! recovering, active   --final error->  failed      --take------->  recovering
//! active               --leave------->  leaving     --committed-->  absent

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use everlog_cluster::RemotePartitions;
use everlog_log::{Backoff, Log, Outage};
use everlog_partition::{
    CallFailure, Config, Dispatcher, Error, InboxMessage, Partition, PreviousOwner, Stats, Waiting,
};
use everlog_store::{CommittedRows, Store};

use crate::error_policy::{ErrorPolicy, LossScope};
use crate::partitions::levels::LevelsInControl;
use crate::partitions::recovery_pool::RecoveryPool;
use crate::partitions::threads::PartitionSenders;
use crate::storage::log_backend::LogBackend;

/// The pause before a partition is taken over again.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));
/// How long a leaving partition may take to commit what it has applied.
const LEAVE_WITHIN: Duration = Duration::from_millis(1_500);
/// How often a leaving partition is looked at.
const LOOK_AT_LEAVING_MS: i64 = 5;

/// An active partition.
pub type ActivePartition = Partition<dyn Log, Box<dyn CommittedRows>>;

/// Gets a reply when a partition is active, or why it cannot be.
pub type TakeReply = std::sync::mpsc::Sender<Result<(), (u32, LossScope, Error)>>;

/// Called with a partition that failed, where it could still be served, and why.
pub type Failed = dyn Fn(u32, LossScope, &Error) + Send + Sync;

/// What the ownership of partitions needs.
pub struct OwnershipContext {
    /// The log and the rows.
    pub backend: LogBackend,
    /// The configuration of partitions; each incarnation gets an instance of its own.
    pub partition: Config,
    /// Where tasks wait for workers.
    pub dispatcher: Arc<Dispatcher>,
    /// Sends events to partitions.
    pub senders: Arc<PartitionSenders>,
    /// Random, one for each start of the node.
    pub start: [u8; 16],
    /// The number of the last incarnation of any partition.
    pub incarnations: AtomicU64,
    /// No partition is taken over any more.
    pub stopping: AtomicBool,
    /// Where events for partitions go that are not here.
    pub elsewhere: OnceLock<Arc<dyn RemotePartitions>>,
    /// The threads that recover partitions.
    pub recovery_pool: RecoveryPool,
    /// Whether rows can be restored before a take-over.
    pub unprepared: Mutex<Outage>,
}

impl OwnershipContext {
    /// Recovers a partition as a new incarnation, because reports of the log to an earlier one must not reach it.
    /// `applied`: how far the latest failed incarnation had come.
    pub fn recover(
        &self,
        id: u32,
        stats: Arc<Stats>,
        applied: Option<u64>,
    ) -> Result<(Box<ActivePartition>, u64), Error> {
        let incarnation = self.incarnations.fetch_add(1, Ordering::Relaxed) + 1;
        let instance = [&self.start[..], &incarnation.to_be_bytes()].concat();
        let mut config = Config { instance: instance.into(), ..self.partition.clone() };
        if let Some(elsewhere) = self.elsewhere.get() {
            config.levels = Arc::new(LevelsInControl(Arc::clone(elsewhere)));
        }
        let senders = Arc::clone(&self.senders);
        let send: everlog_partition::PartitionSender =
            Arc::new(move |to, event| senders.send(to, event.is_report().then_some(incarnation), event));
        let store = Store::new(self.backend.rows(id)?);
        let dispatcher = Arc::clone(&self.dispatcher);
        let log = self.backend.log();
        let partition = match applied {
            None => Partition::recover(id, log, store, dispatcher, send, config, stats)?,
            Some(applied) => {
                let former = PreviousOwner { process: self.start.to_vec().into(), applied };
                Partition::resume(&former, id, log, store, dispatcher, send, config, stats)?
            }
        };
        Ok((Box::new(partition), incarnation))
    }
}

impl OwnershipContext {
    /// True for an error that goes away by itself: brokers that do not answer.
    pub fn may_pass(&self, error: &Error) -> bool {
        ErrorPolicy::of(error, self.backend.is_remote()) == ErrorPolicy::Retry
    }

    /// Recovers a partition after a pause, see [`OwnershipContext::recover`], unless it is assigned to another node
    /// meanwhile. A node that does not reach the brokers misses the news, and would interrupt the other node.
    pub fn recover_again(
        &self,
        id: u32,
        stats: Arc<Stats>,
        applied: Option<u64>,
    ) -> Result<(Box<ActivePartition>, u64), Error> {
        if let Some(elsewhere) = self.elsewhere.get()
            && let Some(node) = elsewhere.moved_to(id)?
        {
            return Err(Error::Superseded { partition: id, node });
        }
        self.recover(id, stats, applied)
    }

    /// A poll waits on, because the partition that it wanted a task of is not active.
    fn poll_again(&self, waiting: Waiting) {
        let senders = Arc::clone(&self.senders);
        let send: everlog_partition::PartitionSender =
            Arc::new(move |to, event| senders.send(to, None, event));
        self.dispatcher.poll_again(waiting, &send);
    }

    /// Restores the rows of a partition that another node owns, as far as possible. Rows that are of no use are
    /// replaced once. They stay open for the take-over.
    ///
    /// # Errors
    /// A take-over would most likely fail for the same reason, so the owner should keep the partition.
    pub fn prepare(&self, id: u32, stats: &Stats) -> Result<(), Error> {
        let log = self.backend.log();
        let prepare = || {
            let rows = self.backend.rows(id)?;
            Partition::<dyn Log, Box<dyn CommittedRows>>::prepare(
                id,
                &*log,
                &rows,
                stats,
                everlog_log::clock::now_ms(),
            )?;
            self.backend.keep_rows_open(id, rows);
            Ok(())
        };
        match prepare() {
            Err(error) => match ErrorPolicy::of(&error, self.backend.is_remote()) {
                ErrorPolicy::ReplaceRows(fault) => {
                    self.backend.set_rows_aside(id, fault, &error.to_string())?;
                    prepare()
                }
                ErrorPolicy::Retry | ErrorPolicy::Fail => Err(error),
            },
            prepared => prepared,
        }
    }
}

enum State {
    /// Another node owns it, or none.
    Absent,
    /// The recovery pool has it.
    Recovering,
    Active(Box<ActivePartition>, u64),
    /// It accepts nothing more. It goes when all is committed, or at this time.
    Leaving(Box<ActivePartition>, u64, Instant),
    /// Until this time.
    BackingOff(Instant),
    /// It failed. The node ends, or takes it over again some time.
    Failed,
}

/// A partition of the set.
struct PartitionSlot {
    id: u32,
    stats: Arc<Stats>,
    state: State,
    backoff: Backoff,
    /// How far the latest failed incarnation had come.
    applied: Option<u64>,
    /// Whether it is in an outage.
    outage: Outage,
    /// The rows were replaced, and no restore of the new ones was interrupted since.
    spoiled: bool,
    /// Wait until it is active.
    taken: Vec<TakeReply>,
    /// Wait until it is gone; dropped then.
    left: Vec<std::sync::mpsc::Sender<()>>,
    /// It is to leave as soon as it is recovered.
    unwanted: bool,
}

impl PartitionSlot {
    fn new((id, stats): (u32, Arc<Stats>)) -> Self {
        Self {
            id,
            stats,
            state: State::Absent,
            backoff: BACKOFF,
            applied: None,
            outage: Outage::default(),
            spoiled: false,
            taken: Vec::new(),
            left: Vec::new(),
            unwanted: false,
        }
    }

    fn partition(&mut self) -> Option<(&mut ActivePartition, u64)> {
        match &mut self.state {
            State::Active(partition, incarnation) | State::Leaving(partition, incarnation, _) => {
                Some((partition, *incarnation))
            }
            State::Absent | State::Recovering | State::BackingOff(_) | State::Failed => None,
        }
    }

    /// Ends the incarnation. Returns the events that the next owner has to get.
    fn abandon(&mut self) -> Vec<InboxMessage> {
        match std::mem::replace(&mut self.state, State::Failed) {
            State::Active(partition, _) | State::Leaving(partition, ..) => {
                self.applied = Some(partition.applied());
                partition.abandon()
            }
            State::Absent | State::Recovering | State::BackingOff(_) | State::Failed => Vec::new(),
        }
    }

    /// The partition is gone from here; everybody who waits for that is told.
    fn set_absent(&mut self) {
        self.stats.serving.store(0, Ordering::Relaxed);
        self.stats.is_wanted.store(0, Ordering::Relaxed);
        self.stats.closed.store(0, Ordering::Relaxed);
        (self.state, self.applied, self.unwanted) = (State::Absent, None, false);
        self.left.clear();
    }
}

/// The partitions of one thread.
pub struct PartitionSet {
    slots: Vec<PartitionSlot>,
    context: Arc<OwnershipContext>,
    failed: Arc<Failed>,
}

impl PartitionSet {
    /// None of them is here.
    pub fn new(
        partitions: Vec<(u32, Arc<Stats>)>,
        context: Arc<OwnershipContext>,
        failed: Arc<Failed>,
    ) -> Self {
        Self { slots: partitions.into_iter().map(PartitionSlot::new).collect(), context, failed }
    }

    /// The first partition, for a message.
    pub fn first(&self) -> u32 {
        self.slots.first().map_or(0, |slot| slot.id)
    }

    fn index(&self, id: u32) -> Option<usize> {
        self.slots.iter().position(|slot| slot.id == id)
    }

    /// Begins to take a partition over. `taken` gets a reply when it is active or backs off, or why it cannot be.
    pub fn take(&mut self, id: u32, taken: TakeReply) {
        let Some(index) = self.index(id) else { return };
        let slot = &mut self.slots[index];
        slot.stats.is_wanted.store(1, Ordering::Relaxed);
        slot.unwanted = false;
        match slot.state {
            State::Active(..) | State::BackingOff(_) => drop(taken.send(Ok(()))),
            State::Recovering => slot.taken.push(taken),
            State::Leaving(..) | State::Absent | State::Failed => {
                // A leaving partition is dropped, because the log reports the same to its next incarnation.
                let lost = slot.abandon();
                slot.set_absent();
                slot.stats.is_wanted.store(1, Ordering::Relaxed);
                slot.taken.push(taken);
                self.begin(index);
                self.pass_on(id, lost);
            }
        }
    }

    /// Begins to release a partition. Its requests are replied to and committed first. `left` is dropped when it is
    /// gone.
    pub fn leave(&mut self, id: u32, left: std::sync::mpsc::Sender<()>) {
        let Some(index) = self.index(id) else { return };
        let slot = &mut self.slots[index];
        match std::mem::replace(&mut slot.state, State::Absent) {
            State::Active(mut partition, incarnation) => {
                partition.commit_soon();
                slot.left.push(left);
                slot.state = State::Leaving(partition, incarnation, Instant::now() + LEAVE_WITHIN);
            }
            State::Leaving(partition, incarnation, until) => {
                slot.left.push(left);
                slot.state = State::Leaving(partition, incarnation, until);
            }
            State::Recovering => {
                slot.left.push(left);
                (slot.state, slot.unwanted) = (State::Recovering, true);
            }
            State::Absent | State::BackingOff(_) | State::Failed => self.set_absent(index),
        }
    }

    /// The recovery of a partition has ended.
    pub fn arrived(&mut self, id: u32, recovered: Result<(Box<ActivePartition>, u64), Error>) {
        let Some(index) = self.index(id) else { return };
        let slot = &mut self.slots[index];
        if slot.unwanted {
            slot.taken.clear();
            return self.set_absent(index);
        }
        match recovered {
            Ok((partition, incarnation)) => {
                slot.state = State::Active(partition, incarnation);
                self.tell_taken(index);
            }
            Err(error) if self.may_come_back(index, &error) => {
                if let State::BackingOff(until) = self.slots[index].state
                    && until <= Instant::now()
                {
                    // With new rows, at once.
                    self.begin(index);
                } else {
                    self.tell_taken(index);
                }
            }
            Err(error) => self.give_up(index, error),
        }
    }

    fn tell_taken(&mut self, index: usize) {
        for taken in self.slots[index].taken.drain(..) {
            // The caller may be gone.
            let _ = taken.send(Ok(()));
        }
    }

    fn begin(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let has_rested = matches!(slot.state, State::BackingOff(_));
        slot.state = State::Recovering;
        slot.stats.closed.store(0, Ordering::Relaxed);
        self.context.recovery_pool.recover(&self.context, slot.id, &slot.stats, slot.applied, has_rested);
    }

    /// Sends an event to its partition. A report for an earlier incarnation is dropped. Events for an absent
    /// partition go to its owner. Requests to a recovering partition are refused at once.
    pub fn handle(&mut self, id: u32, incarnation: Option<u64>, event: InboxMessage, now_ms: i64) {
        let Some(index) = self.index(id) else { return };
        let is_asked_for = !event.is_report()
            && !matches!(
                event,
                InboxMessage::Nudge
                    | InboxMessage::Release { .. }
                    | InboxMessage::MessagesTaken { .. }
                    | InboxMessage::MessagesLost { .. }
            );
        let slot = &mut self.slots[index];
        match &mut slot.state {
            State::Active(partition, current) | State::Leaving(partition, current, _)
                if incarnation.is_some_and(|incarnation| incarnation != *current) =>
            {
                drop((partition, event));
            }
            State::Active(partition, _) => {
                if let Err(error) = partition.handle(event, now_ms) {
                    self.stumble(index, error);
                }
            }
            State::Leaving(partition, ..) if !is_asked_for => {
                if let Err(error) = partition.handle(event, now_ms) {
                    self.stumble(index, error);
                }
            }
            State::Absent | State::Leaving(..) => match self.context.elsewhere.get() {
                Some(elsewhere) if !event.is_report() => elsewhere.bring(id, event),
                Some(_) | None => {}
            },
            State::Recovering | State::BackingOff(_) | State::Failed => match event {
                InboxMessage::Release { .. } | InboxMessage::PollsLost { .. } => self.pass_on(id, [event]),
                // Its next incarnation offers its tasks again.
                InboxMessage::Claim { waiting, .. } | InboxMessage::HandQuery { waiting, .. } => {
                    self.context.poll_again(waiting);
                }
                _asked if matches!(slot.state, State::Failed) => {}
                event if matches!(slot.state, State::Recovering) => event.refuse(CallFailure::Moved),
                _unanswered => {}
            },
        }
    }

    /// The thread's clock was set by so much.
    pub fn clock_was_set(&mut self, by_ms: i64) {
        for slot in &mut self.slots {
            if let Some((partition, _)) = slot.partition() {
                partition.clock_was_set(by_ms);
            }
        }
    }

    /// Runs an iteration of each partition's loop, and recovers one whose pause is over. Returns when the next
    /// iteration is due.
    pub fn turn(&mut self, now_ms: i64) -> Option<i64> {
        let mut next_ms: Option<i64> = None;
        let may_take_over = !self.context.stopping.load(Ordering::Relaxed);
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            let turn_ms = match &mut slot.state {
                State::Active(partition, _) => match partition.turn(now_ms) {
                    Ok(turn_ms) => {
                        self.set_well(index);
                        turn_ms
                    }
                    Err(error) => {
                        self.stumble(index, error);
                        Some(now_ms)
                    }
                },
                State::Leaving(partition, _, until) => match partition.turn(now_ms) {
                    Ok(_) if partition.is_idle() || Instant::now() >= *until => {
                        self.set_absent(index);
                        None
                    }
                    Ok(turn_ms) => Some(turn_ms.unwrap_or(i64::MAX).min(now_ms + LOOK_AT_LEAVING_MS)),
                    Err(error) => {
                        tracing::debug!(partition = slot.id, %error, "leaving partition failed");
                        self.set_absent(index);
                        None
                    }
                },
                State::BackingOff(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    // The thread lives, although the partition does not.
                    slot.stats.turns.fetch_add(1, Ordering::Relaxed);
                    if left.is_zero() && may_take_over {
                        self.begin(index);
                        None
                    } else {
                        Some(now_ms + i64::try_from(left.as_millis()).unwrap_or(i64::MAX))
                    }
                }
                State::Absent | State::Recovering | State::Failed => {
                    slot.stats.turns.fetch_add(1, Ordering::Relaxed);
                    None
                }
            };
            next_ms = next_ms.into_iter().chain(turn_ms).min();
        }
        next_ms
    }

    /// Nothing is in progress and nothing waits for a commit.
    pub fn is_idle(&mut self) -> bool {
        self.slots.iter_mut().all(|slot| slot.partition().is_none_or(|(partition, _)| partition.is_idle()))
    }

    /// Begins the last commits.
    pub fn hurry(&mut self) {
        for slot in &mut self.slots {
            if let Some((partition, _)) = slot.partition() {
                partition.commit_soon();
            }
        }
    }

    /// A partition is gone from here. Its lost deliveries go to the next owner.
    fn set_absent(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let (id, lost) = (slot.id, slot.abandon());
        slot.set_absent();
        self.pass_on(id, lost);
    }

    /// Sends lost deliveries to the next owner, here or at another node.
    fn pass_on(&self, id: u32, lost: impl IntoIterator<Item = InboxMessage>) {
        if let Some(elsewhere) = self.context.elsewhere.get() {
            lost.into_iter().for_each(|event| elsewhere.bring(id, event));
        }
    }

    fn set_well(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let State::Active(partition, _) = &slot.state else { return };
        if partition.is_serving() && (slot.spoiled || !slot.backoff.is_reset()) {
            slot.spoiled = false;
            slot.backoff.reset();
            let after_s = slot.outage.works(Instant::now()).map(|lasted| lasted.as_secs());
            tracing::info!(partition = slot.id, after_s, "partition serves again");
        }
    }

    /// A partition failed: it is dropped, which refuses everything that waits for it, and may be recovered again.
    fn stumble(&mut self, index: usize, error: Error) {
        let slot = &mut self.slots[index];
        slot.stats.serving.store(0, Ordering::Relaxed);
        if matches!(slot.state, State::Leaving(..)) {
            return self.set_absent(index);
        }
        let (id, lost) = (slot.id, slot.abandon());
        if !self.may_come_back(index, &error) {
            self.give_up(index, error);
        }
        self.pass_on(id, lost);
    }

    /// False where the error is final; otherwise the partition backs off.
    fn may_come_back(&mut self, index: usize, error: &Error) -> bool {
        let backend = &self.context.backend;
        let slot = &mut self.slots[index];
        match ErrorPolicy::of(error, backend.is_remote()) {
            ErrorPolicy::ReplaceRows(fault) if !slot.spoiled => {
                slot.spoiled = true;
                if let Err(error) = backend.set_rows_aside(slot.id, fault, &error.to_string()) {
                    tracing::error!(partition = slot.id, %error, "rows not set aside");
                    return false;
                }
                slot.state = State::BackingOff(Instant::now());
                true
            }
            ErrorPolicy::Retry => {
                if let Some(lasts) = slot.outage.fails(Instant::now()) {
                    tracing::warn!(
                        partition = slot.id, %error, for_s = lasts.as_secs(),
                        "partition backs off"
                    );
                }
                slot.state = State::BackingOff(Instant::now() + slot.backoff.failed());
                // An interrupted restore leaves unfinished rows, and new ones are restored again.
                slot.spoiled = false;
                true
            }
            ErrorPolicy::ReplaceRows(_) | ErrorPolicy::Fail => false,
        }
    }

    fn give_up(&mut self, index: usize, error: Error) {
        let end = LossScope::of(&error, self.context.backend.is_remote());
        let slot = &mut self.slots[index];
        slot.state = State::Failed;
        // A closed partition is tried again later, and its rows are not the cause.
        slot.spoiled = end == LossScope::Closed;
        slot.stats.closed.store(u64::from(end == LossScope::Closed), Ordering::Relaxed);
        (self.failed)(slot.id, end, &error);
        slot.left.clear();
        let mut waiting = slot.taken.drain(..);
        // The first one gets the reason, the others only that it failed.
        if let Some(taken) = waiting.next() {
            let _ = taken.send(Err((slot.id, end, error)));
        }
    }
}
