//! Commands for schedules: each kind in both forms, and each way to be refused.

use everlog_avro::blob::Blob;
use everlog_avro::command::{
    Code, Command, GivenBackfill, GivenCalendar, GivenInterval, GivenPatch, GivenPolicies, GivenSchedule,
    GivenSpec, GivenState, GivenTrigger, ScheduleCreation, ScheduleReplacement, Start,
};
use everlog_avro::outcome::Outcome;
use everlog_avro::payload::Payload;
use everlog_engine::machine::schedule::request::{CreateSchedule, PatchSchedule, UpdateSchedule};
use everlog_engine::request::Request;
use everlog_engine::{Reply, ScheduleStanding};
use everlog_schedules::overlap::OverlapPolicy;
use everlog_schedules::spec::{SpecDuration, SpecTime, ValueRange};
use everlog_schedules::state::NOTES_MAX_BYTES;

use crate::world::{Known, NAMESPACE_ID, RUN_ID, avro, input, read, read_in, refusal, start};

const NOON_MS: i64 = 1_763_700_000_000;

fn of(r#type: &str) -> Command<Payload<'static>> {
    Command { r#type: r#type.into(), ..Command::default() }
}

fn json(text: &str) -> Payload<'static> {
    Payload { encoding: "json/plain".into(), text: Some(text.to_owned().into()), ..Payload::default() }
}

fn a_schedule() -> GivenSchedule<Payload<'static>> {
    let calendar = GivenCalendar { hour: "9".into(), comment: "early".into(), ..GivenCalendar::default() };
    let weekend = GivenCalendar { day_of_week: "sat,sun".into(), ..GivenCalendar::default() };
    GivenSchedule {
        spec: Some(GivenSpec {
            calendars: vec![calendar],
            cron: vec!["0 12 * * MON".into()],
            intervals: vec![GivenInterval { interval_ms: 90_500, phase_ms: Some(7_250) }],
            excluded_calendars: vec![weekend],
            start_time: Some(NOON_MS),
            end_time: Some(NOON_MS + 1_001),
            jitter_ms: Some(1_500),
            time_zone: Some("Europe/Berlin".into()),
            time_zone_data: None,
        }),
        workflow_id: "report".into(),
        start: Some(Start { workflow_run_timeout_ms: Some(60_000), ..start().start.expect("a start") }),
        policies: Some(GivenPolicies {
            overlap: Some("BufferOne".into()),
            catchup_window_ms: Some(3_600_000),
            pause_on_failure: true,
            keep_original_workflow_id: true,
        }),
        state: Some(GivenState { paused: true, notes: Some("not yet".into()), remaining_actions: Some(3) }),
    }
}

fn a_patch() -> GivenPatch {
    GivenPatch {
        trigger: Some(GivenTrigger { overlap: Some("AllowAll".into()), scheduled_time: Some(NOON_MS) }),
        backfills: vec![GivenBackfill {
            start_time: Some(NOON_MS - 1),
            end_time: Some(NOON_MS),
            overlap: Some("BufferAll".into()),
        }],
        pause: Some("for repairs".into()),
        unpause: Some("repaired".into()),
    }
}

/// One command of each kind, with everything in it.
pub fn commands() -> Vec<Command<Payload<'static>>> {
    let properties = || Some([("owner".to_owned(), json("\"Ann\""))].into());
    let create = ScheduleCreation {
        schedule: Some(a_schedule()),
        patch: Some(a_patch()),
        memo: properties(),
        search_attributes: properties(),
    };
    let update = ScheduleReplacement {
        schedule: Some(a_schedule()),
        conflict_token: Some(258),
        memo: properties(),
        search_attributes: properties(),
    };
    vec![
        Command { create_schedule: Some(create), ..of("create_schedule") },
        Command { update_schedule: Some(update), ..of("update_schedule") },
        Command { patch_schedule: Some(a_patch()), ..of("patch_schedule") },
        of("delete_schedule"),
    ]
}

/// The same in JSON.
const JSON: [&str; 4] = [
    r#"{"type": "create_schedule", "create_schedule": {"schedule": SCHEDULE, "patch": PATCH,
        "memo": {"owner": "Ann"}, "search_attributes": {"owner": "Ann"}}}"#,
    r#"{"type": "update_schedule", "update_schedule": {"schedule": SCHEDULE, "conflict_token": 258,
        "memo": {"owner": "Ann"}, "search_attributes": {"owner": "Ann"}}}"#,
    r#"{"type": "patch_schedule", "patch_schedule": PATCH}"#,
    r#"{"type": "delete_schedule"}"#,
];
const SCHEDULE: &str = r#"{
    "spec": {
        "calendars": [{"hour": "9", "comment": "early"}], "cron": ["0 12 * * MON"],
        "intervals": [{"interval_ms": 90500, "phase_ms": 7250}], "excluded_calendars": [{"day_of_week": "sat,sun"}],
        "start_time": 1763700000000, "end_time": 1763700001001, "jitter_ms": 1500, "time_zone": "Europe/Berlin"},
    "workflow_id": "report",
    "start": {"workflow_type": "Order", "task_queue": "orders", "input": [{"total": 12}],
        "workflow_run_timeout_ms": 60000},
    "policies": {"overlap": "BufferOne", "catchup_window_ms": 3600000, "pause_on_failure": true,
        "keep_original_workflow_id": true},
    "state": {"paused": true, "notes": "not yet", "remaining_actions": 3}}"#;
