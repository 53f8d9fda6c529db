//! Operators: one client for each workflow pauses, resets and changes its run and its activities while things break. Once there is
//! peace it leaves nothing paused, so that every run must come to its end.

use everlog_engine::machine::operator::activity_control::{
    ActivitySelection, ActivitySelector, PauseActivity, ResetActivity, UnpauseActivity, UpdateActivityOptions,
};
use everlog_engine::machine::operator::activity_options::ActivityOptionsPatch;
use everlog_engine::machine::operator::run_options::UpdateRunOptions;
use everlog_engine::machine::operator::run_pause::{PauseRun, UnpauseRun};
use everlog_engine::payload::PriorityPatch;
use everlog_engine::request::Request;
use everlog_engine::{Rejection, Reply};

use crate::clients::{ClientContext, input};
use crate::dice::Dice;

fn all() -> Option<ActivitySelector> {
    Some(ActivitySelector { selection: Some(ActivitySelection::All(true)) })
}

fn priority(dice: &mut Dice) -> Option<PriorityPatch> {
    let key = i32::try_from(1 + dice.index(5)).unwrap_or(1);
    Some(PriorityPatch { priority_key: Some(key), ..PriorityPatch::default() })
}

fn unpause_activities(jitter_ms: i64) -> Request {
    Request::UnpauseActivity(UnpauseActivity { selector: all(), jitter_ms, ..UnpauseActivity::default() })
}

/// What is paused is unpaused as often.
fn any(dice: &mut Dice) -> Request {
    match dice.index(8) {
        0 => Request::PauseRun(PauseRun::default()),
        1 => Request::UnpauseRun(UnpauseRun::default()),
        2 => {
            let priority_patch = priority(dice);
            Request::UpdateRunOptions(UpdateRunOptions { priority_patch, ..UpdateRunOptions::default() })
        }
        3 | 4 => Request::PauseActivity(PauseActivity { selector: all(), ..PauseActivity::default() }),
        5 => unpause_activities(dice.span(0, 500)),
        6 => {
            let keeps_paused = dice.permille(300);
            Request::ResetActivity(ResetActivity {
                selector: all(),
                keeps_paused,
                ..ResetActivity::default()
            })
        }
        _ => {
            let patch =
                ActivityOptionsPatch { priority_patch: priority(dice), ..ActivityOptionsPatch::default() };
            let patch = Some(Box::new(patch));
            Request::UpdateActivityOptions(UpdateActivityOptions { selector: all(), patch })
        }
    }
}

impl ClientContext {
    /// Does this to the workflow until there is peace, and then unpauses it until it is over.
    pub async fn operate(self, workflow_id: String, mut dice: Dice) {
        while !self.is_peace() {
            let order = any(&mut dice);
            self.operated(&workflow_id, order, &mut dice).await;
            self.clock.sleep(dice.span(50, 1_500)).await;
        }
        let unpause = Request::UnpauseRun(UnpauseRun::default());
        while self.operated(&workflow_id, unpause.clone(), &mut dice).await {
            self.operated(&workflow_id, unpause_activities(0), &mut dice).await;
            self.rest(&mut dice).await;
        }
        self.observations.borrow_mut().people_left -= 1;
    }

    /// False where the run is over.
    async fn operated(&self, workflow_id: &str, order: Request, dice: &mut Dice) -> bool {
        let Some(router) = self.router(dice) else { return true };
        let input = input(workflow_id, "", order.clone());
        match self.call("an operator's call", dice, router.order(input)).await {
            Ok(Reply::Rejected(Rejection::NotFound(why))) => why != "workflow execution already completed",
            Ok(Reply::Done | Reply::ActivityOptions(_) | Reply::RunOptions(_)) => true,
            Ok(Reply::Rejected(Rejection::NotReady(_) | Rejection::Busy(_))) | Err(_) => true,
            Ok(other) => {
                self.observations.borrow_mut().violate(format!("{order:?} yields {other:?}"));
                true
            }
        }
    }
}
