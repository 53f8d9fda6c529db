//! The world that inputs are thrown at: a server, two namespaces, a run that nobody may touch, and a closed one.

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;
use bytes::Bytes;
use everlog_temporal_api::common::{WorkflowExecution, WorkflowType};
use everlog_temporal_api::full::temporal::api::common::v1::{Payload, Payloads};
use everlog_temporal_api::taskqueue::TaskQueue;
use everlog_temporal_api::workflowservice::{
    DescribeNamespaceRequest, DescribeWorkflowExecutionRequest, DescribeWorkflowExecutionResponse,
    RegisterNamespaceRequest, StartWorkflowExecutionRequest, StartWorkflowExecutionResponse,
    TerminateWorkflowExecutionRequest,
};
use everlog_temporal_api::{rpc, workflowservice};
pub use everlog_tests::raw::path_of;
use everlog_tests::{patience, raw};
use prost::{Message, Name};
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

use crate::lists;
use crate::row::{Action, Observation};

/// Counts what was named; of all worlds, so that none takes another's request for a repetition.
static SERIAL: AtomicU64 = AtomicU64::new(0);

/// Cheap to clone.
#[derive(Clone)]
pub struct World {
    pub channel: Channel,
    pub namespace: String,
    pub other_namespace: String,
}

/// A run of a world.
#[derive(Clone, Debug)]
pub struct Run {
    pub id: String,
    pub run_id: String,
    pub queue: String,
}

/// The open run that no refused input may touch.
pub const BYSTANDER: &str = "bystander";
/// A run that was terminated.
pub const CLOSED: &str = "closed";

impl World {
    /// Prepares a server.
    pub async fn new(channel: Channel) -> anyhow::Result<Self> {
        let world = Self { channel, namespace: "default".into(), other_namespace: "other".into() };
        world.register("other").await?;
        lists::prepare(&world).await?;
        for id in [BYSTANDER, CLOSED] {
            let mut start = world.start_of(id);
            start.workflow_id_reuse_policy = 4; // whatever an earlier use of a reference server left is terminated
            world.answer::<StartWorkflowExecutionResponse>(start).await?;
        }
        let request = TerminateWorkflowExecutionRequest {
            namespace: world.namespace.clone(),
            workflow_execution: Some(execution(CLOSED)),
            ..TerminateWorkflowExecutionRequest::default()
        };
        world.answer::<workflowservice::TerminateWorkflowExecutionResponse>(request).await?;
        Ok(world)
    }

    /// Makes a namespace, unless it is there, and waits until it is known.
    pub async fn register(&self, name: &str) -> anyhow::Result<()> {
        let request = RegisterNamespaceRequest {
            namespace: name.into(),
            workflow_execution_retention_period: Some(seconds(86_400)),
            ..RegisterNamespaceRequest::default()
        };
        match self.send(request).await {
            Ok(_) => {}
            Err(status) if status.code() == Code::AlreadyExists => {}
            Err(status) => return Err(status.into()),
        }
        let describe =
            || DescribeNamespaceRequest { namespace: name.into(), ..DescribeNamespaceRequest::default() };
        let (deadline, mut looks) = (patience::deadline(), patience::looks());
        while self.send(describe()).await.is_err() {
            anyhow::ensure!(!deadline.is_over(), "{name} is not known");
            looks.tick().await;
        }
        Ok(())
    }

    /// An id that was never used.
    pub fn fresh(&self, what: &str) -> String {
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        format!("{what}-{}-{serial}", std::process::id())
    }

    /// Sends a request as it is.
    pub async fn send<M: Message + Name>(&self, request: M) -> Result<Bytes, Status> {
        self.call(&path_of::<M>(), Request::new(request.encode_to_vec().into())).await
    }

    /// Sends a request that must succeed.
    pub async fn answer<A: Message + Default>(&self, request: impl Name) -> anyhow::Result<A> {
        Ok(A::decode(self.send(request).await?)?)
    }

    /// Sends bytes to a method.
    pub async fn call(&self, path: &str, request: Request<Bytes>) -> Result<Bytes, Status> {
        let answer = patience::answer(path, raw::call(&self.channel, path, request)).await;
        Ok(answer.map_err(|late| Status::internal(late.to_string()))??.into_inner())
    }

    /// A start that is fine.
    pub fn start_of(&self, id: &str) -> StartWorkflowExecutionRequest {
        StartWorkflowExecutionRequest {
            namespace: self.namespace.clone(),
            workflow_id: id.into(),
            workflow_type: Some(WorkflowType { name: "Order".into() }),
            task_queue: Some(queue(&format!("{id}-queue"))),
            identity: "tests".into(),
            request_id: self.fresh("request"),
            ..StartWorkflowExecutionRequest::default()
        }
    }

