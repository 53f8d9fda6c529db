//! One schedule, its clock, and the runs that it has started.

use std::collections::BTreeMap;

use everlog_schedules::matcher::{MatchBudget, SearchPosition, SearchResult};
use everlog_schedules::overlap::OverlapPolicy;
use everlog_schedules::spec::{
    CalendarSpec, IntervalSpec, ScheduleSpec, SpecDuration, SpecInput, SpecTime, ValueRange,
};
use everlog_schedules::state::{
    ActionEnd, ActionOpening, BackfillRange, ScheduleEffect, SchedulePatch, SchedulePlan, SchedulePolicies,
    ScheduleSettings, ScheduleState, StartAction, TriggerRequest,
};
use prost::Message;

pub const COMPLETED: i32 = 2;
pub const FAILED: i32 = 3;
pub const CANCELED: i32 = 4;
pub const TIMED_OUT: i32 = 7;

/// 2026-11-30 00:00:00 UTC.
pub const START_MS: i64 = 1_795_996_800_000;
pub const SECOND_MS: i64 = 1_000;
pub const MINUTE_MS: i64 = 60 * SECOND_MS;
pub const HOUR_MS: i64 = 60 * MINUTE_MS;
pub const DAY_MS: i64 = 24 * HOUR_MS;

pub fn span(ms: i64) -> SpecDuration {
    SpecDuration::of_ns(ms * 1_000_000)
}

/// At each multiple of a span.
pub fn every(ms: i64) -> ScheduleSpec {
    let interval = IntervalSpec { interval: Some(span(ms)), phase: None };
    ScheduleSpec { intervals: vec![interval], ..ScheduleSpec::default() }
}

/// By a notation of cron.
pub fn cron(notation: &str) -> ScheduleSpec {
    let given = SpecInput { cron: vec![notation.to_owned()], ..SpecInput::default() };
    ScheduleSpec::of(given).expect("a notation")
}

/// Each second that is not in the first minute of an hour.
pub fn mostly_excluded() -> ScheduleSpec {
    let all = |start, end| vec![ValueRange { start, end, step: 0 }];
    let excluded = CalendarSpec {
        second: all(0, 59),
        minute: all(1, 59),
        hour: all(0, 23),
        day_of_month: all(1, 31),
        month: all(1, 12),
        day_of_week: all(0, 6),
        ..CalendarSpec::default()
    };
    ScheduleSpec { excluded: vec![excluded], ..every(SECOND_MS) }
}

pub fn policies(overlap: OverlapPolicy) -> SchedulePolicies {
    SchedulePolicies { overlap: overlap.into(), ..SchedulePolicies::default() }
}

pub fn plan(spec: &ScheduleSpec, policies: SchedulePolicies) -> SchedulePlan {
    SchedulePlan::new(spec, "namespace-schedule", policies, "run").expect("a plan")
}

pub fn trigger() -> SchedulePatch {
    SchedulePatch { trigger: Some(TriggerRequest::default()), ..SchedulePatch::default() }
}

pub fn pause() -> SchedulePatch {
    SchedulePatch { pause: "paused".into(), ..SchedulePatch::default() }
}

pub fn unpause() -> SchedulePatch {
    SchedulePatch { unpause: "unpaused".into(), ..SchedulePatch::default() }
}

pub fn backfill(start_ms: i64, end_ms: i64, overlap: OverlapPolicy) -> SchedulePatch {
    let range = BackfillRange { start: SpecTime::of_ms(start_ms), end: SpecTime::of_ms(end_ms), overlap };
    SchedulePatch { backfills: vec![range], ..SchedulePatch::default() }
}

/// A schedule that the partition would keep.
pub struct World {
    pub plan: SchedulePlan,
    pub state: ScheduleState,
    pub now_ms: i64,
    /// Starts that are not answered, by their number.
    pub starting: BTreeMap<u64, StartAction>,
    /// Open runs by the action's number: their Workflow Id.
    pub open: BTreeMap<u64, String>,
    /// All starts that were asked for, in their order.
    pub starts: Vec<StartAction>,
    /// All effects but starts since they were last looked at.
    pub effects: Vec<ScheduleEffect>,
    /// Steps that were taken.
    pub steps: usize,
    /// What the last alarm was to be.
    pub alarm_ms: Option<i64>,
    /// It has ended by itself.
    pub is_closed: bool,
}

impl World {
    pub fn new(spec: &ScheduleSpec, policies: SchedulePolicies) -> Self {
        Self::with(spec, policies, ScheduleSettings::default(), None, START_MS)
    }

