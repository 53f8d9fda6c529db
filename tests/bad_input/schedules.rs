//! Rows about schedules: what a request has to say, specifications that mean nothing, schedules that are not there, and the runs
//! that are behind them.

use everlog_temporal_api::common::{RetryPolicy, WorkflowExecution, WorkflowType};
use everlog_temporal_api::schedule::schedule_action::Action as StartOrElse;
use everlog_temporal_api::schedule::{
    BackfillRequest, IntervalSpec, Range, Schedule, ScheduleAction, SchedulePatch, SchedulePolicies,
    ScheduleSpec, ScheduleState, StructuredCalendarSpec,
};
use everlog_temporal_api::workflow::NewWorkflowExecutionInfo;
use everlog_temporal_api::workflowservice::{
    CountSchedulesRequest, CreateScheduleRequest, DeleteScheduleRequest, DescribeScheduleRequest,
    DescribeWorkflowExecutionRequest, ListScheduleMatchingTimesRequest, ListSchedulesRequest,
    PatchScheduleRequest, SignalWorkflowExecutionRequest, UpdateScheduleRequest,
};
use prost_types::Duration;
use tonic::Code;

use crate::row::{Action, Row, invalid, refused, row};
use crate::world::{execution, queue, request, text};

const NOT_THERE: &str = "schedule not found";
const STRICTER: &str = "a Temporal server takes it, and nothing ever comes of it";
const HIDDEN: &str = "there a schedule is a workflow";

