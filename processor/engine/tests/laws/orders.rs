//! Orders, drawn by dice: mostly what a client or a worker would do now, often too late, sometimes nonsense.

use bytes::Bytes;
use everlog_engine::machine::attached_requests::OnConflict;
use everlog_engine::machine::reset_points::Version;
use everlog_engine::machine::signal::Signal;
use everlog_engine::machine::update::Admit;
use everlog_engine::machine::worker_versioning::{self, Override, Pinned};
use everlog_engine::machine::workflow_task::Sticky;
use everlog_engine::machine::{
    activity_attempt, cancel, close, fire_timers, reset, start, workflow_task, workflow_task_completed,
};
use everlog_engine::request::{Delete, Request, ResetSticky};

use prost::Message;

use super::case::Case;
use super::dice::Dice;
use crate::world::{a_signal, an_update, application, delay, fields, start as a_start, text};

/// What can be ordered.
#[derive(Clone, Copy)]
enum Kind {
    Start,
    Signal,
    Cancel,
    Terminate,
    ClaimTask,
    CompleteTask,
    FailTask,
    ReleaseTask,
    ClaimActivity,
    CompleteActivity,
    FailActivity,
    CancelActivity,
    Heartbeat,
    ReleaseActivity,
    Wake,
    ResetSticky,
    Delete,
    Update,
    Reset,
    Operate,
}

const ALL: [Kind; 25] = [
    Kind::Start,
    Kind::Start,
    Kind::Signal,
    Kind::Signal,
    Kind::Cancel,
    Kind::Terminate,
    Kind::ClaimTask,
    Kind::CompleteTask,
    Kind::CompleteTask,
    Kind::FailTask,
    Kind::ReleaseTask,
    Kind::ClaimActivity,
    Kind::CompleteActivity,
    Kind::FailActivity,
    Kind::CancelActivity,
    Kind::Heartbeat,
    Kind::ReleaseActivity,
    Kind::Wake,
    Kind::ResetSticky,
    Kind::Delete,
    Kind::Update,
    Kind::Update,
    Kind::Reset,
    Kind::Operate,
    Kind::Operate,
];

impl Case {
    /// A run id (empty = the current run) and an order: four times of five one that makes sense now.
    pub fn draw(&mut self) -> (String, Request) {
        let kind = if self.dice.percent(80) {
            let sensible = self.sensible();
            *self.dice.one(&sensible)
        } else {
            *self.dice.one(&ALL)
        };
        match kind {
            Kind::Start => (String::new(), self.start()),
            Kind::Signal => (self.some_run(), Request::Signal(self.signal())),
            Kind::Cancel => (self.some_run(), self.cancel()),
            Kind::Terminate => (self.some_run(), self.terminate()),
            Kind::ClaimTask => (String::new(), self.claim_task()),
            Kind::CompleteTask => self.complete_task(),
            Kind::FailTask => self.fail_task(),
            Kind::ReleaseTask => self.release_task(),
            Kind::ClaimActivity => (String::new(), self.claim_activity()),
            Kind::CompleteActivity => self.complete_activity(),
            Kind::FailActivity => self.fail_activity(),
            Kind::CancelActivity => self.cancel_activity(),
            Kind::Heartbeat => self.heartbeat(),
            Kind::ReleaseActivity => self.release_activity(),
            Kind::Wake => (self.some_run(), Request::FireTimers(fire_timers::FireTimers {})),
            Kind::ResetSticky => (self.some_run(), Request::ResetSticky(ResetSticky {})),
            Kind::Delete => (self.some_run(), Request::Delete(Delete {})),
            Kind::Update => (self.some_run(), Request::Update(self.update())),
            Kind::Reset => self.reset(),
            Kind::Operate => (self.some_run(), self.operate()),
        }
    }

