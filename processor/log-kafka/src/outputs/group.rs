//! A partition group: one thread and one transactional producer for the commits of its partitions.
//!
//! Waiting commits share one transaction. After an unknown outcome the producer is dropped, and a partition commits
//! nothing more until it is fenced again.

pub(crate) mod ending;
pub(crate) mod fencing;

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use everlog_log::{Commit, CommitDone, Error, Fence, Offset, Output, PartitionId, Topic};

use crate::client::settings::ClientSettings;
use crate::errors::{io_text, unknown};
use crate::group_context::GroupContext;
use crate::outputs::fence_table::FenceStatus;
use crate::outputs::transaction::{Connected, OutputRecord, Reached, TransactionLost, Transactions};
use crate::record_format::{self, PositionRow};
use crate::stats::add;

/// Jobs that may wait.
const JOBS_MAX: usize = 1_024;
/// Bytes after which a transaction takes no further commit.
const TRANSACTION_BYTES_MAX: usize = 64 << 20;
/// How often an idle producer is polled.
const IDLE: Duration = Duration::from_millis(200);
/// How often an idle group looks for missing ends of its transactions, and how often a busy one does.
const LOOK_FOR_ENDS_EVERY: Duration = Duration::from_secs(2);
const LOOK_FOR_ENDS_MEANWHILE_EVERY: Duration = Duration::from_secs(10);
/// How long the first commit waits for those of the other partitions, which come at about the same moment. No caller waits
/// for a transaction.
const GATHER: Duration = Duration::from_millis(5);
/// How long a producer is kept for an announced fence.
const EXPECTED_WITHIN: Duration = Duration::from_secs(30);
/// How long a successor may take from its producer epoch to its first fence row, and how often that row is looked for.
const SUCCESSOR_WITHIN: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Bytes of an output besides key and value.
const OUTPUT_BYTES: usize = 64;

/// Receives the fence of a partition.
type Fenced = SyncSender<Result<Fence, Error>>;

enum GroupJob {
    Commit(Commit, usize, CommitDone),
    Fence(PartitionId, Fenced),
    /// A fence is about to come.
    Expect,
    /// Nobody commits here for now.
    Rest,
    Close,
}

/// A group, seen from outside its thread.
pub(crate) struct PartitionGroup {
    jobs: SyncSender<GroupJob>,
    waiting_bytes: Arc<AtomicUsize>,
    waiting_bytes_max: usize,
    timeout: Duration,
    thread: Option<JoinHandle<()>>,
}

impl PartitionGroup {
    pub(crate) fn open(
        number: u32,
        partitions: std::ops::Range<PartitionId>,
        context: Arc<GroupContext>,
    ) -> Result<Self, Error> {
        let (jobs, received) = sync_channel(JOBS_MAX);
        let waiting_bytes = Arc::new(AtomicUsize::new(0));
        let options = &context.options;
        let (waiting_bytes_max, timeout) = (options.waiting_bytes_max, options.call_timeout() * 4);
        let worker = GroupWorker {
            id: options.transactional_id(number),
            config: options.transactional_producer(number),
            pause: Duration::from_millis(options.commit_pause_ms),
            partitions,
            context,
            transactions: None,
            connected: None,
            drawn: Vec::new(),
            ended: None,
            seen: ending::EndsSeen::default(),
            waiting_bytes: Arc::clone(&waiting_bytes),
            backlog: VecDeque::new(),
        };
        let thread = std::thread::Builder::new().name(format!("outputs-{number}"));
        let thread = thread.spawn(move || worker.serve(&received));
        let thread = Some(thread.map_err(|error| io_text(format!("a thread: {error}")))?);
        Ok(PartitionGroup { jobs, waiting_bytes, waiting_bytes_max, timeout, thread })
    }

    /// Queues a commit; never blocks.
    pub(crate) fn commit(&self, commit: Commit, done: CommitDone) {
        let size_bytes = size_of(&commit);
        let waiting_bytes = self.waiting_bytes.fetch_add(size_bytes, Ordering::AcqRel);
        // A commit larger than the bound goes when nothing else waits.
        let full = waiting_bytes > 0 && waiting_bytes + size_bytes > self.waiting_bytes_max;
        let job = GroupJob::Commit(commit, size_bytes, done);
        let refused = if full { Err(TrySendError::Full(job)) } else { self.jobs.try_send(job) };
        let (job, error) = match refused {
            Ok(()) => return,
            Err(TrySendError::Full(job)) => (job, Error::Busy { waiting_items: JOBS_MAX, waiting_bytes }),
            Err(TrySendError::Disconnected(job)) => (job, Error::Closed),
        };
        self.waiting_bytes.fetch_sub(size_bytes, Ordering::AcqRel);
        if let GroupJob::Commit(_, _, done) = job {
            answer(done, Err(error));
        }
    }

