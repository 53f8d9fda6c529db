//! The partitions that one thread drives: absent, on their way here, at work, or about to be taken over again.
//!
//! A partition is recovered on a thread of its own (`arrivals.rs`): those at work are not kept waiting.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use everlog_cluster::RemotePartitions;
use everlog_log::{Log, Outage};
use everlog_partition::{Config, Dispatcher, Error, Event, Failure, Former, Partition, Stats, Waiting};
use everlog_store::{Base, Store};

use crate::error_policy::{End, Verdict};
use crate::partitions::recovery_pool::Arrivals;
use crate::partitions::threads::Post;
use crate::storage::log_backend::Home;

/// The rest before a partition is taken over again; it doubles each time.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// How long a partition that leaves may take to commit what it has applied.
const LEAVE_WITHIN: Duration = Duration::from_millis(1_500);
/// How often one is looked at that leaves.
const LOOK_AT_LEAVING_MS: i64 = 5;

/// A partition at work.
pub type Owned = Partition<dyn Log, Box<dyn Base>>;

/// Is told that partitions are at work, or which one cannot be, and why.
pub type Taken = std::sync::mpsc::Sender<Result<(), (u32, End, Error)>>;

/// Is told which partition cannot go on, what becomes of it, and why.
pub type Failed = dyn Fn(u32, End, &Error) + Send + Sync;

/// What it takes to take a partition over.
pub struct Takeover {
    /// The log and the rows.
    pub home: Home,
    /// What partitions keep to; their instances are made here.
    pub partition: Config,
    /// Where tasks wait for workers.
    pub dispatcher: Arc<Dispatcher>,
    /// The way to the partitions.
    pub post: Arc<Post>,
    /// Random, of this start of the node.
    pub start: [u8; 16],
    /// How often a partition was taken over since.
    pub lives: AtomicU64,
    /// No partition is taken over any more.
    pub stopping: AtomicBool,
    /// Where partitions are that are not here.
    pub elsewhere: OnceLock<Arc<dyn RemotePartitions>>,
    /// The threads that recover them.
    pub arrivals: Arrivals,
    /// Whether rows can be brought before partitions.
    pub unprepared: Mutex<Outage>,
}

impl Takeover {
    /// A life of its own: what the log reports to an earlier one must not reach it. `applied`: how far the latest life
    /// had come that could not go on.
    pub fn live(&self, id: u32, stats: Arc<Stats>, applied: Option<u64>) -> Result<(Box<Owned>, u64), Error> {
        let life = self.lives.fetch_add(1, Ordering::Relaxed) + 1;
        let instance = [&self.start[..], &life.to_be_bytes()].concat();
        let level = self.elsewhere.get().map_or(self.partition.level, |elsewhere| elsewhere.level());
        let config = Config { instance: instance.into(), level, ..self.partition.clone() };
        let post = Arc::clone(&self.post);
        let send: everlog_partition::Send =
            Arc::new(move |to, event| post.send(to, event.is_report().then_some(life), event));
        let store = Store::new(self.home.rows(id)?);
        let dispatcher = Arc::clone(&self.dispatcher);
        let log = self.home.log();
        let partition = match applied {
            None => Partition::recover(id, log, store, dispatcher, send, config, stats)?,
            Some(applied) => {
                let former = Former { process: self.start.to_vec().into(), applied };
                Partition::resume(&former, id, log, store, dispatcher, send, config, stats)?
            }
        };
        Ok((Box::new(partition), life))
    }
}

impl Takeover {
    /// True for an error that goes by itself: brokers that do not answer.
    pub fn may_pass(&self, error: &Error) -> bool {
        Verdict::of(error, self.home.is_remote()) == Verdict::Passing
    }

