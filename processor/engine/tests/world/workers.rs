//! What workers do: take tasks and activities, and say what came of them.

use bytes::Bytes;
use everlog_engine::api_types::TaskFailedCause;
use everlog_engine::failure::{self, Failure, Info};
use everlog_engine::machine::{activity_attempt, workflow_task, workflow_task_completed};
use everlog_engine::request::Request;
use everlog_engine::time::Duration;
use prost::Message;

use super::clients::text;
use super::{Turn, World};

impl World {
    /// A poll of the normal queue takes the task.
    pub fn claim(&mut self) -> &mut Self {
        self.claim_as(false, "a worker takes the task")
    }

    /// A poll of the sticky queue takes the task.
    pub fn claim_sticky(&mut self) -> &mut Self {
        self.claim_as(true, "the sticky worker takes the task")
    }

    fn claim_as(&mut self, sticky: bool, text: &str) -> &mut Self {
        let order = self.claim_order(sticky);
        self.verb(text, order);
        self
    }

    /// A claim whose result is told together with the answer to the task.
    fn take_at_once(&mut self) -> &mut Self {
        let order = self.claim_order(false);
        let outcome = self.order(order);
        let lines = self.names.outcome(&self.replica, &outcome);
        let words = lines.iter().find_map(|line| line.strip_prefix("< "));
        self.told_later = words.expect("there is a task to take").to_owned();
        self
    }

    fn claim_order(&self, sticky: bool) -> Request {
        let pending = self.run().head.task.clone().unwrap_or_default();
        Request::ClaimTask(workflow_task::Claim {
            scheduled_event_id: pending.scheduled_event_id,
            attempt: pending.attempt,
            sticky,
            identity: "worker".into(),
            poll_id: "poll".into(),
            stamp: pending.stamp,
        })
    }

    /// A worker takes the task and answers.
    pub fn task(&mut self, answer: impl FnOnce(&mut Turn) -> &mut Turn) -> &mut Self {
        self.take_at_once().answer(answer)
    }

    /// The worker answers to the task that it took last.
    pub fn answer(&mut self, answer: impl FnOnce(&mut Turn) -> &mut Turn) -> &mut Self {
        let token = self.token();
        self.answer_to(token, answer)
    }

    /// [`World::answer`], where the run is still open and the task still in hand.
    pub fn answer_if_open(&mut self, answer: impl FnOnce(&mut Turn) -> &mut Turn) -> &mut Self {
        match self.run().started_task().map(workflow_task::Task::token) {
            Some(token) => self.answer_to(token, answer),
            None => self,
        }
    }

    pub fn answer_to(
        &mut self,
        token: workflow_task::Token,
        answer: impl FnOnce(&mut Turn) -> &mut Turn,
    ) -> &mut Self {
        let mut turn = Turn::new(self.run());
        answer(&mut turn);
        let order = workflow_task_completed::Complete { token: Some(token), ..turn.order };
        let words = if turn.words.is_empty() { "nothing to do".to_owned() } else { turn.words.join(", ") };
        self.verb(&format!("task: {words}"), Request::CompleteTask(Box::new(order)));
        self
    }

    pub fn fail_task(&mut self, cause: TaskFailedCause) -> &mut Self {
        let order = workflow_task::Fail {
            token: Some(self.token()),
            cause: cause.into(),
            failure: Some(application("Panic", |_failure| {})),
            identity: "worker".into(),
            ..workflow_task::Fail::default()
        };
        self.verb(&format!("task fails: {cause:?}"), Request::FailTask(order));
        self
    }

    /// The task that was handed out reached nobody.
    pub fn release_task(&mut self) -> &mut Self {
        let order = workflow_task::Release { token: Some(self.token()) };
        self.verb("the task reached nobody", Request::ReleaseTask(order));
        self
    }

