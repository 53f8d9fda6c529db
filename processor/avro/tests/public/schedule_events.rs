//! Events of schedules: in full, and each with the record that its type names.

use everlog_avro::event::WorkflowEvent;
use everlog_avro::{PublicTopic, Writer};
use everlog_engine::machine::schedule::event::{ScheduleEnd, ScheduleEvent, ScheduleEventKind};
use everlog_schedules::state::{
    FiredAction, MissedTimes, PauseChange, ScheduleRevision, SkipReason, SkippedAction, StartedRun,
};

use crate::events::ORIGIN;
use crate::world::RUN_ID;

const NOON_MS: i64 = 1_763_700_000_000;

/// An event of each kind, each of them by its name.
pub fn events() -> Vec<(&'static str, ScheduleEvent)> {
    let run = StartedRun {
        number: 7,
        workflow_id: "report-2025-11-21T04:40:00Z".into(),
        first_run_id: RUN_ID.into(),
    };
    let fired = FiredAction {
        run,
        nominal_s: NOON_MS / 1_000,
        actual_ms: NOON_MS + 1_001,
        start_ms: NOON_MS + 1_002,
        is_manual: false,
    };
    let skipped = SkippedAction {
        number: 8,
        nominal_s: NOON_MS / 1_000 + 60,
        actual_ms: NOON_MS + 60_001,
        is_manual: true,
        reason: SkipReason::Overlap,
    };
    let missed = MissedTimes { count: 3, first_nominal_s: 60, last_nominal_s: 180 };
    let pause = |is_paused, notes: &str| {
        ScheduleEventKind::PauseChanged(PauseChange { is_paused, notes: notes.into() })
    };
    let revision = |conflict_token, is_paused, notes: &str| ScheduleRevision {
        conflict_token,
        is_paused,
        notes: notes.into(),
    };
    let kinds = [
        ("ScheduleFired", ScheduleEventKind::Fired(fired)),
        ("ScheduleSkipped", ScheduleEventKind::Skipped(skipped)),
        ("ScheduleMissed", ScheduleEventKind::Missed(missed)),
        ("SchedulePaused", pause(true, "for repairs")),
        ("ScheduleUnpaused", pause(false, "")),
        ("ScheduleCreated", ScheduleEventKind::Created(revision(1, true, "not yet"))),
        ("ScheduleUpdated", ScheduleEventKind::Updated(revision(258, false, ""))),
        ("ScheduleClosed", ScheduleEventKind::Closed(ScheduleEnd::Deleted)),
    ];
    let event = |(at, (name, kind))| {
        (name, ScheduleEvent { run_id: "0c1b2f6f-3fc4-4d6a-9f4b-6c9a63f4c9d3".into(), event_id: at, kind })
    };
    (1..).zip(kinds).map(event).collect()
}

pub fn written(event: &ScheduleEvent) -> Vec<u8> {
    let mut bytes = Vec::new();
    record(event).write(7, &mut bytes).expect("it fits its schema");
    bytes
}

fn record(event: &ScheduleEvent) -> WorkflowEvent<'_> {
    WorkflowEvent::of_schedule(ORIGIN.namespace, "temporal-sys-scheduler:nightly", event, NOON_MS + 2_000)
}

#[test]
fn each_event_of_a_schedule_has_the_record_that_its_type_names() {
    for (name, event) in events() {
        let record = record(&event);
        let read = WorkflowEvent::read(&Writer::own(PublicTopic::Event), &written(&event));
        assert_eq!(read.expect("it is one"), record);
        assert_eq!((record.r#type.as_ref(), record.event_id), (name, event.event_id));
        assert_eq!(record.schedule_id.as_deref(), Some("nightly"));
        let json = serde_json::to_value(&record).expect("records are JSON too");
        let records = json.as_object().expect("an object").iter().filter(|(_, value)| value.is_object());
        let names: Vec<_> = records.map(|(name, _)| name.replace('_', "")).collect();
        assert_eq!(names, [name.to_lowercase()]);
    }
}

#[test]
fn an_event_of_a_schedule_says_all_there_is() {
    let events = events();
    let told = |at: usize| record(&events[at].1);
    let fired = told(0).schedule_fired.expect("it fired");
    assert_eq!((fired.action, fired.nominal_time), (7, NOON_MS));
    assert_eq!((fired.actual_time, fired.start_time), (NOON_MS + 1_001, NOON_MS + 1_002));
    assert_eq!((fired.workflow_id.as_ref(), fired.run_id.as_ref()), ("report-2025-11-21T04:40:00Z", RUN_ID));
    assert!(!fired.is_manual);
    let skipped = told(1).schedule_skipped.expect("one is skipped");
    assert_eq!(
        (skipped.action, skipped.nominal_time, skipped.actual_time),
        (8, NOON_MS + 60_000, NOON_MS + 60_001)
    );
    assert_eq!((skipped.reason.as_ref(), skipped.is_manual), ("Overlap", true));
    let missed = told(2).schedule_missed.expect("some are missed");
    assert_eq!((missed.count, missed.first_nominal_time, missed.last_nominal_time), (3, 60_000, 180_000));
    assert_eq!(told(3).schedule_paused.expect("it is paused").notes.as_deref(), Some("for repairs"));
    assert_eq!(told(4).schedule_unpaused.expect("it goes on").notes, None);
    let created = told(5).schedule_created.expect("it is made");
    assert_eq!(
        (created.conflict_token, created.paused, created.notes.as_deref()),
        (1, true, Some("not yet"))
    );
    let updated = told(6).schedule_updated.expect("it is replaced");
    assert_eq!((updated.conflict_token, updated.paused, updated.notes), (258, false, None));
    assert_eq!(told(7).schedule_closed.expect("it is gone").reason, "Deleted");
    assert_eq!((told(0).time, told(0).attempt), (NOON_MS + 2_000, None));
    assert_eq!(told(0).run_id, "0c1b2f6f-3fc4-4d6a-9f4b-6c9a63f4c9d3");
}