    /// A partition that has rested is taken over again, see [`Takeover::live`], unless it was placed elsewhere meanwhile: what keeps
    /// a node from the brokers keeps news from it as well, and others serve what it would break off.
    pub fn live_again(
        &self,
        id: u32,
        stats: Arc<Stats>,
        applied: Option<u64>,
    ) -> Result<(Box<Owned>, u64), Error> {
        if let Some(elsewhere) = self.elsewhere.get()
            && let Some(node) = elsewhere.moved_to(id)?
        {
            return Err(Error::Superseded { partition: id, node });
        }
        self.live(id, stats, applied)
    }

    /// A poll waits on that was to get something of a partition which is not at work.
    fn poll_again(&self, waiting: Waiting) {
        let post = Arc::clone(&self.post);
        let send: everlog_partition::Send = Arc::new(move |to, event| post.send(to, None, event));
        self.dispatcher.poll_again(waiting, &send);
    }

    /// Brings the rows of a partition that another node has as far as they can be: once more with new ones where the old
    /// are of no use. They stay open for who takes the partition over.
    ///
    /// # Errors
    /// Why not: taking the partition over would most likely fail alike, so whoever has it should keep it.
    pub fn prepare(&self, id: u32, stats: &Stats) -> Result<(), Error> {
        let log = self.home.log();
        let prepare = || {
            let rows = self.home.rows(id)?;
            Partition::<dyn Log, Box<dyn Base>>::prepare(
                id,
                &*log,
                &rows,
                stats,
                everlog_log::clock::now_ms(),
            )?;
            self.home.keep_rows_open(id, rows);
            Ok(())
        };
        match prepare() {
            Err(error) => match Verdict::of(&error, self.home.is_remote()) {
                Verdict::Spoiled(fault) => {
                    self.home.set_rows_aside(id, fault, &error.to_string())?;
                    prepare()
                }
                Verdict::Passing | Verdict::Final => Err(error),
            },
            prepared => prepared,
        }
    }
}

enum State {
    /// Another node has it, or nobody.
    Absent,
    /// It is being recovered.
    Comes,
    Works(Box<Owned>, u64),
    /// It takes nothing more, and goes when all is committed, or then.
    Leaves(Box<Owned>, u64, Instant),
    /// Until then.
    Rests(Instant),
    /// It cannot go on: whoever is told of it ends the node, or has it taken over again some time.
    Gone,
}

/// One partition of the share.
struct Place {
    id: u32,
    stats: Arc<Stats>,
    state: State,
    pause: Duration,
    /// How far the latest life of the partition had come that could not go on.
    applied: Option<u64>,
    /// Whether it can go on.
    outage: Outage,
    /// The rows were set aside, and nothing has passed since that may have left the new ones unfinished.
    spoiled: bool,
    /// Waits until it is at work.
    taken: Vec<Taken>,
    /// Waits until it is gone; dropped then.
    left: Vec<std::sync::mpsc::Sender<()>>,
    /// It came here to leave again.
    unwanted: bool,
}

impl Place {
    fn new((id, stats): (u32, Arc<Stats>)) -> Self {
        Self {
            id,
            stats,
            state: State::Absent,
            pause: PAUSE_MIN,
            applied: None,
            outage: Outage::default(),
            spoiled: false,
            taken: Vec::new(),
            left: Vec::new(),
            unwanted: false,
        }
    }

    fn partition(&mut self) -> Option<(&mut Owned, u64)> {
        match &mut self.state {
            State::Works(partition, life) | State::Leaves(partition, life, _) => Some((partition, *life)),
            State::Absent | State::Comes | State::Rests(_) | State::Gone => None,
        }
    }

    /// Its present life ends. Returns what has to reach whoever has it next.
    fn abandon(&mut self) -> Vec<Event> {
        match std::mem::replace(&mut self.state, State::Gone) {
            State::Works(partition, _) | State::Leaves(partition, ..) => {
                self.applied = Some(partition.applied());
                partition.abandon()
            }
            State::Absent | State::Comes | State::Rests(_) | State::Gone => Vec::new(),
        }
    }