    pub(crate) fn fence(&self, partition: PartitionId) -> Result<Fence, Error> {
        let (answer, answered) = sync_channel(1);
        self.jobs.send(GroupJob::Fence(partition, answer)).map_err(|_| Error::Closed)?;
        match answered.recv_timeout(self.timeout) {
            Ok(outcome) => outcome,
            Err(RecvTimeoutError::Timeout) => Err(io_text("taking a partition over took too long")),
            Err(RecvTimeoutError::Disconnected) => Err(Error::Closed),
        }
    }
}

impl PartitionGroup {
    /// A fence is about to come: what can be done before is done.
    pub(crate) fn expect(&self) {
        // A thread that has ended fences nothing.
        let _ = self.jobs.send(GroupJob::Expect);
    }

    /// The partitions are given up: no producer is kept for them.
    pub(crate) fn rest(&self) {
        // A thread that has ended keeps nothing either.
        let _ = self.jobs.send(GroupJob::Rest);
    }
}

impl Drop for PartitionGroup {
    fn drop(&mut self) {
        // Commits that wait go first.
        let _ = self.jobs.send(GroupJob::Close);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported by its own hook; there is nobody left to tell.
            let _ = thread.join();
        }
    }
}

struct GroupWorker {
    /// The transactional id.
    id: String,
    config: ClientSettings,
    pause: Duration,
    partitions: std::ops::Range<PartitionId>,
    context: Arc<GroupContext>,
    transactions: Option<Transactions>,
    /// A producer for the next fence, and when it was made.
    connected: Option<(Connected, Instant)>,
    /// The fence numbers that were drawn for this producer, in their order.
    drawn: Vec<u64>,
    /// When the last transaction ended.
    ended: Option<Instant>,
    seen: ending::EndsSeen,
    waiting_bytes: Arc<AtomicUsize>,
    backlog: VecDeque<GroupJob>,
}

impl GroupWorker {
    fn serve(mut self, jobs: &Receiver<GroupJob>) {
        loop {
            let job = match self.backlog.pop_front() {
                Some(job) => job,
                None => match jobs.recv_timeout(IDLE) {
                    Ok(job) => job,
                    Err(RecvTimeoutError::Timeout) => {
                        self.idle();
                        continue;
                    }
                    Err(RecvTimeoutError::Disconnected) => return,
                },
            };
            match job {
                GroupJob::Commit(commit, size_bytes, done) => {
                    self.rest();
                    let commits = self.gather(jobs, (commit, size_bytes, done));
                    self.commit(commits);
                    self.look_for_ends(LOOK_FOR_ENDS_MEANWHILE_EVERY);
                }
                GroupJob::Fence(partition, answer) => {
                    let wanted = self.gather_fences(jobs, (partition, answer));
                    self.fence(wanted);
                }
                GroupJob::Expect => self.connect(),
                GroupJob::Rest => {
                    self.seen.leave(self.partitions.clone());
                    self.give_up(TransactionLost::Unknown("the partitions were given up".into()));
                }
                GroupJob::Close => return,
            }
        }
    }

    /// Serves what clients have to say while nothing is to be done.
    fn idle(&mut self) {
        self.transactions.iter().for_each(Transactions::idle);
        self.look_for_ends(LOOK_FOR_ENDS_EVERY);
        self.connected.take_if(|(_, made)| made.elapsed() > EXPECTED_WITHIN);
        self.connected.iter().for_each(|(connected, _)| connected.idle());
    }

    /// Waits before a transaction begins: the coordinator refuses it until the markers of the previous one are written, and the
    /// client then waits for longer.
    fn rest(&self) {
        if let Some(left) = self.ended.and_then(|ended| self.pause.checked_sub(ended.elapsed())) {
            std::thread::sleep(left);
        }
    }

