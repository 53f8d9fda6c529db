//! Converts commands for schedules to requests to the engine, with the limits and the texts of a gRPC call.

use std::collections::BTreeMap;

use bytes::Bytes;
use everlog_engine::machine::schedule::WORKFLOW_ID_PREFIX;
use everlog_engine::machine::schedule::definition::ScheduleDefinition;
use everlog_engine::machine::schedule::request::{
    BackfillRecord, CreateSchedule, DeleteSchedule, PatchRecord, PatchSchedule, TriggerRecord, UpdateSchedule,
};
use everlog_engine::machine::schedule::schedule_id;
use everlog_engine::machine::start::Begin;
use everlog_engine::request::{Request, RequestRecord};
use everlog_schedules::overlap::OverlapPolicy;
use everlog_schedules::spec::{
    CalendarStrings, IntervalSpec, ScheduleSpec, SpecDuration, SpecInput, SpecTime,
};
use everlog_schedules::state::{NOTES_MAX_BYTES, SchedulePolicies, ScheduleSettings};

use crate::command::schedule_shape::{
    GivenBackfill, GivenCalendar, GivenInterval, GivenPatch, GivenPolicies, GivenSchedule, GivenSpec,
    GivenState, GivenTrigger, ScheduleCreation, ScheduleReplacement,
};
use crate::command::shape::Start;
use crate::command::to_request::{AnyPayload, Frame, keys, map, needed};
use crate::command::validate::invalid;
use crate::command::{Code, CommandContext, CommandLimits, CommandRefusal};

/// What is appended to the Workflow Id of a run: a dash and a time such as this.
const TIME: &str = "-2009-11-10T23:00:00Z";
/// Moments that schedules know, in ms since 1970: the years 1 to 9999.
const TIMES_MS: std::ops::RangeInclusive<i64> = -62_135_596_800_000..=253_402_300_799_999;
/// Spans that schedules know, in ms: ten thousand years.
const SPANS_MS: std::ops::RangeInclusive<i64> = -315_576_000_000_000..=315_576_000_000_000;

/// The Workflow Id of the schedule with an id.
pub(super) fn workflow_id(rules: &CommandLimits<'_>, id: &str) -> Result<String, CommandRefusal> {
    rules.id("ScheduleId", id)?;
    let workflow_id = format!("{WORKFLOW_ID_PREFIX}{id}");
    rules.length("ScheduleId", &workflow_id)?;
    Ok(workflow_id)
}

