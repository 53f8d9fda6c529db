//! Checks of a request before it is sent to a partition: ids, sizes, durations, task queues, unsupported features.
//!
//! The texts are those of Temporal's server. What depends on the state of a run is checked by the engine.

use bytes::Bytes;
use everlog_engine::Settings;
use everlog_engine::machine::schedule::WORKFLOW_ID_PREFIX;
use everlog_temporal_api::common::WorkflowExecution;
use everlog_temporal_api::enums::{TaskQueueKind, WorkerVersioningMode};
use everlog_temporal_api::full::temporal::api::deployment::v1::WorkerDeploymentOptions;
use everlog_temporal_api::taskqueue::TaskQueue;
use prost::Message;
use tonic::Status;
use uuid::Uuid;

use crate::codec::proto_time;
use crate::codec::random_ids;
use crate::codec::status::{invalid, not_found};
use crate::limits::Limits;

/// The prefix of task queue names that are reserved for the server.
const RESERVED_QUEUE_PREFIX: &str = "/_sys/";

/// The limits that requests are checked against.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checks<'a> {
    pub limits: &'a Limits,
    pub settings: &'a Settings,
}

impl Checks<'_> {
    /// A required id or name.
    pub(crate) fn id(&self, what: &str, text: &str) -> Result<(), Status> {
        if text.is_empty() {
            return Err(invalid(format!("{what} is not set on request.")));
        }
        self.length(what, text)
    }

    /// An optional id or name.
    pub(crate) fn length(&self, what: &str, text: &str) -> Result<(), Status> {
        if exceeds(text.len(), self.settings.id_bytes_max) {
            return Err(invalid(format!("{what} length exceeds limit.")));
        }
        Ok(())
    }

    /// Bytes that are stored for a while.
    pub(crate) fn bytes(&self, what: &str, bytes: usize) -> Result<(), Status> {
        if exceeds(bytes, 4 * self.settings.id_bytes_max) {
            return Err(invalid(format!("{what} exceeds the size limit.")));
        }
        Ok(())
    }

    /// The request id. Without one a random id is used, and a retry of the request is not recognised.
    pub(crate) fn request_id(&self, given: String) -> Result<String, Status> {
        self.length("RequestId", &given)?;
        Ok(if given.is_empty() { random_ids::id() } else { given })
    }

    /// An execution. An empty run id means the current run.
    pub(crate) fn execution(&self, given: Option<WorkflowExecution>) -> Result<WorkflowExecution, Status> {
        let given = given.ok_or_else(|| invalid("Execution is not set on request."))?;
        self.run(given.workflow_id, given.run_id)
    }

    /// The same, from two fields.
    pub(crate) fn run(&self, workflow_id: String, run_id: String) -> Result<WorkflowExecution, Status> {
        self.id("WorkflowId", &workflow_id)?;
        // Schedules are runs to the engine, and to nobody else.
        if workflow_id.starts_with(WORKFLOW_ID_PREFIX) {
            return Err(not_found(format!("workflow not found for ID: {workflow_id}")));
        }
        Ok(WorkflowExecution { workflow_id, run_id: run_id_or_empty(run_id, "RunId")? })
    }

    /// The first run id of a chain. Text that is no UUID names no known chain.
    pub(crate) fn first_run_id(&self, given: String) -> Result<String, Status> {
        self.length("FirstExecutionRunId", &given)?;
        Ok(Uuid::try_parse(&given).map_or(given, |uuid| uuid.to_string()))
    }

    /// A task queue.
    pub(crate) fn task_queue(&self, given: Option<TaskQueue>) -> Result<TaskQueue, Status> {
        let queue = given.ok_or_else(|| invalid("taskQueue is not set"))?;
        if queue.name.is_empty() {
            return Err(invalid("missing task queue name"));
        }
        let too_long = |name: &str| exceeds(name.len(), self.settings.id_bytes_max);
        if too_long(&queue.name) || too_long(&queue.normal_name) {
            return Err(invalid("taskQueue length exceeds limit"));
        }
        if queue.name.starts_with(RESERVED_QUEUE_PREFIX) {
            return Err(invalid(format!(
                "task queue name cannot start with reserved prefix {RESERVED_QUEUE_PREFIX}"
            )));
        }
        Ok(queue)
    }
}