const PATCH: &str = r#"{"trigger": {"overlap": "AllowAll", "scheduled_time": 1763700000000},
    "backfills": [{"start_time": 1763699999999, "end_time": 1763700000000, "overlap": "BufferAll"}],
    "pause": "for repairs", "unpause": "repaired"}"#;

fn created(bytes: &[u8]) -> CreateSchedule {
    match input(read(bytes, &[("command-id", Some(b"c-1"))])).request {
        Some(Request::CreateSchedule(create)) => *create,
        other => panic!("nothing is created: {other:?}"),
    }
}

#[test]
fn avro_and_json_ask_for_the_same() {
    for (command, json) in commands().iter().zip(JSON) {
        let json = json.replace("SCHEDULE", SCHEDULE).replace("PATCH", PATCH);
        let by_json = input(read(json.as_bytes(), &[]));
        assert_eq!(by_json, input(read(&avro(command), &[])), "{}", command.r#type);
        assert_eq!((by_json.namespace_id.as_str(), by_json.run_id.as_str()), (NAMESPACE_ID, ""));
        assert_eq!(by_json.workflow_id, "temporal-sys-scheduler:order-1", "the key is the schedule's id");
    }
}

#[test]
fn all_that_a_schedule_says_arrives() {
    let create = created(&avro(&commands()[0]));
    assert_eq!(create.request_id, "c-1");
    assert!(create.memo.is_some() && create.search_attributes.is_some());
    let spec = &create.definition.spec;
    assert_eq!(
        (spec.calendars.len(), spec.calendars[0].comment.as_str(), spec.excluded.len()),
        (2, "early", 1)
    );
    assert_eq!(spec.calendars[0].hour, [ValueRange { start: 9, ..ValueRange::default() }]);
    let (interval, phase) = (SpecDuration::of_ns(90_500_000_000), SpecDuration::of_ns(7_250_000_000));
    assert_eq!((spec.intervals[0].interval, spec.intervals[0].phase), (Some(interval), Some(phase)));
    assert_eq!(spec.start, Some(SpecTime::of_ms(NOON_MS)));
    assert_eq!(spec.end, Some(SpecTime { seconds: NOON_MS / 1_000 + 1, nanos: 1_000_000 }));
    assert_eq!(spec.jitter, Some(SpecDuration::of_ns(1_500_000_000)));
    assert_eq!(spec.zone_name, "Europe/Berlin");
    let policies = &create.definition.policies;
    assert_eq!(policies.overlap(), OverlapPolicy::BufferOne);
    assert_eq!(policies.catchup_window, Some(SpecDuration::of_ns(3_600_000_000_000)));
    assert!(policies.pause_on_failure && policies.keep_original_workflow_id);
    let action = &create.definition.action;
    assert_eq!((create.definition.workflow_id.as_str(), action.workflow_type.as_str()), ("report", "Order"));
    assert_eq!(action.identity, "temporal-scheduler-default-order-1");
    assert_eq!((action.request_id.as_str(), action.run_timeout_ms), ("", 60_000));
    let settings = &create.settings;
    assert_eq!(
        (settings.is_paused, settings.notes.as_str(), settings.is_limited, settings.remaining),
        (true, "not yet", true, 3)
    );
    let patch = create.patch.expect("a patch");
    let trigger = patch.trigger.expect("a trigger");
    assert_eq!((trigger.scheduled_ms, trigger.overlap()), (Some(NOON_MS), OverlapPolicy::AllowAll));
    assert_eq!(
        (patch.backfills[0].start, patch.backfills[0].end),
        (SpecTime::of_ms(NOON_MS - 1), SpecTime::of_ms(NOON_MS))
    );
    assert_eq!(patch.backfills[0].overlap(), OverlapPolicy::BufferAll);
    assert_eq!((patch.pause.as_str(), patch.unpause.as_str()), ("for repairs", "repaired"));
}

#[test]
fn a_change_is_taken_once_by_its_id_and_may_name_a_token() {
    let asked = |command| input(read(&avro(command), &[("command-id", Some(b"c-2"))])).request;
    let commands = commands();
    let Some(Request::UpdateSchedule(update)) = asked(&commands[1]) else { panic!("no update") };
    let UpdateSchedule { request_id, conflict_token, memo, search_attributes, .. } = *update;
    assert_eq!((request_id.as_str(), conflict_token), ("c-2", Some(258)));
    assert!(memo.is_some() && search_attributes.is_some());
    let Some(Request::PatchSchedule(patch)) = asked(&commands[2]) else { panic!("no patch") };
    let PatchSchedule { request_id, patch } = patch;
    assert_eq!((request_id.as_str(), patch.pause.as_str()), ("c-2", "for repairs"));
    assert!(matches!(asked(&commands[3]), Some(Request::DeleteSchedule(_))));
}

#[test]
fn a_schedule_without_a_limit_has_none() {
    let schedule = GivenSchedule { spec: None, policies: None, state: None, ..a_schedule() };
    let create = ScheduleCreation { schedule: Some(schedule), ..ScheduleCreation::default() };
    let create = created(&avro(&Command { create_schedule: Some(create), ..of("create_schedule") }));
    assert!(!create.settings.is_limited && !create.settings.is_paused);
    assert_eq!((create.definition.spec.entries(), create.patch, create.memo), (0, None, None));
}

fn refused(change: impl FnOnce(&mut GivenSchedule<Payload<'static>>)) -> (Code, String) {
    let mut schedule = a_schedule();
    change(&mut schedule);
    let create = ScheduleCreation { schedule: Some(schedule), ..ScheduleCreation::default() };
    refusal(read(&avro(&Command { create_schedule: Some(create), ..of("create_schedule") }), &[]))
}

fn invalid(change: impl FnOnce(&mut GivenSchedule<Payload<'static>>)) -> String {
    let (code, reason) = refused(change);
    assert_eq!(code, Code::InvalidArgument, "{reason}");
    reason
}

#[test]
fn a_schedule_that_cannot_be_is_refused_in_the_words_of_a_call() {
    fn spec<'a>(schedule: &'a mut GivenSchedule<Payload<'static>>) -> &'a mut GivenSpec {
        schedule.spec.as_mut().expect("a specification")
    }
    let interval = |interval_ms| GivenInterval { interval_ms, phase_ms: None };
    let text = "Invalid schedule spec: interval is too small";
    assert_eq!(invalid(|schedule| spec(schedule).intervals = vec![interval(999)]), text);
    assert_eq!(invalid(|schedule| spec(schedule).intervals = vec![interval(-1)]), text);
    let text = "Invalid schedule spec: interval_ms is out of range";
    assert_eq!(invalid(|schedule| spec(schedule).intervals = vec![interval(i64::MAX)]), text);
    let text = "Invalid schedule spec: start_time is out of range";
    assert_eq!(invalid(|schedule| spec(schedule).start_time = Some(i64::MIN)), text);
    let text = "Invalid schedule spec: jitter_ms is out of range";
    assert_eq!(invalid(|schedule| spec(schedule).jitter_ms = Some(i64::MAX)), text);
    let text = "Invalid schedule spec: conflicting timezone names";
    assert_eq!(invalid(|schedule| spec(schedule).cron = vec!["CRON_TZ=UTC 0 9 * * *".into()]), text);
    assert!(
        invalid(|schedule| spec(schedule).cron = vec!["whenever".into()]).starts_with("Invalid schedule")
    );
    assert!(
        invalid(|schedule| spec(schedule).cron = vec!["@daily".into(); 1_001]).contains("more than 1000")
    );
    let long = |schedule: &mut GivenSchedule<Payload<'static>>| schedule.workflow_id = "w".repeat(990);
    assert_eq!(invalid(long), "WorkflowId length exceeds limit.");
    assert_eq!(invalid(|schedule| schedule.workflow_id.clear()), "WorkflowId is not set on request.");
    let policy = |schedule: &mut GivenSchedule<Payload<'static>>| {
        schedule.policies.as_mut().expect("policies").overlap = Some("skip".into());
    };
    assert_eq!(invalid(policy), "unknown overlap: \"skip\"");
    let state = |state: GivenState| invalid(|schedule| schedule.state = Some(state));
    assert_eq!(
        state(GivenState { remaining_actions: Some(-1), ..GivenState::default() }),
        "remaining_actions is negative"
    );
    let notes = Some("n".repeat(NOTES_MAX_BYTES + 1));
    assert_eq!(state(GivenState { notes, ..GivenState::default() }), "Schedule notes exceeds limit.");
    let (code, reason) = refused(|schedule| schedule.start = None);
    assert_eq!((code, reason.as_str()), (Code::CommandIncomplete, "the part \"start\" is missing"));
}

#[test]
fn what_only_a_single_start_says_is_refused() {
    let start = |change: fn(&mut Start<Payload<'static>>)| {
        invalid(|schedule| change(schedule.start.as_mut().expect("a start")))
    };
    let must_not = |part: &str| format!("Scheduled workflow must not contain {part}");
    assert_eq!(start(|start| start.cron_schedule = Some("@daily".into())), must_not("CronSchedule"));
    assert_eq!(start(|start| start.start_delay_ms = Some(1)), must_not("WorkflowStartDelay"));
    let conflict = start(|start| start.conflict_policy = Some("UseExisting".into()));
    assert_eq!(conflict, must_not("WorkflowIdConflictPolicy"));
    let reuse = start(|start| start.reuse_policy = Some("RejectDuplicate".into()));
    assert_eq!(reuse, must_not("WorkflowIDReusePolicy"));
    assert_eq!(start(|start| start.task_queue.clear()), "missing task queue name");
}

#[test]
fn a_change_that_cannot_be_is_refused() {
    let patch = |patch: GivenPatch| {
        refusal(read(&avro(&Command { patch_schedule: Some(patch), ..of("patch_schedule") }), &[]))
    };
    let half = GivenBackfill { start_time: Some(1), ..GivenBackfill::default() };
    let halved = patch(GivenPatch { backfills: vec![half], ..GivenPatch::default() });
    assert_eq!(halved, (Code::InvalidArgument, "a backfill needs start_time and end_time".into()));
    let (code, reason) = patch(GivenPatch { pause: Some(String::new()), ..GivenPatch::default() });
    assert_eq!((code, reason.as_str()), (Code::InvalidArgument, "pause needs notes"));
    let (code, _) = refusal(read(&avro(&of("patch_schedule")), &[]));
    assert_eq!(code, Code::CommandIncomplete);
    let update = ScheduleReplacement {
        schedule: Some(a_schedule()),
        conflict_token: Some(-1),
        ..ScheduleReplacement::default()
    };
    let update = Command { update_schedule: Some(update), ..of("update_schedule") };
    assert_eq!(refusal(read(&avro(&update), &[])), (Code::Outdated, "mismatched conflict token".into()));
    let typo = br#"{"type": "patch_schedule", "patch_schedule": {"backfill": []}}"#;
    assert_eq!(refusal(read(typo, &[])).0, Code::NotJson);
    let mixed = Command { patch_schedule: Some(a_patch()), ..of("delete_schedule") };
    assert_eq!(refusal(read(&avro(&mixed), &[])).0, Code::CommandIncomplete);
    let of_a_run = Command { run_id: Some(RUN_ID.into()), ..commands()[0].clone() };
    assert_eq!(refusal(read(&avro(&of_a_run), &[])).0, Code::InvalidArgument);
}

#[test]
fn the_id_of_a_schedule_has_room_for_what_makes_a_workflow_id_of_it() {
    let delete = avro(&of("delete_schedule"));
    let keyed = |key: &[u8]| read_in(&Known::default(), Some(key), Some(&delete), &[]);
    let prefix = "temporal-sys-scheduler:".len();
    assert_eq!(input(keyed(&vec![b'k'; 1_000 - prefix])).workflow_id.len(), 1_000);
    let (code, reason) = refusal(keyed(&vec![b'k'; 1_001 - prefix]));
    assert_eq!((code, reason.as_str()), (Code::InvalidArgument, "ScheduleId length exceeds limit."));
    let named = Command { workflow_id: Some("order-2".into()), ..of("delete_schedule") };
    assert_eq!(refusal(read(&avro(&named), &[])).0, Code::KeyMismatch);
}

#[test]
fn the_reply_has_the_token_that_the_next_update_names() {
    let place = crate::versions::PLACE;
    let standing = ScheduleStanding { run_id: RUN_ID.into(), conflict_token: 7 };
    let outcome = Outcome::new(&place, 1).decided(&Reply::Schedule(standing));
    assert_eq!(
        (outcome.status.as_str(), outcome.run_id.as_deref(), outcome.conflict_token),
        ("done", Some(RUN_ID), Some(7))
    );
}

#[test]
fn the_data_of_a_time_zone_is_bytes() {
    let schedule = GivenSchedule {
        spec: Some(GivenSpec { time_zone_data: Some(Blob("TZif2".into())), ..GivenSpec::default() }),
        ..a_schedule()
    };
    let create = ScheduleCreation { schedule: Some(schedule), ..ScheduleCreation::default() };
    let create = created(&avro(&Command { create_schedule: Some(create), ..of("create_schedule") }));
    assert_eq!(create.definition.spec.zone_data, b"TZif2");
}
