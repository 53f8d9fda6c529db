//! Messages between nodes, besides forwarded calls. Tags are part of the protocol between releases.

use std::num::NonZeroU64;
use std::sync::Arc;

use bytes::Bytes;
use everlog_engine::request::RequestRecord;
use everlog_partition::{
    KeptBack, Offer, Poll, QueueKey, Ready, RunKey, STRIDE, TaskKind, TaskPriority, TaskRef,
};
use prost::{Message, Oneof};

/// A queue.
#[derive(Clone, PartialEq, Message)]
pub struct QueueWire {
    #[prost(string, tag = "1")]
    namespace_id: String,
    #[prost(string, tag = "2")]
    name: String,
    /// The number of its [`TaskKind`].
    #[prost(uint32, tag = "3")]
    kind: u32,
}

/// A ready task, by reference.
#[derive(Clone, PartialEq, Message)]
pub struct TaskWire {
    #[prost(bytes = "bytes", tag = "1")]
    run: Bytes,
    #[prost(int64, tag = "2")]
    scheduled_event_id: i64,
    #[prost(int32, tag = "3")]
    attempt: i32,
    /// Its priority; 0 = the default.
    #[prost(uint32, tag = "4")]
    level: u32,
    #[prost(string, tag = "5")]
    fairness_key: String,
    /// In thousandths of that of weight 1; 0 = the default. For nodes of a release that does not know `fine_stride`.
    #[prost(uint32, tag = "6")]
    stride: u32,
    /// See [`TaskRef`].
    #[prost(uint64, optional, tag = "7")]
    term: Option<u64>,
    /// See [`TaskRef`].
    #[prost(int32, tag = "8")]
    stamp: i32,
    /// See [`TaskPriority`]; 0 = told by `stride`.
    #[prost(uint32, tag = "9")]
    fine_stride: u32,
}

/// Of `fine_stride` in one of `stride`.
const FINE_STRIDES: u32 = STRIDE / 1_000;

/// A ready task or query.
#[derive(Clone, PartialEq, Message)]
pub struct ReadyWire {
    #[prost(uint32, tag = "1")]
    partition: u32,
    #[prost(string, optional, tag = "2")]
    normal_queue: Option<String>,
    #[prost(oneof = "ReadyKind", tags = "3, 5")]
    what: Option<ReadyKind>,
}

/// What is ready.
#[derive(Clone, PartialEq, Oneof)]
pub enum ReadyKind {
    /// A task.
    #[prost(message, tag = "3")]
    Task(TaskWire),
    /// A query.
    #[prost(message, tag = "5")]
    Query(QueryWire),
}

/// A query and the run that it asks.
#[derive(Clone, PartialEq, Message)]
pub struct QueryWire {
    #[prost(string, tag = "1")]
    query_id: String,
    #[prost(bytes = "bytes", tag = "2")]
    run: Bytes,
}

/// A ready task or query, on its way to its queue's home.
#[derive(Clone, PartialEq, Message)]
pub struct OfferWire {
    #[prost(message, optional, tag = "1")]
    queue: Option<QueueWire>,
    #[prost(message, optional, tag = "2")]
    ready: Option<ReadyWire>,
}

/// Offers of one node.
#[derive(Clone, PartialEq, Message)]
pub struct Offers {
    /// In the order in which they became ready.
    #[prost(message, repeated, tag = "1")]
    pub offers: Vec<OfferWire>,
    /// The era by which their homes were chosen: see `OfferWindows::era`.
    #[prost(uint64, tag = "2")]
    pub era: u64,
    /// The node that offers them and gets the claims.
    #[prost(string, tag = "3")]
    pub node: String,
}

/// A claim: a poll at the home of its queue wants an offered task or query.
#[derive(Clone, PartialEq, Message)]
pub struct Claim {
    #[prost(message, optional, tag = "1")]
    ready: Option<ReadyWire>,
    #[prost(message, optional, tag = "2")]
    queue: Option<QueueWire>,
    #[prost(bool, tag = "3")]
    sticky: bool,
    #[prost(string, tag = "4")]
    identity: String,
    #[prost(string, tag = "5")]
    poll_id: String,
    #[prost(string, optional, tag = "6")]
    normal_queue: Option<String>,
}

