//! Schedules: they are runs among runs, whose starts, answers and alarms outlive a crash at every step.

use everlog_engine::command;
use everlog_engine::machine::close;
use everlog_engine::machine::schedule::definition::ScheduleDefinition;
use everlog_engine::machine::schedule::request::{
    CreateSchedule, DeleteSchedule, PatchRecord, PatchSchedule, TriggerRecord,
};
use everlog_engine::machine::start::Begin;
use everlog_engine::request::{Request, RequestRecord};
use everlog_engine::{Rejection, Reply};
use everlog_partition::{Address, QueryOutcome, QueryRequest, Reading, TaskKind, Want};
use everlog_schedules::overlap::OverlapPolicy;
use everlog_schedules::spec::{IntervalSpec, ScheduleSpec, SpecDuration};
use everlog_schedules::state::{SchedulePolicies, ScheduleState};

use crate::harness::{Harness, NAMESPACE, workflow};

const ID: &str = "temporal-sys-scheduler:minutely";
/// From the beginning of the harness to the next whole minute, in ms.
const FIRST_MS: i64 = 40_000;
const MINUTE_MS: i64 = 60_000;

fn order(harness: &mut Harness, request: Request) -> Reply {
    let router = harness.router.clone();
    let input = RequestRecord {
        namespace_id: NAMESPACE.into(),
        workflow_id: ID.into(),
        request: Some(request),
        ..RequestRecord::default()
    };
    harness.call(Box::pin(async move { router.order(input).await })).expect("it is answered")
}

fn address() -> Address {
    Address { namespace_id: NAMESPACE.into(), workflow_id: ID.into(), run_id: String::new() }
}

fn read(harness: &mut Harness) -> Option<Reading> {
    let router = harness.router.clone();
    let reading = harness.call(Box::pin(async move { router.read(address(), Want::State).await }));
    reading.expect("it is answered")
}

fn state(harness: &mut Harness) -> ScheduleState {
    let reading = read(harness).expect("the schedule is there");
    reading.run.schedule.as_ref().expect("it is a schedule").state().clone()
}

fn watch(harness: &mut Harness) {
    let router = harness.router.clone();
    harness.call(Box::pin(async move { router.watch(address(), 0).await })).expect("it is answered");
}

fn create(harness: &mut Harness) {
    let interval = Some(SpecDuration { seconds: 60, nanos: 0 });
    let definition = ScheduleDefinition {
        spec: ScheduleSpec {
            intervals: vec![IntervalSpec { interval, phase: None }],
            ..ScheduleSpec::default()
        },
        policies: SchedulePolicies {
            overlap: OverlapPolicy::BufferAll.into(),
            ..SchedulePolicies::default()
        },
        workflow_id: "report".into(),
        action: Begin {
            workflow_type: "Report".into(),
            task_queue: "orders".into(),
            retention_ms: 60_000,
            ..Begin::default()
        },
    };
    let request_id = "create".into();
    let create = CreateSchedule { request_id, definition, ..CreateSchedule::default() };
    let reply = order(harness, Request::CreateSchedule(Box::new(create)));
    assert!(matches!(&reply, Reply::Schedule(standing) if standing.conflict_token == 1), "{reply:?}");
}

fn trigger(harness: &mut Harness) {
    let patch = PatchRecord { trigger: Some(TriggerRecord::default()), ..PatchRecord::default() };
    let reply = order(harness, Request::PatchSchedule(PatchSchedule { request_id: "once".into(), patch }));
    assert!(matches!(reply, Reply::Schedule(_)), "{reply:?}");
}

/// A worker completes the next run; says which one that was.
fn complete_a_run(harness: &mut Harness) -> String {
    let task = workflow(harness.poll(TaskKind::Workflow));
    let start = &task.run.start;
    let token = task.run.head.task.as_ref().map(everlog_engine::machine::workflow_task::Task::token);
    let command = command::CommandAttributes::CompleteWorkflow(close::Complete { result: None });
    let commands = vec![command::Command {
        command_type: command.command_type(),
        order: Some(command),
        ..command::Command::default()
    }];
    let complete =
        everlog_engine::machine::workflow_task_completed::Complete { token, commands, ..Default::default() };
    let (router, input) = (
        harness.router.clone(),
        RequestRecord {
            namespace_id: NAMESPACE.into(),
            workflow_id: start.workflow_id.clone(),
            request: Some(Request::CompleteTask(Box::new(complete))),
            ..RequestRecord::default()
        },
    );
    let reply = harness.call(Box::pin(async move { router.order(input).await })).expect("it is answered");
    assert!(matches!(reply, Reply::Completed(_)), "{reply:?}");
    start.workflow_id.clone()
}

#[test]
fn each_time_is_one_run_although_the_house_falls_at_every_step() {
    let mut harness = Harness::build();
    create(&mut harness);
    harness.crash();
    harness.advance(FIRST_MS - 1);
    harness.turn();
    assert_eq!(state(&mut harness).last_number, 0, "its time has not come");
    for minute in 1..=3 {
        harness.advance(if minute == 1 { 1 } else { MINUTE_MS });
        harness.until(|harness| state(harness).last_number == minute);
        harness.crash();
        watch(&mut harness);
        assert_eq!(state(&mut harness).counts.started, minute);
        harness.crash();
        assert_eq!(complete_a_run(&mut harness), format!("report-2023-11-14T22:{}:00Z", 13 + minute));
        harness.crash();
        harness.until(|harness| state(harness).running.is_empty());
        harness.partition().commit_soon();
        harness.until(|harness| harness.partition().is_idle());
        harness.crash();
    }
    let state = state(&mut harness);
    let recent: Vec<_> = state.recent.iter().map(|recent| (recent.number, recent.status)).collect();
    assert_eq!(recent, [(1, 2), (2, 2), (3, 2)], "all of them have completed");
}

#[test]
fn a_caller_waits_until_no_start_is_under_way() {
    let mut harness = Harness::build();
    create(&mut harness);
    trigger(&mut harness);
    watch(&mut harness);
    let state = state(&mut harness);
    assert_eq!((state.counts.started, state.is_starting()), (1, false));
    watch(&mut harness);
}

#[test]
fn a_schedule_that_was_deleted_is_gone_and_what_it_has_started_goes_on() {
    let mut harness = Harness::build();
    create(&mut harness);
    trigger(&mut harness);
    assert_eq!(order(&mut harness, Request::DeleteSchedule(DeleteSchedule {})), Reply::Done);
    assert_eq!(read(&mut harness).map(|reading| reading.is_current), None);
    complete_a_run(&mut harness);
    let missing = order(&mut harness, Request::DeleteSchedule(DeleteSchedule {}));
    assert_eq!(missing, Reply::Rejected(Rejection::NotFound("schedule not found".into())));
    harness.crash();
    assert!(read(&mut harness).is_none());
}

#[test]
fn nobody_can_ask_a_schedule_as_if_it_were_a_workflow() {
    let mut harness = Harness::build();
    create(&mut harness);
    let request = QueryRequest {
        address: address(),
        query: bytes::Bytes::new(),
        only_open: false,
        only_completed_cleanly: false,
        patience_ms: 60_000,
        is_taken: std::sync::Arc::default(),
    };
    let router = harness.router.clone();
    let outcome = harness.call(Box::pin(async move { router.query(request).await }));
    assert!(matches!(outcome, Ok(QueryOutcome::Refused(Rejection::NotFound(_)))), "{outcome:?}");
}
