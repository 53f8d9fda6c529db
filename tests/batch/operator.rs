//! An operator: starts runs, and jobs that work at them.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use everlog_temporal_api::common::WorkflowExecution;
use everlog_temporal_api::enums::BatchOperationState;
use everlog_temporal_api::full::temporal::api::common::v1::Payloads;
use everlog_temporal_api::full::temporal::api::history::v1::history_event::Attributes;
use everlog_temporal_api::temporal::api::batch::v1::{BatchOperationSignal, BatchOperationTermination};
use everlog_temporal_api::workflowservice::start_batch_operation_request::Operation;
use everlog_temporal_api::workflowservice::{
    DescribeBatchOperationRequest, DescribeBatchOperationResponse, DescribeWorkflowExecutionRequest,
    DescribeWorkflowExecutionResponse, StartBatchOperationRequest, StopBatchOperationRequest,
};
use everlog_tests::caller::Caller;
use everlog_tests::patience;
use everlog_tests::server::Server;
use prost::Message;
use tonic::Status;

pub const NAMESPACE: &str = "default";
pub const IDENTITY: &str = "operator";
pub const REASON: &str = "a bad deployment";
pub const SIGNAL: &str = "look";

/// An operator at a node.
pub struct Operator(pub Caller);

pub fn run(workflow_id: &str) -> WorkflowExecution {
    WorkflowExecution { workflow_id: workflow_id.into(), run_id: String::new() }
}

pub fn termination() -> Operation {
    Operation::TerminationOperation(BatchOperationTermination { identity: IDENTITY.into(), details: None })
}

pub fn signal() -> Operation {
    let (signal, identity) = (SIGNAL.into(), IDENTITY.into());
    Operation::SignalOperation(BatchOperationSignal { signal, identity, ..Default::default() })
}

/// A job for these runs.
pub fn job<S: AsRef<str>>(job_id: &str, ids: &[S], operation: Operation) -> StartBatchOperationRequest {
    StartBatchOperationRequest {
        namespace: NAMESPACE.into(),
        job_id: job_id.into(),
        reason: REASON.into(),
        executions: ids.iter().map(|id| run(id.as_ref())).collect(),
        operation: Some(operation),
        ..Default::default()
    }
}

impl Operator {
    pub async fn at(server: &Server) -> anyhow::Result<Self> {
        Ok(Self(Caller(server.connect().await?)))
    }

    /// Starts so many runs; their ids.
    pub async fn runs(&self, prefix: &str, count: usize) -> anyhow::Result<Vec<String>> {
        let ids: Vec<_> = (0..count).map(|number| format!("{prefix}-{number}")).collect();
        for id in &ids {
            self.0.start(id).await?;
        }
        Ok(ids)
    }

    pub async fn describe(&self, job_id: &str) -> Result<DescribeBatchOperationResponse, Status> {
        let request = DescribeBatchOperationRequest { namespace: NAMESPACE.into(), job_id: job_id.into() };
        let described = self.0.send(request).await?;
        DescribeBatchOperationResponse::decode(described).map_err(|error| Status::internal(error.to_string()))
    }

    pub async fn stop(&self, job_id: &str) -> Result<(), Status> {
        let request = StopBatchOperationRequest {
            namespace: NAMESPACE.into(),
            job_id: job_id.into(),
            reason: "enough".into(),
            identity: IDENTITY.into(),
        };
        self.0.send(request).await.map(drop)
    }

    /// Waits until the job has ended.
    pub async fn ended(&self, job_id: &str) -> anyhow::Result<DescribeBatchOperationResponse> {
        self.reached(job_id, |job| job.state() != BatchOperationState::Running).await
    }

    /// Waits until the job is so far.
    pub async fn reached(
        &self,
        job_id: &str,
        is_there: impl Fn(&DescribeBatchOperationResponse) -> bool,
    ) -> anyhow::Result<DescribeBatchOperationResponse> {
        let (deadline, mut looks) = (patience::deadline(), patience::looks());
        loop {
            looks.tick().await;
            let job = self.describe(job_id).await?;
            if is_there(&job) {
                return Ok(job);
            }
            ensure!(!deadline.is_over(), "the job is not further than {job:?}");
        }
    }

    /// Starts the job, and waits until it has ended.
    pub async fn complete(
        &self,
        job: StartBatchOperationRequest,
    ) -> anyhow::Result<DescribeBatchOperationResponse> {
        let job_id = job.job_id.clone();
        self.0.send(job).await?;
        let ended = self.ended(&job_id).await?;
        ensure!(ended.state() == BatchOperationState::Completed, "{ended:?}");
        Ok(ended)
    }

    /// The signals that each run has got, of those that the job sends.
    pub async fn signals(&self, ids: &[String]) -> anyhow::Result<BTreeMap<usize, usize>> {
        let mut runs_by_signals = BTreeMap::new();
        for id in ids {
            let history = self.0.history(id).await?;
            let is_one = |attributes: &Attributes| match attributes {
                Attributes::WorkflowExecutionSignaledEventAttributes(signaled) => {
                    signaled.signal_name == SIGNAL && signaled.identity == IDENTITY
                }
                _others => false,
            };
            let signals =
                history.iter().filter_map(|event| event.attributes.as_ref()).filter(|one| is_one(one));
            *runs_by_signals.entry(signals.count()).or_default() += 1;
        }
        Ok(runs_by_signals)
    }

    pub async fn workflow(&self, id: &str) -> Result<DescribeWorkflowExecutionResponse, Status> {
        let request =
            DescribeWorkflowExecutionRequest { namespace: NAMESPACE.into(), execution: Some(run(id)) };
        let described = self.0.send(request).await?;
        DescribeWorkflowExecutionResponse::decode(described)
            .map_err(|error| Status::internal(error.to_string()))
    }

    /// What a job has ended with: the JSON of its result, or of its last details.
    pub async fn report(&self, job_id: &str) -> anyhow::Result<serde_json::Value> {
        let last = self.0.history(job_id).await?.pop().and_then(|event| event.attributes);
        let payloads: Option<Payloads> = match last {
            Some(Attributes::WorkflowExecutionCompletedEventAttributes(closed)) => closed.result,
            Some(Attributes::WorkflowExecutionCanceledEventAttributes(closed)) => closed.details,
            Some(Attributes::WorkflowExecutionTerminatedEventAttributes(closed)) => closed.details,
            other => anyhow::bail!("it ended with {other:?}"),
        };
        let payload = payloads.and_then(|payloads| payloads.payloads.into_iter().next());
        Ok(serde_json::from_slice(&payload.context("it has a report")?.data)?)
    }
}