    /// What a client, a worker or the clock could well do now, as often as it is likely.
    fn sensible(&self) -> Vec<Kind> {
        let Some(run) = self.run().filter(|run| run.is_open()) else {
            return vec![Kind::Start, Kind::Start, Kind::Start, Kind::Reset];
        };
        let mut kinds = vec![Kind::Signal, Kind::Wake, Kind::Update, Kind::Update];
        if run.is_paused() || run.activities.values().any(|activity| activity.pause.is_some()) {
            kinds.extend([Kind::Operate; 3]);
        }
        match &run.head.task {
            Some(task) if task.is_started() => {
                kinds.extend([Kind::CompleteTask; 5]);
                kinds.extend([Kind::FailTask, Kind::ReleaseTask]);
            }
            Some(_scheduled) => kinds.extend([Kind::ClaimTask; 5]),
            None => {}
        }
        for activity in run.activities.values() {
            if activity.is_ready() {
                kinds.push(Kind::ClaimActivity);
            } else if activity.cancel_requested_event_id > 0 && activity.is_started() {
                kinds.extend([Kind::CancelActivity, Kind::Heartbeat]);
            } else if activity.is_started() {
                kinds.extend([Kind::CompleteActivity, Kind::FailActivity, Kind::Heartbeat]);
            }
        }
        kinds
    }

    /// Mostly the current run.
    fn some_run(&mut self) -> String {
        match self.dice.below(10) {
            0 => self.tasks.first().map_or_else(String::new, |(run_id, _)| run_id.clone()),
            1 => "6f6b4a5e-0000-4000-8000-00000000dead".into(),
            _current => String::new(),
        }
    }

    /// Opaque bytes: none, some, or too many.
    pub fn blob(&mut self) -> Option<Bytes> {
        match self.dice.below(50) {
            0..=9 => None,
            10 => Some(vec![b'x'; 401].into()),
            11 => Some(Bytes::from_static(b"\xff\xff")),
            _usual => Some(text(&"x".repeat(self.dice.below(80)))),
        }
    }

    /// Of one of a few builds, or of none.
    fn version(&mut self) -> Option<Bytes> {
        match self.dice.below(10) {
            0 => self.blob(),
            1..=3 => None,
            number => Some(Version { build_id: format!("build {number}") }.encode_to_vec().into()),
        }
    }

    /// Of one of two versions of a deployment, or of none.
    fn deployed(&mut self) -> Option<worker_versioning::Version> {
        let build_id = self.dice.word(&["", "", "one", "two"]).to_owned();
        let version = worker_versioning::Version { build_id, deployment_name: "deployment".into() };
        Some(version).filter(|version| !version.build_id.is_empty())
    }

    /// Seldom something that overrides what workers say.
    pub fn overriding(&mut self) -> Option<Override> {
        let pinned = self.deployed().map(|version| Pinned { behavior: 1, version: Some(version) });
        self.dice.percent(20).then(|| Override { auto_upgrade: pinned.is_none(), pinned })
    }

    pub fn map(&mut self) -> Option<Bytes> {
        match self.dice.below(12) {
            0 => None,
            1 => Some(Bytes::new()),
            2 => Some(Bytes::from_static(b"\xff")),
            3 => Some(fields(&[("long", Some(&"x".repeat(self.dice.below(220))))])),
            4 => Some(fields(&[("a", None), ("b", Some("2")), ("c", Some("3")), ("d", Some("4"))])),
            5 => Some(fields(&[("a", None)])),
            _usual => Some(fields(&[(self.dice.word(&["a", "b", "c"]), Some("1"))])),
        }
    }