impl Frame<'_> {
    pub(super) fn create_schedule<P: AnyPayload>(
        &self,
        input: RequestRecord,
        given: ScheduleCreation<P>,
        world: &impl CommandContext,
    ) -> Result<RequestRecord, CommandRefusal> {
        if !input.run_id.is_empty() {
            return Err(invalid("a new schedule has no run yet: run_id has to be absent"));
        }
        let (definition, settings) =
            self.schedule(&input.workflow_id, needed("schedule", given.schedule)?, world)?;
        let (memo, search_attributes) = self.properties(given.memo, given.search_attributes, world)?;
        let create = CreateSchedule {
            request_id: self.request_id.clone(),
            definition,
            settings,
            memo,
            search_attributes,
            patch: given.patch.map(patch).transpose()?,
        };
        Ok(RequestRecord { request: Some(Request::CreateSchedule(Box::new(create))), ..input })
    }

    pub(super) fn update_schedule<P: AnyPayload>(
        &self,
        input: RequestRecord,
        given: ScheduleReplacement<P>,
        world: &impl CommandContext,
    ) -> Result<RequestRecord, CommandRefusal> {
        let (definition, settings) =
            self.schedule(&input.workflow_id, needed("schedule", given.schedule)?, world)?;
        let (memo, search_attributes) = self.properties(given.memo, given.search_attributes, world)?;
        let mismatched = |_negative| CommandRefusal::new(Code::Outdated, "mismatched conflict token");
        let update = UpdateSchedule {
            request_id: self.request_id.clone(),
            definition,
            settings,
            memo,
            search_attributes,
            conflict_token: given.conflict_token.map(u64::try_from).transpose().map_err(mismatched)?,
        };
        Ok(RequestRecord { request: Some(Request::UpdateSchedule(Box::new(update))), ..input })
    }

    pub(super) fn patch_schedule(
        &self,
        input: RequestRecord,
        given: GivenPatch,
    ) -> Result<RequestRecord, CommandRefusal> {
        let patch = PatchSchedule { request_id: self.request_id.clone(), patch: patch(given)? };
        Ok(RequestRecord { request: Some(Request::PatchSchedule(patch)), ..input })
    }

    pub(super) fn delete_schedule(input: RequestRecord) -> RequestRecord {
        RequestRecord { request: Some(Request::DeleteSchedule(DeleteSchedule {})), ..input }
    }

    fn schedule<P: AnyPayload>(
        &self,
        workflow_id: &str,
        given: GivenSchedule<P>,
        world: &impl CommandContext,
    ) -> Result<(ScheduleDefinition, ScheduleSettings), CommandRefusal> {
        self.rules.id("WorkflowId", &given.workflow_id)?;
        self.rules.length("WorkflowId", &format!("{}{TIME}", given.workflow_id))?;
        let action = self.action(workflow_id, needed("start", given.start)?, world)?;
        let definition = ScheduleDefinition {
            spec: spec(given.spec.unwrap_or_default())?,
            policies: policies(given.policies.unwrap_or_default())?,
            workflow_id: given.workflow_id,
            action,
        };
        Ok((definition, settings(given.state.unwrap_or_default())?))
    }

    /// The start of the runs, without what only the start of a single run says.
    fn action<P: AnyPayload>(
        &self,
        workflow_id: &str,
        given: Start<P>,
        world: &impl CommandContext,
    ) -> Result<Begin, CommandRefusal> {
        let parts = [
            ("CronSchedule", given.cron_schedule.as_deref().is_some_and(|text| !text.is_empty())),
            (
                "WorkflowIDReusePolicy",
                given.reuse_policy.as_deref().is_some_and(|name| !["", "AllowDuplicate"].contains(&name)),
            ),
            (
                "WorkflowIdConflictPolicy",
                given.conflict_policy.as_deref().is_some_and(|name| !name.is_empty()),
            ),
            ("WorkflowStartDelay", given.start_delay_ms.is_some_and(|delay_ms| delay_ms != 0)),
        ];
        if let Some((part, _)) = parts.iter().find(|(_, is_there)| *is_there) {
            return Err(invalid(format!("Scheduled workflow must not contain {part}")));
        }
        let id = schedule_id(workflow_id).unwrap_or_default();
        Ok(Begin {
            request_id: String::new(),
            reuse_policy: 0,
            identity: format!("temporal-scheduler-{}-{id}", self.namespace),
            ..self.start(given, world)?
        })
    }

    /// Memo and search attributes of the schedule itself.
    fn properties<P: AnyPayload>(
        &self,
        memo: Option<BTreeMap<String, P>>,
        search_attributes: Option<BTreeMap<String, P>>,
        world: &impl CommandContext,
    ) -> Result<(Option<Bytes>, Option<Bytes>), CommandRefusal> {
        let (memo_keys, attributes) = (keys(&memo), keys(&search_attributes));
        let (memo, search_attributes) = (map(memo), map(search_attributes));
        self.rules.memo(memo.as_ref(), memo_keys)?;
        self.rules.search_attributes(search_attributes.as_ref(), attributes)?;
        let typed = search_attributes.map(|given| world.typed(self.namespace, &given));
        Ok((memo, typed.transpose().map_err(invalid)?))
    }
}

fn spec(given: GivenSpec) -> Result<ScheduleSpec, CommandRefusal> {
    let interval = |given: GivenInterval| {
        let phase = given.phase_ms.map(|phase_ms| span("phase_ms", phase_ms)).transpose()?;
        Ok(IntervalSpec { interval: Some(span("interval_ms", given.interval_ms)?), phase })
    };
    let intervals = given.intervals.into_iter().map(interval);
    let spec = ScheduleSpec {
        intervals: intervals.collect::<Result<_, CommandRefusal>>()?,
        start: given.start_time.map(|at_ms| time("start_time", at_ms)).transpose()?,
        end: given.end_time.map(|at_ms| time("end_time", at_ms)).transpose()?,
        jitter: given.jitter_ms.map(|jitter_ms| span("jitter_ms", jitter_ms)).transpose()?,
        zone_name: given.time_zone.unwrap_or_default(),
        zone_data: given.time_zone_data.map(|data| data.0.to_vec()).unwrap_or_default(),
        ..ScheduleSpec::default()
    };
    let input = SpecInput {
        spec,
        calendars: given.calendars.into_iter().map(strings).collect(),
        excluded_calendars: given.excluded_calendars.into_iter().map(strings).collect(),
        cron: given.cron,
    };
    ScheduleSpec::of(input).map_err(|error| invalid(error.to_string()))
}