/// True of the sticky task queue of a worker.
pub(crate) fn is_sticky(queue: &TaskQueue) -> Result<bool, Status> {
    match TaskQueueKind::try_from(queue.kind) {
        Ok(TaskQueueKind::Unspecified | TaskQueueKind::Normal) => Ok(false),
        Ok(TaskQueueKind::Sticky) => Ok(true),
        Ok(TaskQueueKind::WorkerCommands) => {
            Err(invalid("task_queue.kind WorkerCommands is not supported yet."))
        }
        Err(_) => Err(invalid(format!("unknown task queue kind: {}", queue.kind))),
    }
}

/// A run id in lower case with hyphens; empty stays empty.
pub(crate) fn run_id_or_empty(run_id: String, what: &str) -> Result<String, Status> {
    if run_id.is_empty() {
        return Ok(run_id);
    }
    match Uuid::try_parse(&run_id) {
        Ok(_) if run_id.len() == 36 && !run_id.bytes().any(|byte| byte.is_ascii_uppercase()) => Ok(run_id),
        Ok(uuid) => Ok(uuid.to_string()),
        Err(_) => Err(invalid(format!("Invalid {what}."))),
    }
}

/// A duration in ms, 0 if it is absent, and at most 100 years.
pub(crate) fn span_ms(what: &str, span: Option<prost_types::Duration>) -> Result<i64, Status> {
    let Some(span) = span.map(proto_time::inner) else {
        return Ok(0);
    };
    let torn = (span.nanos > 999_999_999).then_some("nanos out of range");
    if let Some(why) = span.fault().or(torn) {
        return Err(invalid(format!("An invalid {what}Seconds is set on request. cause: {why}")));
    }
    Ok(span.to_ms())
}

/// Refuses a field that is not supported yet. No field is ignored silently.
pub(crate) fn not_yet(field: &str, is_set: bool) -> Result<(), Status> {
    if is_set { Err(invalid(format!("{field} is not supported yet."))) } else { Ok(()) }
}

/// Refuses versioned workers, which are not supported yet. The older field `deployment` is not checked, because SDKs set it for every
/// worker, and it means nothing without a version.
pub(crate) fn unversioned(options: Option<&Bytes>, field: &str) -> Result<(), Status> {
    let Some(options) = options.filter(|options| !options.is_empty()) else {
        return Ok(());
    };
    let options = WorkerDeploymentOptions::decode(options.clone());
    let options = options.map_err(|_error| invalid(format!("{field} cannot be read.")))?;
    let is_versioned = options.worker_versioning_mode == i32::from(WorkerVersioningMode::Versioned);
    not_yet(&format!("{field}.worker_versioning_mode VERSIONED"), is_versioned)
}

