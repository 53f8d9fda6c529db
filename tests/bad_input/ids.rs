//! Rows about names and ids: missing, too long, malformed, unknown.

use everlog_temporal_api::common::{WorkflowExecution, WorkflowType};
use everlog_temporal_api::enums::EventType;
use everlog_temporal_api::query::WorkflowQuery;
use everlog_temporal_api::taskqueue::TaskQueue;
use everlog_temporal_api::workflowservice::{
    DescribeWorkflowExecutionRequest, QueryWorkflowRequest, RequestCancelWorkflowExecutionRequest,
    RespondQueryTaskCompletedRequest, SignalWorkflowExecutionRequest, StartWorkflowExecutionResponse,
    TerminateWorkflowExecutionRequest,
};
use prost::Message;
use tonic::{Code, Request};

use crate::row::{Action, Observation, Row, invalid, refused, row, story, taken};
use crate::worker::complete;
use crate::world::{BYSTANDER, CLOSED, World, execution, observation, path_of, queue, request, start, text};

#[rustfmt::skip]
pub fn rows() -> Vec<Row> {
    use Code::{AlreadyExists, NotFound};
    vec![
        row(1, "no namespace", start(|r| r.namespace.clear()), invalid("Namespace not set on request.")),
        row(2, "unknown namespace", start(|r| r.namespace = "nowhere".into()),
            refused(NotFound, "Namespace nowhere is not found.").with("NamespaceNotFoundFailure")),
        row(3, "namespace > 1000 bytes", start(|r| r.namespace = text(1001)),
            invalid("Namespace length exceeds limit.")),
        row(5, "empty workflow id", start(|r| r.workflow_id.clear()), invalid("WorkflowId is not set on request.")),
        row(6, "workflow id > 1000 bytes", start(|r| r.workflow_id = text(1001)),
            invalid("WorkflowId length exceeds limit.")),
        row(6, "workflow id > 1000 bytes in fewer characters", start(|r| r.workflow_id = "€".repeat(334)),
            invalid("WorkflowId length exceeds limit.")),
        row(7, "workflow type missing", start(|r| r.workflow_type = None),
            invalid("WorkflowType is not set on request.")),
        row(7, "workflow type empty", start(|r| r.workflow_type = Some(WorkflowType::default())),
            invalid("WorkflowType is not set on request.")),
        row(7, "workflow type > 1000 bytes", start(|r| r.workflow_type = Some(WorkflowType { name: text(1001) })),
            invalid("WorkflowType length exceeds limit.")),
        row(8, "task queue nil", start(|r| r.task_queue = None), invalid("taskQueue is not set")),
        row(8, "task queue empty", start(|r| r.task_queue = Some(TaskQueue::default())),
            invalid("missing task queue name")),
        row(8, "task queue > 1000 bytes", start(|r| r.task_queue = Some(queue(&text(1001)))),
            invalid("taskQueue length exceeds limit")),
        row(9, "task queue with the reserved prefix", start(|r| r.task_queue = Some(queue("/_sys/mine/1"))),
            invalid("task queue name cannot start with reserved prefix /_sys/")),
        row(10, "request id > 1000 bytes", start(|r| r.request_id = text(1001)),
            invalid("RequestId length exceeds limit.")),
        row(10, "request id empty: a retry is another start", story(start_twice_without_request_id),
            refused(AlreadyExists, "Workflow execution is already running.")
                .with("WorkflowExecutionAlreadyStartedFailure")),
        row(11, "run id not a UUID", describe(|e| e.run_id = "mine".into()), invalid("Invalid RunId.")),
        row(11, "run id almost a UUID", describe(|e| e.run_id = "7d4cbe0a-32c5-5c0f-8d6c-0e8f6f3d2a1g".into()),
            invalid("Invalid RunId.")),
        row(12, "execution nil", describe_nothing(), invalid("Execution is not set on request.")),
        row(12, "execution without an id", describe(|e| e.workflow_id.clear()),
            invalid("WorkflowId is not set on request.")),
        row(12, "execution of a signal nil", signal(|r| r.workflow_execution = None),
            invalid("Execution is not set on request.")),
        row(14, "signal name empty", signal(|r| r.signal_name.clear()), invalid("SignalName is not set on request.")),
        row(14, "signal name > 1000 bytes", signal(|r| r.signal_name = text(1001)),
            invalid("SignalName length exceeds limit.")),
        row(15, "query nil", query(None), invalid("WorkflowQuery is not set on request.")),
        row(15, "query type empty", query(Some("")), invalid("QueryType is not set on request.")),
        row(16, "unknown query type", story(unknown_query), invalid("unknown query").with("QueryFailedFailure")),
        row(17, "invalid UTF-8 in a string", story(invalid_utf8),
            refused(Code::Internal, "").unlike("the codec's own words")),
        row(53, "start of a running id", story(start_running),
            refused(AlreadyExists, "Workflow execution is already running.")
                .with("WorkflowExecutionAlreadyStartedFailure")),
        row(54, "signal for a closed run", signal(|r| r.workflow_execution = Some(execution(CLOSED))),
            refused(NotFound, "workflow execution already completed")),
        row(54, "terminate a closed run", terminate(CLOSED), refused(NotFound, "workflow execution already completed")),
        row(54, "cancel a closed run: nothing is left to do", cancel(CLOSED), taken("")),
        row(54, "complete a task of a closed run", story(complete_closed),
            refused(NotFound, "Workflow task not found.").leaves("TERMINATED")),
        row(55, "terminate a chain that began with no run at all", story(terminate_no_chain),
            refused(NotFound, "workflow execution not found").with("NotFoundFailure")),
        row(55, "unknown workflow id", describe(|e| e.workflow_id = "nobody".into()), refused(NotFound, NOBODY)),
        row(55, "signal for an unknown workflow id", signal(|r| r.workflow_execution = Some(execution("nobody"))),
            refused(NotFound, NOBODY)),
        row(55, "terminate an unknown workflow id", terminate("nobody"), refused(NotFound, NOBODY)),
        row(55, "cancel an unknown workflow id", cancel("nobody"), refused(NotFound, NOBODY)),
        row(55, "known workflow id, unknown run",
            describe(|e| e.run_id = "7d4cbe0a-32c5-5c0f-8d6c-0e8f6f3d2a11".into()), refused(NotFound, NO_RUN)),
    ]
}

