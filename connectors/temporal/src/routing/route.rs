//! Where a call is answered: the routing key of its RPC says which fields of the request are read, and they are read alone.
//!
//! Nothing is checked here. A request that cannot be read has no route, and the handler of this node refuses it.

use bytes::Bytes;
use everlog_partition::{Address, QueueKey, TaskKind};
use everlog_temporal_api::enums::{DescribeTaskQueueMode, TaskQueueType};
use prost::Message;

use crate::namespaces::namespace::Namespaces;
use crate::rpc::RoutingKey;
use crate::schedules::definition;
use crate::tasks::token::{Purpose, TaskToken, TokenSigner};

/// Bytes before a gRPC message: whether it is compressed, and its length.
const PREFIX_BYTES: usize = 5;

/// The node that answers a call, by what it owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// The owner of the partition of a Workflow Id.
    Owner(Address),
    /// The owner of a partition.
    Partition(u32),
    /// The matching node of a task queue.
    MatchingNode(QueueKey),
}

/// The partition whose owner changes namespaces and settings of task queues, one after another. Two nodes would overwrite changes
/// of each other.
const REGISTRY_PARTITION: u32 = 0;

/// Field 1: the namespace by name; field 2: the Workflow Id.
#[derive(Clone, PartialEq, Message)]
struct ByWorkflow {
    #[prost(string, tag = "1")]
    namespace: String,
    #[prost(string, tag = "2")]
    workflow_id: String,
}

/// Field 1: the namespace by name; field 3: the id of a batch job.
#[derive(Clone, PartialEq, Message)]
struct ByJob {
    #[prost(string, tag = "1")]
    namespace: String,
    #[prost(string, tag = "3")]
    job_id: String,
}

/// Field 1: the namespace by name; field 2: a `WorkflowExecution`.
#[derive(Clone, PartialEq, Message)]
struct ByExecution {
    #[prost(string, tag = "1")]
    namespace: String,
    #[prost(message, optional, tag = "2")]
    execution: Option<RoutedExecution>,
}

#[derive(Clone, PartialEq, Message)]
struct RoutedExecution {
    #[prost(string, tag = "1")]
    workflow_id: String,
}

/// Field 1: the namespace by name; field 2: an `UpdateRef`.
#[derive(Clone, PartialEq, Message)]
struct ByUpdate {
    #[prost(string, tag = "1")]
    namespace: String,
    #[prost(message, optional, tag = "2")]
    update: Option<RoutedUpdate>,
}

#[derive(Clone, PartialEq, Message)]
struct RoutedUpdate {
    #[prost(message, optional, tag = "1")]
    execution: Option<RoutedExecution>,
}

/// Field 1: the namespace by name; field 2: the operations. Read as a singular field they are merged into one.
#[derive(Clone, PartialEq, Message)]
struct ByOperations {
    #[prost(string, tag = "1")]
    namespace: String,
    #[prost(message, optional, tag = "2")]
    operations: Option<Operation>,
}

/// Field 1: a start.
#[derive(Clone, PartialEq, Message)]
struct Operation {
    #[prost(message, optional, tag = "1")]
    start: Option<ByWorkflow>,
}

/// Field 1: the token.
#[derive(Clone, PartialEq, Message)]
struct ByToken {
    #[prost(bytes = "bytes", tag = "1")]
    token: Bytes,
}

/// Field 1: the namespace by name; field 2: a `TaskQueue`.
#[derive(Clone, PartialEq, Message)]
struct ByQueue {
    #[prost(string, tag = "1")]
    namespace: String,
    #[prost(message, optional, tag = "2")]
    queue: Option<RoutedQueue>,
}

/// Fields 1 and 2 as above; 3 and 7: the types of the task queue. Field 7 counts in the enhanced mode (5).
#[derive(Clone, PartialEq, Message)]
struct ByDescribedQueue {
    #[prost(string, tag = "1")]
    namespace: String,
    #[prost(message, optional, tag = "2")]
    queue: Option<RoutedQueue>,
    #[prost(int32, tag = "3")]
    kind: i32,
    #[prost(int32, tag = "5")]
    mode: i32,
    #[prost(int32, repeated, tag = "7")]
    kinds: Vec<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct RoutedQueue {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "3")]
    normal_name: String,
}

