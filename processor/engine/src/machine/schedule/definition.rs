//! The parts of a schedule: what it is to do, how far it is, and what its runs came to.

use std::sync::Arc;

use bytes::Bytes;
use everlog_schedules::spec::{ScheduleSpec, SpecError};
use everlog_schedules::state::{STARTS_MAX, SchedulePlan, SchedulePolicies, ScheduleState};
use prost::Message;

use crate::draft::bytes;
use crate::machine::schedule::schedule_id;
use crate::machine::start::Begin;
use crate::run::{Run, Start};

/// The bytes of the runs that one step starts, unless one run has more.
const STARTS_MAX_BYTES: usize = 8 << 20;

/// What a schedule is to do.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ScheduleDefinition {
    /// When, in the stored form.
    #[prost(message, required, tag = "1")]
    pub spec: ScheduleSpec,
    /// What becomes of actions that overlap, are late or fail.
    #[prost(message, required, tag = "2")]
    pub policies: SchedulePolicies,
    /// The Workflow Id of its runs, without a time.
    #[prost(string, tag = "3")]
    pub workflow_id: String,
    /// The start of its runs. What differs from run to run is filled in: request id, policies of the Workflow Id, results of
    /// the run before, search attributes that tell of the schedule.
    #[prost(message, required, tag = "4")]
    pub action: Begin,
}

/// How far a schedule is.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ScheduleProgress {
    /// What waits, what runs, and how far times are worked off.
    #[prost(message, required, tag = "1")]
    pub state: ScheduleState,
    /// When it is to be woken, in ms since 1970; none = only a request can change it.
    #[prost(int64, optional, tag = "2")]
    pub alarm_ms: Option<i64>,
    /// Ids of the updates and patches that came last, the oldest first.
    #[prost(string, repeated, tag = "3")]
    pub request_ids: Vec<String>,
    /// The number of the last event that was told of it; 0 = none was.
    #[prost(int64, tag = "4")]
    pub last_event_id: i64,
}

/// What the runs of a schedule came to: each run hears of the one before it.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ScheduleResults {
    /// The result of the run that has completed last, opaque.
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub last_completion_result: Option<Bytes>,
    /// The failure of the run that has failed since, opaque.
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub last_failure: Option<Bytes>,
}

/// What a run has that is a schedule. Copying counts references; each part has a row of its own, so that a firing writes the
/// progress only.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// What it is to do.
    pub plan: Arc<PlannedDefinition>,
    /// How far it is.
    pub progress: Arc<ScheduleProgress>,
    /// What its runs came to.
    pub results: Arc<ScheduleResults>,
}

/// A definition with what steps need of it. The latter is derived, and stored nowhere.
#[derive(Clone, Debug)]
pub struct PlannedDefinition {
    /// As it is stored.
    pub definition: ScheduleDefinition,
    /// Finds its times.
    pub plan: SchedulePlan,
}

impl PartialEq for PlannedDefinition {
    fn eq(&self, other: &Self) -> bool {
        self.definition == other.definition
    }
}

impl PlannedDefinition {
    /// Of a definition in a schedule with this start.
    ///
    /// # Errors
    /// What is wrong with its time zone, in words.
    pub fn new(start: &Start, definition: ScheduleDefinition) -> Result<Self, String> {
        let plan = planned(start, &definition, &definition.spec).map_err(|error| error.to_string())?;
        let mut planned = Self { definition, plan };
        planned.bound_starts(&ScheduleResults::default());
        Ok(planned)
    }

    /// One step starts as many runs as [`STARTS_MAX_BYTES`] have room for, each with its input and with these results.
    pub(super) fn bound_starts(&mut self, results: &ScheduleResults) {
        let each = self.definition.action.encoded_len() + results.encoded_len();
        self.plan.starts_max = (STARTS_MAX_BYTES / each.max(1)).clamp(1, STARTS_MAX);
    }
}

fn planned(
    start: &Start,
    definition: &ScheduleDefinition,
    spec: &ScheduleSpec,
) -> Result<SchedulePlan, SpecError> {
    let id = schedule_id(&start.workflow_id).unwrap_or_default();
    let seed = format!("{}-{id}", start.namespace_id);
    SchedulePlan::new(spec, &seed, definition.policies.clone(), &definition.workflow_id)
}

impl Schedule {
    /// As its rows have it. A time zone that this release does not know has no times.
    pub fn of_rows(
        start: &Start,
        definition: ScheduleDefinition,
        progress: ScheduleProgress,
        results: ScheduleResults,
    ) -> Self {
        let plan = planned(start, &definition, &definition.spec)
            .or_else(|_unknown_zone| planned(start, &definition, &ScheduleSpec::default()))
            .expect("a specification without anything names no zone");
        let mut plan = PlannedDefinition { definition, plan };
        plan.bound_starts(&results);
        Self { plan: Arc::new(plan), progress: Arc::new(progress), results: Arc::new(results) }
    }

    /// What it is to do.
    pub fn definition(&self) -> &ScheduleDefinition {
        &self.plan.definition
    }

    /// What waits, what runs, and how far times are worked off.
    pub fn state(&self) -> &ScheduleState {
        &self.progress.state
    }

    /// Actual times to come, in ms since 1970, at most `max`.
    pub fn future_times_ms(&self, now_ms: i64, max: usize) -> Vec<i64> {
        self.state().future_times_ms(&self.plan.plan, now_ms, max)
    }

    fn state_bytes(&self) -> i64 {
        bytes(&self.plan.definition)
            .saturating_add(bytes(self.progress.as_ref()))
            .saturating_add(bytes(self.results.as_ref()))
    }
}

pub(crate) fn apply_schedule(run: &mut Run, schedule: &Arc<Schedule>) {
    let before = run.schedule.as_ref().map_or(0, |schedule| schedule.state_bytes());
    run.head.state_bytes = run.head.state_bytes.saturating_sub(before).saturating_add(schedule.state_bytes());
    run.schedule = Some(schedule.clone());
}