    /// Commits that wait, or come in a moment, go along, up to the next job of another kind.
    fn gather(
        &mut self,
        jobs: &Receiver<GroupJob>,
        first: (Commit, usize, CommitDone),
    ) -> Vec<(Commit, CommitDone)> {
        let mut bytes = first.1;
        let mut commits = vec![(first.0, first.2)];
        let deadline = Instant::now() + GATHER;
        while bytes < TRANSACTION_BYTES_MAX {
            let left = if commits.len() < self.partitions.len() { deadline } else { Instant::now() };
            let left = left.saturating_duration_since(Instant::now());
            let Some(job) = self.backlog.pop_front().or_else(|| jobs.recv_timeout(left).ok()) else { break };
            match job {
                GroupJob::Commit(commit, size_bytes, done) => {
                    bytes += size_bytes;
                    commits.push((commit, done));
                }
                other @ (GroupJob::Fence(..) | GroupJob::Expect | GroupJob::Rest | GroupJob::Close) => {
                    self.backlog.push_front(other);
                    break;
                }
            }
        }
        self.waiting_bytes.fetch_sub(bytes, Ordering::AcqRel);
        commits
    }

    /// One transaction for all that may be committed.
    fn commit(&mut self, commits: Vec<(Commit, CommitDone)>) {
        let mut admitted: Vec<(Commit, u64, Vec<u8>, CommitDone)> = Vec::with_capacity(commits.len());
        for (commit, done) in commits {
            let before = admitted.iter().rev().find(|(other, ..)| other.partition == commit.partition);
            let before = before.map(|(other, number, ..)| (other.applied, *number));
            match self.admit(&commit, before) {
                Ok(number) => {
                    let position = PositionRow {
                        applied: commit.applied,
                        incarnation: self.context.incarnation,
                        fence: commit.fence,
                        row: commit.position.clone(),
                    };
                    admitted.push((commit, number, position.encode(), done));
                }
                Err(error) => {
                    add(&self.context.counters.fenced, u64::from(matches!(error, Error::Fenced { .. })));
                    answer(done, Err(error));
                }
            }
        }
        if admitted.is_empty() {
            return;
        }
        if self.is_spent() {
            self.give_up(TransactionLost::Unknown("an end of a transaction may come late".into()));
        }
        let Some(transactions) = &self.transactions else {
            for (.., done) in admitted {
                answer(done, Err(unknown("the group has no producer: take the partition over again")));
            }
            return;
        };
        let keys: Vec<_> =
            admitted.iter().map(|(commit, ..)| record_format::position_key(commit.partition)).collect();
        let records = admitted
            .iter()
            .zip(&keys)
            .flat_map(|((commit, number, position, _), key)| outgoing(commit, *number, position, key));
        let outcome = transactions.run(records, &self.context.counters);
        self.ended = Some(Instant::now());
        match outcome {
            Ok(reached) => self.committed(admitted, &reached),
            Err(lost) => self.uncommitted(admitted, lost),
        }
    }

    /// Whether a commit may go; gives its number under its fence.
    fn admit(&self, commit: &Commit, before: Option<(Offset, u64)>) -> Result<u64, Error> {
        let partition = commit.partition;
        let owned = self.context.table.of(partition).clone();
        owned.admit(partition, commit.fence)?;
        let (start, number) = before.unwrap_or((owned.position.map_or(0, |(at, _)| at), owned.commits));
        let wanted = commit.applied;
        let end = self.context.journal_end(partition, wanted)?;
        if wanted < start || wanted > end {
            return Err(Error::OutOfRange { partition, wanted, start, end });
        }
        Ok(number + 1)
    }

    fn committed(&mut self, admitted: Vec<(Commit, u64, Vec<u8>, CommitDone)>, reached: &Reached) {
        add(&self.context.counters.commits, admitted.len() as u64);
        self.reach(reached);
        for (commit, number, _, done) in admitted {
            {
                let mut owned = self.context.table.of(commit.partition);
                owned.commits = number;
                // What other nodes committed before is behind a fence, and was restored since.
                let owned = &mut *owned;
                for topic in Topic::all() {
                    owned.marks[topic] = owned.marks[topic].max(owned.reached[topic]);
                }
                owned.position = Some((commit.applied, commit.position));
            }
            answer(done, Ok(()));
        }
    }

    fn reach(&self, reached: &Reached) {
        for ((topic, partition), next) in reached {
            self.context.table.of(*partition).reached[*topic] = *next;
        }
    }