fn strings(given: GivenCalendar) -> CalendarStrings {
    let GivenCalendar { second, minute, hour, day_of_month, month, year, day_of_week, comment } = given;
    CalendarStrings { second, minute, hour, day_of_month, month, year, day_of_week, comment }
}

fn policies(given: GivenPolicies) -> Result<SchedulePolicies, CommandRefusal> {
    let window = given.catchup_window_ms;
    Ok(SchedulePolicies {
        overlap: overlap(given.overlap.as_deref())?,
        catchup_window: window.map(|window_ms| span("catchup_window_ms", window_ms)).transpose()?,
        pause_on_failure: given.pause_on_failure,
        keep_original_workflow_id: given.keep_original_workflow_id,
    })
}

fn settings(given: GivenState) -> Result<ScheduleSettings, CommandRefusal> {
    if given.remaining_actions.is_some_and(|remaining| remaining < 0) {
        return Err(invalid("remaining_actions is negative"));
    }
    Ok(ScheduleSettings {
        is_paused: given.paused,
        notes: notes(given.notes.unwrap_or_default())?,
        is_limited: given.remaining_actions.is_some(),
        remaining: given.remaining_actions.unwrap_or(0),
    })
}

fn patch(given: GivenPatch) -> Result<PatchRecord, CommandRefusal> {
    let trigger = |given: GivenTrigger| {
        Ok::<_, CommandRefusal>(TriggerRecord {
            scheduled_ms: given.scheduled_time.map(|at_ms| checked("scheduled_time", at_ms)).transpose()?,
            overlap: overlap(given.overlap.as_deref())?,
        })
    };
    let backfill = |given: GivenBackfill| {
        let (Some(start_ms), Some(end_ms)) = (given.start_time, given.end_time) else {
            return Err(invalid("a backfill needs start_time and end_time"));
        };
        Ok(BackfillRecord {
            start: time("start_time", start_ms)?,
            end: time("end_time", end_ms)?,
            overlap: overlap(given.overlap.as_deref())?,
        })
    };
    Ok(PatchRecord {
        trigger: given.trigger.map(trigger).transpose()?,
        backfills: given.backfills.into_iter().map(backfill).collect::<Result<_, CommandRefusal>>()?,
        pause: reason("pause", given.pause)?,
        unpause: reason("unpause", given.unpause)?,
    })
}

fn overlap(name: Option<&str>) -> Result<i32, CommandRefusal> {
    let policy = match name.unwrap_or_default() {
        "" => OverlapPolicy::Unspecified,
        "Skip" => OverlapPolicy::Skip,
        "BufferOne" => OverlapPolicy::BufferOne,
        "BufferAll" => OverlapPolicy::BufferAll,
        "CancelOther" => OverlapPolicy::CancelOther,
        "TerminateOther" => OverlapPolicy::TerminateOther,
        "AllowAll" => OverlapPolicy::AllowAll,
        other => return Err(invalid(format!("unknown overlap: {other:?}"))),
    };
    Ok(policy.into())
}

/// The notes of a pause or its end. To the engine empty ones mean neither, so that they would be dropped without a word.
fn reason(what: &str, given: Option<String>) -> Result<String, CommandRefusal> {
    match given {
        Some(empty) if empty.is_empty() => Err(invalid(format!("{what} needs notes"))),
        given => notes(given.unwrap_or_default()),
    }
}

fn notes(given: String) -> Result<String, CommandRefusal> {
    if given.len() > NOTES_MAX_BYTES {
        return Err(invalid("Schedule notes exceeds limit."));
    }
    Ok(given)
}

fn time(field: &str, at_ms: i64) -> Result<SpecTime, CommandRefusal> {
    checked(field, at_ms).map(SpecTime::of_ms)
}

fn checked(field: &str, at_ms: i64) -> Result<i64, CommandRefusal> {
    if TIMES_MS.contains(&at_ms) { Ok(at_ms) } else { Err(out_of_range(field)) }
}

fn span(field: &str, span_ms: i64) -> Result<SpecDuration, CommandRefusal> {
    if !SPANS_MS.contains(&span_ms) {
        return Err(out_of_range(field));
    }
    Ok(SpecDuration { seconds: span_ms / 1_000, nanos: (span_ms % 1_000) as i32 * 1_000_000 })
}

fn out_of_range(field: &str) -> CommandRefusal {
    invalid(format!("Invalid schedule spec: {field} is out of range"))
}
