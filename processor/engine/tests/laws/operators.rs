//! What operators ask, drawn by dice.

use bytes::Bytes;
use everlog_engine::machine::operator::activity_control::{
    ActivitySelection, ActivitySelector, PauseActivity, ResetActivity, UnpauseActivity, UpdateActivityOptions,
};
use everlog_engine::machine::operator::activity_options::ActivityOptionsPatch;
use everlog_engine::machine::operator::run_options::UpdateRunOptions;
use everlog_engine::machine::operator::run_pause::{PauseRun, UnpauseRun};
use everlog_engine::payload::PriorityPatch;
use everlog_engine::request::Request;
use everlog_engine::time::Duration;

use super::case::Case;

impl Case {
    /// One of all calls: what is paused is unpaused more often than not.
    pub fn operate(&mut self) -> Request {
        let is_paused = self.run().is_some_and(|run| run.is_paused());
        let (identity, reason) = ("operator".to_owned(), "why".to_owned());
        let request_id = format!("pause-{}", self.dice.below(3));
        let selector = self.selector();
        match self.dice.below(12) {
            0..=4 if is_paused => Request::UnpauseRun(UnpauseRun { identity, reason, request_id }),
            0 | 1 => Request::PauseRun(PauseRun { identity, reason, request_id }),
            2 => Request::UnpauseRun(UnpauseRun { identity, reason, request_id }),
            3 => Request::UpdateRunOptions(self.other_options()),
            4 | 5 => Request::PauseActivity(PauseActivity { selector, identity, reason, request_id }),
            6..=8 => Request::UnpauseActivity(UnpauseActivity {
                selector,
                resets_attempts: self.dice.percent(30),
                resets_heartbeat: self.dice.percent(30),
                jitter_ms: self.jitter_ms(),
            }),
            9 | 10 => Request::ResetActivity(ResetActivity {
                selector,
                keeps_paused: self.dice.percent(30),
                resets_heartbeat: self.dice.percent(30),
                jitter_ms: self.jitter_ms(),
                restores_options: self.dice.percent(30),
            }),
            _last => {
                let patch = self.dice.percent(80).then(|| Box::new(self.patch()));
                Request::UpdateActivityOptions(UpdateActivityOptions { selector, patch })
            }
        }
    }

    fn jitter_ms(&mut self) -> i64 {
        match self.dice.below(10) {
            0 => -1,
            1 => i64::MAX,
            2..=4 => self.dice.span_ms(),
            _none => 0,
        }
    }

    fn selector(&mut self) -> Option<ActivitySelector> {
        let selection = match self.dice.below(10) {
            0 => None,
            1 => Some(ActivitySelection::All(false)),
            2..=4 => Some(ActivitySelection::All(true)),
            5 => Some(ActivitySelection::Type("unknown".into())),
            6 | 7 => self
                .run()
                .and_then(|run| run.activities.values().next())
                .map(|activity| ActivitySelection::Type(activity.activity_type.clone())),
            _id => Some(ActivitySelection::Id(self.dice.word(&["a", "b", "unknown"]).into())),
        };
        self.dice.percent(98).then_some(ActivitySelector { selection })
    }

    fn patch(&mut self) -> ActivityOptionsPatch {
        let mut patch = ActivityOptionsPatch::default();
        let span = |case: &mut Self| {
            let ms = if case.dice.percent(10) { -1 } else { case.dice.span_ms() };
            case.dice.percent(25).then(|| Duration::from_ms(ms))
        };
        patch.schedule_to_close_timeout = span(self);
        patch.schedule_to_start_timeout = span(self);
        patch.start_to_close_timeout = span(self);
        patch.heartbeat_timeout = span(self);
        patch.initial_interval = span(self);
        patch.maximum_interval = span(self);
        patch.task_queue = self.dice.percent(20).then(|| self.dice.word(&["other", "orders", ""]).into());
        patch.maximum_attempts = self.dice.percent(20).then(|| *self.dice.one(&[0, 1, 2, 5, -1]));
        patch.backoff_coefficient = self.dice.percent(10).then(|| *self.dice.one(&[1.0, 2.5, 0.5, f64::NAN]));
        patch.priority = self.priority();
        patch.priority_patch = self.parts();
        patch
    }

    fn priority(&mut self) -> Option<Bytes> {
        let whole = [&b""[..], b"\x08\x02", b"\xff"].map(Bytes::from_static);
        self.dice.percent(20).then(|| self.dice.one(&whole).clone())
    }

    fn parts(&mut self) -> Option<PriorityPatch> {
        let key = *self.dice.one(&[0, 1, 5, -1]);
        let patch = PriorityPatch {
            priority_key: self.dice.percent(50).then_some(key),
            fairness_key: self.dice.percent(50).then(|| self.dice.word(&["", "tenant"]).into()),
            fairness_weight: self.dice.percent(50).then_some(0.5),
        };
        self.dice.percent(20).then_some(patch)
    }

    /// Other options of a run.
    pub fn other_options(&mut self) -> UpdateRunOptions {
        UpdateRunOptions {
            sets_override: self.dice.percent(30),
            overriding: self.overriding(),
            priority: self.priority(),
            priority_patch: self.parts(),
            identity: "operator".into(),
        }
    }
}
