//! The beginning of a schedule, and what a definition has to be.

use std::sync::Arc;

use bytes::Bytes;
use everlog_schedules::state::{NextTimeKind, ScheduleState};

use crate::api_types::WorkflowType;
use crate::decide::View;
use crate::draft::Draft;
use crate::level;
use crate::machine::memo_and_search_attributes as attributes;
use crate::machine::schedule::change::ScheduleDraft;
use crate::machine::schedule::definition::{
    PlannedDefinition, Schedule, ScheduleDefinition, ScheduleProgress,
};
use crate::machine::schedule::request::{CreateSchedule, PatchRecord};
use crate::machine::schedule::{WORKFLOW_TYPE, refused, schedule_id, standing};
use crate::machine::start::{self, Begin, StartContext};
use crate::outcome::{Outcome, Rejection};
use crate::request::RequestRecord;
use crate::retry;
use crate::run::{Current, Properties, Run, Start};

/// Makes a schedule, or answers what is in the way.
pub(crate) fn create(
    view: &View,
    input: &RequestRecord,
    order: &CreateSchedule,
    place: StartContext<'_>,
) -> Outcome {
    let Some(id) = schedule_id(place.workflow_id).filter(|id| !id.is_empty() && input.run_id.is_empty())
    else {
        return Outcome::refuse(Rejection::InvalidArgument("The schedule has no id.".into()));
    };
    if place.stamp.level < level::SCHEDULES {
        return Outcome::refuse(level::below("Schedules", level::SCHEDULES, place.stamp));
    }
    if let Some(run) = view.run.as_ref().filter(|run| run.is_open()) {
        return existing(run, id, order);
    }
    match begin(order, place) {
        Ok(fresh) => {
            let current = Some(Current { run_id: fresh.draft.run.start.run_id.clone() });
            Outcome { current, ..fresh.finish() }
        }
        Err(rejection) => Outcome::refuse(rejection),
    }
}

fn existing(run: &Run, id: &str, order: &CreateSchedule) -> Outcome {
    let start = &run.start;
    match &run.schedule {
        Some(schedule) if !order.request_id.is_empty() && start.request_id == order.request_id => {
            Outcome::answer(standing(run, schedule))
        }
        Some(_) | None => Outcome::refuse(Rejection::AlreadyStarted {
            message: format!("schedule \"{id}\" is already registered"),
            run_id: start.run_id.clone(),
            first_run_id: start.first_run_id.clone(),
            request_id: start.request_id.clone(),
        }),
    }
}

fn begin<'a>(order: &CreateSchedule, place: StartContext<'a>) -> Result<ScheduleDraft<'a>, Rejection> {
    let (run_id, now_ms) = (place.stamp.run_id(0), place.stamp.now_ms);
    let start = Start {
        namespace_id: place.namespace_id.into(),
        workflow_id: place.workflow_id.into(),
        first_run_id: run_id.clone(),
        run_id,
        workflow_type: Some(WorkflowType { name: WORKFLOW_TYPE.into() }),
        start_ms: now_ms,
        chain_start_ms: now_ms,
        request_id: order.request_id.clone(),
        start_offset: place.stamp.offset,
        ..Start::default()
    };
    let plan = checked(&start, &order.definition, place)?;
    check_attributes(order.search_attributes.as_ref(), order.memo.as_ref(), place)?;
    let patch = order.patch.as_ref().map(PatchRecord::patch);
    let created = ScheduleState::create(&plan.plan, order.settings.clone(), patch.as_ref(), now_ms);
    let (state, effects) = created.map_err(refused)?;
    check_times(&state)?;
    let progress = ScheduleProgress { state, ..ScheduleProgress::default() };
    let schedule = Schedule { plan: Arc::new(plan), progress: Arc::new(progress), results: Arc::default() };
    let properties = Properties::given(order.memo.as_ref(), order.search_attributes.as_ref());
    let draft = Draft::new(Run::begin(start), place.stamp, place.settings);
    Ok(ScheduleDraft { draft, schedule, properties, effects })
}

/// A definition that steps can go by.
pub(super) fn checked(
    start: &Start,
    definition: &ScheduleDefinition,
    place: StartContext<'_>,
) -> Result<PlannedDefinition, Rejection> {
    let definition = ScheduleDefinition {
        // Nothing of a start that stands for a single run is repeated.
        action: Begin {
            request_id: String::new(),
            signal: None,
            update: None,
            on_conflict: None,
            parent: None,
            watcher: None,
            eager: false,
            cron_schedule: String::new(),
            start_delay_ms: 0,
            retry_policy: retry::of_workflow(definition.action.retry_policy.as_ref())
                .map_err(Rejection::InvalidArgument)?,
            ..definition.action.clone()
        },
        ..definition.clone()
    };
    start::check(&definition.action, place.settings)?;
    let attributes = attributes::read(definition.action.search_attributes.as_ref());
    if attributes.len() as i64 > place.settings.search_attributes_max.saturating_sub(2) {
        let reason = "number of search attributes of the action exceeds limit: two more tell of the schedule";
        return Err(Rejection::InvalidArgument(reason.into()));
    }
    PlannedDefinition::new(start, definition).map_err(Rejection::InvalidArgument)
}

pub(super) fn check_attributes(
    search_attributes: Option<&Bytes>,
    memo: Option<&Bytes>,
    place: StartContext<'_>,
) -> Result<(), Rejection> {
    if attributes::has_too_many_keys(memo, place.settings) {
        return Err(Rejection::InvalidArgument("Memo size exceeds limit.".into()));
    }
    let check = |given| attributes::check_search_attributes(given, place.settings);
    search_attributes.map_or(Ok(()), check).map_err(Rejection::InvalidArgument)
}

/// Exclusions that reject nearly everything are refused if the first search meets them.
pub(super) fn check_times(state: &ScheduleState) -> Result<(), Rejection> {
    if state.next_kind() != NextTimeKind::TooManyExclusions {
        return Ok(());
    }
    let reason =
        "the schedule calendar specification has too many exclusions. Please modify the specification.";
    Err(Rejection::InvalidArgument(format!("Invalid schedule spec: {reason}")))
}
