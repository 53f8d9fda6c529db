//! What operators ask.

use everlog_engine::machine::operator::activity_control::{
    ActivitySelection, ActivitySelector, PauseActivity, ResetActivity, UnpauseActivity, UpdateActivityOptions,
};
use everlog_engine::machine::operator::activity_options::ActivityOptionsPatch;
use everlog_engine::machine::operator::run_options::UpdateRunOptions;
use everlog_engine::machine::operator::run_pause::{PauseRun, UnpauseRun};
use everlog_engine::request::Request;

use super::World;

/// The activity of an id.
fn activity(id: &str) -> Option<ActivitySelector> {
    Some(ActivitySelector { selection: Some(ActivitySelection::Id(id.into())) })
}

/// All activities.
pub fn all() -> Option<ActivitySelector> {
    Some(ActivitySelector { selection: Some(ActivitySelection::All(true)) })
}

impl World {
    pub fn pause_activity(&mut self, id: &str) -> &mut Self {
        self.pauses(&format!("{id} is to be paused"), activity(id))
    }

    pub fn pauses(&mut self, text: &str, selector: Option<ActivitySelector>) -> &mut Self {
        let (identity, reason, request_id) = ("operator".into(), "why".into(), "pause".into());
        self.verb(text, Request::PauseActivity(PauseActivity { selector, identity, reason, request_id }));
        self
    }

    pub fn unpause_activity(&mut self, id: &str) -> &mut Self {
        self.unpauses(id, |_order| {})
    }

    pub fn unpauses(&mut self, id: &str, change: impl FnOnce(&mut UnpauseActivity)) -> &mut Self {
        let mut order = UnpauseActivity { selector: activity(id), ..UnpauseActivity::default() };
        change(&mut order);
        self.verb(&format!("{id} is to be unpaused"), Request::UnpauseActivity(order));
        self
    }

    pub fn resets(&mut self, id: &str, change: impl FnOnce(&mut ResetActivity)) -> &mut Self {
        let mut order = ResetActivity { selector: activity(id), ..ResetActivity::default() };
        change(&mut order);
        self.verb(&format!("{id} is to be reset"), Request::ResetActivity(order));
        self
    }

    pub fn gives_options(&mut self, id: &str, patch: Option<ActivityOptionsPatch>) -> &mut Self {
        let text = match &patch {
            Some(_) => format!("{id} is to have other options"),
            None => format!("{id} is to have its first options"),
        };
        let (selector, patch) = (activity(id), patch.map(Box::new));
        self.verb(&text, Request::UpdateActivityOptions(UpdateActivityOptions { selector, patch }));
        self
    }

    pub fn pause_run(&mut self, request_id: &str) -> &mut Self {
        let (identity, reason, request_id) = ("operator".into(), "why".into(), request_id.into());
        self.verb("the run is to be paused", Request::PauseRun(PauseRun { identity, reason, request_id }));
        self
    }

    pub fn unpause_run(&mut self) -> &mut Self {
        let (identity, reason, request_id) = ("operator".into(), "mended".into(), String::new());
        let order = UnpauseRun { identity, reason, request_id };
        self.verb("the run is to be unpaused", Request::UnpauseRun(order));
        self
    }

    pub fn gives_run_options(&mut self, change: impl FnOnce(&mut UpdateRunOptions)) -> &mut Self {
        let mut order = UpdateRunOptions { identity: "operator".into(), ..UpdateRunOptions::default() };
        change(&mut order);
        self.verb("the run is to have other options", Request::UpdateRunOptions(order));
        self
    }
}
