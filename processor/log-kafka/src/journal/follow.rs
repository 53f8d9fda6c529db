//! Follows journals: one consumer for all, one bounded queue for each.

use std::collections::{BTreeMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use everlog_log::{Error, Offset, PartitionId, Record, Tail, Wake};
use parking_lot::Mutex;
use rdkafka::Message;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::BorrowedMessage;
use rdkafka::topic_partition_list::TopicPartitionList;

use crate::client::consumer::{Follows, Leaders, NextMessage, follower, next, place};
use crate::client::librdkafka::Live;
use crate::client::statistics::Meter;
use crate::errors::{corrupt, io, io_text};
use crate::group_context::GroupContext;
use crate::journal::read::record_of;
use crate::options::Isolation;

/// Bytes that wait in one queue. Beyond, its partition is paused until half are taken.
const QUEUE_BYTES_MAX: usize = 8 << 20;
/// Memory of a waiting record besides its bytes.
const RECORD_BYTES: usize = 64;
/// How often the thread checks whether it was stopped.
const POLL: Duration = Duration::from_millis(50);
/// Pause after records were handed over, so that a fetch carries several: a fetch a record would cost the brokers as much
/// as the append. The first record after a silence is handed over at once.
const REST: Duration = Duration::from_millis(5);

struct FollowQueue {
    records: VecDeque<Record>,
    bytes: usize,
    next: Offset,
    /// The follower has been given nothing: it wants to be woken.
    hungry: bool,
    resting: bool,
    failed: Option<Error>,
}

struct Follower {
    partition: PartitionId,
    queue: Mutex<FollowQueue>,
    /// Held while its partition is stopped or let go on.
    turn: Mutex<()>,
    wake: Wake,
}

struct Shared {
    topic: String,
    consumer: Live<BaseConsumer<Follows>>,
    followers: Mutex<BTreeMap<PartitionId, Arc<Follower>>>,
    context: Arc<GroupContext>,
    closing: AtomicBool,
}

/// All followers of journals.
pub(crate) struct Tails {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Tails {
    pub(crate) fn open(context: &Arc<GroupContext>) -> Result<Self, Error> {
        let options = &context.options;
        let shared = Arc::new(Shared {
            topic: options.topic("journal"),
            consumer: follower(options, Meter::new(&context.counters.traffic))?,
            followers: Mutex::default(),
            context: Arc::clone(context),
            closing: AtomicBool::new(false),
        });
        let serving = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("journal-tail".into()).spawn(move || {
            // A panic must not let followers wait for ever; its hook has reported it.
            if std::panic::catch_unwind(AssertUnwindSafe(|| serving.serve())).is_err() {
                serving.closing.store(true, Ordering::Release);
                serving.close();
            }
        });
        let thread = thread.map_err(|error| io_text(format!("a thread: {error}")))?;
        Ok(Tails { shared, thread: Some(thread) })
    }

    /// Follows a journal; an earlier follower of it gets `Closed`.
    pub(crate) fn follow(
        &self,
        partition: PartitionId,
        from: Offset,
        wake: Wake,
    ) -> Result<Box<dyn Tail>, Error> {
        let shared = &self.shared;
        let range = shared.context.ends.range(&shared.topic, partition as i32, Isolation::Uncommitted)?;
        if from < range.start || from > range.end {
            return Err(Error::OutOfRange { partition, wanted: from, start: range.start, end: range.end });
        }
        let queue = FollowQueue {
            records: VecDeque::new(),
            bytes: 0,
            next: from,
            hungry: false,
            resting: false,
            failed: None,
        };
        let follower =
            Arc::new(Follower { partition, queue: Mutex::new(queue), turn: Mutex::default(), wake });
        // The assignment changes under the lock, so that two followers of one partition cannot cross.
        let mut followers = shared.followers.lock();
        if shared.closing.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        if let Some(former) = followers.remove(&partition) {
            shared.unassign(partition)?;
            former.fail(Error::Closed);
        }
        let list = place(&shared.topic, partition as i32, from)?;
        if followers.is_empty() {
            // It reads nothing now.
            Leaders::default().know(&shared.consumer, &shared.topic);
        }
        let what = || format!("following {}-{partition}", shared.topic);
        shared.consumer.incremental_assign(&list).map_err(|error| io(&what(), &error))?;
        followers.insert(partition, Arc::clone(&follower));
        drop(followers);
        Ok(Box::new(Following { shared: Arc::clone(shared), follower }))
    }
}

impl Drop for Tails {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported by its own hook; there is nobody left to tell.
            let _ = thread.join();
        }
        self.shared.close();
    }
}

impl Shared {
    fn close(&self) {
        for (_, follower) in std::mem::take(&mut *self.followers.lock()) {
            follower.fail(Error::Closed);
        }
    }

    fn serve(&self) {
        let mut within = POLL;
        while !self.closing.load(Ordering::Acquire) {
            let brought = within.is_zero();
            match next(&self.consumer, &self.topic, "following the journals", within) {
                Ok(NextMessage::Message(message)) => {
                    self.bring(&message);
                    within = Duration::ZERO;
                }
                Ok(NextMessage::End) => {}
                Ok(NextMessage::Nothing) if brought => {
                    std::thread::sleep(REST);
                    within = POLL;
                }
                Ok(NextMessage::Nothing) => {}
                Err(error) => self.find_fault(&error),
            }
        }
    }

    fn bring(&self, message: &BorrowedMessage<'_>) {
        let Ok(partition) = PartitionId::try_from(message.partition()) else { return };
        let Some(follower) = self.followers.lock().get(&partition).cloned() else { return };
        if follower.push(&self.topic, record_of(message), self.trimmed(partition)) {
            self.steer(&follower);
        }
    }

