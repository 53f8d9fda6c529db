//! The public commands, read by a member of a consumer group: committed records only, each partition from a given offset.
//!
//! A partition that cannot be read on is reported as a value; no offset is ever reset.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use everlog_log::consumer::{Assigned, ConsumedTopic, Fetched, Polled, SourceError};
use everlog_log::{Error, Offset, PartitionId};
use parking_lot::Mutex;

use crate::commands::member::Member;
use crate::errors::io_text;
use crate::options::Options;

/// Records of one poll.
const TAKEN_RECORDS_MAX: usize = 1_000;
/// Bytes of one poll; one record is always returned.
const TAKEN_BYTES_MAX: usize = 2 << 20;
/// Records and bytes that wait to be polled. Beyond, every partition is paused until half of them are taken.
const WAITING_RECORDS_MAX: usize = 20_000;
const WAITING_BYTES_MAX: usize = 16 << 20;
/// How long a dropped source waits to leave its group; after that the group's session timeout removes the member.
const CLOSE_WITHIN: Duration = Duration::from_secs(10);

/// An event that waits to be polled.
#[derive(Debug)]
pub(crate) enum SourceEvent {
    Record(Fetched),
    Assigned(Vec<(Assigned, u64)>),
    Revoked(Vec<PartitionId>),
    Failed(SourceError),
}

/// A partition that the group has given to this member.
#[derive(Debug, Default)]
pub(crate) struct AssignedPartition {
    /// The number of the assignment: calls for an earlier one are ignored.
    pub(crate) assignment: u64,
    /// The next offset, once it is read.
    pub(crate) next: Option<Offset>,
    pub(crate) is_paused: bool,
    /// It delivers nothing more.
    pub(crate) has_failed: bool,
    /// Everything before this offset is done.
    pub(crate) done: Offset,
    /// The end of the partition, as last known.
    pub(crate) end: Offset,
}

/// Shared by the poller and the member's thread.
#[derive(Debug, Default)]
pub(crate) struct SourceState {
    events: VecDeque<SourceEvent>,
    records: usize,
    bytes: usize,
    waker: Option<Waker>,
    assignments: u64,
    pub(crate) places: BTreeMap<PartitionId, AssignedPartition>,
    /// Assigned, and not looked at yet.
    pub(crate) fresh: Vec<PartitionId>,
    /// Assignments that the poller knows, by partition.
    known: BTreeMap<PartitionId, u64>,
    /// To be read from these offsets on.
    pub(crate) begins: BTreeMap<PartitionId, Offset>,
    /// To be committed.
    pub(crate) commits: BTreeMap<PartitionId, Offset>,
    /// Too much waits.
    pub(crate) is_resting: bool,
}

impl SourceState {
    /// The group gives partitions.
    pub(crate) fn assign(&mut self, partitions: &[PartitionId]) {
        for partition in partitions {
            self.assignments += 1;
            let place = AssignedPartition { assignment: self.assignments, ..AssignedPartition::default() };
            self.places.insert(*partition, place);
            self.fresh.push(*partition);
        }
    }

    /// The group takes partitions back: those that are being read, and what of them was to be committed.
    pub(crate) fn revoke(
        &mut self,
        partitions: &[PartitionId],
    ) -> (Vec<PartitionId>, Vec<(PartitionId, Offset)>) {
        let (mut read, mut commits) = (Vec::new(), Vec::new());
        for partition in partitions {
            let place = self.places.remove(partition);
            read.extend(place.and_then(|place| place.next).map(|_| *partition));
            commits.extend(self.commits.remove_entry(partition));
            self.begins.remove(partition);
        }
        self.fresh.retain(|partition| !partitions.contains(partition));
        let (mut records, mut bytes) = (0, 0);
        self.events.retain(|event| match event {
            SourceEvent::Record(fetched) if partitions.contains(&fetched.partition) => {
                records += 1;
                bytes += fetched.size_bytes();
                false
            }
            SourceEvent::Record(_)
            | SourceEvent::Assigned(_)
            | SourceEvent::Revoked(_)
            | SourceEvent::Failed(_) => true,
        });
        self.records -= records;
        self.bytes -= bytes;
        self.push(SourceEvent::Revoked(partitions.to_vec()));
        (read, commits)
    }

