//! A schedule that is being changed by a record: what its state decides becomes changes and messages.

use std::sync::Arc;

use everlog_schedules::state::{ActionEnd, ScheduleEffect};

use crate::api_types::{MapEntry, Status};
use crate::draft::{Change, Draft};
use crate::level;
use crate::machine::memo_and_search_attributes as attributes;
use crate::machine::schedule::action::{self, ScheduleActionClosed, ScheduleActionOpened};
use crate::machine::schedule::create::{check_attributes, check_times, checked};
use crate::machine::schedule::definition::{Schedule, ScheduleResults};
use crate::machine::schedule::event::{self, ScheduleEnd, ScheduleEvent, ScheduleEventKind};
use crate::machine::schedule::request::{PatchSchedule, UpdateSchedule};
use crate::machine::schedule::{DIVISION_ATTRIBUTE, NAMESPACE_DIVISION, PAUSED_ATTRIBUTE, refused, standing};
use crate::machine::start::StartContext;
use crate::outcome::{Outcome, Rejection, Reply};
use crate::request::RequestRecord;
use crate::run::{Properties, Run};

/// Requests that a schedule remembers, so that each is taken once.
const REQUESTS_MAX: usize = 32;

/// A schedule that is being changed.
pub(super) struct ScheduleDraft<'a> {
    pub(super) draft: Draft<'a>,
    pub(super) schedule: Schedule,
    pub(super) properties: Properties,
    pub(super) effects: Vec<ScheduleEffect>,
}

impl<'a> ScheduleDraft<'a> {
    pub(super) fn new(run: &Run, schedule: &Schedule, place: StartContext<'a>) -> Self {
        Self {
            draft: Draft::new(run.clone(), place.stamp, place.settings),
            schedule: schedule.clone(),
            properties: run.properties.as_ref().clone(),
            effects: Vec::new(),
        }
    }

    pub(super) fn update(
        &mut self,
        order: &UpdateSchedule,
        place: StartContext<'_>,
    ) -> Result<(), Rejection> {
        let mut plan = checked(&self.draft.run.start, &order.definition, place)?;
        plan.bound_starts(&self.schedule.results);
        check_attributes(order.search_attributes.as_ref(), order.memo.as_ref(), place)?;
        let old = self.schedule.plan.clone();
        let now_ms = self.draft.now_ms();
        let state = &mut Arc::make_mut(&mut self.schedule.progress).state;
        let updated =
            state.update(&old.plan, &plan.plan, order.settings.clone(), order.conflict_token, now_ms);
        self.effects = updated.map_err(refused)?;
        check_times(state)?;
        self.schedule.plan = Arc::new(plan);
        if let Some(memo) = &order.memo {
            self.properties.memo = attributes::merged(&self.properties.memo, attributes::read(Some(memo)));
        }
        if let Some(given) = &order.search_attributes {
            self.properties.search_attributes = Properties::given(None, Some(given)).search_attributes;
        }
        Ok(())
    }

    pub(super) fn patch(&mut self, order: &PatchSchedule) -> Result<(), Rejection> {
        let now_ms = self.draft.now_ms();
        let state = &mut Arc::make_mut(&mut self.schedule.progress).state;
        let patched = state.patch(&self.schedule.plan.plan, &order.patch.patch(), now_ms);
        self.effects = patched.map_err(refused)?;
        Ok(())
    }

    pub(super) fn wake(&mut self) -> Result<(), Rejection> {
        let now_ms = self.draft.now_ms();
        let state = &mut Arc::make_mut(&mut self.schedule.progress).state;
        self.effects = state.wake(&self.schedule.plan.plan, now_ms);
        Ok(())
    }

    pub(super) fn opened(&mut self, order: &ScheduleActionOpened) -> Result<(), Rejection> {
        let now_ms = self.draft.now_ms();
        let state = &mut Arc::make_mut(&mut self.schedule.progress).state;
        self.effects = state.action_opened(&self.schedule.plan.plan, order.action, order.opening(), now_ms);
        Ok(())
    }

    pub(super) fn closed(&mut self, order: &ScheduleActionClosed) -> Result<(), Rejection> {
        self.keep_result(order);
        let now_ms = self.draft.now_ms();
        let state = &mut Arc::make_mut(&mut self.schedule.progress).state;
        if order.is_repeated {
            // It runs no more as far as the schedule knows; only the status is another.
            let recent = state.recent.iter_mut().find(|recent| recent.number == order.action);
            recent.into_iter().for_each(|recent| recent.status = order.status);
            return Ok(());
        }
        let end = ActionEnd {
            status: order.status,
            workflow_id: order.workflow_id.clone(),
            failure_message: order.failure_message(),
        };
        self.effects = state.action_closed(&self.schedule.plan.plan, order.action, &end, now_ms);
        Ok(())
    }

