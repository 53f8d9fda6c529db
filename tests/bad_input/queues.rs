//! Rows about task queues and workers: rates that are none, questions that cannot be answered, heartbeats, lists.

use bytes::Bytes;
use everlog_temporal_api::common::WorkerVersionCapabilities;
use everlog_temporal_api::enums::{DescribeTaskQueueMode, TaskQueueType};
use everlog_temporal_api::full::temporal::api::worker::v1::WorkerHeartbeat;
use everlog_temporal_api::taskqueue::{RateLimit, TaskQueue, TaskQueueMetadata, TaskQueueVersionSelection};
use everlog_temporal_api::workflowservice::update_task_queue_config_request::RateLimitUpdate;
use everlog_temporal_api::workflowservice::update_worker_build_id_compatibility_request::Operation;
use everlog_temporal_api::workflowservice::{
    CountWorkersRequest, DescribeTaskQueueRequest, DescribeWorkerRequest,
    GetWorkerBuildIdCompatibilityRequest, GetWorkerTaskReachabilityRequest, ListTaskQueuePartitionsRequest,
    ListWorkersRequest, PollActivityTaskQueueRequest, RecordWorkerHeartbeatRequest,
    UpdateTaskQueueConfigRequest, UpdateWorkerBuildIdCompatibilityRequest,
};
use prost::Message;
use tonic::Code;

use crate::row::{Action, Row, invalid, refused, row, taken};
use crate::world::{World, queue, request};