    /// Adds an event and returns the waker of the poller.
    #[must_use = "whoever waits must be woken"]
    pub(crate) fn add(&mut self, event: SourceEvent) -> Option<Waker> {
        self.push(event);
        self.waker.take()
    }

    fn push(&mut self, event: SourceEvent) {
        match &event {
            SourceEvent::Record(fetched) => {
                self.records += 1;
                self.bytes += fetched.size_bytes();
            }
            // The same trouble over and over is one.
            SourceEvent::Failed(error @ SourceError::Passing(_)) => {
                if matches!(self.events.back(), Some(SourceEvent::Failed(last)) if last == error) {
                    return;
                }
            }
            SourceEvent::Assigned(_) | SourceEvent::Revoked(_) | SourceEvent::Failed(_) => {}
        }
        self.events.push_back(event);
    }

    pub(crate) fn wake(&mut self) -> Option<Waker> {
        self.waker.take()
    }

    /// True where fetching must rest from now on.
    pub(crate) fn rests(&mut self) -> bool {
        let is_full = self.records >= WAITING_RECORDS_MAX || self.bytes >= WAITING_BYTES_MAX;
        is_full && !std::mem::replace(&mut self.is_resting, true)
    }

    /// True where it may go on.
    fn goes_on(&mut self) -> bool {
        let has_room = self.records <= WAITING_RECORDS_MAX / 2 && self.bytes <= WAITING_BYTES_MAX / 2;
        has_room && std::mem::replace(&mut self.is_resting, false)
    }

    fn take(&mut self) -> Option<Result<Polled, SourceError>> {
        let event = match self.events.pop_front()? {
            SourceEvent::Record(first) => return Some(Ok(Polled::Records(self.records(first)))),
            other => other,
        };
        Some(match event {
            SourceEvent::Record(fetched) => Ok(Polled::Records(vec![fetched])),
            SourceEvent::Assigned(assigned) => {
                let told = assigned.into_iter().map(|(assigned, assignment)| {
                    self.known.insert(assigned.partition, assignment);
                    assigned
                });
                Ok(Polled::Assigned(told.collect()))
            }
            SourceEvent::Revoked(partitions) => {
                self.known.retain(|partition, _| !partitions.contains(partition));
                Ok(Polled::Revoked(partitions))
            }
            SourceEvent::Failed(error) => Err(error),
        })
    }

    /// The records that wait one after the other, within bounds.
    fn records(&mut self, first: Fetched) -> Vec<Fetched> {
        let mut bytes = first.size_bytes();
        let mut taken = vec![first];
        while let Some(SourceEvent::Record(next)) = self.events.front() {
            if taken.len() >= TAKEN_RECORDS_MAX || bytes + next.size_bytes() > TAKEN_BYTES_MAX {
                break;
            }
            let Some(SourceEvent::Record(next)) = self.events.pop_front() else { break };
            bytes += next.size_bytes();
            taken.push(next);
        }
        self.records -= taken.len();
        self.bytes -= bytes;
        taken
    }

    /// The partition of a call, if the poller knows its present assignment.
    fn place(&mut self, partition: PartitionId) -> Option<&mut AssignedPartition> {
        let known = self.known.get(&partition)?;
        self.places.get_mut(&partition).filter(|place| place.assignment == *known)
    }
}

/// A member of the group `<prefix>ingress`, which reads the topic `<prefix>commands`. One for each process.
///
/// Dropping it commits what is to be committed and leaves the group; that may take seconds.
#[derive(Debug)]
pub struct CommandsSource {
    topic: ConsumedTopic,
    // The thread ends when it has the member alone, and takes it along; then the end is waited for.
    member: Arc<Member>,
    _end: End,
}