/// The reply to a claim.
#[derive(Clone, PartialEq, Message)]
pub struct Claimed {
    /// The answer to the poll; none where the task or query is gone.
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub answer: Option<Bytes>,
    /// The id of the receipt; 0 = it needs none.
    #[prost(uint64, tag = "2")]
    pub receipt: u64,
}

/// Settles a receipt.
#[derive(Clone, PartialEq, Message)]
pub struct Received {
    /// As in [`Claimed`].
    #[prost(uint64, tag = "1")]
    pub receipt: u64,
    /// False where the answer reached nobody.
    #[prost(bool, tag = "2")]
    pub is_taken: bool,
}

/// A request to requeue a task.
#[derive(Clone, PartialEq, Message)]
pub struct Release {
    /// The partition.
    #[prost(uint32, tag = "1")]
    pub partition: u32,
    /// The request.
    #[prost(message, optional, tag = "2")]
    pub input: Option<RequestRecord>,
}

/// Polls that have got nothing.
#[derive(Clone, PartialEq, Message)]
pub struct PollsLost {
    /// The partition of which they may have claimed something.
    #[prost(uint32, tag = "1")]
    pub partition: u32,
    /// Their ids.
    #[prost(string, repeated, tag = "2")]
    pub poll_ids: Vec<String>,
    /// The key of the claimed run; empty = not known.
    #[prost(bytes = "bytes", tag = "3")]
    pub run: Bytes,
}

/// A query that reached nobody.
#[derive(Clone, PartialEq, Message)]
pub struct Lost {
    /// The partition of its run.
    #[prost(uint32, tag = "1")]
    pub partition: u32,
    /// The query.
    #[prost(string, tag = "2")]
    pub query_id: String,
}

/// What waits at a node for room at the home of a queue.
#[derive(Clone, PartialEq, Message)]
pub struct BacklogReply {
    #[prost(message, repeated, tag = "1")]
    levels: Vec<BacklogLevel>,
}

/// What waits at one priority.
#[derive(Clone, PartialEq, Message)]
pub struct BacklogLevel {
    #[prost(uint32, tag = "1")]
    level: u32,
    #[prost(uint64, tag = "2")]
    count: u64,
    /// The age of the oldest.
    #[prost(int64, tag = "3")]
    age_ms: i64,
}

/// The node that a group is assigned to asks its owner to release it.
#[derive(Clone, PartialEq, Message)]
pub struct ReleaseGroup {
    /// The group.
    #[prost(uint32, tag = "1")]
    pub group: u32,
    /// The node.
    #[prost(string, tag = "2")]
    pub to: String,
}

impl From<QueueKey> for QueueWire {
    fn from(QueueKey { namespace_id, name, kind }: QueueKey) -> Self {
        Self { namespace_id, name, kind: kind as u32 }
    }
}

impl QueueWire {
    /// None where it cannot be read: its tasks are of a kind that a later release has made.
    pub fn read(self) -> Option<QueueKey> {
        let Self { namespace_id, name, kind } = self;
        Some(QueueKey { namespace_id, name, kind: TaskKind::from_number(kind)? })
    }
}

impl From<KeptBack> for BacklogReply {
    fn from(kept_back: KeptBack) -> Self {
        let level = |(level, (count, age_ms)): (u8, (usize, i64))| BacklogLevel {
            level: level.into(),
            count: u64::try_from(count).unwrap_or(u64::MAX),
            age_ms,
        };
        Self { levels: kept_back.into_iter().map(level).collect() }
    }
}

impl BacklogReply {
    /// Priority, count, and the age of the oldest in ms. Unknown priorities are left out.
    pub fn read(self) -> impl Iterator<Item = (u8, (usize, i64))> {
        let level = |BacklogLevel { level, count, age_ms }| {
            Some((u8::try_from(level).ok()?, (usize::try_from(count).ok()?, age_ms)))
        };
        self.levels.into_iter().filter_map(level)
    }
}