    pub fn claim_activity(&mut self, id: &str) -> &mut Self {
        let open = self.run().activities.values().find(|activity| activity.activity_id == id).cloned();
        let claim = activity_attempt::Claim {
            scheduled_event_id: open.as_ref().map_or(0, |activity| activity.scheduled_event_id),
            attempt: open.as_ref().map_or(0, |activity| activity.attempt),
            identity: "hand".into(),
            poll_id: "poll".into(),
            stamp: open.as_ref().map_or(0, |activity| activity.stamp),
        };
        self.verb(&format!("a worker takes {id}"), Request::ClaimActivity(claim));
        self
    }

    /// What the last worker that took the activity would show.
    pub fn target(&self, id: &str) -> Option<activity_attempt::Target> {
        Some(self.attempts.get(id).cloned().unwrap_or_default())
    }

    /// The activity by its id.
    pub fn by_id(id: &str) -> Option<activity_attempt::Target> {
        Some(activity_attempt::Target { activity_id: id.into(), ..activity_attempt::Target::default() })
    }

    pub fn complete_activity(&mut self, id: &str) -> &mut Self {
        let target = self.target(id);
        self.completes(&format!("{id} returns"), target, text("done"))
    }

    pub fn complete_activity_by_id(&mut self, id: &str) -> &mut Self {
        self.completes(&format!("{id} returns, by id"), Self::by_id(id), text("done"))
    }

    pub fn completes(
        &mut self,
        text: &str,
        target: Option<activity_attempt::Target>,
        result: Bytes,
    ) -> &mut Self {
        let order = activity_attempt::Complete {
            target,
            result: Some(result),
            identity: "hand".into(),
            worker_version: None,
        };
        self.verb(text, Request::CompleteActivity(order));
        self
    }

    pub fn fail_activity(&mut self, id: &str, note: &str, failure: Option<Bytes>) -> &mut Self {
        let target = self.target(id);
        self.fails(&format!("{id} fails: {note}"), target, failure)
    }

    pub fn fails(
        &mut self,
        text: &str,
        target: Option<activity_attempt::Target>,
        failure: Option<Bytes>,
    ) -> &mut Self {
        let order = activity_attempt::Fail {
            target,
            failure,
            identity: "hand".into(),
            ..activity_attempt::Fail::default()
        };
        self.verb(text, Request::FailActivity(order));
        self
    }

    pub fn cancel_activity(&mut self, id: &str) -> &mut Self {
        let order = activity_attempt::Cancel {
            target: self.target(id),
            identity: "hand".into(),
            ..activity_attempt::Cancel::default()
        };
        self.verb(&format!("{id} cancels itself"), Request::CancelActivity(order));
        self
    }

    pub fn heartbeat(&mut self, id: &str, details: &str) -> &mut Self {
        let target = self.target(id);
        self.heartbeats(&format!("{id} reports {details}"), target, Some(text(details)))
    }

    pub fn heartbeats(
        &mut self,
        text: &str,
        target: Option<activity_attempt::Target>,
        details: Option<Bytes>,
    ) -> &mut Self {
        self.verb(text, Request::HeartbeatActivity(activity_attempt::Heartbeat { target, details }));
        self
    }

    pub fn release_activity(&mut self, id: &str) -> &mut Self {
        let order = activity_attempt::Release { target: self.target(id) };
        self.verb(&format!("{id} reached nobody"), Request::ReleaseActivity(order));
        self
    }
}

/// A failure that the user's code raised.
pub fn application(r#type: &str, change: impl FnOnce(&mut failure::Application)) -> Bytes {
    let mut application = failure::Application { r#type: r#type.into(), ..Default::default() };
    change(&mut application);
    let info = Some(Info::Application(application));
    Failure { message: "boom".into(), info, ..Failure::default() }.encode_to_vec().into()
}

/// What a failure says, for a story.
pub fn failure_of(bytes: Option<&Bytes>) -> Failure {
    bytes.map_or_else(Failure::default, |bytes| Failure::decode(bytes.clone()).expect("a failure"))
}

/// A delay for the next attempt.
pub fn delay(ms: i64) -> Option<Duration> {
    Some(Duration::from_ms(ms))
}
