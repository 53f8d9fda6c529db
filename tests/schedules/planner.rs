//! A client that makes schedules and looks at them.

use anyhow::Context;
use everlog_temporal_api::common::WorkflowType;
use everlog_temporal_api::schedule::schedule_action::Action;
use everlog_temporal_api::schedule::{
    IntervalSpec, Schedule, ScheduleAction, ScheduleInfo, SchedulePolicies, ScheduleSpec,
};
use everlog_temporal_api::workflow::NewWorkflowExecutionInfo;
use everlog_temporal_api::workflowservice::{
    CountWorkflowExecutionsRequest, CountWorkflowExecutionsResponse, CreateScheduleRequest,
    DescribeScheduleRequest, DescribeScheduleResponse,
};
use everlog_tests::caller::{Caller, queue};
use everlog_tests::server::Server;
use prost::Message;
use prost_types::{Duration, Timestamp};

pub const NAMESPACE: &str = "default";

/// A client of a node.
pub struct Planner(pub Caller);

/// A schedule with a time each second from `start_s` to `end_s`, both included.
pub fn each_second(id: &str, overlap_policy: i32, start_s: i64, end_s: i64) -> CreateScheduleRequest {
    let at = |seconds| Some(Timestamp { seconds, nanos: 0 });
    let start = NewWorkflowExecutionInfo {
        workflow_id: format!("run-of-{id}"),
        workflow_type: Some(WorkflowType { name: "Order".into() }),
        task_queue: queue(),
        ..NewWorkflowExecutionInfo::default()
    };
    let interval = IntervalSpec { interval: Some(Duration { seconds: 1, nanos: 0 }), phase: None };
    let schedule = Schedule {
        spec: Some(ScheduleSpec {
            interval: vec![interval],
            start_time: at(start_s),
            end_time: at(end_s),
            ..ScheduleSpec::default()
        }),
        action: Some(ScheduleAction { action: Some(Action::StartWorkflow(start)) }),
        policies: Some(SchedulePolicies { overlap_policy, ..SchedulePolicies::default() }),
        state: None,
    };
    CreateScheduleRequest {
        namespace: NAMESPACE.into(),
        schedule_id: id.into(),
        request_id: format!("make-{id}"),
        schedule: Some(schedule),
        ..CreateScheduleRequest::default()
    }
}

impl Planner {
    pub async fn at(server: &Server) -> anyhow::Result<Self> {
        Ok(Self(Caller(server.connect().await?)))
    }

    pub async fn info(&self, id: &str) -> anyhow::Result<ScheduleInfo> {
        let request = DescribeScheduleRequest { namespace: NAMESPACE.into(), schedule_id: id.into() };
        let described = DescribeScheduleResponse::decode(self.0.send(request).await?)?;
        described.info.context("a description has its info")
    }

    /// How many runs match.
    pub async fn count(&self, query: String) -> anyhow::Result<i64> {
        let request = CountWorkflowExecutionsRequest { namespace: NAMESPACE.into(), query };
        Ok(CountWorkflowExecutionsResponse::decode(self.0.send(request).await?)?.count)
    }
}