const NOBODY: &str = "workflow not found for ID: nobody";
const NO_RUN: &str = "workflow execution not found for workflow ID \"";

fn describe(edit: impl Fn(&mut WorkflowExecution) + Send + Sync + Copy + 'static) -> Action {
    request(move |world| {
        let mut execution = execution(BYSTANDER);
        edit(&mut execution);
        DescribeWorkflowExecutionRequest { namespace: world.namespace.clone(), execution: Some(execution) }
    })
}

fn describe_nothing() -> Action {
    request(|world| DescribeWorkflowExecutionRequest { namespace: world.namespace.clone(), execution: None })
}

/// A signal that is fine but for one thing.
pub fn signal(edit: impl Fn(&mut SignalWorkflowExecutionRequest) + Send + Sync + Copy + 'static) -> Action {
    request(move |world| {
        let mut request = signal_for(world, BYSTANDER);
        edit(&mut request);
        request
    })
}

pub fn signal_for(world: &World, id: &str) -> SignalWorkflowExecutionRequest {
    SignalWorkflowExecutionRequest {
        namespace: world.namespace.clone(),
        workflow_execution: Some(execution(id)),
        signal_name: "changed".into(),
        identity: "tests".into(),
        request_id: world.fresh("request"),
        ..SignalWorkflowExecutionRequest::default()
    }
}