    /// Starts a run with a queue of its own.
    pub async fn begin(&self, edit: impl Fn(&mut StartWorkflowExecutionRequest)) -> anyhow::Result<Run> {
        let id = self.fresh("run");
        let mut request = self.start_of(&id);
        edit(&mut request);
        let answer: StartWorkflowExecutionResponse = self.answer(request).await?;
        Ok(Run { queue: format!("{id}-queue"), run_id: answer.run_id, id })
    }

    /// Events in a run's history.
    pub async fn history_length(&self, id: &str) -> anyhow::Result<i64> {
        let described: DescribeWorkflowExecutionResponse = self.answer(self.describe(id)).await?;
        let info = described.workflow_execution_info.context("a description has it")?;
        Ok(info.history_length)
    }

    pub fn describe(&self, id: &str) -> DescribeWorkflowExecutionRequest {
        let execution = Some(execution(id));
        DescribeWorkflowExecutionRequest { namespace: self.namespace.clone(), execution }
    }
}

/// What came of a single call.
pub fn observation(answer: Result<Bytes, Status>) -> Observation {
    let Err(status) = answer else {
        return Observation { code: Some(Code::Ok), ..Observation::default() };
    };
    // At the deadline of a call either side may simply end it: then there is no code of the server.
    let ends = ["Timeout expired", "h2 protocol error"];
    let gave_up =
        status.code() == Code::Cancelled && ends.iter().any(|end| status.message().starts_with(end));
    let code = if gave_up { Code::DeadlineExceeded } else { status.code() };
    let details = rpc::Status::decode(status.details()).unwrap_or_default().details;
    let detail = details.first().map(|detail| detail.type_url.clone()).unwrap_or_default();
    // What a server says has no causes; a connection that fails has.
    let causes =
        std::iter::successors(status.source(), |cause: &&'_ (dyn Error + 'static)| (*cause).source());
    let message = causes.fold(status.message().to_owned(), |said, cause| format!("{said}: {cause}"));
    Observation { code: Some(code), message, detail, ..Observation::default() }
}

/// A start that is fine but for one thing. If it is refused, its Workflow Id must stay unknown.
pub fn start(edit: impl Fn(&mut StartWorkflowExecutionRequest) + Send + Sync + Copy + 'static) -> Action {
    Box::new(move |world| {
        Box::pin(async move {
            let id = world.fresh("refused");
            let mut request = world.start_of(&id);
            edit(&mut request);
            let observation = observation(world.send(request).await);
            Ok(Observation { unknown_id: Some(id), ..observation })
        })
    })
}

/// Any single request, made from a world.
pub fn request<M: Message + Name + 'static>(
    make: impl Fn(&World) -> M + Send + Sync + Copy + 'static,
) -> Action {
    Box::new(move |world| Box::pin(async move { Ok(observation(world.send(make(&world)).await)) }))
}

/// A request to a method that may not be there, with nothing in it.
pub fn empty(path: &'static str) -> Action {
    Box::new(move |world| {
        Box::pin(async move { Ok(observation(world.call(path, Request::new(Bytes::new())).await)) })
    })
}

pub fn execution(id: &str) -> WorkflowExecution {
    WorkflowExecution { workflow_id: id.into(), run_id: String::new() }
}

pub fn queue(name: &str) -> TaskQueue {
    TaskQueue { name: name.into(), kind: 1, ..TaskQueue::default() }
}

pub fn seconds(seconds: i64) -> prost_types::Duration {
    prost_types::Duration { seconds, nanos: 0 }
}

/// Text of so many bytes.
pub fn text(bytes: usize) -> String {
    "x".repeat(bytes)
}

/// An encoded payload with so many bytes of data.
pub fn payload(bytes: usize) -> Payload {
    let metadata = [("encoding".to_owned(), Bytes::from_static(b"binary/plain"))];
    Payload { metadata: metadata.into(), data: vec![b'x'; bytes].into(), ..Payload::default() }
}

/// Encoded payloads with so many bytes of data.
pub fn payloads(bytes: usize) -> Option<Bytes> {
    Some(Payloads { payloads: vec![payload(bytes)] }.encode_to_vec().into())
}

/// Encoded payloads that are exactly so long, whatever the lengths of their lengths.
pub fn payloads_of(encoded_bytes: usize) -> Option<Bytes> {
    let data_bytes = (encoded_bytes.saturating_sub(100)..encoded_bytes).rev();
    let padded = data_bytes.flat_map(|data_bytes| ["", "."].map(|padding| (data_bytes, padding)));
    let mut candidate = payload(encoded_bytes);
    for (data_bytes, padding) in padded {
        candidate.data.truncate(data_bytes);
        candidate.metadata.insert("padding".into(), Bytes::from_static(padding.as_bytes()));
        let payloads = Payloads { payloads: vec![candidate] };
        if payloads.encoded_len() == encoded_bytes {
            return Some(payloads.encode_to_vec().into());
        }
        candidate = payloads.payloads.into_iter().next()?;
    }
    None
}