/// Waits for the end of the thread when it is dropped.
#[derive(Debug)]
struct End(Receiver<()>);

impl CommandsSource {
    /// Joins the group. Asks the brokers for the topic: it may take as long as `call_timeout_ms`.
    ///
    /// # Errors
    /// `Refused`: there is no such topic, or the settings are wrong; `Io`: no broker answers.
    pub fn open(options: &Options) -> Result<Self, Error> {
        options.validate()?;
        let member = Arc::new(Member::join(options)?);
        let topic = member.topic.clone();
        let (ended, closed) = sync_channel(1);
        let serving = Arc::clone(&member);
        let thread = std::thread::Builder::new().name("commands".into()).spawn(move || {
            serving.serve();
            // Nobody listens any more where the end took too long.
            let _ = ended.send(());
        });
        thread.map_err(|error| io_text(format!("a thread: {error}")))?;
        Ok(CommandsSource { topic, member, _end: End(closed) })
    }

    /// The topic.
    pub fn topic(&self) -> &ConsumedTopic {
        &self.topic
    }

    /// What comes next, or nothing yet: then the latest waker is woken when there is something. Never blocks.
    ///
    /// # Errors
    /// [`SourceError`]; each is said once.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Polled, SourceError>> {
        let mut state = self.member.state();
        let Some(polled) = state.take() else {
            state.waker = Some(context.waker().clone());
            return Poll::Pending;
        };
        if state.goes_on() {
            self.member.steer_all(&mut state);
        }
        Poll::Ready(polled)
    }

    /// Reads a partition that was assigned, from this offset on.
    pub fn begin(&mut self, partition: PartitionId, offset: Offset) {
        let mut state = self.member.state();
        if state.place(partition).is_some_and(|place| place.next.is_none() && !place.has_failed) {
            state.begins.insert(partition, offset);
        }
    }

    /// Brings no more records of a partition until it is resumed, save those that are on their way.
    pub fn pause(&mut self, partition: PartitionId) {
        self.set_paused(partition, true);
    }

    /// Brings records of a partition again.
    pub fn resume(&mut self, partition: PartitionId) {
        self.set_paused(partition, false);
    }

    fn set_paused(&mut self, partition: PartitionId, is_paused: bool) {
        let mut state = self.member.state();
        let Some(place) = state.place(partition) else { return };
        if std::mem::replace(&mut place.is_paused, is_paused) != is_paused {
            self.member.steer(&mut state, partition);
        }
    }

    /// All before this offset is done with; the topic's id goes along. Commits go out together, ten times a second; a
    /// later one makes up for one that fails.
    pub fn commit(&mut self, partition: PartitionId, next: Offset) {
        let mut state = self.member.state();
        if let Some(place) = state.place(partition) {
            place.done = next;
            state.commits.insert(partition, next);
        }
    }

    /// How far the reading is behind, for as long as this is there.
    pub fn lag(&self) -> Lag {
        Lag(Arc::downgrade(self.member.shared()))
    }
}

/// The lag of the reading of the commands. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Lag(Weak<Mutex<SourceState>>);

impl Lag {
    /// Offsets of each partition of this member, up to its last known end, that are not done. The end of a transaction has an
    /// offset too. Empty once the member is gone.
    pub fn by_partition(&self) -> BTreeMap<PartitionId, u64> {
        let Some(state) = self.0.upgrade() else { return BTreeMap::new() };
        let state = state.lock();
        let behind = |(partition, place): (&PartitionId, &AssignedPartition)| {
            (*partition, place.end.saturating_sub(place.done))
        };
        state.places.iter().map(behind).collect()
    }
}

impl Drop for End {
    fn drop(&mut self) {
        // Beyond, the thread ends by itself.
        let _ = self.0.recv_timeout(CLOSE_WITHIN);
    }
}