#[rustfmt::skip]
pub fn rows() -> Vec<Row> {
    vec![
        row(80, "a schedule without an id", create(|r| r.schedule_id.clear()), invalid("ScheduleId is not set on request.")),
        row(80, "a schedule with an id > 1000 bytes", create(|r| r.schedule_id = text(990)), invalid("ScheduleId length exceeds limit.")),
        row(80, "a schedule without a request id", create(|r| r.request_id.clear()), invalid("RequestId is not set on request.")),
        row(80, "a schedule without a namespace", create(|r| r.namespace.clear()), invalid("Namespace not set on request.").unlike("there it is: Namespace is empty.")),
        row(80, "a schedule in a namespace that is not there", create(|r| r.namespace = "nowhere".into()), refused(Code::NotFound, "Namespace nowhere is not found.")),
        row(80, "a schedule of nothing", create(|r| r.schedule = None), invalid("Only StartWorkflow action is supported for schedules")),
        row(80, "a schedule without an action", schedule(|s| s.action = None), invalid("Only StartWorkflow action is supported for schedules")),
        row(80, "a schedule of a workflow without an id", action(|a| a.workflow_id.clear()), invalid("WorkflowId is not set on request.")),
        row(80, "a schedule of a workflow with an id that leaves no room for a time", action(|a| a.workflow_id = text(990)), invalid("WorkflowId length exceeds limit.")),
        row(80, "a schedule of a workflow without a type", action(|a| a.workflow_type = None), invalid("WorkflowType is not set on request.")),
        row(80, "a schedule of a workflow without a queue", action(|a| a.task_queue = None), invalid("taskQueue is not set")),
        row(80, "a schedule of a cron workflow", action(|a| a.cron_schedule = "* * * * *".into()), invalid("Scheduled workflow must not contain CronSchedule")),
        row(80, "a schedule of a workflow with a reuse policy", action(|a| a.workflow_id_reuse_policy = 3), invalid("Scheduled workflow must not contain WorkflowIDReusePolicy")),
        row(80, "a schedule of a workflow with a bad retry policy", action(|a| a.retry_policy = Some(RetryPolicy { backoff_coefficient: 0.5, ..RetryPolicy::default() })), invalid("BackoffCoefficient cannot be less than 1 on retry policy.")),
        row(80, "a schedule with an unknown overlap policy", schedule(|s| s.policies = Some(SchedulePolicies { overlap_policy: 9, ..SchedulePolicies::default() })), invalid("unknown overlap policy: 9").unlike(STRICTER)),
        row(80, "a schedule with a negative number of actions", schedule(|s| s.state = Some(ScheduleState { remaining_actions: -1, ..ScheduleState::default() })), invalid("remaining_actions is negative").unlike(STRICTER)),
        row(80, "a schedule with notes > 1000 bytes", schedule(|s| s.state = Some(ScheduleState { notes: text(1_001), ..ScheduleState::default() })), invalid("Schedule notes exceeds limit.").unlike("a Temporal server 1.29 takes them")),
        row(80, "a schedule with a cron string of four fields", spec(|s| s.cron_string = vec!["* * * *".into()]), invalid("Invalid schedule spec: ")),
        row(80, "a schedule with a cron string out of range", spec(|s| s.cron_string = vec!["61 * * * *".into()]), invalid("Invalid schedule spec: ")),
        row(74, "a schedule with an interval of nothing", spec(|s| s.interval = vec![IntervalSpec::default()]), invalid("Invalid schedule spec: interval is too small")),
        row(80, "a schedule with a phase that is an interval", spec(|s| s.interval = vec![every(60, 60)]), invalid("Invalid schedule spec: phase cannot be greater than Interval")),
        row(80, "a schedule with hour 24", spec(|s| s.structured_calendar = vec![StructuredCalendarSpec { hour: vec![Range { start: 24, ..Range::default() }], ..StructuredCalendarSpec::default() }]), invalid("Invalid schedule spec: ")),
        row(80, "a schedule in a time zone that is not there", spec(|s| s.timezone_name = "Atlantis/Center".into()), invalid("Invalid schedule spec: unknown time zone Atlantis/Center")),
        row(80, "a schedule with a time zone file that is none", spec(|s| s.timezone_data = b"TZif2 and so on".as_slice().into()), invalid("Invalid schedule spec: ")),
        row(80, "a schedule with 1001 intervals", spec(|s| s.interval = vec![every(60, 0); 1_001]), invalid("Invalid schedule spec: more than 1000").unlike(STRICTER)),
        row(80, "a schedule with a jitter of years that are none", spec(|s| s.jitter = Some(Duration { seconds: i64::MAX, nanos: 0 })), invalid("Invalid schedule spec: jitter is out of range").unlike(STRICTER)),
        row(80, "a schedule with a backfill without bounds", create(|r| r.initial_patch = Some(SchedulePatch { backfill_request: vec![BackfillRequest::default()], ..SchedulePatch::default() })), invalid("a backfill needs start_time and end_time").unlike(STRICTER)),
        row(80, "describe a schedule that is not there", request(|world| DescribeScheduleRequest { namespace: world.namespace.clone(), schedule_id: "nobody's".into() }), refused(Code::NotFound, NOT_THERE).unlike(HIDDEN)),
        row(80, "change a schedule that is not there", request(|world| UpdateScheduleRequest { namespace: world.namespace.clone(), schedule_id: "nobody's".into(), request_id: "once".into(), schedule: Some(well()), ..UpdateScheduleRequest::default() }), refused(Code::NotFound, NOT_THERE).unlike(HIDDEN)),
        row(80, "pause a schedule that is not there", patch(|r| r.patch = Some(SchedulePatch { pause: "enough".into(), ..SchedulePatch::default() })), refused(Code::NotFound, NOT_THERE).unlike(HIDDEN)),
        row(80, "a patch of nothing", patch(|r| r.patch = None), invalid("Patch is not set on request.")),
        row(80, "a patch with notes > 1000 bytes", patch(|r| r.patch = Some(SchedulePatch { unpause: text(1_001), ..SchedulePatch::default() })), invalid("Schedule notes exceeds limit.")),
        row(80, "delete a schedule that is not there", request(|world| DeleteScheduleRequest { namespace: world.namespace.clone(), schedule_id: "nobody's".into(), identity: "tests".into() }), refused(Code::NotFound, NOT_THERE).unlike(HIDDEN)),
        row(80, "matching times without bounds", request(|world| ListScheduleMatchingTimesRequest { namespace: world.namespace.clone(), schedule_id: "nobody's".into(), ..ListScheduleMatchingTimesRequest::default() }), invalid("missing or invalid query")),
        row(80, "schedules by an attribute of workflows", request(|world| ListSchedulesRequest { namespace: world.namespace.clone(), query: "WorkflowType = 'Order'".into(), ..ListSchedulesRequest::default() }), invalid("invalid query filter for schedules: cannot filter on 'WorkflowType'")),
        row(80, "a count of schedules that is no query", request(|world| CountSchedulesRequest { namespace: world.namespace.clone(), query: "ScheduleId = ".into() }), invalid("invalid query")),
        row(80, "the workflow behind a schedule", request(|world| DescribeWorkflowExecutionRequest { namespace: world.namespace.clone(), execution: Some(execution("temporal-sys-scheduler:mine")) }), refused(Code::NotFound, "workflow not found for ID: temporal-sys-scheduler:mine")),
        row(80, "a signal to the workflow behind a schedule", request(|world| SignalWorkflowExecutionRequest { namespace: world.namespace.clone(), workflow_execution: Some(WorkflowExecution { workflow_id: "temporal-sys-scheduler:mine".into(), run_id: String::new() }), signal_name: "patch".into(), ..SignalWorkflowExecutionRequest::default() }), refused(Code::NotFound, "workflow not found for ID: temporal-sys-scheduler:mine")),
        row(80, "a start with a Workflow Id of schedules", request(|world| world.start_of("temporal-sys-scheduler:mine")), invalid("Workflow Ids that begin with \"temporal-sys-scheduler:\" are kept for schedules.").unlike(HIDDEN)),
    ]
}