pub(crate) fn exceeds(bytes: usize, bytes_max: i64) -> bool {
    i64::try_from(bytes).is_ok_and(|bytes| bytes > bytes_max)
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;

    fn with_checks<T>(test: impl FnOnce(Checks<'_>) -> T) -> T {
        let (limits, settings) = (Limits::default(), Settings::standard());
        test(Checks { limits: &limits, settings: &settings })
    }

    fn refusal<T: std::fmt::Debug>(result: Result<T, Status>) -> String {
        let status = result.expect_err("it has to be refused");
        assert_eq!(status.code(), Code::InvalidArgument);
        status.message().to_owned()
    }

    fn queue(name: &str) -> Option<TaskQueue> {
        Some(TaskQueue { name: name.into(), ..TaskQueue::default() })
    }

    #[test]
    fn ids_are_counted_in_bytes() {
        with_checks(|checks| {
            assert!(checks.id("WorkflowId", &"w".repeat(1_000)).is_ok());
            let long = "ä".repeat(501);
            assert_eq!(refusal(checks.id("WorkflowId", &long)), "WorkflowId length exceeds limit.");
            assert_eq!(refusal(checks.id("WorkflowId", "")), "WorkflowId is not set on request.");
            assert!(checks.length("Identity", "").is_ok());
        });
    }

    #[test]
    fn a_run_is_named_by_a_uuid_or_not_at_all() {
        with_checks(|checks| {
            assert_eq!(refusal(checks.execution(None)), "Execution is not set on request.");
            assert_eq!(refusal(checks.run("w".into(), "x".into())), "Invalid RunId.");
            let upper = "5BBE3C42-7BC0-4A94-A8A9-1B8E3A6EF5B1";
            let run = checks.run("w".into(), upper.into()).expect("a UUID in capitals is one");
            assert_eq!(run.run_id, upper.to_lowercase());
            assert_eq!(checks.run("w".into(), String::new()).expect("the current run").run_id, "");
        });
    }

    #[test]
    fn a_request_without_an_id_gets_one() {
        with_checks(|checks| {
            assert_eq!(checks.request_id("given".into()).expect("short"), "given");
            assert_eq!(checks.request_id(String::new()).expect("made up").len(), 36);
            assert_eq!(refusal(checks.request_id("r".repeat(1_001))), "RequestId length exceeds limit.");
        });
    }

    #[test]
    fn task_queues_have_a_name_of_the_callers() {
        with_checks(|checks| {
            assert_eq!(refusal(checks.task_queue(None)), "taskQueue is not set");
            assert_eq!(refusal(checks.task_queue(queue(""))), "missing task queue name");
            assert_eq!(
                refusal(checks.task_queue(queue(&"q".repeat(1_001)))),
                "taskQueue length exceeds limit"
            );
            let reserved = refusal(checks.task_queue(queue("/_sys/orders/1")));
            assert_eq!(reserved, "task queue name cannot start with reserved prefix /_sys/");
            assert!(checks.task_queue(queue("orders")).is_ok());
        });
    }

    #[test]
    fn spans_point_forward_and_are_cut_to_a_hundred_years() {
        let span =
            |seconds, nanos| span_ms("WorkflowRunTimeout", Some(prost_types::Duration { seconds, nanos }));
        let message = |why| format!("An invalid WorkflowRunTimeoutSeconds is set on request. cause: {why}");
        assert_eq!(refusal(span(-1, 0)), message("negative duration"));
        assert_eq!(refusal(span(1, -1)), message("duration has seconds and nanos with different signs"));
        assert_eq!(refusal(span(0, i32::MAX)), message("nanos out of range"));
        assert_eq!(span(10_000 * 365 * 86_400, 0).expect("cut"), everlog_engine::time::DURATION_MS_MAX);
        assert_eq!(span(1, 1).expect("forward"), 1_001);
        assert_eq!(span_ms("", None).expect("absent"), 0);
    }

    #[test]
    fn versioned_workers_come_later_and_others_are_welcome() {
        let options = |mode: WorkerVersioningMode| {
            let worker_versioning_mode = mode.into();
            let options = WorkerDeploymentOptions { worker_versioning_mode, ..Default::default() };
            Bytes::from(options.encode_to_vec())
        };
        let check = |mode| unversioned(Some(&options(mode)), "deployment_options");
        assert!(check(WorkerVersioningMode::Unversioned).is_ok());
        assert!(unversioned(None, "deployment_options").is_ok());
        assert_eq!(
            refusal(check(WorkerVersioningMode::Versioned)),
            "deployment_options.worker_versioning_mode VERSIONED is not supported yet."
        );
    }
}
