//! Commands for schedules, and what their events say: everything once, whatever falls in between.

use everlog_avro::event::WorkflowEvent;
use everlog_engine::machine::schedule::WORKFLOW_ID_PREFIX;
use everlog_engine::machine::schedule::definition::ScheduleDefinition;
use everlog_engine::machine::schedule::request::{
    CreateSchedule, DeleteSchedule, PatchRecord, PatchSchedule, TriggerRecord, UpdateSchedule,
};
use everlog_engine::machine::start::Begin;
use everlog_engine::request::Request;
use everlog_wire::Body;
use everlog_wire::public_command::{Original, PublicCommand};

use crate::harness::{Harness, forwarded, input, original, owner};

/// The Workflow Id of a schedule that the harness owns.
fn workflow_id() -> String {
    let ids = (0..).map(|n| format!("{WORKFLOW_ID_PREFIX}nightly-{n}"));
    ids.into_iter().find(|id| owner(id) == owner("order-1")).expect("ids are spread over all partitions")
}

fn command(offset: u64, request: Request) -> Body {
    let id = workflow_id();
    let schedule_id = id.strip_prefix(WORKFLOW_ID_PREFIX).expect("it is a schedule's").to_owned();
    Body::PublicCommand(PublicCommand {
        input: Some(input(&id, request.clone())),
        command_id: Some(format!("c-{offset}")),
        original: Some(Original { key: Some(schedule_id.into()), ..original() }),
        ..forwarded(offset, request)
    })
}

/// Starts `order-1`, and only when it is told to.
fn definition() -> ScheduleDefinition {
    let mut definition = ScheduleDefinition {
        workflow_id: "order-1".into(),
        action: Begin {
            workflow_type: "Order".into(),
            task_queue: "orders".into(),
            retention_ms: 86_400_000,
            ..Begin::default()
        },
        ..ScheduleDefinition::default()
    };
    definition.policies.keep_original_workflow_id = true;
    definition
}

fn create() -> Request {
    let (request_id, definition) = ("create".into(), definition());
    Request::CreateSchedule(Box::new(CreateSchedule { request_id, definition, ..CreateSchedule::default() }))
}

/// Of the schedule as a reply has told it.
fn update(token: u64) -> Request {
    Request::UpdateSchedule(Box::new(UpdateSchedule {
        request_id: format!("update-{token}"),
        definition: definition(),
        conflict_token: Some(token),
        ..UpdateSchedule::default()
    }))
}

fn patch(request_id: &str, patch: PatchRecord) -> Request {
    Request::PatchSchedule(PatchSchedule { request_id: request_id.into(), patch })
}

fn trigger(request_id: &str) -> Request {
    patch(request_id, PatchRecord { trigger: Some(TriggerRecord::default()), ..PatchRecord::default() })
}

fn of_schedule(harness: &mut Harness) -> Vec<WorkflowEvent<'static>> {
    harness.events().into_iter().filter(|event| event.schedule_id.is_some()).collect()
}

#[test]
fn what_becomes_of_a_schedule_is_told_once_and_in_order() {
    let mut harness = Harness::build();
    let pause = PatchRecord { pause: "why".into(), unpause: "on".into(), ..PatchRecord::default() };
    let commands = [
        command(0, create()),
        command(1, trigger("first")),
        command(2, trigger("second")),
        command(3, patch("pause", pause)),
        command(4, update(1)),
        command(5, update(3)),
        command(6, Request::DeleteSchedule(DeleteSchedule {})),
        command(7, Request::DeleteSchedule(DeleteSchedule {})),
    ];
    for (at, body) in commands.iter().enumerate() {
        // The run of a trigger is there before the next command comes.
        harness.bring(vec![body.clone()]);
        harness.until(|harness| {
            harness.settle();
            harness.count("ScheduleFired") == usize::from(at > 0)
        });
        harness.crash();
        harness.bring(commands[..=at].to_vec());
        harness.crash();
    }
    harness.settle();
    let events = of_schedule(&mut harness);
    let told: Vec<_> = events.iter().map(|event| (event.event_id, event.r#type.as_ref())).collect();
    let expected = [
        (1, "ScheduleCreated"),
        (2, "ScheduleFired"),
        (3, "ScheduleSkipped"),
        (4, "SchedulePaused"),
        (5, "ScheduleUnpaused"),
        (6, "ScheduleUpdated"),
        (7, "ScheduleClosed"),
    ];
    assert_eq!(told, expected);
    let outcomes = harness.outcomes();
    assert!(events.iter().all(|event| Some(event.run_id.as_ref()) == outcomes[0].run_id.as_deref()));
    assert!(events.iter().all(|event| event.workflow_id == workflow_id()));
    assert_eq!(events[0].schedule_created.as_ref().expect("it is made").conflict_token, 1);
    let fired = events[1].schedule_fired.as_ref().expect("it fired");
    assert_eq!((fired.action, fired.workflow_id.as_ref(), fired.is_manual), (1, "order-1", true));
    let started = harness.events().into_iter().find(|event| event.r#type == "WorkflowExecutionStarted");
    assert_eq!(started.expect("the run is there").run_id, fired.run_id);
    assert_eq!(events[2].schedule_skipped.as_ref().expect("it is skipped").reason, "Overlap");
    assert_eq!(events[3].schedule_paused.as_ref().expect("it is paused").notes.as_deref(), Some("why"));
    assert_eq!(events[4].schedule_unpaused.as_ref().expect("it goes on").notes.as_deref(), Some("on"));
    let told: Vec<_> =
        outcomes.iter().map(|outcome| (outcome.status.as_str(), outcome.conflict_token)).collect();
    let expected = [
        ("done", Some(1)),
        ("done", Some(1)),
        ("done", Some(1)),
        ("done", Some(3)),
        ("refused", None),
        ("done", Some(4)),
        ("done", None),
        ("refused", None),
    ];
    assert_eq!(told, expected);
    let codes: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.code.as_deref()).collect();
    assert_eq!(codes, ["outdated", "not_found"]);
    assert_eq!(events[5].schedule_updated.as_ref().expect("it is replaced").conflict_token, 4);
    let id = workflow_id();
    let named =
        outcomes.iter().all(|outcome| outcome.workflow_id.as_deref() == id.strip_prefix(WORKFLOW_ID_PREFIX));
    assert!(named, "a reply names the schedule as its command does: {outcomes:?}");
}
