//! The partitions that one thread owns: at work, or about to be taken over again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use everlog_log::Log;
use everlog_partition::{Config, Dispatcher, Error, Event, Former, Partition, RowsFault, Stats};
use everlog_store::{Base, Store};

use crate::driver::Post;
use crate::home::Home;

/// The rest before a partition is taken over again; it doubles each time.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// A partition at work.
type Owned = Partition<dyn Log, Box<dyn Base>>;

/// Is told which partition cannot go on, and why.
pub type Failed = dyn Fn(u32, &Error) + Send + Sync;

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
}

/// What an error of a partition asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// The rows kept beside the log are of no use: new ones come from it.
    Spoiled(RowsFault),
    /// It may pass: take the partition over again in a while.
    Passing,
    /// The node cannot go on.
    Final,
}

impl Verdict {
    fn of(error: &Error, remote: bool) -> Self {
        use everlog_log::Error as Log;
        match error {
            _ if !remote => Self::Final,
            Error::Stale { fault, .. } => Self::Spoiled(*fault),
            Error::Store(everlog_store::Error::Corrupt { .. }) => Self::Spoiled(RowsFault::Corrupt),
            Error::Log(Log::Unknown { .. } | Log::Busy { .. } | Log::Full { .. } | Log::Io { .. }) => {
                Self::Passing
            }
            Error::Log(_)
            | Error::Store(_)
            | Error::Wire(_)
            | Error::Superseded { .. }
            | Error::Journal { .. } => Self::Final,
        }
    }
}

impl Takeover {
    /// A life of its own: what the log reports to an earlier one must not reach it.
    fn live(&self, place: &Place) -> Result<(Owned, u64), Error> {
        let id = place.id;
        let life = self.lives.fetch_add(1, Ordering::Relaxed) + 1;
        let instance = [&self.start[..], &life.to_be_bytes()].concat();
        let config = Config { instance: instance.into(), ..self.partition.clone() };
        let post = Arc::clone(&self.post);
        let send: everlog_partition::Send =
            Arc::new(move |to, event| post.send(to, event.is_report().then_some(life), event));
        let store = Store::new(self.home.rows(id)?);
        let dispatcher = Arc::clone(&self.dispatcher);
        let (log, stats) = (self.home.log(), Arc::clone(&place.stats));
        let partition = match place.applied {
            None => Partition::recover(id, log, store, dispatcher, send, config, stats)?,
            Some(applied) => {
                let former = Former { process: self.start.to_vec().into(), applied };
                Partition::resume(&former, id, log, store, dispatcher, send, config, stats)?
            }
        };
        Ok((partition, life))
    }
}

enum State {
    Works(Box<Owned>, u64),
    /// Until then.
    Rests(Instant),
    /// Whoever is told of it ends the node.
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
    /// The rows were set aside, and the partition has not served since.
    spoiled: bool,
}

/// All of them.
pub struct Share {
    places: Vec<Place>,
    takeover: Arc<Takeover>,
    failed: Arc<Failed>,
}

impl Share {
    /// Takes the partitions over; where that fails for a while only, it is tried again later.
    ///
    /// # Errors
    /// A partition cannot be recovered.
    pub fn start(
        partitions: Vec<(u32, Arc<Stats>)>,
        takeover: Arc<Takeover>,
        failed: Arc<Failed>,
    ) -> Result<Self, Error> {
        let place = |(id, stats)| Place {
            id,
            stats,
            state: State::Rests(Instant::now()),
            pause: PAUSE_MIN,
            applied: None,
            spoiled: false,
        };
        let mut share = Share { places: partitions.into_iter().map(place).collect(), takeover, failed };
        for index in 0..share.places.len() {
            share.take_over(index)?;
        }
        Ok(share)
    }

    /// The first partition, for a message.
    pub fn first(&self) -> u32 {
        self.places.first().map_or(0, |place| place.id)
    }

    /// Brings an event to its partition. A report for an earlier life of it, or a partition that is away, takes none:
    /// whoever waits for an answer is told so at once.
    pub fn handle(&mut self, id: u32, life: Option<u64>, event: Event, now_ms: i64) {
        let Some(index) = self.places.iter().position(|place| place.id == id) else { return };
        let State::Works(partition, current) = &mut self.places[index].state else { return };
        if life.is_some_and(|life| life != *current) {
            return;
        }
        if let Err(error) = partition.handle(event, now_ms) {
            self.stumble(index, &error);
        }
    }

    /// The clock that turns take their time from was set forward by so much, or back.
    pub fn clock_was_set(&mut self, by_ms: i64) {
        for place in &mut self.places {
            if let State::Works(partition, _) = &mut place.state {
                partition.clock_was_set(by_ms);
            }
        }
    }

