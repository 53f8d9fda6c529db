//! Converts commands of operators to requests to the engine, with the limits and the texts of a gRPC call.

use everlog_engine::machine::operator::activity_control::{
    ActivitySelection, ActivitySelector, PauseActivity, ResetActivity, UnpauseActivity, UpdateActivityOptions,
};
use everlog_engine::machine::operator::activity_options::ActivityOptionsPatch;
use everlog_engine::machine::operator::run_options::UpdateRunOptions;
use everlog_engine::machine::operator::run_pause::{PauseRun, UnpauseRun, check_said};
use everlog_engine::machine::worker_versioning::{Override, Pinned, Version};
use everlog_engine::request::{Request, RequestRecord};
use everlog_engine::time::Duration;

use crate::command::operator_shape::{
    GivenActivityChange, GivenActivityOptions, GivenActivityPause, GivenActivityReset, GivenActivityUnpause,
    GivenOverride, GivenRunOptions, GivenRunPause, GivenRunUnpause,
};
use crate::command::shape::Command;
use crate::command::to_request::{Frame, needed, policy};
use crate::command::validate::{invalid, span_ms};
use crate::command::{Code, CommandRefusal};

/// How a run stays with a version; there is one way.
const PINNED: i32 = 1;

impl Frame<'_> {
    /// What an operator asks for an open run, or for activities of one.
    pub(super) fn operate<P>(
        &self,
        input: RequestRecord,
        command: Command<P>,
    ) -> Result<RequestRecord, CommandRefusal> {
        let request = match command.r#type.as_str() {
            "pause_activity" => self.pause_activity(needed("pause_activity", command.pause_activity)?)?,
            "unpause_activity" => {
                self.unpause_activity(needed("unpause_activity", command.unpause_activity)?)?
            }
            "reset_activity" => self.reset_activity(needed("reset_activity", command.reset_activity)?)?,
            "update_activity_options" => self.update_activity_options(needed(
                "update_activity_options",
                command.update_activity_options,
            )?)?,
            "pause" => self.pause(command.pause.unwrap_or_default())?,
            "unpause" => self.unpause(command.unpause.unwrap_or_default())?,
            "update_options" => self.update_options(needed("update_options", command.update_options)?)?,
            other => {
                let reason = format!("this release knows no command {other:?}");
                return Err(CommandRefusal::new(Code::CommandUnknown, reason));
            }
        };
        Ok(RequestRecord { request: Some(request), ..input })
    }

    fn pause_activity(&self, given: GivenActivityPause) -> Result<Request, CommandRefusal> {
        let reason = given.reason.unwrap_or_default();
        self.rules.text("Reason", &reason)?;
        Ok(Request::PauseActivity(PauseActivity {
            selector: Some(self.selector(given.activity_id, given.activity_type, given.all)?),
            identity: self.identity.clone(),
            reason,
            request_id: self.request_id.clone(),
        }))
    }

    fn unpause_activity(&self, given: GivenActivityUnpause) -> Result<Request, CommandRefusal> {
        Ok(Request::UnpauseActivity(UnpauseActivity {
            selector: Some(self.selector(given.activity_id, given.activity_type, given.all)?),
            resets_attempts: given.reset_attempts,
            resets_heartbeat: given.reset_heartbeat,
            jitter_ms: span_ms("Jitter", given.jitter_ms)?,
        }))
    }

    fn reset_activity(&self, given: GivenActivityReset) -> Result<Request, CommandRefusal> {
        Ok(Request::ResetActivity(ResetActivity {
            selector: Some(self.selector(given.activity_id, given.activity_type, given.all)?),
            keeps_paused: given.keep_paused,
            resets_heartbeat: given.reset_heartbeat,
            jitter_ms: span_ms("Jitter", given.jitter_ms)?,
            restores_options: given.restore_original,
        }))
    }

    fn update_activity_options(&self, given: GivenActivityChange) -> Result<Request, CommandRefusal> {
        let patch = match (given.restore_original, given.options) {
            (true, Some(_)) => return Err(invalid("Both options and restore_original are provided")),
            (true, None) => None,
            (false, options) => Some(Box::new(self.patch(needed("options", options)?)?)),
        };
        let selector = Some(self.selector(given.activity_id, given.activity_type, given.all)?);
        Ok(Request::UpdateActivityOptions(UpdateActivityOptions { selector, patch }))
    }

    /// Whether the options that come of it can be is for the engine to say, which knows those that stay.
    fn patch(&self, given: GivenActivityOptions) -> Result<ActivityOptionsPatch, CommandRefusal> {
        Ok(ActivityOptionsPatch {
            task_queue: given.task_queue,
            schedule_to_close_timeout: given.schedule_to_close_timeout_ms.map(Duration::from_ms),
            schedule_to_start_timeout: given.schedule_to_start_timeout_ms.map(Duration::from_ms),
            start_to_close_timeout: given.start_to_close_timeout_ms.map(Duration::from_ms),
            heartbeat_timeout: given.heartbeat_timeout_ms.map(Duration::from_ms),
            retry_policy: given.retry_policy.map(policy),
            priority: self.rules.priority(given.priority)?,
            ..ActivityOptionsPatch::default()
        })
    }

    fn selector(
        &self,
        activity_id: Option<String>,
        activity_type: Option<String>,
        all: bool,
    ) -> Result<ActivitySelector, CommandRefusal> {
        let selection = match (activity_id, activity_type, all) {
            (Some(id), None, false) => {
                self.rules.id("ActivityId", &id)?;
                ActivitySelection::Id(id)
            }
            (None, Some(name), false) => {
                self.rules.id("ActivityType", &name)?;
                ActivitySelection::Type(name)
            }
            (None, None, true) => ActivitySelection::All(true),
            (None, None, false) => {
                let reason = "an activity is named by activity_id, activity_type or all";
                return Err(CommandRefusal::new(Code::CommandIncomplete, reason));
            }
            _several => {
                return Err(invalid("an activity is named by one of activity_id, activity_type and all"));
            }
        };
        Ok(ActivitySelector { selection: Some(selection) })
    }

    fn pause(&self, given: GivenRunPause) -> Result<Request, CommandRefusal> {
        let (identity, request_id) = (self.identity.clone(), self.request_id.clone());
        let reason = given.reason.unwrap_or_default();
        check_said(&identity, &reason, &request_id).map_err(invalid)?;
        Ok(Request::PauseRun(PauseRun { identity, reason, request_id }))
    }

    fn unpause(&self, given: GivenRunUnpause) -> Result<Request, CommandRefusal> {
        let (identity, request_id) = (self.identity.clone(), self.request_id.clone());
        let reason = given.reason.unwrap_or_default();
        check_said(&identity, &reason, &request_id).map_err(invalid)?;
        Ok(Request::UnpauseRun(UnpauseRun { identity, reason, request_id }))
    }

    fn update_options(&self, given: GivenRunOptions) -> Result<Request, CommandRefusal> {
        let overriding = given.versioning_override.map(|given| self.overriding(given)).transpose()?;
        if overriding.is_some() && given.unset_versioning_override {
            return Err(invalid("Both versioning_override and unset_versioning_override are provided"));
        }
        Ok(Request::UpdateRunOptions(UpdateRunOptions {
            sets_override: overriding.is_some() || given.unset_versioning_override,
            overriding,
            priority: self.rules.priority(given.priority)?,
            identity: self.identity.clone(),
            ..UpdateRunOptions::default()
        }))
    }

    fn overriding(&self, given: GivenOverride) -> Result<Override, CommandRefusal> {
        let auto_upgrade = given.auto_upgrade;
        let pinned = match (given.pinned, auto_upgrade) {
            (None, true) => None,
            (None, false) => return Err(invalid("override behavior is required")),
            (Some(_), true) => return Err(invalid("only provide pinned version if behavior is 'PINNED'")),
            (Some(version), false) => {
                self.rules.id("VersioningOverride.DeploymentName", &version.deployment_name)?;
                self.rules.id("VersioningOverride.BuildId", &version.build_id)?;
                let version =
                    Version { build_id: version.build_id, deployment_name: version.deployment_name };
                Some(Pinned { behavior: PINNED, version: Some(version) })
            }
        };
        Ok(Override { pinned, auto_upgrade })
    }
}
