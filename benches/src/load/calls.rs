//! The calls that clients make, from requests built once.

use std::time::Duration;

use bytes::Bytes;
use everlog_temporal_api::common::{WorkflowExecution, WorkflowType};
use everlog_temporal_api::enums::{
    EventType, HistoryEventFilterType, UpdateWorkflowExecutionLifecycleStage as Stage,
};
use everlog_temporal_api::query::WorkflowQuery;
use everlog_temporal_api::taskqueue::TaskQueue;
use everlog_temporal_api::update::outcome::Value;
use everlog_temporal_api::update::{self, WaitPolicy};
use everlog_temporal_api::workflowservice::{
    DescribeWorkflowExecutionRequest, GetWorkflowExecutionHistoryRequest, QueryWorkflowRequest,
    SignalWorkflowExecutionRequest, StartWorkflowExecutionRequest, TerminateWorkflowExecutionRequest,
    UpdateWorkflowExecutionRequest,
};
use prost::Message;
use tonic::{Request, Status};

use super::connection::Connections;
use super::options::Load;
use super::progress::{History, Progress};

/// The type of all workflows that clients start.
pub const WORKFLOW_TYPE: &str = "load";

/// A call that failed, and how.
#[derive(Debug, thiserror::Error)]
#[error("{call}: {:?}: {}", status.code(), status.message())]
pub struct Failed {
    pub call: &'static str,
    pub status: Status,
}

/// The clients of one run.
pub struct Calls {
    clients: Connections,
    timeout: Duration,
    start: StartWorkflowExecutionRequest,
    signal: SignalWorkflowExecutionRequest,
    update: UpdateWorkflowExecutionRequest,
    query: QueryWorkflowRequest,
    /// What every query and update must be answered with.
    answer: Bytes,
}

impl Calls {
    pub fn new(load: &Load, clients: Connections, task_queue: TaskQueue, payloads: Bytes) -> Self {
        let start = StartWorkflowExecutionRequest {
            namespace: load.namespace.clone(),
            workflow_type: Some(WorkflowType { name: WORKFLOW_TYPE.into() }),
            task_queue: Some(task_queue),
            input: Some(payloads.clone()),
            identity: "everlog-load client".into(),
            ..Default::default()
        };
        let signal = SignalWorkflowExecutionRequest {
            namespace: load.namespace.clone(),
            signal_name: "signal".into(),
            input: Some(payloads.clone()),
            identity: "everlog-load client".into(),
            ..Default::default()
        };
        let update = UpdateWorkflowExecutionRequest {
            namespace: load.namespace.clone(),
            wait_policy: Some(WaitPolicy { lifecycle_stage: Stage::Completed.into() }),
            request: Some(update::Request {
                input: Some(update::Input {
                    name: "update".into(),
                    args: Some(payloads.clone()),
                    ..Default::default()
                }),
                ..Default::default()
            }),
            ..Default::default()
        };
        let query = QueryWorkflowRequest {
            namespace: load.namespace.clone(),
            query: Some(WorkflowQuery { query_type: "query".into(), ..Default::default() }),
            ..Default::default()
        };
        Self { clients, timeout: load.timeout, start, signal, update, query, answer: payloads }
    }

    /// Starts a workflow; its run id.
    pub async fn start(&self, workflow_id: &str) -> Result<String, Failed> {
        let call = "StartWorkflowExecution";
        let mut request = self.start.clone();
        request.workflow_id = workflow_id.into();
        request.request_id = workflow_id.into();
        let answer = self.clients.client().start_workflow_execution(self.timed(request)).await;
        let answer = answer.map_err(|status| Failed { call, status })?.into_inner();
        match answer.run_id.is_empty() {
            true => Err(Failed { call, status: Status::data_loss("started without a run id") }),
            false => Ok(answer.run_id),
        }
    }

    /// Sends a signal; `request_id` makes it this one and no other.
    pub async fn signal(&self, workflow_id: &str, request_id: String) -> Result<(), Failed> {
        let mut request = self.signal.clone();
        request.workflow_execution = Some(current(workflow_id));
        request.request_id = request_id;
        let answer = self.clients.client().signal_workflow_execution(self.timed(request)).await;
        answer.map(drop).map_err(|status| Failed { call: "SignalWorkflowExecution", status })
    }

    /// Sends an update of this id, waits until it is completed, and compares the outcome with what the worker answers.
    pub async fn update(&self, workflow_id: &str, update_id: String) -> Result<(), Failed> {
        let call = "UpdateWorkflowExecution";
        let mut request = self.update.clone();
        request.workflow_execution = Some(current(workflow_id));
        let meta = update::Meta { update_id, identity: "everlog-load client".into() };
        request.request.get_or_insert_default().meta = Some(meta);
        let answer = self.clients.client().update_workflow_execution(self.timed(request)).await;
        let answer = answer.map_err(|status| Failed { call, status })?.into_inner();
        match answer.outcome.and_then(|outcome| outcome.value) {
            Some(Value::Success(success)) if success == self.answer => Ok(()),
            Some(_) => Err(Failed { call, status: Status::data_loss("not the worker's answer") }),
            None => Err(Failed { call, status: Status::deadline_exceeded("not completed yet") }),
        }
    }

