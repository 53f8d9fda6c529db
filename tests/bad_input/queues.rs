//! Rows about task queues and workers: rates that are none, questions that cannot be answered, heartbeats, lists.

use bytes::Bytes;
use everlog_temporal_api::enums::DescribeTaskQueueMode;
use everlog_temporal_api::full::temporal::api::worker::v1::WorkerHeartbeat;
use everlog_temporal_api::taskqueue::{TaskQueue, TaskQueueMetadata, TaskQueueVersionSelection};
use everlog_temporal_api::workflowservice::{
    CountWorkersRequest, DescribeTaskQueueRequest, DescribeWorkerRequest, ListWorkersRequest,
    PollActivityTaskQueueRequest, RecordWorkerHeartbeatRequest, UpdateTaskQueueConfigRequest,
};
use prost::Message;
use tonic::Code;

use crate::row::{Action, Row, invalid, later, refused, row, taken};
use crate::world::{World, queue, request};

const NO_RATE: &str = "task_queue_metadata.max_tasks_per_second is not a rate.";
const OWN_RULE: &str = "a rate that is none is refused; there it stops the queue, or counts as no limit";
const OFF_THERE: &str = "off on a Temporal server unless its operator turns it on";

#[rustfmt::skip]
pub fn rows() -> Vec<Row> {
    vec![
        row(63, "activity poll with a negative rate", rate(-1.0), invalid(NO_RATE).unlike(OWN_RULE)),
        row(63, "activity poll with a rate of -inf", rate(f64::NEG_INFINITY), invalid(NO_RATE).unlike(OWN_RULE)),
        row(63, "activity poll with a rate that is no number", rate(f64::NAN), invalid(NO_RATE).unlike(OWN_RULE)),
        row(63, "describe no task queue", describe(|asked| asked.task_queue = None), invalid("taskQueue is not set")),
        row(63, "describe a task queue without a name", describe(|asked| asked.task_queue = Some(queue(""))), invalid("missing task queue name")),
        row(63, "describe a task queue with a name > 1000 bytes", describe(|asked| asked.task_queue = Some(queue(&"q".repeat(1_001)))), invalid("taskQueue length exceeds limit")),
        row(63, "describe a kind of tasks that nobody knows", describe(|asked| asked.task_queue_type = 99), taken("")),
        row(63, "stats of a sticky queue", describe(|asked| { asked.task_queue = Some(sticky()); asked.report_stats = true; }), invalid("DescribeTaskQueue stats are only supported for the root partition")),
        row(63, "a sticky queue in enhanced mode", describe(|asked| { asked.task_queue = Some(sticky()); asked.api_mode = enhanced(); }), invalid("Enhanced DescribeTaskQueue is not valid for a sticky queue, use api_mode=UNSPECIFIED or a normal queue.")),
        row(63, "build ids in enhanced mode", describe(|asked| { asked.api_mode = enhanced(); asked.versions = Some(TaskQueueVersionSelection { build_ids: vec!["b1".into()], ..TaskQueueVersionSelection::default() }); }), invalid("versions.build_ids is not supported yet.").unlike("there are no versions of workers yet")),
        row(63, "a change of a task queue's settings", request(|world| UpdateTaskQueueConfigRequest { namespace: world.namespace.clone(), task_queue: "q".into(), ..UpdateTaskQueueConfigRequest::default() }), later("settings of task queues")),
        row(63, "a heartbeat that cannot be read", beat(|| vec![Bytes::from_static(b"\xff\xff")]), refused(Code::Internal, "grpc: error unmarshalling request").unlike(OFF_THERE)),
        row(63, "a heartbeat > 8 KiB", beat(|| vec![heartbeat("w", &"x".repeat(9_000))]), invalid("WorkerHeartbeat exceeds the size limit.").unlike(OFF_THERE)),
        row(63, "a heartbeat with a key > 1000 bytes", beat(|| vec![heartbeat(&"w".repeat(1_001), "")]), invalid("WorkerInstanceKey length exceeds limit.").unlike(OFF_THERE)),
        row(63, "1,001 heartbeats", beat(|| vec![heartbeat("w", ""); 1_001]), invalid("more than 1000 heartbeats.").unlike(OFF_THERE)),
        row(63, "describe an unknown worker", request(|world| DescribeWorkerRequest { namespace: world.namespace.clone(), worker_instance_key: "nobody".into() }), refused(Code::NotFound, "Worker nobody not found").with("NotFoundFailure").unlike(OFF_THERE)),
        row(63, "workers by a query that is none", list("x y z", b"", 0), invalid("malformed query").unlike(OFF_THERE)),
        row(63, "workers by what they do not say", list("Foo = '1'", b"", 0), invalid("malformed query").unlike(OFF_THERE)),
        row(63, "workers counted by a query that is none", request(|world| CountWorkersRequest {
            namespace: world.namespace.clone(), query: "x y z".into(), ..CountWorkersRequest::default()
        }), invalid("malformed query").unlike(OFF_THERE)),
        row(64, "page token of workers that is garbage", list("", b"\xff\xfe", 0), invalid("Invalid NextPageToken.").unlike(OFF_THERE)),
        row(65, "workers in pages of less than none", list("", b"", -1), taken("").unlike(OFF_THERE)),
    ]
}

fn rate(rate: f64) -> Action {
    request(move |world| PollActivityTaskQueueRequest {
        namespace: world.namespace.clone(),
        task_queue: Some(queue("empty")),
        task_queue_metadata: Some(TaskQueueMetadata { max_tasks_per_second: Some(rate) }),
        ..PollActivityTaskQueueRequest::default()
    })
}

fn describe(edit: impl Fn(&mut DescribeTaskQueueRequest) + Send + Sync + Copy + 'static) -> Action {
    request(move |world| {
        let (namespace, task_queue) = (world.namespace.clone(), Some(queue("empty")));
        let mut asked =
            DescribeTaskQueueRequest { namespace, task_queue, ..DescribeTaskQueueRequest::default() };
        edit(&mut asked);
        asked
    })
}

fn sticky() -> TaskQueue {
    TaskQueue { name: "cache".into(), kind: 2, normal_name: "empty".into() }
}

fn enhanced() -> i32 {
    DescribeTaskQueueMode::Enhanced.into()
}

fn heartbeat(key: &str, sdk_name: &str) -> Bytes {
    let (worker_instance_key, sdk_name) = (key.into(), sdk_name.into());
    WorkerHeartbeat { worker_instance_key, sdk_name, ..WorkerHeartbeat::default() }.encode_to_vec().into()
}

fn beat(make: fn() -> Vec<Bytes>) -> Action {
    request(move |world: &World| RecordWorkerHeartbeatRequest {
        namespace: world.namespace.clone(),
        worker_heartbeat: make(),
        ..RecordWorkerHeartbeatRequest::default()
    })
}

fn list(query: &'static str, token: &'static [u8], page_size: i32) -> Action {
    request(move |world| ListWorkersRequest {
        namespace: world.namespace.clone(),
        query: query.into(),
        next_page_token: Bytes::from_static(token),
        page_size,
        ..ListWorkersRequest::default()
    })
}