    /// An error of the consumer names no partition: it goes to the followers outside of their journal, and to all followers
    /// where there is none.
    fn find_fault(&self, error: &Error) {
        let followers: Vec<_> = self.followers.lock().values().cloned().collect();
        let mut found = false;
        for follower in &followers {
            let partition = follower.partition;
            let at = follower.queue.lock().next;
            let range = self.context.ends.range(&self.topic, partition as i32, Isolation::Uncommitted);
            let outside = match range {
                Ok(range) if at >= range.start && at <= range.end => continue,
                Ok(range) if at < range.start && range.start <= self.trimmed(partition) => {
                    found = true;
                    self.skip_to(follower, range.start);
                    continue;
                }
                Ok(range) => Error::OutOfRange { partition, wanted: at, start: range.start, end: range.end },
                Err(error) => error,
            };
            found = true;
            follower.fail(outside);
        }
        if !found {
            for follower in &followers {
                follower.fail(error.clone());
            }
        }
    }

    /// Below it this log itself has deleted what was applied and committed.
    fn trimmed(&self, partition: PartitionId) -> Offset {
        self.context.table.of(partition).trimmed
    }

    /// What was deleted was the owner's own, and applied when it was acknowledged: the follower came too late for it.
    fn skip_to(&self, follower: &Arc<Follower>, start: Offset) {
        let followers = self.followers.lock();
        let partition = follower.partition;
        if !followers.get(&partition).is_some_and(|current| Arc::ptr_eq(current, follower)) {
            return;
        }
        {
            let mut queue = follower.queue.lock();
            queue.next = start.max(queue.next);
        }
        let assigned = self.unassign(partition).and_then(|()| {
            let list = place(&self.topic, partition as i32, start)?;
            self.consumer.incremental_assign(&list).map_err(|error| self.trouble(partition, &error))
        });
        if let Err(error) = assigned {
            follower.fail(error);
        }
    }

    /// Stops fetching a partition or goes on, as its queue says now. What was fetched and not handed over is fetched
    /// again.
    fn steer(&self, follower: &Follower) {
        let _turn = follower.turn.lock();
        let resting = follower.queue.lock().resting;
        let mut list = TopicPartitionList::new();
        list.add_partition(&self.topic, follower.partition as i32);
        let outcome = if resting { self.consumer.pause(&list) } else { self.consumer.resume(&list) };
        if let Err(error) = outcome {
            // Without its resumption it would wait for ever.
            follower.fail(self.trouble(follower.partition, &error));
        }
    }

    fn trouble(&self, partition: PartitionId, error: &KafkaError) -> Error {
        io(&format!("following {}-{partition}", self.topic), error)
    }

    fn unassign(&self, partition: PartitionId) -> Result<(), Error> {
        let mut list = TopicPartitionList::new();
        list.add_partition(&self.topic, partition as i32);
        self.consumer.incremental_unassign(&list).map_err(|error| self.trouble(partition, &error))
    }
}

impl Follower {
    /// True if the queue is full and the partition must rest. `trimmed`: what is missing below was applied.
    fn push(&self, topic: &str, record: Record, trimmed: Offset) -> bool {
        let (wake, full) = {
            let mut queue = self.queue.lock();
            if queue.failed.is_some() || record.offset < queue.next {
                return false;
            }
            if record.offset == queue.next || record.offset <= trimmed {
                queue.next = record.offset;
                queue.next += 1;
                queue.bytes += record.bytes.len() + RECORD_BYTES;
                queue.records.push_back(record);
            } else {
                // A gap is never skipped: records were deleted that are not applied yet.
                let detail = format!("record {} follows {}", record.offset, queue.next);
                queue.failed = Some(corrupt(topic, self.partition as i32, detail));
            }
            let full = queue.bytes > QUEUE_BYTES_MAX && !queue.resting;
            queue.resting |= full;
            (std::mem::take(&mut queue.hungry), full)
        };
        if wake {
            self.call();
        }
        full
    }

    fn fail(&self, error: Error) {
        self.queue.lock().failed.get_or_insert(error);
        self.call();
    }

    /// A follower's panic must not end the others.
    fn call(&self) {
        let _ = std::panic::catch_unwind(AssertUnwindSafe(|| (self.wake)()));
    }
}

/// One follower's end of its queue.
struct Following {
    shared: Arc<Shared>,
    follower: Arc<Follower>,
}

impl Tail for Following {
    fn take(&mut self, bytes_max: usize) -> Result<Vec<Record>, Error> {
        let (records, resume) = {
            let mut queue = self.follower.queue.lock();
            let mut records: Vec<Record> = Vec::new();
            let mut bytes = 0;
            while let Some(record) = queue.records.front() {
                if !records.is_empty() && bytes + record.bytes.len() > bytes_max {
                    break;
                }
                bytes += record.bytes.len();
                queue.bytes -= record.bytes.len() + RECORD_BYTES;
                records.extend(queue.records.pop_front());
            }
            if let (true, Some(error)) = (records.is_empty(), &queue.failed) {
                return Err(error.clone());
            }
            queue.hungry = records.is_empty();
            let resume = queue.resting && queue.bytes < QUEUE_BYTES_MAX / 2;
            queue.resting &= !resume;
            (records, resume)
        };
        if resume {
            self.shared.steer(&self.follower);
        }
        Ok(records)
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let mut followers = self.shared.followers.lock();
        let partition = self.follower.partition;
        if followers.get(&partition).is_some_and(|current| Arc::ptr_eq(current, &self.follower)) {
            followers.remove(&partition);
            // If it fails, what still comes is dropped for want of a follower.
            let _ = self.shared.unassign(partition);
        }
    }
}
