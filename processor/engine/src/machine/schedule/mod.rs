//! A schedule: a run without events and tasks, whose state machine decides what is started when.
//!
//! (none)  --create-->                       open
//! open    --create, of the same request-->  open: found again
//! open    --create, of another request-->   open: refused
//! open    --update, patch-->                open
//! open    --its alarm, ActionOpened, ActionClosed-->  open, or gone where it was idle for too long
//! open    --delete-->                       gone: what it has started goes on
//!
//! Being a run it moves, is restored, woken, indexed and deleted with its namespace as every run is. What is asked of
//! ordinary runs does not find it. What becomes of times and actions is decided by `everlog_schedules`; what goes
//! between a schedule and its runs stands in `action.rs`.

pub mod action;
mod change;
mod create;
pub mod definition;
pub mod event;
pub mod request;

use everlog_schedules::state::ScheduleRefusal;

use crate::decide::View;
use crate::level;
use crate::machine::schedule::change::ScheduleDraft;
use crate::machine::start::StartContext;
use crate::outcome::{Outcome, Rejection, Reply, ScheduleStanding};
use crate::request::{Request, RequestRecord};
use crate::run::Run;

pub(crate) use crate::machine::schedule::create::create;
pub use crate::machine::schedule::definition::Schedule;

/// What the Workflow Ids of schedules begin with; the schedule's id follows.
pub const WORKFLOW_ID_PREFIX: &str = "temporal-sys-scheduler:";
/// The workflow type of schedules.
pub const WORKFLOW_TYPE: &str = "temporal-sys-scheduler-workflow";
/// The division of schedules: lists of workflows leave them out.
pub const NAMESPACE_DIVISION: &str = "TemporalScheduler";
/// The search attribute that has the division.
pub const DIVISION_ATTRIBUTE: &str = "TemporalNamespaceDivision";
/// The search attribute that tells whether a schedule is paused.
pub const PAUSED_ATTRIBUTE: &str = "TemporalSchedulePaused";

/// The id of a schedule by the Workflow Id of its run; none of a Workflow Id that is none.
pub fn schedule_id(workflow_id: &str) -> Option<&str> {
    workflow_id.strip_prefix(WORKFLOW_ID_PREFIX)
}

/// Workflow Ids of schedules are for schedules.
pub(crate) fn keep_id_free(place: StartContext<'_>) -> Result<(), Rejection> {
    if place.stamp.level < level::SCHEDULES || schedule_id(place.workflow_id).is_none() {
        return Ok(());
    }
    let reason = format!("Workflow Ids that begin with \"{WORKFLOW_ID_PREFIX}\" are kept for schedules.");
    Err(Rejection::InvalidArgument(reason))
}

impl Request {
    /// It is for schedules, and for no other run.
    pub fn is_for_schedules(&self) -> bool {
        matches!(
            self,
            Self::CreateSchedule(_)
                | Self::UpdateSchedule(_)
                | Self::PatchSchedule(_)
                | Self::DeleteSchedule(_)
                | Self::ScheduleActionOpened(_)
                | Self::ScheduleActionClosed(_)
        )
    }
}

/// What a request does to a schedule. A request of ordinary runs does not find it, and one of schedules finds nothing else.
/// With its namespace it is deleted as runs are.
pub(crate) fn decide(
    run: &Run,
    view: &View,
    input: &RequestRecord,
    order: &Request,
    place: StartContext<'_>,
) -> Outcome {
    let missing = || order.row().if_missing.answer(&input.workflow_id, &input.run_id);
    let Some(schedule) = run.schedule.as_deref() else { return missing() };
    let request_id = match order {
        Request::UpdateSchedule(order) => order.request_id.as_str(),
        Request::PatchSchedule(order) => order.request_id.as_str(),
        _another => "",
    };
    if !request_id.is_empty() && schedule.progress.request_ids.iter().any(|known| known == request_id) {
        return Outcome::answer(standing(run, schedule));
    }
    let mut draft = ScheduleDraft::new(run, schedule, place);
    let changed = match order {
        Request::UpdateSchedule(order) => draft.update(order, place),
        Request::PatchSchedule(order) => draft.patch(order),
        Request::FireTimers(_) => draft.wake(),
        Request::ScheduleActionOpened(order) => draft.opened(order),
        Request::ScheduleActionClosed(order) => draft.closed(order),
        Request::DeleteSchedule(_) => return change::deleted(run, schedule),
        Request::Delete(_) if view.is_namespace_deleted => return change::gone(Vec::new()),
        _of_ordinary_runs => return missing(),
    };
    match changed {
        Ok(()) => {
            draft.remember(request_id);
            draft.finish()
        }
        Err(rejection) => Outcome::refuse(rejection),
    }
}

fn refused(refusal: ScheduleRefusal) -> Rejection {
    let reason = refusal.to_string();
    match refusal {
        ScheduleRefusal::MismatchedToken => Rejection::Outdated(reason),
        ScheduleRefusal::TooManyBackfills => Rejection::TooMany(reason),
        ScheduleRefusal::NotesTooLong => Rejection::InvalidArgument(reason),
    }
}

fn standing(run: &Run, schedule: &Schedule) -> Reply {
    let run_id = run.start.run_id.clone();
    Reply::Schedule(ScheduleStanding { run_id, conflict_token: schedule.state().conflict_token })
}
