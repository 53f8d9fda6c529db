//! What records and rows say of schedules.

use everlog_engine::Start;
use everlog_engine::api_types::Status;
use everlog_engine::machine::schedule::Schedule;
use everlog_engine::machine::schedule::action::{
    ActionWatcher, ScheduleActionClosed, ScheduleActionOpened, StartFate,
};
use everlog_engine::machine::schedule::definition::{ScheduleDefinition, ScheduleProgress, ScheduleResults};
use everlog_engine::machine::schedule::request::{
    BackfillRecord, CreateSchedule, DeleteSchedule, PatchRecord, PatchSchedule, TriggerRecord, UpdateSchedule,
};
use everlog_engine::machine::start::Begin;
use everlog_engine::request::Request;
use everlog_schedules::matcher::{ActionTime, SearchPosition};
use everlog_schedules::overlap::OverlapPolicy;
use everlog_schedules::spec::{CalendarSpec, IntervalSpec, ScheduleSpec, SpecDuration, SpecTime, ValueRange};
use everlog_schedules::state::{
    ActionCounts, Backfill, BufferedAction, NextTimeKind, RecentAction, RunningAction, SchedulePolicies,
    ScheduleSettings, ScheduleState, TriggeredSecond,
};

use crate::events::{failure, map, some};
use crate::rows::RUN_ID;

const AT_S: i64 = 1_763_700_000;

/// One request of each kind.
pub fn orders() -> [Request; 6] {
    [
        Request::CreateSchedule(Box::new(CreateSchedule {
            request_id: "create".into(),
            definition: definition(),
            settings: settings(),
            memo: Some(map()),
            search_attributes: Some(map()),
            patch: Some(patch()),
        })),
        Request::UpdateSchedule(Box::new(UpdateSchedule {
            request_id: "update".into(),
            definition: definition(),
            settings: settings(),
            memo: Some(map()),
            search_attributes: Some(map()),
            conflict_token: Some(7),
        })),
        Request::PatchSchedule(PatchSchedule { request_id: "patch".into(), patch: patch() }),
        Request::DeleteSchedule(DeleteSchedule {}),
        Request::ScheduleActionOpened(ScheduleActionOpened {
            action: 17,
            fate: StartFate::Later.into(),
            first_run_id: RUN_ID.into(),
            start_ms: AT_S * 1_000,
            delay_ms: 1_000,
        }),
        Request::ScheduleActionClosed(ScheduleActionClosed {
            action: 17,
            workflow_id: "report-2025-11-21T04:40:00Z".into(),
            run_id: RUN_ID.into(),
            status: Status::Failed.into(),
            payload: Some(failure()),
            close_ms: AT_S * 1_000 + 5,
            is_repeated: true,
        }),
    ]
}

/// The start of an action's run.
pub fn watched_start() -> Request {
    Request::Start(Box::new(Begin { watcher: Some(Box::new(watcher())), ..Begin::default() }))
}

/// Of a schedule that has told of something.
pub fn told() -> ScheduleProgress {
    ScheduleProgress { last_event_id: 7, ..ScheduleProgress::default() }
}

/// Of a schedule whose action was tried after a later one.
pub fn tried() -> ScheduleProgress {
    let recent = RecentAction { number: 18, first_tried_ms: AT_S * 1_000 + 18, ..RecentAction::default() };
    let state = ScheduleState { recent: vec![recent], ..ScheduleState::default() };
    ScheduleProgress { state, ..ScheduleProgress::default() }
}

/// Of a run that a schedule has started.
pub fn watched() -> Start {
    Start { watcher: Some(Box::new(watcher())), ..Start::default() }
}

fn watcher() -> ActionWatcher {
    ActionWatcher {
        namespace_id: "8a3c0000-0000-4000-8000-000000000001".into(),
        workflow_id: "temporal-sys-scheduler:daily".into(),
        run_id: RUN_ID.into(),
        action: 17,
        is_told: true,
    }
}

fn patch() -> PatchRecord {
    PatchRecord {
        trigger: Some(TriggerRecord {
            scheduled_ms: Some(AT_S * 1_000),
            overlap: OverlapPolicy::AllowAll.into(),
        }),
        backfills: vec![BackfillRecord {
            start: SpecTime { seconds: AT_S, nanos: 1 },
            end: SpecTime { seconds: AT_S + 60, nanos: 2 },
            overlap: OverlapPolicy::BufferAll.into(),
        }],
        pause: "pause".into(),
        unpause: "unpause".into(),
    }
}