    /// It is not here any more, and whoever waits for that hears of it.
    fn is_gone(&mut self) {
        self.stats.serving.store(0, Ordering::Relaxed);
        self.stats.is_wanted.store(0, Ordering::Relaxed);
        self.stats.closed.store(0, Ordering::Relaxed);
        (self.state, self.applied, self.unwanted) = (State::Absent, None, false);
        self.left.clear();
    }
}

/// All of them.
pub struct Share {
    places: Vec<Place>,
    takeover: Arc<Takeover>,
    failed: Arc<Failed>,
}

impl Share {
    /// None of them is here yet.
    pub fn new(partitions: Vec<(u32, Arc<Stats>)>, takeover: Arc<Takeover>, failed: Arc<Failed>) -> Self {
        Self { places: partitions.into_iter().map(Place::new).collect(), takeover, failed }
    }

    /// The first partition, for a message.
    pub fn first(&self) -> u32 {
        self.places.first().map_or(0, |place| place.id)
    }

    fn index(&self, id: u32) -> Option<usize> {
        self.places.iter().position(|place| place.id == id)
    }

    /// Begins to take a partition over; `taken` hears when it is at work or rests, or why it cannot be.
    pub fn take(&mut self, id: u32, taken: Taken) {
        let Some(index) = self.index(id) else { return };
        let place = &mut self.places[index];
        place.stats.is_wanted.store(1, Ordering::Relaxed);
        place.unwanted = false;
        match place.state {
            State::Works(..) | State::Rests(_) => drop(taken.send(Ok(()))),
            State::Comes => place.taken.push(taken),
            State::Leaves(..) | State::Absent | State::Gone => {
                // One that leaves is dropped: its next life is told the same by the log.
                let lost = place.abandon();
                place.is_gone();
                place.stats.is_wanted.store(1, Ordering::Relaxed);
                place.taken.push(taken);
                self.begin(index);
                self.pass_on(id, lost);
            }
        }
    }

    /// Lets go of a partition: what it has taken is answered and committed first. `left` is dropped when it is gone.
    pub fn leave(&mut self, id: u32, left: std::sync::mpsc::Sender<()>) {
        let Some(index) = self.index(id) else { return };
        let place = &mut self.places[index];
        match std::mem::replace(&mut place.state, State::Absent) {
            State::Works(mut partition, life) => {
                partition.hurry();
                place.left.push(left);
                place.state = State::Leaves(partition, life, Instant::now() + LEAVE_WITHIN);
            }
            State::Leaves(partition, life, until) => {
                place.left.push(left);
                place.state = State::Leaves(partition, life, until);
            }
            State::Comes => {
                place.left.push(left);
                (place.state, place.unwanted) = (State::Comes, true);
            }
            State::Absent | State::Rests(_) | State::Gone => self.is_gone(index),
        }
    }