/// Reads the route of a request; none if it cannot be read, and this node refuses it.
pub(crate) fn of_request(
    key: RoutingKey,
    (frame, bytes_max): (&Bytes, usize),
    namespaces: &Namespaces,
    token_signer: &TokenSigner,
) -> Option<Route> {
    let message = message(frame, bytes_max)?;
    let id_of = |name: &str| namespaces.known(name).map(|(id, _)| id);
    let owner = |namespace: &str, workflow_id: String| {
        let run_id = String::new();
        Some(Route::Owner(Address { namespace_id: id_of(namespace)?, workflow_id, run_id }))
    };
    match key {
        RoutingKey::WorkflowId => {
            let ByWorkflow { namespace, workflow_id } = ByWorkflow::decode(message).ok()?;
            owner(&namespace, workflow_id)
        }
        RoutingKey::BatchJob => {
            let ByJob { namespace, job_id } = ByJob::decode(message).ok()?;
            owner(&namespace, job_id)
        }
        RoutingKey::ScheduleId => {
            // The id stands where other requests have a Workflow Id.
            let ByWorkflow { namespace, workflow_id } = ByWorkflow::decode(message).ok()?;
            owner(&namespace, definition::workflow_id(&workflow_id))
        }
        RoutingKey::Execution => {
            let ByExecution { namespace, execution } = ByExecution::decode(message).ok()?;
            owner(&namespace, execution?.workflow_id)
        }
        RoutingKey::UpdateRef => {
            let ByUpdate { namespace, update } = ByUpdate::decode(message).ok()?;
            owner(&namespace, update?.execution?.workflow_id)
        }
        RoutingKey::FirstOperation => {
            let ByOperations { namespace, operations } = ByOperations::decode(message).ok()?;
            owner(&namespace, operations?.start?.workflow_id)
        }
        RoutingKey::TaskToken => {
            let ByToken { token } = ByToken::decode(message).ok()?;
            let token: TaskToken = token_signer.open(Purpose::Task, &[], &token)?;
            let TaskToken { namespace_id, workflow_id, run_id, .. } = token;
            Some(Route::Owner(Address { namespace_id, workflow_id, run_id }))
        }
        RoutingKey::WorkflowPoll | RoutingKey::ActivityPoll => {
            let ByQueue { namespace, queue } = ByQueue::decode(message).ok()?;
            matching_node(&namespace, queue?, kind_of(key == RoutingKey::ActivityPoll), id_of)
        }
        RoutingKey::TaskQueue => {
            let ByDescribedQueue { namespace, queue, kind, mode, kinds } =
                ByDescribedQueue::decode(message).ok()?;
            let activities = match mode == i32::from(DescribeTaskQueueMode::Enhanced) {
                // The two types may have two matching nodes. Described together, the one of workflow tasks answers, and asks the other.
                true => !kinds.is_empty() && kinds.iter().all(|kind| is_of_activities(*kind)),
                false => is_of_activities(kind),
            };
            matching_node(&namespace, queue?, kind_of(activities), id_of)
        }
        RoutingKey::Registry => Some(Route::Partition(REGISTRY_PARTITION)),
        RoutingKey::AnyNode | RoutingKey::EveryNode => None,
    }
}

/// The kind of a queue's tasks, of the two that Temporal's API has.
fn kind_of(activities: bool) -> TaskKind {
    if activities { TaskKind::Activity } else { TaskKind::Workflow }
}

fn matching_node(
    namespace: &str,
    RoutedQueue { name, normal_name }: RoutedQueue,
    kind: TaskKind,
    id_of: impl Fn(&str) -> Option<String>,
) -> Option<Route> {
    let name = if normal_name.is_empty() { name } else { normal_name };
    Some(Route::MatchingNode(QueueKey { namespace_id: id_of(namespace)?, name, kind }))
}

fn is_of_activities(kind: i32) -> bool {
    kind == i32::from(TaskQueueType::Activity)
}

/// The message in a gRPC frame, decompressed.
fn message(frame: &Bytes, bytes_max: usize) -> Option<Bytes> {
    let (prefix, _) = frame.split_first_chunk::<PREFIX_BYTES>()?;
    let [is_packed, length @ ..] = *prefix;
    let length = usize::try_from(u32::from_be_bytes(length)).ok()?;
    if frame.len() - PREFIX_BYTES != length {
        return None;
    }
    let message = frame.slice(PREFIX_BYTES..);
    match is_packed {
        0 => Some(message),
        1 => unpacked(&message, bytes_max),
        _no_such_flag => None,
    }
}

/// A compressed message; none if it is larger than the limit, and the handler refuses it.
fn unpacked(message: &Bytes, bytes_max: usize) -> Option<Bytes> {
    use std::io::Read;
    let mut whole = Vec::new();
    let bytes_max = u64::try_from(bytes_max).unwrap_or(u64::MAX);
    flate2::read::GzDecoder::new(message.as_ref()).take(bytes_max).read_to_end(&mut whole).ok()?;
    Some(whole.into())
}
