//! The life of a schedule: it is made, found, changed and deleted, and nothing but its own requests reaches it.

use everlog_engine::api_types::{Fields, MapEntry};
use everlog_engine::machine::schedule::action::{SCHEDULED_BY_ID, SCHEDULED_START_TIME};
use everlog_engine::machine::schedule::event::{ScheduleEnd, ScheduleEventKind};
use everlog_engine::machine::schedule::request::{
    CreateSchedule, DeleteSchedule, PatchRecord, UpdateSchedule,
};
use everlog_engine::machine::schedule::{DIVISION_ATTRIBUTE, PAUSED_ATTRIBUTE};
use everlog_engine::payload::{Payload, json_text};
use everlog_engine::request::Request;
use everlog_engine::{Outcome, Rejection, Reply};
use everlog_schedules::overlap::OverlapPolicy::Skip;
use everlog_schedules::spec::ScheduleSpec;
use everlog_schedules::state::{PauseChange, ScheduleRevision, ScheduleSettings};
use expect_test::expect;
use prost::Message;

use super::retries::started;
use crate::world::{World, a_definition, application, every, hours, patch, seconds};

const FIRST: &str = "report-2001-09-09T01:47:00Z";

fn map(entries: &[(&str, &str)]) -> bytes::Bytes {
    let entry = |(key, text): &(&str, &str)| {
        let data = format!("\"{text}\"").into();
        let encoding = MapEntry { key: "encoding".into(), value: "json/plain".into() };
        let value = Payload { metadata: vec![encoding], data }.encode_to_vec().into();
        MapEntry { key: (*key).into(), value }
    };
    Fields { entries: entries.iter().map(entry).collect() }.encode_to_vec().into()
}

/// What search attributes or a memo say, without their metadata.
fn said(entries: &[MapEntry]) -> Vec<String> {
    let data = |entry: &MapEntry| Payload::decode(entry.value.clone()).expect("a payload").data;
    let said = entries.iter().map(|entry| format!("{}={}", entry.key, String::from_utf8_lossy(&data(entry))));
    said.collect()
}

fn shown(world: &World) -> [Vec<String>; 2] {
    let properties = &world.run().properties;
    [said(&properties.memo), said(&properties.search_attributes)]
}

fn token(outcome: &Outcome) -> u64 {
    match &outcome.reply {
        Reply::Schedule(standing) => standing.conflict_token,
        other => panic!("it has no token: {other:?}"),
    }
}