    /// Lets every partition do what is due, and takes one over again if its rest is over. Returns when the next turn
    /// is due.
    pub fn turn(&mut self, now_ms: i64) -> Option<i64> {
        let mut next_ms: Option<i64> = None;
        let mut may_take_over = !self.takeover.stopping.load(Ordering::Relaxed);
        for index in 0..self.places.len() {
            let turn_ms = match &mut self.places[index].state {
                State::Works(partition, _) => match partition.turn(now_ms) {
                    Ok(turn_ms) => {
                        self.is_well(index);
                        turn_ms
                    }
                    Err(error) => {
                        self.stumble(index, &error);
                        Some(now_ms)
                    }
                },
                State::Rests(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    // The thread lives, though the partition does not.
                    self.places[index].stats.turns.fetch_add(1, Ordering::Relaxed);
                    if left.is_zero() && std::mem::take(&mut may_take_over) {
                        if let Err(error) = self.take_over(index) {
                            self.give_up(index, &error);
                        }
                        Some(now_ms)
                    } else {
                        // Another was just taken over, which may have taken long: the others come first.
                        Some(now_ms + i64::try_from(left.as_millis()).unwrap_or(i64::MAX))
                    }
                }
                State::Gone => None,
            };
            next_ms = next_ms.into_iter().chain(turn_ms).min();
        }
        next_ms
    }

    /// Nothing is on its way and nothing waits for a commit.
    pub fn is_idle(&self) -> bool {
        self.places.iter().all(|place| match &place.state {
            State::Works(partition, _) => partition.is_idle(),
            State::Rests(_) | State::Gone => true,
        })
    }

    /// Begins the last commits.
    pub fn hurry(&mut self) {
        for place in &mut self.places {
            if let State::Works(partition, _) = &mut place.state {
                partition.hurry();
            }
        }
    }

    fn is_well(&mut self, index: usize) {
        let place = &mut self.places[index];
        let State::Works(partition, _) = &place.state else { return };
        if partition.is_serving() && (place.spoiled || place.pause > PAUSE_MIN) {
            (place.spoiled, place.pause) = (false, PAUSE_MIN);
            tracing::info!(partition = place.id, "the partition serves again");
        }
    }

    /// A partition could not go on: it is dropped, which tells everybody who waits for it, and may come back.
    fn stumble(&mut self, index: usize, error: &Error) {
        let place = &mut self.places[index];
        place.stats.serving.store(0, Ordering::Relaxed);
        if let State::Works(partition, _) = std::mem::replace(&mut place.state, State::Gone) {
            place.applied = Some(partition.applied());
        }
        if !self.may_come_back(index, error) {
            self.give_up(index, error);
        }
    }

    /// Tries once, and once more with new rows.
    fn take_over(&mut self, index: usize) -> Result<(), Error> {
        loop {
            let place = &mut self.places[index];
            match self.takeover.live(place) {
                Ok((partition, life)) => {
                    place.state = State::Works(Box::new(partition), life);
                    return Ok(());
                }
                Err(error) => {
                    let was_spoiled = place.spoiled;
                    if !self.may_come_back(index, &error) {
                        return Err(error);
                    }
                    if was_spoiled == self.places[index].spoiled {
                        return Ok(());
                    }
                }
            }
        }
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
                tracing::warn!(
                    partition = place.id, %error, pause_ms = place.pause.as_millis(),
                    "the partition is taken over again in a while"
                );
                place.state = State::Rests(Instant::now() + place.pause);
                place.pause = (place.pause * 2).min(PAUSE_MAX);
                true
            }
            Verdict::Spoiled(_) | Verdict::Final => false,
        }
    }

    fn give_up(&mut self, index: usize, error: &Error) {
        self.places[index].state = State::Gone;
        (self.failed)(self.places[index].id, error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_remote_log_may_get_over_is_tried_again() {
        use everlog_log::Error as Log;
        let detail = || "no broker".to_owned();
        let fault = RowsFault::Ahead;
        let stale = || Error::Stale { partition: 0, fault, detail: detail() };
        for passing in [Log::Unknown { detail: detail() }, Log::Io { detail: detail() }] {
            let error = Error::Log(passing);
            assert_eq!(Verdict::of(&error, true), Verdict::Passing, "{error}");
            assert_eq!(Verdict::of(&error, false), Verdict::Final, "{error}");
        }
        assert_eq!(Verdict::of(&stale(), true), Verdict::Spoiled(fault));
        assert_eq!(Verdict::of(&stale(), false), Verdict::Final);
        for last in [
            Error::Superseded { partition: 0, node: "other".into() },
            Error::Log(Log::Closed),
            Error::Store(everlog_store::Error::Io { detail: detail() }),
            Error::Journal { partition: 0, detail: detail() },
        ] {
            assert_eq!(Verdict::of(&last, true), Verdict::Final, "{last}");
        }
    }
}
