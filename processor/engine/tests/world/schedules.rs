//! Schedules: verbs for them, and how they are told.

use bytes::Bytes;
use everlog_engine::Outcome;
use everlog_engine::api_types::Status;
use everlog_engine::machine::schedule::action::{ScheduleActionClosed, ScheduleActionOpened, StartFate};
use everlog_engine::machine::schedule::definition::ScheduleDefinition;
use everlog_engine::machine::schedule::event::{ScheduleEnd, ScheduleEvent, ScheduleEventKind};
use everlog_engine::machine::schedule::request::{
    CreateSchedule, DeleteSchedule, PatchRecord, PatchSchedule, TriggerRecord, UpdateSchedule,
};
use everlog_engine::machine::schedule::{Schedule, WORKFLOW_ID_PREFIX};
use everlog_engine::machine::start;
use everlog_engine::request::Request;
use everlog_schedules::overlap::OverlapPolicy;
use everlog_schedules::spec::{IntervalSpec, ScheduleSpec, SpecDuration};
use everlog_schedules::state::{SchedulePolicies, ScheduleSettings, ScheduleState};

use super::clients::text;
use super::{World, transcript};

/// A specification with one interval.
pub fn every(interval_ms: i64) -> ScheduleSpec {
    let interval = Some(SpecDuration::of_ns(interval_ms * 1_000_000));
    ScheduleSpec { intervals: vec![IntervalSpec { interval, phase: None }], ..ScheduleSpec::default() }
}

/// A workflow each minute, with this policy.
pub fn a_definition(overlap: OverlapPolicy) -> ScheduleDefinition {
    ScheduleDefinition {
        spec: every(60_000),
        policies: SchedulePolicies { overlap: overlap.into(), ..SchedulePolicies::default() },
        workflow_id: "report".into(),
        action: start::Begin {
            workflow_type: "Report".into(),
            task_queue: "reports".into(),
            input: Some(text("input")),
            identity: "temporal-scheduler-shop-minutely".into(),
            retention_ms: 86_400_000,
            ..start::Begin::default()
        },
    }
}

/// A trigger with the schedule's policy, or another patch made of it.
pub fn patch(change: impl FnOnce(&mut PatchRecord)) -> PatchRecord {
    let mut patch = PatchRecord::default();
    change(&mut patch);
    patch
}

impl World {
    /// From here on the verbs mean this schedule.
    pub fn on_schedule(&mut self, id: &str) -> &mut Self {
        self.on(&format!("{WORKFLOW_ID_PREFIX}{id}"))
    }

    /// A schedule that differs from [`a_definition`]; `note` says how.
    pub fn schedule(
        &mut self,
        id: &str,
        note: &str,
        overlap: OverlapPolicy,
        change: impl FnOnce(&mut CreateSchedule),
    ) -> &mut Self {
        self.on_schedule(id);
        let mut order = CreateSchedule {
            request_id: format!("create-{}", self.journal_len()),
            definition: a_definition(overlap),
            settings: ScheduleSettings::default(),
            ..CreateSchedule::default()
        };
        change(&mut order);
        let text = format!("schedule {id} {note}");
        self.verb(text.trim_end(), Request::CreateSchedule(Box::new(order)));
        self
    }

    pub fn trigger(&mut self) -> &mut Self {
        self.trigger_with(OverlapPolicy::Unspecified)
    }

    pub fn trigger_with(&mut self, overlap: OverlapPolicy) -> &mut Self {
        let trigger = TriggerRecord { scheduled_ms: None, overlap: overlap.into() };
        self.patch_schedule("trigger", patch(|patch| patch.trigger = Some(trigger)));
        self
    }

    pub fn patch_schedule(&mut self, note: &str, patch: PatchRecord) -> Outcome {
        let request_id = format!("patch-{}", self.journal_len());
        self.verb(note, Request::PatchSchedule(PatchSchedule { request_id, patch }))
    }

    pub fn update_schedule(&mut self, note: &str, change: impl FnOnce(&mut UpdateSchedule)) -> Outcome {
        let schedule = self.run().schedule.clone().expect("it is a schedule");
        let mut order = UpdateSchedule {
            request_id: format!("update-{}", self.journal_len()),
            definition: schedule.definition().clone(),
            settings: schedule.state().settings.clone(),
            ..UpdateSchedule::default()
        };
        change(&mut order);
        self.verb(note, Request::UpdateSchedule(Box::new(order)))
    }

    pub fn delete_schedule(&mut self) -> &mut Self {
        self.verb("delete the schedule", Request::DeleteSchedule(DeleteSchedule {}));
        self
    }

    /// How the schedule stands.
    pub fn schedule_state(&self) -> &ScheduleState {
        self.run().schedule.as_ref().expect("it is a schedule").state()
    }

    /// What the schedule's runs came to: the last result, and the failure since.
    pub fn schedule_results(&self) -> (Option<Bytes>, Option<Bytes>) {
        let results = &self.run().schedule.as_ref().expect("it is a schedule").results;
        (results.last_completion_result.clone(), results.last_failure.clone())
    }
}

/// A schedule in words.
pub fn stands(schedule: &Schedule) -> String {
    let state = schedule.state();
    let alarm = schedule.progress.alarm_ms.map_or("never".to_owned(), transcript::clock);
    let (waits, starts) = (state.buffer_size(), state.running.iter().filter(|run| run.is_starting()).count());
    let counted = [(waits, "waits"), (starts, "starts"), (state.running_runs().count(), "runs")];
    let counted: String = counted
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!(", {count} {what}"))
        .collect();
    let paused = if state.settings.is_paused { ", paused" } else { "" };
    format!("(next {alarm}{counted}{paused})")
}

/// What a schedule tells.
pub fn told(event: &ScheduleEvent) -> String {
    match &event.kind {
        ScheduleEventKind::Fired(fired) => format!("fired {} as {}", fired.run.number, fired.run.workflow_id),
        ScheduleEventKind::Skipped(skipped) => format!("skipped {} {:?}", skipped.number, skipped.reason),
        ScheduleEventKind::Missed(missed) => format!("missed {}", missed.count),
        ScheduleEventKind::PauseChanged(change) if change.is_paused => "paused".into(),
        ScheduleEventKind::PauseChanged(_) => "unpaused".into(),
        ScheduleEventKind::Created(_) => "created".into(),
        ScheduleEventKind::Updated(_) => "updated".into(),
        ScheduleEventKind::Closed(ScheduleEnd::Idle) => "ended".into(),
        ScheduleEventKind::Closed(ScheduleEnd::Deleted) => "deleted".into(),
    }
}

pub fn opened(opened: &ScheduleActionOpened) -> String {
    match opened.fate() {
        StartFate::Started => format!("action {} is there", opened.action),
        fate => format!("action {} cannot be: {fate:?}", opened.action),
    }
}

pub fn closed(closed: &ScheduleActionClosed) -> String {
    let status = Status::try_from(closed.status).expect("a status is one of those that are known");
    let again = if closed.is_repeated { ", again" } else { "" };
    format!("action {} is {}{again}", closed.action, format!("{status:?}").to_lowercase())
}