/// A schedule that never starts anything.
fn well() -> Schedule {
    let start = NewWorkflowExecutionInfo {
        workflow_id: "scheduled".into(),
        workflow_type: Some(WorkflowType { name: "Order".into() }),
        task_queue: Some(queue("nobody")),
        ..NewWorkflowExecutionInfo::default()
    };
    let action = ScheduleAction { action: Some(StartOrElse::StartWorkflow(start)) };
    Schedule { spec: Some(ScheduleSpec::default()), action: Some(action), ..Schedule::default() }
}

fn every(seconds: i64, phase_s: i64) -> IntervalSpec {
    let span = |seconds| Some(Duration { seconds, nanos: 0 });
    IntervalSpec { interval: span(seconds), phase: span(phase_s) }
}

fn create(edit: fn(&mut CreateScheduleRequest)) -> Action {
    request(move |world| {
        let mut create = CreateScheduleRequest {
            namespace: world.namespace.clone(),
            schedule_id: world.fresh("schedule"),
            request_id: "once".into(),
            schedule: Some(well()),
            ..CreateScheduleRequest::default()
        };
        edit(&mut create);
        create
    })
}

fn schedule(edit: fn(&mut Schedule)) -> Action {
    request(move |world| {
        let mut schedule = well();
        edit(&mut schedule);
        CreateScheduleRequest {
            namespace: world.namespace.clone(),
            schedule_id: world.fresh("schedule"),
            request_id: "once".into(),
            schedule: Some(schedule),
            ..CreateScheduleRequest::default()
        }
    })
}

fn spec(edit: fn(&mut ScheduleSpec)) -> Action {
    request(move |world| {
        let (mut schedule, mut spec) = (well(), ScheduleSpec::default());
        edit(&mut spec);
        schedule.spec = Some(spec);
        CreateScheduleRequest {
            namespace: world.namespace.clone(),
            schedule_id: world.fresh("schedule"),
            request_id: "once".into(),
            schedule: Some(schedule),
            ..CreateScheduleRequest::default()
        }
    })
}

fn action(edit: fn(&mut NewWorkflowExecutionInfo)) -> Action {
    request(move |world| {
        let mut schedule = well();
        if let Some(ScheduleAction { action: Some(StartOrElse::StartWorkflow(start)) }) = &mut schedule.action
        {
            edit(start);
        }
        CreateScheduleRequest {
            namespace: world.namespace.clone(),
            schedule_id: world.fresh("schedule"),
            request_id: "once".into(),
            schedule: Some(schedule),
            ..CreateScheduleRequest::default()
        }
    })
}

fn patch(edit: fn(&mut PatchScheduleRequest)) -> Action {
    request(move |world| {
        let mut patch = PatchScheduleRequest {
            namespace: world.namespace.clone(),
            schedule_id: "nobody's".into(),
            request_id: "once".into(),
            ..PatchScheduleRequest::default()
        };
        edit(&mut patch);
        patch
    })
}