    /// Reads the whole history of a workflow's current run, page by page.
    pub async fn history(&self, workflow_id: &str) -> Result<Progress, Failed> {
        let call = "GetWorkflowExecutionHistory";
        let mut request = GetWorkflowExecutionHistoryRequest {
            namespace: self.start.namespace.clone(),
            execution: Some(current(workflow_id)),
            ..Default::default()
        };
        let mut progress = Progress::default();
        loop {
            let answer =
                self.clients.client().get_workflow_execution_history(self.timed(request.clone())).await;
            let answer = answer.map_err(|status| Failed { call, status })?.into_inner();
            let bad = |message: String| Failed { call, status: Status::data_loss(message) };
            let history = History::decode(answer.history.unwrap_or_default())
                .map_err(|error| bad(error.to_string()))?;
            progress.absorb(&history.events).map_err(|gap| bad(format!("{gap:?}")))?;
            request.next_page_token = answer.next_page_token;
            if request.next_page_token.is_empty() {
                return Ok(progress);
            }
        }
    }

    /// Asks a query and compares the answer with what the worker answers.
    pub async fn query(&self, workflow_id: &str) -> Result<(), Failed> {
        let call = "QueryWorkflow";
        let mut request = self.query.clone();
        request.execution = Some(current(workflow_id));
        let answer = self.clients.client().query_workflow(self.timed(request)).await;
        let answer = answer.map_err(|status| Failed { call, status })?.into_inner();
        match answer.query_result.as_ref() == Some(&self.answer) {
            true => Ok(()),
            false => Err(Failed { call, status: Status::data_loss("not the worker's answer") }),
        }
    }

    /// Asks how a workflow stands.
    pub async fn describe(&self, workflow_id: &str) -> Result<(), Failed> {
        let call = "DescribeWorkflowExecution";
        let request = DescribeWorkflowExecutionRequest {
            namespace: self.start.namespace.clone(),
            execution: Some(current(workflow_id)),
        };
        let answer = self.clients.client().describe_workflow_execution(self.timed(request)).await;
        let answer = answer.map_err(|status| Failed { call, status })?.into_inner();
        let told = answer.workflow_execution_info.and_then(|info| info.execution);
        match told.is_some_and(|told| told.workflow_id == workflow_id) {
            true => Ok(()),
            false => Err(Failed { call, status: Status::data_loss("another workflow is described") }),
        }
    }

    /// Waits as SDK clients do until the run has completed.
    pub async fn result(&self, workflow_id: &str, run_id: String) -> Result<(), Failed> {
        let call = "GetWorkflowExecutionHistory";
        let mut request = GetWorkflowExecutionHistoryRequest {
            namespace: self.start.namespace.clone(),
            execution: Some(WorkflowExecution { workflow_id: workflow_id.into(), run_id }),
            wait_new_event: true,
            history_event_filter_type: HistoryEventFilterType::CloseEvent.into(),
            skip_archival: true,
            ..Default::default()
        };
        loop {
            let answer =
                self.clients.client().get_workflow_execution_history(self.timed(request.clone())).await;
            let answer = answer.map_err(|status| Failed { call, status })?.into_inner();
            let history = History::decode(answer.history.unwrap_or_default())
                .map_err(|error| Failed { call, status: Status::data_loss(error.to_string()) })?;
            match history.events.first().map(|event| event.event_type()) {
                Some(EventType::WorkflowExecutionCompleted) => return Ok(()),
                Some(other) => {
                    let status = Status::data_loss(format!("the run ended with {}", other.as_str_name()));
                    return Err(Failed { call, status });
                }
                None => request.next_page_token = answer.next_page_token,
            }
        }
    }

    /// Ends an open workflow.
    pub async fn terminate(&self, workflow_id: &str) -> Result<(), Failed> {
        let request = TerminateWorkflowExecutionRequest {
            namespace: self.start.namespace.clone(),
            workflow_execution: Some(current(workflow_id)),
            reason: "the load is over".into(),
            ..Default::default()
        };
        let answer = self.clients.client().terminate_workflow_execution(self.timed(request)).await;
        answer.map(drop).map_err(|status| Failed { call: "TerminateWorkflowExecution", status })
    }

    fn timed<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.set_timeout(self.timeout);
        request
    }
}

fn current(workflow_id: &str) -> WorkflowExecution {
    WorkflowExecution { workflow_id: workflow_id.into(), run_id: String::new() }
}
