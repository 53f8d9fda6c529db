//! The gateway without a connection: clients call the methods of Temporal's API directly.

use std::sync::Arc;

use everlog_engine::Settings;
use everlog_engine::api_types::{ReusePolicy, TaskQueue};
use everlog_engine::machine::{signal, start};
use everlog_partition::{CallFailure, CallResult, Dispatcher, Router};
use everlog_temporal::{
    About, ApiServices, Config, Control, DEFAULT_NAMESPACE, Limits, Metrics, Namespaces, Row, TaskQueues,
    TokenSigner,
};
use everlog_temporal_api::common::{WorkflowExecution, WorkflowType};
use everlog_temporal_api::errordetails::WorkflowExecutionAlreadyStartedFailure;
use everlog_temporal_api::workflowservice::workflow_service_server::WorkflowService;
use everlog_temporal_api::workflowservice::{SignalWorkflowExecutionRequest, StartWorkflowExecutionRequest};
use everlog_temporal_api::{rpc, taskqueue};
use prost::Message;
use tonic::{Code, Request, Status};

use crate::clients::NAMESPACE;

/// The gateway of a node.
pub struct Gateway(ApiServices);

/// What a client hears of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandReply {
    /// The run of this chain is there.
    Started(String),
    Done,
    NotFound,
    /// It may be asked again.
    Busy,
    Other(String),
}

/// The one namespace there is.
struct OneNamespace;

/// A namespace as the gateway keeps it, as far as it matters here.
#[derive(Clone, PartialEq, Message)]
struct Namespace {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(int64, tag = "6")]
    retention_ms: i64,
}

impl Control for OneNamespace {
    fn put(&self, _key: &[u8], _value: &[u8]) -> Result<(), String> {
        Err("nothing is kept here".into())
    }

    fn remove(&self, _key: &[u8]) -> Result<(), String> {
        Err("nothing is kept here".into())
    }

    fn scan(&self) -> Result<Vec<Row>, String> {
        let (id, name) = (NAMESPACE.to_owned(), DEFAULT_NAMESPACE.to_owned());
        let namespace = Namespace { id, name, retention_ms: 30 * 86_400_000 };
        Ok(vec![(b"namespace/default".to_vec(), namespace.encode_to_vec())])
    }
}

impl Gateway {
    /// A gateway in front of a node's partitions.
    pub fn over(router: &Router) -> Self {
        let about = About {
            server_version: "0.0.0".into(),
            cluster_id: NAMESPACE.into(),
            cluster_name: "simulation".into(),
            address: String::new(),
            partitions: crate::node::PARTITIONS,
            persistence_store: String::new(),
            visibility_store: String::new(),
        };
        let limits = Limits::default();
        let metrics = Metrics::register(&prometheus::Registry::new()).expect("nothing else is registered");
        let namespaces = Namespaces::open(Arc::new(OneNamespace), &limits, &metrics);
        let task_queues = TaskQueues::open(Arc::new(OneNamespace), Dispatcher::new(|| 0));
        let config = Config {
            about,
            limits,
            settings: Settings::standard(),
            token_signer: TokenSigner::new(&[vec![7; 32]]).expect("long enough"),
            namespaces: Arc::new(namespaces.expect("memory does not fail")),
            task_queues: Arc::new(task_queues.expect("memory does not fail")),
            router: router.clone(),
            metrics,
            peers: None,
            guard: None,
            traces: None,
        };
        Self(ApiServices(Arc::new(everlog_temporal::Gateway::new(config).expect("it can work"))))
    }

    pub async fn start(&self, workflow_id: &str, begin: &start::Begin) -> CallResult<CommandReply> {
        let request = StartWorkflowExecutionRequest {
            namespace: DEFAULT_NAMESPACE.into(),
            workflow_id: workflow_id.into(),
            workflow_type: Some(WorkflowType { name: begin.workflow_type.clone() }),
            task_queue: Some(taskqueue::TaskQueue {
                name: begin.task_queue.clone(),
                kind: TaskQueue::normal("").kind,
                ..taskqueue::TaskQueue::default()
            }),
            input: begin.input.clone(),
            workflow_task_timeout: Some(prost_types::Duration {
                seconds: begin.task_timeout_ms / 1_000,
                nanos: (begin.task_timeout_ms % 1_000 * 1_000_000) as i32,
            }),
            request_id: begin.request_id.clone(),
            workflow_id_reuse_policy: ReusePolicy::RejectDuplicate.into(),
            ..StartWorkflowExecutionRequest::default()
        };
        match self.0.start_workflow_execution(Request::new(request)).await {
            Ok(response) => Ok(CommandReply::Started(response.into_inner().first_execution_run_id)),
            Err(status) => refused(&status),
        }
    }

    pub async fn signal(
        &self,
        workflow_id: &str,
        run_id: &str,
        order: &signal::Signal,
    ) -> CallResult<CommandReply> {
        let request = SignalWorkflowExecutionRequest {
            namespace: DEFAULT_NAMESPACE.into(),
            workflow_execution: Some(WorkflowExecution {
                workflow_id: workflow_id.into(),
                run_id: run_id.into(),
            }),
            signal_name: order.name.clone(),
            request_id: order.request_id.clone(),
            ..SignalWorkflowExecutionRequest::default()
        };
        match self.0.signal_workflow_execution(Request::new(request)).await {
            Ok(_) => Ok(CommandReply::Done),
            Err(status) => refused(&status),
        }
    }
}

/// A status as clients read it.
fn refused(status: &Status) -> CallResult<CommandReply> {
    match status.code() {
        Code::Unavailable => Err(CallFailure::Unavailable),
        Code::Internal => Err(CallFailure::Internal),
        Code::ResourceExhausted => Ok(CommandReply::Busy),
        Code::NotFound => Ok(CommandReply::NotFound),
        Code::AlreadyExists => Ok(first_run_id(status).map_or_else(|| other(status), CommandReply::Started)),
        _other => Ok(other(status)),
    }
}

fn other(status: &Status) -> CommandReply {
    CommandReply::Other(format!("{:?}: {}", status.code(), status.message()))
}

/// The chain that a start found there.
fn first_run_id(status: &Status) -> Option<String> {
    let details = rpc::Status::decode(status.details()).ok()?.details;
    let detail = WorkflowExecutionAlreadyStartedFailure::decode(details.first()?.value.as_slice()).ok()?;
    Some(detail.first_execution_run_id)
}