    fn start(&mut self) -> Request {
        let request_id = format!("start-{}", self.dice.below(40));
        let signal = self.dice.percent(30).then(|| self.signal());
        let update = (signal.is_none() && self.dice.percent(30)).then(|| self.update());
        Request::Start(Box::new(start::Begin {
            execution_timeout_ms: if self.dice.percent(10) { self.dice.span_ms() } else { 0 },
            run_timeout_ms: if self.dice.percent(10) { self.dice.span_ms() } else { 0 },
            task_timeout_ms: if self.dice.percent(30) { self.dice.span_ms() } else { 0 },
            start_delay_ms: if self.dice.percent(10) { self.dice.span_ms() } else { 0 },
            retention_ms: self.dice.span_ms(),
            memo: if self.dice.percent(20) { self.map() } else { None },
            search_attributes: if self.dice.percent(20) { self.map() } else { None },
            input: self.blob(),
            reuse_policy: *self.dice.one(&[0, 0, 0, 0, 1, 2, 3, 4, 99]),
            conflict_policy: *self.dice.one(&[0, 0, 0, 0, 1, 2, 2, 3, 99]),
            eager: self.dice.percent(20),
            signal,
            retry_policy: self.workflow_retries(25),
            cron_schedule: self.schedule_of_runs(20),
            update,
            on_conflict: self.on_conflict(),
            versioning_override: self.overriding(),
            ..a_start(&request_id)
        }))
    }

    fn on_conflict(&mut self) -> Option<OnConflict> {
        let request_id = self.dice.percent(70);
        self.dice.percent(50).then(|| OnConflict { request_id, links: self.dice.percent(50) })
    }

    fn signal(&mut self) -> Signal {
        let request_id = match self.dice.below(4) {
            0 => String::new(),
            _named => format!("signal-{}", self.dice.below(30)),
        };
        Signal { input: self.blob(), ..a_signal(self.dice.word(&["go", "stop"]), &request_id) }
    }

    fn update(&mut self) -> Admit {
        let update_id = format!("update-{}", self.dice.below(40));
        Admit {
            first_run_id: self.first_run_id(),
            this_run_only: self.dice.percent(20),
            patient: self.dice.percent(20),
            ..an_update(&update_id)
        }
    }

    /// Mostly to a task of some run of the workflow, the current one or one before it.
    fn reset(&mut self) -> (String, Request) {
        let workflow_id = self.run().map_or_else(String::new, |run| run.start.workflow_id.clone());
        let runs = self.world.replica.all().filter(|stored| stored.run.start.workflow_id == workflow_id);
        let tasks = runs.flat_map(|stored| {
            let ends = stored.events.iter().filter(|event| {
                let what = event.attributes.as_ref().map_or("", |what| what.name());
                matches!(what, "TaskStarted" | "TaskCompleted" | "TaskFailed" | "TaskTimedOut")
            });
            ends.map(|event| (stored.run.start.run_id.clone(), event.event_id))
        });
        let tasks: Vec<_> = tasks.collect();
        let (run_id, finish_event_id) = match self.dice.below(10) {
            0 => (self.some_run(), self.dice.below(60) as i64),
            _right if tasks.is_empty() => (String::new(), 2),
            _right => self.dice.one(&tasks).clone(),
        };
        let order = Request::Reset(reset::Reset {
            finish_event_id,
            reason: "again".into(),
            request_id: format!("reset-{}", self.dice.below(1_000)),
            without_signals: self.dice.percent(20),
            without_updates: self.dice.percent(20),
            without_options: self.dice.percent(10),
            options: self.dice.percent(20).then(|| self.other_options()),
        });
        (run_id, order)
    }

    fn first_run_id(&mut self) -> String {
        match self.dice.below(6) {
            0 => self.run().map_or_else(String::new, |run| run.start.first_run_id.clone()),
            1 => "another".into(),
            _none => String::new(),
        }
    }

    fn cancel(&mut self) -> Request {
        Request::Cancel(cancel::Request { first_run_id: self.first_run_id(), ..cancel::Request::default() })
    }

    fn terminate(&mut self) -> Request {
        let first_run_id = self.first_run_id();
        Request::Terminate(close::Terminate {
            first_run_id,
            details: self.blob(),
            ..close::Terminate::default()
        })
    }