const NO_RATE: &str = "task_queue_metadata.max_tasks_per_second is not a rate.";
const OWN_RULE: &str = "a rate that is none is refused; there it stops the queue, or counts as no limit";
const STRICT: &str = "what would be ignored, or count as something else, is refused";
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
        row(63, "partitions of no task queue", request(|world| ListTaskQueuePartitionsRequest { namespace: world.namespace.clone(), task_queue: None }), invalid("taskQueue is not set")),
        row(63, "settings of no task queue", configure(|asked| asked.task_queue.clear()), invalid("missing task queue name").unlike(STRICT)),
        row(63, "settings of a task queue with a name > 1000 bytes", configure(|asked| asked.task_queue = "q".repeat(1_001)), invalid("taskQueue length exceeds limit").unlike(STRICT)),
        row(63, "settings of a type of tasks that nobody knows", configure(|asked| asked.task_queue_type = 99), invalid("Task queue type is neither WORKFLOW nor ACTIVITY.").unlike(STRICT)),
        row(63, "settings of a Nexus task queue", configure(|asked| asked.task_queue_type = 3), invalid("Nexus task queues are not supported yet.").unlike("there is no Nexus")),
        row(63, "settings by an identity > 1000 bytes", configure(|asked| asked.identity = "i".repeat(1_001)), invalid("Identity field too long (max 1000 characters).")),
        row(63, "a rate of workflow tasks", configure(|asked| { asked.task_queue_type = 1; asked.update_queue_rate_limit = limit(1.0, 0); }), invalid("Setting rate limit on workflow task queues is not allowed.")),
        row(63, "a negative rate of a queue", configure(|asked| asked.update_queue_rate_limit = limit(-1.0, 0)), invalid("RequestsPerSecond for UpdateQueueRateLimit rate limit must be non-negative.")),
        row(63, "a rate of keys that is no number", configure(|asked| asked.update_fairness_key_rate_limit_default = limit(f32::NAN, 0)), invalid("RequestsPerSecond for UpdateFairnessKeyRateLimitDefault rate limit must be non-negative.").unlike(STRICT)),
        row(63, "a reason > 1000 bytes", configure(|asked| asked.update_queue_rate_limit = limit(1.0, 1_001)), invalid("UpdateQueueRateLimit.Reason field too long (max 1000 characters).")),
        row(63, "a weight of no fairness key", configure(|asked| asked.set_fairness_weight_overrides = [(String::new(), 1.0)].into()), invalid("fairness weight override has an empty fairness key").unlike(STRICT)),
        row(63, "a weight of a fairness key > 64 bytes", configure(|asked| asked.set_fairness_weight_overrides = [("k".repeat(65), 1.0)].into()), invalid("fairness key length exceeds limit").unlike(STRICT)),
        row(63, "a weight of nothing", configure(|asked| asked.set_fairness_weight_overrides = [("k".into(), 0.0)].into()), invalid("fairness weight override of \"k\" must be greater than zero").unlike(STRICT)),
        row(63, "1,001 weights", configure(|asked| asked.set_fairness_weight_overrides = (0..1_001).map(|key| (key.to_string(), 1.0)).collect()), invalid("too many fairness weight overrides in request: 1001, limit 1000").unlike(STRICT)),
        row(63, "a weight that is set and unset", configure(|asked| { asked.set_fairness_weight_overrides = [("k".into(), 1.0)].into(); asked.unset_fairness_weight_overrides = vec!["k".into()]; }), invalid("fairness key \"k\" present in both set and unset lists").unlike(STRICT)),
        row(63, "a poll for the tasks of a build id", request(|world| PollActivityTaskQueueRequest {
            namespace: world.namespace.clone(), task_queue: Some(queue("empty")),
            worker_version_capabilities: Some(WorkerVersionCapabilities { build_id: "b1".into(), use_versioning: true, ..Default::default() }),
            ..PollActivityTaskQueueRequest::default()
        }), invalid("worker_version_capabilities.use_versioning is not supported yet.").unlike("it would get the tasks of all build ids")),
        row(63, "build ids of no task queue", build_ids("", || Some(Operation::AddNewBuildIdInNewDefaultSet("1".into()))), invalid("request to update worker build ID compatability requires: , `task_queue` to be set").unlike(OFF_THERE)),
        row(63, "no change of build ids", build_ids("q", || None), invalid("request to update worker build ID compatability requires: , an operation to be specified").unlike(OFF_THERE)),
        row(63, "a build id > 255 bytes", build_ids("q", || Some(Operation::AddNewBuildIdInNewDefaultSet("b".repeat(256)))), invalid("request to update worker build ID compatability requires: ,  Worker build IDs to be no larger than 255 characters").unlike(OFF_THERE)),
        row(63, "an unknown build id", build_ids("q", || Some(Operation::PromoteSetByBuildId("nobody".into()))), refused(Code::NotFound, "targeted version nobody not found").with("NotFoundFailure").unlike(OFF_THERE)),
        row(63, "build ids of a queue without a name", request(|world| GetWorkerBuildIdCompatibilityRequest { namespace: world.namespace.clone(), ..GetWorkerBuildIdCompatibilityRequest::default() }), invalid("missing task queue name").unlike(OFF_THERE)),
        row(63, "who reaches no build id", reach(&[], &["q"], 0), invalid("Must query at least one build ID (or empty string for unversioned worker)").unlike(OFF_THERE)),
        row(63, "who reaches unversioned workers of no queue", reach(&[""], &[], 0), invalid("Cannot get reachability of an unversioned worker without specifying at least one task queue").unlike(OFF_THERE)),
        row(63, "who reaches six build ids", reach(&["1"; 6], &["q"], 0), invalid("Too many build ids queried at once, limit: 5").unlike(OFF_THERE)),
        row(63, "who reaches a build id in a way that nobody knows", reach(&["1"], &["q"], 9), invalid("Unsupported reachability type: 9").unlike(OFF_THERE)),
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

fn configure(edit: impl Fn(&mut UpdateTaskQueueConfigRequest) + Send + Sync + Copy + 'static) -> Action {
    request(move |world| {
        let (namespace, task_queue) = (world.namespace.clone(), "configured".into());
        let task_queue_type = TaskQueueType::Activity.into();
        let mut asked =
            UpdateTaskQueueConfigRequest { namespace, task_queue, task_queue_type, ..Default::default() };
        edit(&mut asked);
        asked
    })
}

fn limit(requests_per_second: f32, reason_bytes: usize) -> Option<RateLimitUpdate> {
    let rate_limit = Some(RateLimit { requests_per_second });
    Some(RateLimitUpdate { rate_limit, reason: "r".repeat(reason_bytes) })
}

fn build_ids(task_queue: &'static str, operation: fn() -> Option<Operation>) -> Action {
    request(move |world| {
        let (namespace, task_queue) = (world.namespace.clone(), task_queue.into());
        UpdateWorkerBuildIdCompatibilityRequest { namespace, task_queue, operation: operation() }
    })
}

fn reach(ids: &'static [&'static str], queues: &'static [&'static str], reachability: i32) -> Action {
    let all = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    request(move |world| GetWorkerTaskReachabilityRequest {
        namespace: world.namespace.clone(),
        build_ids: all(ids),
        task_queues: all(queues),
        reachability,
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