#[test]
fn a_schedule_starts_runs_and_hears_of_their_ends() {
    let mut world = World::new();
    world.schedule("minutely", "", Skip, |_as_it_is| {}).advance(seconds(30)).post();
    world.on(FIRST).task(|t| t.complete("done")).post();
    world.expect(expect![[r#"
        > schedule minutely
        < (next 00:00:20), created
        @ 00:00:20
        < (next 00:01:20, 1 starts)
        @ 00:00:30
        > letter to report-2001-09-09T01:47:00Z: start Report
        < run 2: workflow.started, task.scheduled
        > letter to temporal-sys-scheduler:minutely: action 1 is there
        < (next 00:01:20, 1 runs), fired 1 as report-2001-09-09T01:47:00Z
        > task: complete the workflow
        < task.started, task.completed, workflow.completed
        > letter to temporal-sys-scheduler:minutely: action 1 is completed
        < (next 00:01:20)
    "#]]);
}

#[test]
fn a_started_run_has_what_its_action_says_and_tells_of_its_schedule() {
    let mut world = World::new();
    world.schedule("minutely", "", Skip, |order| {
        order.definition.action.search_attributes = Some(map(&[("Color", "red")]));
        order.definition.action.memo = Some(map(&[("note", "x")]));
    });
    world.advance(seconds(30)).post().on(FIRST);
    let event = started(&world);
    assert_eq!(event.identity, "temporal-scheduler-shop-minutely");
    assert_eq!(event.input, Some(json_text("input")));
    let [memo, attributes] = shown(&world);
    assert_eq!(memo, ["note=\"x\""]);
    let time = format!("{SCHEDULED_START_TIME}=\"2001-09-09T01:47:00Z\"");
    assert_eq!(attributes, ["Color=\"red\"", &format!("{SCHEDULED_BY_ID}=\"minutely\""), &time]);
    let schedule = world.run().start.watcher.clone().expect("it is watched");
    assert_eq!(world.run().start.request_id, format!("{}-1", schedule.run_id));
}

#[test]
fn the_next_run_hears_of_the_last_result_and_of_the_failure_since() {
    let mut world = World::new();
    world.schedule("minutely", "", Skip, |_as_it_is| {}).advance(seconds(30)).post();
    world.on(FIRST).task(|t| t.complete("one")).post().advance(seconds(60)).post();
    world.on("report-2001-09-09T01:48:00Z");
    assert_eq!(started(&world).last_completion_result, Some(json_text("one")));
    world.task(|t| t.fail(application("no", |_as_it_is| {}))).post().advance(seconds(60)).post();
    world.on("report-2001-09-09T01:49:00Z");
    let event = started(&world);
    assert_eq!(event.last_completion_result, Some(json_text("one")));
    assert_eq!(event.continued_failure, Some(application("no", |_as_it_is| {})));
    world.task(|t| t.complete("three")).post().on_schedule("minutely");
    assert_eq!(world.schedule_results(), (Some(json_text("three")), None), "a success clears the failure");
}

#[test]
fn a_schedule_is_made_once_by_a_request_and_stands_in_the_way_of_others() {
    let mut world = World::new();
    let again = |order: &mut CreateSchedule| order.request_id = "mine".into();
    world.schedule("minutely", "", Skip, again);
    let run_id = world.run().start.run_id.clone();
    world.schedule("minutely", "again", Skip, again).schedule("minutely", "of another", Skip, |_other| {});
    assert_eq!(world.run().start.run_id, run_id);
    world.delete_schedule().schedule("minutely", "anew", Skip, again);
    assert_ne!(world.run().start.run_id, run_id, "an id is free at once");
    world.expect(expect![[r#"
        > schedule minutely
        < (next 00:00:20), created
        > schedule minutely again
        = nothing to do
        > schedule minutely of another
        ! taken: schedule "minutely" is already registered
        > delete the schedule
        < deleted
        < (the run is deleted)
        = nothing to do
        > schedule minutely anew
        < (next 00:00:20), created
    "#]]);
}

#[test]
fn what_cannot_be_a_schedule_is_refused() {
    let mut world = World::new();
    let zone = |order: &mut CreateSchedule| order.definition.spec.zone_name = "Atlantis".into();
    world.schedule("lost", "in no zone", Skip, zone);
    world.schedule("talks", "with long notes", Skip, |order| order.settings.notes = "x".repeat(1_001));
    world.schedule("", "without an id", Skip, |_as_it_is| {});
    assert!(world.current().is_none());
    world.expect(expect![[r#"
        > schedule lost in no zone
        ! invalid: Invalid schedule spec: unknown time zone Atlantis
        > schedule talks with long notes
        ! invalid: Schedule notes exceeds limit.
        > schedule  without an id
        ! invalid: The schedule has no id.
    "#]]);
}

#[test]
fn a_schedule_is_no_workflow_and_a_workflow_is_no_schedule() {
    let mut world = World::new();
    world.schedule("minutely", "", Skip, |_as_it_is| {}).hush();
    let before = world.run().clone();
    world.signal("hello").cancel().terminate("no").reset_sticky().delete();
    world.refused_reset(3);
    let begin = crate::world::start("start-1");
    world.verb("start", Request::Start(Box::new(begin)));
    assert_eq!(*world.run(), before);
    world.start("order-1").trigger().delete_schedule();
    world.start("temporal-sys-scheduler:of-a-workflow");
    world.expect(expect![[r#"
        > signal hello
        ! not found: workflow not found for ID: temporal-sys-scheduler:minutely
        > cancel
        ! not found: workflow not found for ID: temporal-sys-scheduler:minutely
        > terminate: no
        ! not found: workflow not found for ID: temporal-sys-scheduler:minutely
        > forget the sticky worker
        ! not found: workflow not found for ID: temporal-sys-scheduler:minutely
        > delete
        ! not found: workflow not found for ID: temporal-sys-scheduler:minutely
        > start
        ! invalid: Workflow Ids that begin with "temporal-sys-scheduler:" are kept for schedules.
        > start order-1
        < run 2: workflow.started, task.scheduled
        > trigger
        ! not found: schedule not found
        > delete the schedule
        ! not found: schedule not found
        > start temporal-sys-scheduler:of-a-workflow
        ! invalid: Workflow Ids that begin with "temporal-sys-scheduler:" are kept for schedules.
    "#]]);
}

#[test]
fn an_update_goes_by_the_token_that_it_names() {
    let mut world = World::new();
    world.schedule("minutely", "", Skip, |order| {
        order.memo = Some(map(&[("a", "1"), ("b", "2")]));
        order.search_attributes = Some(map(&[("Color", "red")]));
    });
    let internal = |paused: bool| {
        [format!("{DIVISION_ATTRIBUTE}=\"TemporalScheduler\""), format!("{PAUSED_ATTRIBUTE}={paused}")]
    };
    let [memo, attributes] = shown(&world);
    assert_eq!((memo.join(" ").as_str(), &attributes[1..]), ("a=\"1\" b=\"2\"", &internal(false)[..]));
    let paused = world.update_schedule("pause it", |order| {
        order.settings.is_paused = true;
        order.conflict_token = Some(1);
        order.memo = Some(map(&[("b", "3")]));
    });
    assert_eq!(token(&paused), 2);
    let [memo, attributes] = shown(&world);
    assert_eq!((memo.join(" ").as_str(), &attributes[1..]), ("a=\"1\" b=\"3\"", &internal(true)[..]));
    let late = world.update_schedule("by the old token", |order| {
        order.conflict_token = Some(1);
        order.definition.workflow_id = "other".into();
    });
    assert_eq!(late.reply, Reply::Rejected(Rejection::Outdated("mismatched conflict token".into())));
    let cleared = world.update_schedule("no attributes", |order| {
        order.search_attributes = Some(map(&[]));
        order.definition.spec = every(seconds(10));
    });
    assert_eq!((token(&cleared), shown(&world)[1].len()), (3, 2));
    assert!(world.schedule_state().settings.is_paused);
}

#[test]
fn a_patch_is_taken_once() {
    let mut world = World::new();
    world.schedule("minutely", "", Skip, |order| order.definition.spec = ScheduleSpec::default());
    let trigger = patch(|patch| patch.trigger = Some(Default::default()));
    let order = everlog_engine::machine::schedule::request::PatchSchedule {
        request_id: "once".into(),
        patch: trigger,
    };
    world.verb("trigger", Request::PatchSchedule(order.clone()));
    world.verb("trigger, again", Request::PatchSchedule(order));
    assert_eq!(world.schedule_state().running.len(), 1);
    assert!(world.schedule_state().is_starting());
    world.post();
    assert!(!world.schedule_state().is_starting());
}

#[test]
fn what_a_schedule_tells_is_numbered_without_a_gap() {
    let mut world = World::new();
    let create = CreateSchedule { definition: a_definition(Skip), ..CreateSchedule::default() };
    let made = world.on_schedule("s").verb("create", Request::CreateSchedule(Box::new(create)));
    let run_id = world.run().start.run_id.clone();
    let mut told = made.schedule_events;
    let both = |patch: &mut PatchRecord| (patch.pause, patch.unpause) = ("why".into(), "on".into());
    told.extend(world.patch_schedule("pause and unpause", patch(both)).schedule_events);
    told.extend(world.patch_schedule("pause", patch(|patch| patch.pause = "late".into())).schedule_events);
    let again = world.patch_schedule("pause again", patch(|patch| patch.pause = "again".into()));
    assert_eq!(again.schedule_events, [], "it was paused already");
    let update = UpdateSchedule {
        definition: a_definition(Skip),
        settings: ScheduleSettings { notes: "anew".into(), ..ScheduleSettings::default() },
        ..UpdateSchedule::default()
    };
    told.extend(world.verb("update", Request::UpdateSchedule(Box::new(update))).schedule_events);
    told.extend(world.verb("delete", Request::DeleteSchedule(DeleteSchedule {})).schedule_events);
    let change = |is_paused, notes: &str| {
        ScheduleEventKind::PauseChanged(PauseChange { is_paused, notes: notes.into() })
    };
    let closed = ScheduleEventKind::Closed(ScheduleEnd::Deleted);
    let revision = |conflict_token, is_paused, notes: &str| ScheduleRevision {
        conflict_token,
        is_paused,
        notes: notes.into(),
    };
    let expected = [
        ScheduleEventKind::Created(revision(1, false, "")),
        change(true, "why"),
        change(false, "on"),
        change(true, "late"),
        ScheduleEventKind::Updated(revision(6, false, "anew")),
        change(false, "anew"),
        closed,
    ];
    assert!(told.iter().map(|event| event.event_id).eq(1..=7), "{told:?}");
    assert!(told.iter().map(|event| &event.kind).eq(&expected), "{told:?}");
    assert!(told.iter().all(|event| event.run_id == run_id), "{told:?}");
}

#[test]
fn what_comes_for_a_deleted_schedule_is_dropped() {
    let mut world = World::new();
    world.schedule("minutely", "", Skip, |_as_it_is| {}).advance(seconds(20));
    world.delete_schedule().schedule("minutely", "anew", Skip, |_as_it_is| {});
    let before = world.run().clone();
    world.post().on(FIRST).task(|t| t.complete("done")).post();
    assert_eq!(*world.on_schedule("minutely").run(), before);
    world.expect(expect![[r#"
        > schedule minutely
        < (next 00:00:20), created
        @ 00:00:20
        < (next 00:01:20, 1 starts)
        > delete the schedule
        < deleted
        < (the run is deleted)
        = nothing to do
        > schedule minutely anew
        < (next 00:01:20), created
        > letter to report-2001-09-09T01:47:00Z: start Report
        < run 3: workflow.started, task.scheduled
        > letter to temporal-sys-scheduler:minutely: action 1 is there
        ! not found: schedule not found
        > task: complete the workflow
        < task.started, task.completed, workflow.completed
        > letter to temporal-sys-scheduler:minutely: action 1 is completed
        ! not found: schedule not found
    "#]]);
}

#[test]
fn a_schedule_without_times_ends_when_it_has_been_idle_for_a_week() {
    let mut world = World::new();
    world.schedule("idle", "", Skip, |order| order.definition.spec = ScheduleSpec::default());
    world.advance(hours(7 * 24 - 1)).trigger().post();
    world.advance(seconds(1));
    let run = world.schedule_state().running_runs().next().expect("it runs").workflow_id.clone();
    world.on(&run).task(|t| t.complete("done")).post().on_schedule("idle").hush();
    world.advance(hours(7 * 24));
    assert!(world.current().is_none());
    world.expect(expect![[r#"
        @ 335:00:00
        < ended
        < (the run is deleted)
        = nothing to do
        @ 335:00:01
    "#]]);
}