    fn claim_task(&mut self) -> Request {
        let pending = self.run().and_then(|run| run.head.task.clone()).unwrap_or_default();
        let has_sticky = self.run().is_some_and(|run| run.head.sticky.is_some());
        let wrong = self.dice.percent(5);
        Request::ClaimTask(workflow_task::Claim {
            scheduled_event_id: pending.scheduled_event_id + i64::from(wrong),
            attempt: pending.attempt + i32::from(self.dice.percent(3)),
            sticky: has_sticky != self.dice.percent(20),
            identity: "worker".into(),
            poll_id: "poll".into(),
            stamp: pending.stamp,
        })
    }

    /// Mostly the token of the task in hand, with its run.
    fn task_token(&mut self) -> (String, Option<workflow_task::Token>) {
        match self.dice.below(20) {
            0 => (String::new(), None),
            1 => (String::new(), Some(workflow_task::Token { scheduled_event_id: 2, attempt: 1, claim: 1 })),
            2..=3 if !self.tasks.is_empty() => {
                let (run_id, token) = self.dice.one(&self.tasks).clone();
                (run_id, Some(token))
            }
            _right => {
                (String::new(), self.run().and_then(|run| run.started_task().map(workflow_task::Task::token)))
            }
        }
    }

    fn fail_task(&mut self) -> (String, Request) {
        let (run_id, token) = self.task_token();
        let cause = *self.dice.one(&[14, 14, 24, 24, 24, 24, 36, 37, 37, 99, -1]);
        (
            run_id,
            Request::FailTask(workflow_task::Fail {
                token,
                cause,
                failure: self.blob(),
                identity: "worker".into(),
                binary_checksum: "binary".into(),
                worker_version: self.blob(),
            }),
        )
    }

    fn release_task(&mut self) -> (String, Request) {
        let (run_id, token) = self.task_token();
        (run_id, Request::ReleaseTask(workflow_task::Release { token }))
    }

    fn complete_task(&mut self) -> (String, Request) {
        let (run_id, token) = self.task_token();
        let mut commands = self.commands();
        let messages = self.messages(&mut commands);
        let schedule_to_start_ms = if self.dice.percent(80) { 10_000 } else { self.dice.span_ms() };
        let sticky = Sticky { queue: (self.dice.word(&["cache", ""])).into(), schedule_to_start_ms };
        let findings = self.findings(commands.len());
        let order = workflow_task_completed::Complete {
            token,
            commands,
            findings,
            identity: "worker".into(),
            sticky: self.dice.percent(50).then_some(sticky),
            return_new_task: self.dice.percent(40),
            force_new_task: self.dice.percent(20),
            sdk_metadata: self.blob(),
            binary_checksum: self.dice.word(&["", "", "binary"]).into(),
            worker_version: self.version(),
            has_messages: !messages.is_empty(),
            messages,
            takes_events_again: self.dice.percent(50),
            versioning_behavior: *self.dice.one(&[0, 0, 1, 2]),
            deployment_name: self.dice.word(&["", "deployment"]).into(),
            deployment_version: self.deployed(),
            ..workflow_task_completed::Complete::default()
        };
        (run_id, Request::CompleteTask(Box::new(order)))
    }

    /// Seldom: a command does not fit what the namespace has, or a command that is not there.
    fn findings(&mut self, commands: usize) -> Vec<workflow_task_completed::ValidationFailure> {
        let count = if self.dice.percent(4) { 1 + self.dice.below(2) } else { 0 };
        let finding = |dice: &mut Dice| workflow_task_completed::ValidationFailure {
            command: dice.below(commands + 1) as u32,
            reason: dice.word(&["", "unknown"]).into(),
            fault: *dice.one(&[0, 1, 2, 2, 99, -1]),
        };
        (0..count).map(|_| finding(&mut self.dice)).collect()
    }