fn terminate(id: &'static str) -> Action {
    request(move |world| TerminateWorkflowExecutionRequest {
        namespace: world.namespace.clone(),
        workflow_execution: Some(execution(id)),
        ..TerminateWorkflowExecutionRequest::default()
    })
}

async fn terminate_no_chain(world: World) -> anyhow::Result<Observation> {
    let request = TerminateWorkflowExecutionRequest {
        namespace: world.namespace.clone(),
        workflow_execution: Some(execution(BYSTANDER)),
        first_execution_run_id: "no run".into(),
        ..TerminateWorkflowExecutionRequest::default()
    };
    Ok(observation(world.send(request).await))
}

fn cancel(id: &'static str) -> Action {
    request(move |world| RequestCancelWorkflowExecutionRequest {
        namespace: world.namespace.clone(),
        workflow_execution: Some(execution(id)),
        request_id: world.fresh("request"),
        ..RequestCancelWorkflowExecutionRequest::default()
    })
}

fn query(query_type: Option<&'static str>) -> Action {
    request(move |world| QueryWorkflowRequest {
        namespace: world.namespace.clone(),
        execution: Some(execution(BYSTANDER)),
        query: query_type.map(|name| WorkflowQuery { query_type: name.into(), ..WorkflowQuery::default() }),
        ..QueryWorkflowRequest::default()
    })
}

async fn start_twice_without_request_id(world: World) -> anyhow::Result<Observation> {
    let mut start = world.start_of(&world.fresh("run"));
    start.request_id.clear();
    world.answer::<StartWorkflowExecutionResponse>(start.clone()).await?;
    Ok(observation(world.send(start).await))
}

async fn start_running(world: World) -> anyhow::Result<Observation> {
    Ok(observation(world.send(world.start_of(BYSTANDER)).await))
}

/// A start whose Workflow Id is no UTF-8: made by hand, since no client would send it.
async fn invalid_utf8(world: World) -> anyhow::Result<Observation> {
    let mut start = world.start_of("torn").encode_to_vec();
    let at = start.windows(4).position(|bytes| bytes == b"torn").unwrap_or_default();
    start[at + 1] = 0xff;
    let path = path_of::<everlog_temporal_api::workflowservice::StartWorkflowExecutionRequest>();
    Ok(observation(world.call(&path, Request::new(start.into())).await))
}

async fn complete_closed(world: World) -> anyhow::Result<Observation> {
    let run = world.begin(|_fine| {}).await?;
    let task = world.task(&run).await?;
    let terminate = TerminateWorkflowExecutionRequest {
        namespace: world.namespace.clone(),
        workflow_execution: Some(execution(&run.id)),
        ..TerminateWorkflowExecutionRequest::default()
    };
    world.send(terminate).await?;
    let observation = observation(world.send(world.completion(&task.task_token, vec![complete(0)])).await);
    world.leaving(&run, observation).await
}

/// The worker knows no such query, and says so.
async fn unknown_query(world: World) -> anyhow::Result<Observation> {
    let run = world.begin(|_fine| {}).await?;
    world.work(&run, Vec::new()).await?;
    world.until(&run, EventType::WorkflowTaskCompleted).await?;
    let query = QueryWorkflowRequest {
        namespace: world.namespace.clone(),
        execution: Some(execution(&run.id)),
        query: Some(WorkflowQuery { query_type: "nonsense".into(), ..WorkflowQuery::default() }),
        ..QueryWorkflowRequest::default()
    };
    let worker = async {
        let task = world.task(&run).await?;
        let refusal = RespondQueryTaskCompletedRequest {
            task_token: task.task_token,
            completed_type: 2,
            error_message: "unknown query nonsense".into(),
            namespace: world.namespace.clone(),
            ..RespondQueryTaskCompletedRequest::default()
        };
        anyhow::Ok(world.send(refusal).await?)
    };
    let (answer, worked) = tokio::join!(world.send(query), worker);
    worked?;
    world.leaving(&run, observation(answer)).await
}