impl From<Ready> for ReadyWire {
    fn from(ready: Ready) -> Self {
        match ready {
            Ready::Task(TaskRef {
                partition,
                run,
                scheduled_event_id,
                attempt,
                stamp,
                normal_queue,
                precedence,
                offered_by: _,
                term,
            }) => {
                let TaskPriority { level, fairness_key, stride: fine_stride } = precedence;
                let stride = (fine_stride / FINE_STRIDES).max(1);
                let (run, level) = (Bytes::copy_from_slice(run.bytes()), level.into());
                let fairness_key = fairness_key.into();
                let term = term.map(NonZeroU64::get);
                let task = TaskWire {
                    run,
                    scheduled_event_id,
                    attempt,
                    level,
                    fairness_key,
                    stride,
                    term,
                    stamp,
                    fine_stride,
                };
                Self { partition, normal_queue, what: Some(ReadyKind::Task(task)) }
            }
            Ready::Query { partition, run, query_id, normal_queue, offered_by: _ } => {
                let query = QueryWire { query_id, run: Bytes::copy_from_slice(run.bytes()) };
                Self { partition, normal_queue, what: Some(ReadyKind::Query(query)) }
            }
        }
    }
}

impl ReadyWire {
    fn read(self, offered_by: Option<Arc<str>>) -> Option<Ready> {
        let Self { partition, normal_queue, what } = self;
        match what? {
            ReadyKind::Task(TaskWire {
                run,
                scheduled_event_id,
                attempt,
                level,
                fairness_key,
                stride,
                term,
                stamp,
                fine_stride,
            }) => {
                let run = RunKey::read(&run)?;
                let coarse = stride.saturating_mul(FINE_STRIDES);
                let stride = if fine_stride == 0 { coarse } else { fine_stride };
                let precedence = TaskPriority::new(level, fairness_key.into(), stride);
                Some(Ready::Task(TaskRef {
                    partition,
                    run,
                    scheduled_event_id,
                    attempt,
                    stamp,
                    normal_queue,
                    precedence,
                    offered_by,
                    term: term.and_then(NonZeroU64::new),
                }))
            }
            ReadyKind::Query(QueryWire { query_id, run }) => {
                let run = RunKey::read(&run)?;
                Some(Ready::Query { partition, run, query_id, normal_queue, offered_by })
            }
        }
    }
}

impl From<Offer> for OfferWire {
    fn from(Offer { queue, ready }: Offer) -> Self {
        Self { queue: Some(queue.into()), ready: Some(ready.into()) }
    }
}

impl OfferWire {
    /// The offer of `node`. None where it cannot be read.
    pub fn read(self, node: &Arc<str>) -> Option<Offer> {
        Some(Offer { queue: self.queue?.read()?, ready: self.ready?.read(Some(Arc::clone(node)))? })
    }
}

impl Claim {
    /// A claim of a ready task or query, for a poll.
    pub fn new(ready: Ready, poll: &Poll) -> Self {
        Self {
            ready: Some(ready.into()),
            queue: Some(QueueKey::of(poll).into()),
            sticky: poll.sticky,
            identity: poll.identity.clone(),
            poll_id: poll.poll_id.clone(),
            normal_queue: poll.normal_queue.clone(),
        }
    }

    /// None where it cannot be read.
    pub fn read(self) -> Option<(Ready, Poll)> {
        let Self { ready, queue, sticky, identity, poll_id, normal_queue } = self;
        let QueueKey { namespace_id, name, kind } = queue?.read()?;
        let poll = Poll {
            namespace_id,
            queue: name,
            kind,
            sticky,
            normal_queue,
            identity,
            poll_id,
            rate_per_second: None,
            version: None,
        };
        Some((ready?.read(None)?, poll))
    }
}

#[cfg(test)]
mod tests {
    use everlog_partition::WorkflowKey;

    use super::*;

    fn queue() -> QueueKey {
        QueueKey { namespace_id: "n".into(), name: "sticky".into(), kind: TaskKind::Workflow }
    }