    fn claim_activity(&mut self) -> Request {
        let open: Vec<_> = self.run().map_or_else(Vec::new, |run| run.activities.values().cloned().collect());
        let (scheduled_event_id, attempt, stamp) = match open.is_empty() {
            true => (self.dice.below(20) as i64, 1, 0),
            false => {
                let activity = self.dice.one(&open);
                (activity.scheduled_event_id, activity.attempt, activity.stamp)
            }
        };
        let attempt = attempt + i32::from(self.dice.percent(3));
        let stamp = stamp - i32::from(self.dice.percent(3));
        Request::ClaimActivity(activity_attempt::Claim {
            scheduled_event_id,
            attempt,
            stamp,
            ..activity_attempt::Claim::default()
        })
    }

    /// Mostly the token of an attempt that is in hand, with its run.
    fn target(&mut self) -> (String, Option<activity_attempt::Target>) {
        let named = |activity_id: &str| activity_attempt::Target {
            activity_id: activity_id.into(),
            ..Default::default()
        };
        match self.dice.below(20) {
            0 => (String::new(), None),
            1..=2 => (String::new(), Some(named(self.dice.word(&["a", "b", "unknown"])))),
            3 => (
                String::new(),
                Some(activity_attempt::Target { scheduled_event_id: 5, attempt: 1, ..named("") }),
            ),
            4..=7 if !self.attempts.is_empty() => {
                let (run_id, target) = self.dice.one(&self.attempts).clone();
                (run_id, Some(target))
            }
            _right => {
                let started = self.run().map_or_else(Vec::new, |run| {
                    let started = run.activities.values().filter(|activity| activity.is_started());
                    started.cloned().collect()
                });
                if started.is_empty() {
                    return (String::new(), Some(named("a")));
                }
                let activity = self.dice.one(&started);
                let (scheduled_event_id, attempt) = (activity.scheduled_event_id, activity.attempt);
                let claim = activity.claim;
                (
                    String::new(),
                    Some(activity_attempt::Target { scheduled_event_id, attempt, claim, ..named("") }),
                )
            }
        }
    }

    fn complete_activity(&mut self) -> (String, Request) {
        let (run_id, target) = self.target();
        let order = activity_attempt::Complete {
            target,
            result: self.blob(),
            identity: "hand".into(),
            worker_version: self.blob(),
        };
        (run_id, Request::CompleteActivity(order))
    }

    fn fail_activity(&mut self) -> (String, Request) {
        let (run_id, target) = self.target();
        let failure = match self.dice.below(8) {
            0 => None,
            1 => self.blob(),
            2 => Some(application("Fatal", |failure| failure.non_retryable = true)),
            3 => Some(application("Slow", |failure| failure.next_retry_delay = delay(self.dice.span_ms()))),
            _usual => Some(application(self.dice.word(&["Flaky", "Listed"]), |_failure| {})),
        };
        let last_heartbeat_details = if self.dice.percent(20) { self.blob() } else { None };
        let order = activity_attempt::Fail {
            target,
            failure,
            identity: "hand".into(),
            last_heartbeat_details,
            worker_version: self.blob(),
            cause: 1,
        };
        (run_id, Request::FailActivity(order))
    }

    fn cancel_activity(&mut self) -> (String, Request) {
        let (run_id, target) = self.target();
        let order = activity_attempt::Cancel {
            target,
            details: self.blob(),
            identity: "hand".into(),
            worker_version: self.blob(),
        };
        (run_id, Request::CancelActivity(order))
    }

    fn heartbeat(&mut self) -> (String, Request) {
        let (run_id, target) = self.target();
        (run_id, Request::HeartbeatActivity(activity_attempt::Heartbeat { target, details: self.blob() }))
    }

    fn release_activity(&mut self) -> (String, Request) {
        let (run_id, target) = self.target();
        (run_id, Request::ReleaseActivity(activity_attempt::Release { target }))
    }
}