    pub fn with(
        spec: &ScheduleSpec,
        policies: SchedulePolicies,
        settings: ScheduleSettings,
        patch: Option<&SchedulePatch>,
        now_ms: i64,
    ) -> Self {
        let plan = plan(spec, policies);
        let (state, effects) = ScheduleState::create(&plan, settings, patch, now_ms).expect("valid");
        let mut world = Self {
            plan,
            state,
            now_ms,
            starting: BTreeMap::new(),
            open: BTreeMap::new(),
            starts: Vec::new(),
            effects: Vec::new(),
            steps: 0,
            alarm_ms: None,
            is_closed: false,
        };
        world.take(effects);
        world
    }

    /// Carries effects out, as far as there is a world, and writes the state down and reads it back.
    fn take(&mut self, effects: Vec<ScheduleEffect>) {
        self.steps += 1;
        for effect in effects {
            match effect {
                ScheduleEffect::Start(start) => {
                    assert!(self.starting.insert(start.number, start.clone()).is_none(), "started twice");
                    self.starts.push(start);
                }
                ScheduleEffect::Close => self.is_closed = true,
                other => self.effects.push(other),
            }
        }
        let bytes = self.state.encode_to_vec();
        assert_eq!(ScheduleState::decode(bytes.as_slice()).as_ref(), Ok(&self.state));
        self.alarm_ms = self.state.next_alarm_ms(&self.plan, self.now_ms);
    }

    pub fn wake(&mut self) {
        let effects = self.state.wake(&self.plan, self.now_ms);
        self.take(effects);
    }

    /// Wakes until nothing is left to do at this moment.
    pub fn settle(&mut self) {
        let mut wakes = 0;
        while self.alarm_ms.is_some_and(|alarm_ms| alarm_ms <= self.now_ms) && !self.is_closed {
            self.wake();
            wakes += 1;
            assert!(wakes < 100_000, "it is woken for ever: {:?}", self.state);
        }
    }

    /// Lets time pass; alarms come when they are to come.
    pub fn go_to(&mut self, ms: i64) {
        self.settle();
        while let Some(alarm_ms) = self.alarm_ms.filter(|alarm_ms| *alarm_ms <= ms && !self.is_closed) {
            self.now_ms = self.now_ms.max(alarm_ms);
            self.settle();
        }
        self.now_ms = ms;
        self.alarm_ms = self.state.next_alarm_ms(&self.plan, self.now_ms);
    }

    pub fn patch(&mut self, patch: &SchedulePatch) {
        let effects = self.state.patch(&self.plan, patch, self.now_ms).expect("valid");
        self.take(effects);
    }

    pub fn update(&mut self, spec: &ScheduleSpec, policies: SchedulePolicies, settings: ScheduleSettings) {
        let new = plan(spec, policies);
        let effects = self.state.update(&self.plan, &new, settings, None, self.now_ms).expect("valid");
        self.plan = new;
        self.take(effects);
    }

    /// Answers a start.
    pub fn answer(&mut self, number: u64, opening: ActionOpening) {
        let start = self.starting.remove(&number).expect("it is starting");
        if let ActionOpening::Started { .. } = opening {
            self.open.insert(number, start.workflow_id);
        }
        let effects = self.state.action_opened(&self.plan, number, opening, self.now_ms);
        self.take(effects);
    }

    pub fn started(&self, number: u64) -> ActionOpening {
        ActionOpening::Started { first_run_id: format!("run-{number}"), start_ms: self.now_ms }
    }

    /// Answers all starts, and those that follow: their runs have begun.
    pub fn open_all(&mut self) {
        while let Some(number) = self.starting.keys().next().copied() {
            self.answer(number, self.started(number));
            self.settle();
        }
    }

    /// A chain of runs ends.
    pub fn close(&mut self, number: u64, status: i32) {
        let workflow_id = self.open.remove(&number).expect("it is open");
        let end = ActionEnd { status, workflow_id, failure_message: "why".into() };
        let effects = self.state.action_closed(&self.plan, number, &end, self.now_ms);
        self.take(effects);
    }

    /// Nominal times of the starts so far, in seconds since the beginning.
    pub fn started_s(&self) -> Vec<i64> {
        self.starts.iter().map(|start| start.nominal_s - START_MS / 1_000).collect()
    }

    /// Nominal times of the specification behind the first moment, with actual times not behind the last.
    pub fn nominal_times(&self, after_s: i64, until_ms: i64) -> Vec<i64> {
        let mut position = SearchPosition::behind(after_s);
        let mut times = Vec::new();
        while let SearchResult::Found(time) =
            self.plan.matcher.next(&mut position, &mut MatchBudget::new(u32::MAX))
            && time.actual_ms <= until_ms
        {
            times.push(time.nominal_s);
            position = SearchPosition::behind(time.nominal_s);
        }
        times
    }
}