    fn both() -> [Ready; 2] {
        let run = WorkflowKey::new("0b6f2f06-36cb-5b5e-a2a5-5c4c30f9b8d1", "w")
            .run("1b6f2f06-36cb-5b5e-a2a5-5c4c30f9b8d1");
        let precedence = TaskPriority::new(1, "tenant".into(), 20);
        let normal_queue = Some("q".into());
        let (partition, scheduled_event_id, attempt) = (3, 5, 2);
        let (offered_by, term) = (None, NonZeroU64::new(17));
        let asked = run.clone();
        let task = TaskRef {
            partition,
            run,
            scheduled_event_id,
            attempt,
            stamp: 4,
            normal_queue,
            precedence,
            offered_by,
            term,
        };
        let query_id = "4-1-1".into();
        let query = Ready::Query { partition: 4, run: asked, query_id, normal_queue: None, offered_by: None };
        [Ready::Task(task), query]
    }

    #[test]
    fn a_stride_is_read_as_an_earlier_release_tells_it() {
        let stride = |stride, fine_stride| {
            let [ready, _] = both();
            let ReadyWire { partition, normal_queue, what } = ReadyWire::from(ready);
            let Some(ReadyKind::Task(task)) = what else { unreachable!("it is a task") };
            let what = Some(ReadyKind::Task(TaskWire { stride, fine_stride, ..task }));
            let read = ReadyWire { partition, normal_queue, what }.read(None).expect("it is whole");
            read.priority().map(|priority| priority.stride)
        };
        assert_eq!([stride(500, 0), stride(0, 0), stride(1, 333)], [Some(50_000), Some(STRIDE), Some(333)]);
    }

    #[test]
    fn offers_and_claims_are_read_as_they_are_written() {
        for ready in both() {
            let offer = Offer { queue: queue(), ready: ready.clone() };
            let bytes = OfferWire::from(offer).encode_to_vec();
            let read =
                OfferWire::decode(&bytes[..]).expect("it is one").read(&"a".into()).expect("it is whole");
            assert_eq!((read.queue, read.ready.offered_by().map(|node| &**node)), (queue(), Some("a")));
            assert_eq!(ReadyWire::from(read.ready), ReadyWire::from(ready.clone()), "the rest is the same");
            let poll = Poll {
                namespace_id: "n".into(),
                queue: "sticky".into(),
                kind: TaskKind::Workflow,
                sticky: true,
                normal_queue: Some("q".into()),
                identity: "w".into(),
                poll_id: "p".into(),
                rate_per_second: Some(1.0),
                version: None,
            };
            let bytes = Claim::new(ready.clone(), &poll).encode_to_vec();
            let (read, of) = Claim::decode(&bytes[..]).expect("it is one").read().expect("it is whole");
            assert_eq!((read, of.queue, of.sticky, of.identity), (ready, poll.queue, true, poll.identity));
        }
    }

    #[test]
    fn what_is_kept_back_is_read_as_it_is_written() {
        let kept_back = KeptBack::from([(1, (7, 1_500)), (3, (500, 0))]);
        let bytes = BacklogReply::from(kept_back.clone()).encode_to_vec();
        let read = BacklogReply::decode(&bytes[..]).expect("it is one").read();
        assert_eq!(read.collect::<KeptBack>(), kept_back);
        let strange = BacklogLevel { level: 1_000, count: 1, age_ms: 1 };
        assert_eq!(BacklogReply { levels: vec![strange] }.read().count(), 0, "a level that nobody knows");
    }

    #[test]
    fn what_is_not_whole_is_none() {
        assert_eq!(OfferWire::default().read(&"a".into()), None);
        assert!(Claim::default().read().is_none());
        let ready = ReadyWire {
            what: Some(ReadyKind::Task(TaskWire {
                run: Bytes::from_static(b"short"),
                ..TaskWire::default()
            })),
            ..ReadyWire::default()
        };
        let offer = OfferWire { queue: Some(queue().into()), ready: Some(ready) };
        assert_eq!(offer.read(&"a".into()), None, "a key that is none");
    }
}