    /// A run that completes leaves its result, one that fails its failure; those that end otherwise leave nothing, and so
    /// does one that completes without a result.
    fn keep_result(&mut self, order: &ScheduleActionClosed) {
        let payload = order.payload.clone();
        let has_none = payload.is_none() && self.draft.stamp.level >= level::RESULTS_LAST;
        let results = match Status::try_from(order.status) {
            Ok(Status::Completed) if has_none => return,
            Ok(Status::Completed) => ScheduleResults { last_completion_result: payload, last_failure: None },
            Ok(Status::Failed) => {
                ScheduleResults { last_failure: payload, ..self.schedule.results.as_ref().clone() }
            }
            _another_end => return,
        };
        if results != *self.schedule.results {
            Arc::make_mut(&mut self.schedule.plan).bound_starts(&results);
            self.schedule.results = Arc::new(results);
        }
    }

    pub(super) fn remember(&mut self, request_id: &str) {
        if request_id.is_empty() {
            return;
        }
        let ids = &mut Arc::make_mut(&mut self.schedule.progress).request_ids;
        ids.push(request_id.to_owned());
        if ids.len() > REQUESTS_MAX {
            ids.remove(0);
        }
    }

    /// The outcome: the schedule as it is now, and messages for what it asks of others.
    pub(super) fn finish(mut self) -> Outcome {
        let effects = std::mem::take(&mut self.effects);
        let mut event_id = self.schedule.progress.last_event_id;
        let events = event::numbered(&self.draft.run.start.run_id, &mut event_id, &effects);
        if effects.contains(&ScheduleEffect::Close) {
            return gone(events);
        }
        if !events.is_empty() {
            Arc::make_mut(&mut self.schedule.progress).last_event_id = event_id;
        }
        let now_ms = self.draft.now_ms();
        let alarm_ms = self.schedule.state().next_alarm_ms(&self.schedule.plan.plan, now_ms);
        if self.schedule.progress.alarm_ms != alarm_ms {
            Arc::make_mut(&mut self.schedule.progress).alarm_ms = alarm_ms;
        }
        mark(&mut self.properties, self.schedule.state().settings.is_paused);
        let reply = standing(&self.draft.run, &self.schedule);
        if self.properties != *self.draft.run.properties {
            self.draft.change(Change::Properties(Box::new(self.properties)));
        }
        if self.draft.run.schedule.as_deref() != Some(&self.schedule) {
            self.draft.change(Change::Schedule(Arc::new(self.schedule)));
        }
        if self.draft.changes().is_empty() {
            return Outcome::answer(reply);
        }
        let messages = messages(&self.draft, &effects);
        messages.into_iter().for_each(|message| self.draft.send(message));
        Outcome { steps: vec![self.draft.finish()], schedule_events: events, ..Outcome::answer(reply) }
    }
}

/// The search attributes that lists of schedules go by.
fn mark(properties: &mut Properties, is_paused: bool) {
    let own = [
        action::typed(DIVISION_ATTRIBUTE, "Keyword", &format!("\"{NAMESPACE_DIVISION}\"")),
        action::typed(PAUSED_ATTRIBUTE, "Bool", if is_paused { "true" } else { "false" }),
    ];
    let entries = &mut properties.search_attributes;
    entries.retain(|entry: &MapEntry| own.iter().all(|own| own.key != entry.key));
    entries.extend(own);
    entries.sort_by(|one, other| one.key.cmp(&other.key));
}

/// What a schedule asks of others.
fn messages(draft: &Draft<'_>, effects: &[ScheduleEffect]) -> Vec<RequestRecord> {
    let run = &draft.run;
    let Some(schedule) = &run.schedule else { return Vec::new() };
    let asks_again = draft.stamp.level >= level::CANCELS_AGAIN;
    let definition = schedule.definition();
    let message = |effect: &ScheduleEffect| match effect {
        ScheduleEffect::Start(action) => Some(action::start(run, definition, &schedule.results, action)),
        ScheduleEffect::Cancel(started) => Some(action::cancel(run, definition, started)),
        ScheduleEffect::CancelAgain(started) => asks_again.then(|| action::cancel(run, definition, started)),
        ScheduleEffect::Terminate(started) => Some(action::terminate(run, definition, started)),
        ScheduleEffect::Close
        | ScheduleEffect::Fired(_)
        | ScheduleEffect::Skipped(_)
        | ScheduleEffect::Missed(_)
        | ScheduleEffect::PauseChanged(_)
        | ScheduleEffect::Created(_)
        | ScheduleEffect::Updated(_) => None,
    };
    effects.iter().filter_map(message).collect()
}

/// The schedule was deleted by a user.
pub(super) fn deleted(run: &Run, schedule: &Schedule) -> Outcome {
    let mut event_id = schedule.progress.last_event_id;
    let closed = ScheduleEventKind::Closed(ScheduleEnd::Deleted);
    gone(vec![event::next(&run.start.run_id, &mut event_id, closed)])
}

/// The schedule is forgotten.
pub(super) fn gone(schedule_events: Vec<ScheduleEvent>) -> Outcome {
    Outcome { expired: true, schedule_events, ..Outcome::answer(Reply::Done) }
}