    /// A partition is recovered, or is not.
    pub fn arrived(&mut self, id: u32, recovered: Result<(Box<Owned>, u64), Error>) {
        let Some(index) = self.index(id) else { return };
        let place = &mut self.places[index];
        if place.unwanted {
            place.taken.clear();
            return self.is_gone(index);
        }
        match recovered {
            Ok((partition, life)) => {
                place.state = State::Works(partition, life);
                self.tell_taken(index);
            }
            Err(error) if self.may_come_back(index, &error) => {
                if let State::Rests(until) = self.places[index].state
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
        for taken in self.places[index].taken.drain(..) {
            // Whoever asked may have gone on.
            let _ = taken.send(Ok(()));
        }
    }

    fn begin(&mut self, index: usize) {
        let place = &mut self.places[index];
        let has_rested = matches!(place.state, State::Rests(_));
        place.state = State::Comes;
        place.stats.closed.store(0, Ordering::Relaxed);
        self.takeover.arrivals.recover(&self.takeover, place.id, &place.stats, place.applied, has_rested);
    }

    /// Brings an event to its partition. A report for an earlier life of it reaches nobody; what is for a partition that
    /// is not here goes where it is, and of one that is about to be here whoever waits is told so at once.
    pub fn handle(&mut self, id: u32, life: Option<u64>, event: Event, now_ms: i64) {
        let Some(index) = self.index(id) else { return };
        let is_asked_for = !event.is_report()
            && !matches!(
                event,
                Event::Nudge | Event::Release { .. } | Event::LettersTaken { .. } | Event::LettersLost { .. }
            );
        let place = &mut self.places[index];
        match &mut place.state {
            State::Works(partition, current) | State::Leaves(partition, current, _)
                if life.is_some_and(|life| life != *current) =>
            {
                drop((partition, event));
            }
            State::Works(partition, _) => {
                if let Err(error) = partition.handle(event, now_ms) {
                    self.stumble(index, error);
                }
            }
            State::Leaves(partition, ..) if !is_asked_for => {
                if let Err(error) = partition.handle(event, now_ms) {
                    self.stumble(index, error);
                }
            }
            State::Absent | State::Leaves(..) => match self.takeover.elsewhere.get() {
                Some(elsewhere) if !event.is_report() => elsewhere.bring(id, event),
                Some(_) | None => {}
            },
            State::Comes | State::Rests(_) | State::Gone => match event {
                Event::Release { .. } | Event::PollsLost { .. } => self.pass_on(id, [event]),
                // Its next life offers its tasks again.
                Event::Claim { waiting, .. } | Event::HandQuery { waiting, .. } => {
                    self.takeover.poll_again(waiting);
                }
                _asked if matches!(place.state, State::Gone) => {}
                event if matches!(place.state, State::Comes) => event.refuse(Failure::Moved),
                _unanswered => {}
            },
        }
    }

    /// The clock that turns take their time from was set forward by so much, or back.
    pub fn clock_was_set(&mut self, by_ms: i64) {
        for place in &mut self.places {
            if let Some((partition, _)) = place.partition() {
                partition.clock_was_set(by_ms);
            }
        }
    }

    /// Lets every partition do what is due, and takes one over again if its rest is over. Returns when the next turn
    /// is due.
    pub fn turn(&mut self, now_ms: i64) -> Option<i64> {
        let mut next_ms: Option<i64> = None;
        let may_take_over = !self.takeover.stopping.load(Ordering::Relaxed);
        for index in 0..self.places.len() {
            let place = &mut self.places[index];
            let turn_ms = match &mut place.state {
                State::Works(partition, _) => match partition.turn(now_ms) {
                    Ok(turn_ms) => {
                        self.is_well(index);
                        turn_ms
                    }
                    Err(error) => {
                        self.stumble(index, error);
                        Some(now_ms)
                    }
                },
                State::Leaves(partition, _, until) => match partition.turn(now_ms) {
                    Ok(_) if partition.is_idle() || Instant::now() >= *until => {
                        self.is_gone(index);
                        None
                    }
                    Ok(turn_ms) => Some(turn_ms.unwrap_or(i64::MAX).min(now_ms + LOOK_AT_LEAVING_MS)),
                    Err(error) => {
                        tracing::debug!(partition = place.id, %error, "a partition that leaves has stumbled");
                        self.is_gone(index);
                        None
                    }
                },
                State::Rests(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    // The thread lives, though the partition does not.
                    place.stats.turns.fetch_add(1, Ordering::Relaxed);
                    if left.is_zero() && may_take_over {
                        self.begin(index);
                        None
                    } else {
                        Some(now_ms + i64::try_from(left.as_millis()).unwrap_or(i64::MAX))
                    }
                }
                State::Absent | State::Comes | State::Gone => {
                    place.stats.turns.fetch_add(1, Ordering::Relaxed);
                    None
                }
            };
            next_ms = next_ms.into_iter().chain(turn_ms).min();
        }
        next_ms
    }

    /// Nothing is on its way and nothing waits for a commit.
    pub fn is_idle(&mut self) -> bool {
        self.places.iter_mut().all(|place| place.partition().is_none_or(|(partition, _)| partition.is_idle()))
    }

    /// Begins the last commits.
    pub fn hurry(&mut self) {
        for place in &mut self.places {
            if let Some((partition, _)) = place.partition() {
                partition.hurry();
            }
        }
    }

    /// A partition is not here any more; whoever has it hears of tasks that reached nobody.
    fn is_gone(&mut self, index: usize) {
        let place = &mut self.places[index];
        let (id, lost) = (place.id, place.abandon());
        place.is_gone();
        self.pass_on(id, lost);
    }

    /// Tells whoever serves the partition next, here or elsewhere, what has reached nobody.
    fn pass_on(&self, id: u32, lost: impl IntoIterator<Item = Event>) {
        if let Some(elsewhere) = self.takeover.elsewhere.get() {
            lost.into_iter().for_each(|event| elsewhere.bring(id, event));
        }
    }

    fn is_well(&mut self, index: usize) {
        let place = &mut self.places[index];
        let State::Works(partition, _) = &place.state else { return };
        if partition.is_serving() && (place.spoiled || place.pause > PAUSE_MIN) {
            (place.spoiled, place.pause) = (false, PAUSE_MIN);
            let after_s = place.outage.works(Instant::now()).map(|lasted| lasted.as_secs());
            tracing::info!(partition = place.id, after_s, "the partition serves again");
        }
    }

    /// A partition could not go on: it is dropped, which tells everybody who waits for it, and may come back.
    fn stumble(&mut self, index: usize, error: Error) {
        let place = &mut self.places[index];
        place.stats.serving.store(0, Ordering::Relaxed);
        if matches!(place.state, State::Leaves(..)) {
            return self.is_gone(index);
        }
        let (id, lost) = (place.id, place.abandon());
        if !self.may_come_back(index, &error) {
            self.give_up(index, error);
        }
        self.pass_on(id, lost);
    }

    /// False where the error is final; else the partition rests.
    fn may_come_back(&mut self, index: usize, error: &Error) -> bool {
        let home = &self.takeover.home;
        let place = &mut self.places[index];
        match Verdict::of(error, home.is_remote()) {
            Verdict::Spoiled(fault) if !place.spoiled => {
                place.spoiled = true;
                if let Err(error) = home.set_rows_aside(place.id, fault, &error.to_string()) {
                    tracing::error!(partition = place.id, %error, "the rows cannot be set aside");
                    return false;
                }
                place.state = State::Rests(Instant::now());
                true
            }
            Verdict::Passing => {
                if let Some(lasts) = place.outage.fails(Instant::now()) {
                    tracing::warn!(
                        partition = place.id, %error, for_s = lasts.as_secs(),
                        "the partition is taken over again in a while"
                    );
                }
                place.state = State::Rests(Instant::now() + place.pause);
                place.pause = (place.pause * 2).min(PAUSE_MAX);
                // Where it broke off a restore its rows are unfinished, and new ones come again.
                place.spoiled = false;
                true
            }
            Verdict::Spoiled(_) | Verdict::Final => false,
        }
    }

    fn give_up(&mut self, index: usize, error: Error) {
        let end = End::of(&error, self.takeover.home.is_remote());
        let place = &mut self.places[index];
        place.state = State::Gone;
        // One that is closed is tried again, and its rows are not to blame.
        place.spoiled = end == End::Closed;
        place.stats.closed.store(u64::from(end == End::Closed), Ordering::Relaxed);
        (self.failed)(place.id, end, &error);
        place.left.clear();
        let mut waiting = place.taken.drain(..);
        // The first one hears why; the others that it is not.
        if let Some(taken) = waiting.next() {
            let _ = taken.send(Err((place.id, end, error)));
        }
    }
}