fn settings() -> ScheduleSettings {
    ScheduleSettings { is_paused: true, notes: "notes".into(), is_limited: true, remaining: 9 }
}

fn definition() -> ScheduleDefinition {
    let ranges = || vec![ValueRange { start: 1, end: 5, step: 2 }];
    let calendar = || CalendarSpec {
        second: ranges(),
        minute: ranges(),
        hour: ranges(),
        day_of_month: ranges(),
        month: ranges(),
        year: vec![ValueRange { start: 2_026, end: 2_030, step: 1 }],
        day_of_week: ranges(),
        comment: "comment".into(),
    };
    let interval = Some(SpecDuration { seconds: 3_600, nanos: 0 });
    ScheduleDefinition {
        spec: ScheduleSpec {
            calendars: vec![calendar()],
            intervals: vec![IntervalSpec { interval, phase: Some(SpecDuration { seconds: 60, nanos: 0 }) }],
            excluded: vec![calendar()],
            start: Some(SpecTime { seconds: AT_S, nanos: 1 }),
            end: Some(SpecTime { seconds: AT_S + 86_400, nanos: 2 }),
            jitter: Some(SpecDuration { seconds: 1, nanos: 5 }),
            zone_name: "Europe/Berlin".into(),
            ..ScheduleSpec::default()
        },
        policies: SchedulePolicies {
            overlap: OverlapPolicy::BufferOne.into(),
            catchup_window: Some(SpecDuration { seconds: 60, nanos: 0 }),
            pause_on_failure: true,
            keep_original_workflow_id: true,
        },
        workflow_id: "report".into(),
        action: Begin { workflow_type: "Report".into(), input: Some(some(b"input")), ..Begin::default() },
    }
}

fn buffered(number: u64) -> BufferedAction {
    BufferedAction {
        number,
        nominal_s: AT_S,
        actual_ms: AT_S * 1_000 + 17,
        is_manual: true,
        backfill: 2,
        overlap: OverlapPolicy::TerminateOther.into(),
        ordinal: 1,
        not_before_ms: AT_S * 1_000 + 1_000,
        first_tried_ms: AT_S * 1_000 + 18,
        clashes: 3,
    }
}

fn state() -> ScheduleState {
    let position = SearchPosition::behind(AT_S);
    ScheduleState {
        settings: settings(),
        conflict_token: 7,
        position,
        next_kind: NextTimeKind::Known.into(),
        next: Some(ActionTime { nominal_s: AT_S + 60, actual_ms: AT_S * 1_000 + 60_009 }),
        not_before_ms: AT_S * 1_000,
        last_number: 20,
        last_backfill: 2,
        buffer: vec![buffered(20)],
        running: vec![RunningAction {
            action: buffered(19),
            workflow_id: "report".into(),
            first_run_id: RUN_ID.into(),
            is_cancelled: true,
            is_terminated: true,
        }],
        running_beyond: 4,
        recent: vec![RecentAction {
            number: 18,
            nominal_s: AT_S,
            actual_ms: AT_S * 1_000 + 17,
            start_ms: AT_S * 1_000 + 20,
            workflow_id: "report".into(),
            first_run_id: RUN_ID.into(),
            status: Status::Completed.into(),
            ordinal: 1,
            first_tried_ms: 0,
        }],
        backfills: vec![Backfill {
            number: 2,
            position,
            end_ms: AT_S * 1_000 + 90_000,
            overlap: OverlapPolicy::AllowAll.into(),
        }],
        triggers: vec![TriggeredSecond { second: AT_S, ordinal: 2 }],
        counts: ActionCounts {
            started: 1,
            missed: 2,
            skipped: 3,
            dropped: 4,
            paused: 5,
            exhausted: 6,
            clashed: 7,
            refused: 8,
        },
        create_ms: AT_S * 1_000 - 9,
        update_ms: AT_S * 1_000 - 8,
        last_event_ms: AT_S * 1_000 - 7,
    }
}

/// A schedule with everything in it.
pub fn schedule(start: &Start) -> Schedule {
    let progress = ScheduleProgress {
        state: state(),
        alarm_ms: Some(AT_S * 1_000 + 60_009),
        request_ids: vec!["patch".into(), "update".into()],
        last_event_id: 0,
    };
    let results =
        ScheduleResults { last_completion_result: Some(some(b"result")), last_failure: Some(failure()) };
    Schedule::of_rows(start, definition(), progress, results)
}