    fn uncommitted(&mut self, admitted: Vec<(Commit, u64, Vec<u8>, CommitDone)>, lost: TransactionLost) {
        let lost = self.give_up(lost);
        for (commit, _, _, done) in admitted {
            let partition = commit.partition;
            let error = match &lost {
                TransactionLost::Fenced(_) => {
                    add(&self.context.counters.fenced, 1);
                    Error::Fenced { partition, given: commit.fence, current: self.current_fence(partition) }
                }
                TransactionLost::Unknown(detail) => {
                    add(&self.context.counters.unknown, 1);
                    unknown(format!("partition {partition}: {detail}"))
                }
            };
            answer(done, Err(error));
        }
    }

    /// The newer owner's fence, as far as it can be seen; only for the message.
    fn current_fence(&self, partition: PartitionId) -> Fence {
        self.last_fence(partition).unwrap_or(Fence(u64::MAX))
    }

    /// That of the last fence row or of the last commit.
    fn last_fence(&self, partition: PartitionId) -> Option<Fence> {
        let last = self.context.committed.last(partition, 0).ok()?;
        last.fence.into_iter().chain(last.position.map(|position| position.fence)).max_by_key(|fence| fence.0)
    }

    /// Whether a newer producer epoch belongs to a successor, which writes fence rows at once. Without them the epoch is this
    /// worker's own: after a broken connection the client requests one again, and the first request may be answered late.
    fn judge(&self, lost: TransactionLost) -> TransactionLost {
        let TransactionLost::Fenced(detail) = lost else { return lost };
        let deadline = Instant::now() + SUCCESSOR_WITHIN;
        while Instant::now() < deadline {
            if self.partitions.clone().any(|partition| self.has_successor(partition)) {
                return TransactionLost::Fenced(detail);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        TransactionLost::Unknown(format!("{detail}; nobody has taken over"))
    }

    /// A successor draws its numbers behind the first of this producer.
    fn has_successor(&self, partition: PartitionId) -> bool {
        let (Some(first), Some(Fence(last))) = (self.drawn.first(), self.last_fence(partition)) else {
            return false;
        };
        last > *first && !self.drawn.contains(&last)
    }

    fn is_spent(&self) -> bool {
        self.transactions.as_ref().is_some_and(Transactions::is_spent)
    }

    /// Drops the producer, so that every partition here must be fenced again. Returns the actual cause of the loss.
    fn give_up(&mut self, lost: TransactionLost) -> TransactionLost {
        let lost = self.judge(lost);
        for partition in self.partitions.clone() {
            let mut owned = self.context.table.of(partition);
            owned.position = None;
            owned.standing = match (owned.standing, &lost) {
                (FenceStatus::Good, TransactionLost::Fenced(_)) => FenceStatus::Fenced,
                (FenceStatus::Good, TransactionLost::Unknown(_)) => FenceStatus::Doubtful,
                (other, _) => other,
            };
        }
        self.transactions = None;
        lost
    }
}

/// The records of a commit; the position row comes last.
fn outgoing<'a>(
    commit: &'a Commit,
    number: u64,
    position: &'a [u8],
    key: &'a [u8],
) -> impl Iterator<Item = OutputRecord<'a>> {
    let partition = commit.partition;
    let header =
        move |place: usize| record_format::header(commit.fence, number, commit.applied, place as u32);
    let outputs = commit.outputs.iter().enumerate().map(move |(place, output)| OutputRecord {
        topic: output.topic,
        partition,
        key: &output.key,
        value: output.value.as_deref(),
        header: header(place),
        headers: &output.headers,
    });
    let place = commit.outputs.len();
    let (value, header) = (Some(position), header(place));
    let position = OutputRecord { topic: Topic::Changelog, partition, key, value, header, headers: &[] };
    outputs.chain(std::iter::once(position))
}

fn size_of(commit: &Commit) -> usize {
    let outputs = commit.outputs.iter();
    let headers = |output: &Output| output.headers.iter().map(|(_, value)| value.len()).sum::<usize>();
    let outputs: usize = outputs
        .map(|output| {
            OUTPUT_BYTES + output.key.len() + output.value.as_ref().map_or(0, Bytes::len) + headers(output)
        })
        .sum();
    outputs + commit.position.len() + OUTPUT_BYTES
}

/// A caller's panic must not end the log for everyone else; its own hook has reported it.
fn answer(done: CommitDone, outcome: Result<(), Error>) {
    let _ = std::panic::catch_unwind(AssertUnwindSafe(move || done(outcome)));
}
