//! Commands, drawn by dice: a few per task, mostly sensible.

use bytes::Bytes;
use everlog_engine::api_types::{ActivityType, Execution, MapEntry, RetryPolicy, TaskQueue, WorkflowType};
use everlog_engine::command::{Command, CommandAttributes};
use everlog_engine::machine::update::Message;
use everlog_engine::machine::{
    activity, child, close, external_workflow, marker, memo_and_search_attributes, timer, update,
};
use everlog_engine::time::Duration;

use super::case::Case;
use crate::world::{acceptance, an_update, application, delay, rejection, response, text};

impl Case {
    /// The commands of one task; a closing one stands last, mostly.
    pub fn commands(&mut self) -> Vec<Command> {
        let count = *self.dice.one(&[0, 0, 1, 1, 2, 3, 5]);
        let mut commands: Vec<_> = (0..count).map(|_| self.command()).collect();
        let is_child = self.run().is_some_and(|run| run.start.parent.is_some());
        if self.dice.percent(if is_child { 40 } else { 8 }) {
            let closing = self.closing();
            commands.push(of(closing));
        }
        if self.dice.percent(2) {
            let place = self.dice.below(commands.len() + 1);
            let command_type = *self.dice.one(&[0, 4, 15, 99, 1, 3]);
            commands.insert(place, Command { command_type, ..Command::default() });
        }
        if self.dice.percent(2) && !commands.is_empty() {
            let place = self.dice.below(commands.len());
            commands[place].order = None;
        }
        commands
    }

    /// What a worker says of the updates of the run, mostly sensible; the commands get places for some of it.
    pub fn messages(&mut self, commands: &mut Vec<Command>) -> Vec<Message> {
        let mut updates: Vec<_> = self.run().map_or_else(Vec::new, |run| {
            run.updates.values().map(|update| (update.update_id.clone(), update.accepted_event_id)).collect()
        });
        if self.dice.percent(2) {
            updates.push(("update-99".into(), 0));
        }
        let mut messages = Vec::new();
        for (update_id, accepted_event_id) in updates {
            let odd = self.dice.percent(2);
            let request = self.dice.percent(50).then(|| an_update(&update_id).request);
            let roll = self.dice.below(10);
            match (accepted_event_id > 0) != odd {
                true if roll < 5 => messages.push(response(&update_id, text("done"))),
                true => {}
                false if roll < 3 => messages.push(acceptance(&update_id, request)),
                false if roll < 6 => {
                    messages.push(acceptance(&update_id, request));
                    messages.push(response(&update_id, text("done")));
                }
                false if roll < 9 => messages.push(rejection(&update_id)),
                false => {}
            }
        }
        if self.dice.percent(50) {
            let places = messages.iter().filter(|message| !message.id.ends_with("reject"));
            let refer = |message: &Message| {
                CommandAttributes::ProtocolMessage(update::Refer { message_id: message.id.clone() })
            };
            let mut all: Vec<_> = places.map(|message| of(refer(message))).collect();
            all.append(commands);
            *commands = all;
        }
        messages
    }

    fn command(&mut self) -> Command {
        let name = (self.dice.word(&["a", "b", "c", "d"])).to_owned();
        let odd = self.dice.percent(3);
        let name =
            if odd { (self.dice.word(&["", "a name that is much too long"])).to_owned() } else { name };
        match self.dice.below(23) {
            0..=6 => of(CommandAttributes::ScheduleActivity(Box::new(self.schedule(name)))),
            7..=8 => {
                let open: Vec<_> =
                    self.run().map_or_else(Vec::new, |run| run.activities.keys().copied().collect());
                let any = self.dice.below(40) as i64;
                let scheduled_event_id = if open.is_empty() { any } else { *self.dice.one(&open) };
                of(CommandAttributes::RequestCancelActivity(activity::RequestCancel { scheduled_event_id }))
            }
            9..=12 => {
                let span_ms = self.dice.span_ms();
                let start_to_fire_timeout = self.dice.percent(95).then(|| Duration::from_ms(span_ms));
                of(CommandAttributes::StartTimer(timer::Start { timer_id: name, start_to_fire_timeout }))
            }
            13..=14 => {
                let open: Vec<_> = self.run().map_or_else(Vec::new, |run| {
                    let fired = run.buffered.iter().filter_map(|event| match event.attributes.as_ref()? {
                        everlog_engine::event::Attributes::TimerFired(fired) => Some(fired.timer_id.clone()),
                        _other => None,
                    });
                    run.timers.keys().cloned().chain(fired).collect()
                });
                let timer_id = if open.is_empty() { name } else { self.dice.one(&open).clone() };
                of(CommandAttributes::CancelTimer(timer::Cancel { timer_id }))
            }
            15..=16 => {
                let details = self.blob().map(|value| MapEntry { key: "data".into(), value });
                let details = details.into_iter().collect();
                of(CommandAttributes::RecordMarker(Box::new(marker::Record {
                    marker_name: name,
                    details,
                    ..marker::Record::default()
                })))
            }
            17 => of(CommandAttributes::UpsertSearchAttributes(
                memo_and_search_attributes::UpsertSearchAttributes { search_attributes: self.map() },
            )),
            18 => of(CommandAttributes::ModifyProperties(memo_and_search_attributes::Modify {
                upserted_memo: self.map(),
            })),
            19..=21 => of(self.ask_of_others()),
            _seldom if self.dice.percent(95) => {
                of(CommandAttributes::ScheduleActivity(Box::new(self.schedule(name))))
            }
            _seldom => of(CommandAttributes::ProtocolMessage(update::Refer { message_id: "unknown".into() })),
        }
    }

    /// A child, or something for another workflow, which may be anybody: itself, a child, nobody.
    fn ask_of_others(&mut self) -> CommandAttributes {
        let workflow_id = self.dice.word(&["a", "b", "c", "child", "child", "nobody", ""]).to_owned();
        let child_workflow_only = self.dice.percent(30);
        match self.dice.below(4) {
            0..=1 => {
                let span = |ms: u64| Some(Duration::from_ms(ms as i64));
                let workflow_run_timeout = if self.dice.percent(20) { span(30_000) } else { None };
                CommandAttributes::StartChild(Box::new(child::Start {
                    workflow_id,
                    workflow_type: self.dice.percent(97).then(|| WorkflowType { name: "Child".into() }),
                    input: self.blob(),
                    workflow_run_timeout,
                    parent_close_policy: self.dice.below(4) as i32,
                    workflow_id_reuse_policy: self.dice.below(4) as i32,
                    retry_policy: self.workflow_retries(10),
                    cron_schedule: self.schedule_of_runs(3),
                    inherit_build_id: self.dice.percent(50),
                    ..child::Start::default()
                }))
            }
            2 => CommandAttributes::SignalExternal(Box::new(external_workflow::SignalOther {
                execution: Some(Execution { workflow_id, run_id: String::new() }),
                signal_name: self.dice.word(&["hello", "hello", ""]).to_owned(),
                input: self.blob(),
                child_workflow_only,
                ..external_workflow::SignalOther::default()
            })),
            _cancel => CommandAttributes::RequestCancelExternal(Box::new(external_workflow::CancelOther {
                workflow_id,
                child_workflow_only,
                ..external_workflow::CancelOther::default()
            })),
        }
    }

    fn schedule(&mut self, activity_id: String) -> activity::Schedule {
        let mut span = |chance| self.dice.percent(chance).then(|| Duration::from_ms(self.dice.span_ms()));
        let (schedule_to_close_timeout, schedule_to_start_timeout) = (span(30), span(20));
        let (start_to_close_timeout, heartbeat_timeout) = (span(20), span(40));
        let usual = Some(Duration::from_ms(10_000));
        let initial_interval = span(20);
        let maximum_attempts = *self.dice.one(&[0, 0, 1, 2, 3]);
        let retry_policy = RetryPolicy {
            initial_interval,
            backoff_coefficient: *self.dice.one(&[0.0, 1.0, 1.5, 2.0, 1_000.0]),
            maximum_interval: None,
            maximum_attempts,
            non_retryable_error_types: vec!["Listed".into(), "TemporalTimeout:Heartbeat".into()],
        };
        activity::Schedule {
            activity_id,
            activity_type: Some(ActivityType { name: "Charge".into() }),
            task_queue: Some(TaskQueue::normal(self.dice.word(&["orders", "orders", "payments"]))),
            input: self.blob(),
            schedule_to_close_timeout,
            schedule_to_start_timeout,
            start_to_close_timeout: start_to_close_timeout.or(usual),
            heartbeat_timeout,
            retry_policy: self.dice.percent(60).then_some(retry_policy),
            request_eager_execution: self.dice.percent(20),
            use_workflow_build_id: self.dice.percent(5),
            ..activity::Schedule::default()
        }
    }

    /// A policy of a workflow, with this chance; seldom one that contradicts itself.
    pub fn workflow_retries(&mut self, chance: usize) -> Option<RetryPolicy> {
        let policy = RetryPolicy {
            initial_interval: self.dice.percent(50).then(|| Duration::from_ms(self.dice.span_ms())),
            backoff_coefficient: *self.dice.one(&[0.0, 1.0, 2.0, 1_000.0, 0.5]),
            maximum_attempts: *self.dice.one(&[0, 1, 2, 3, 3]),
            non_retryable_error_types: vec!["Listed".into()],
            ..RetryPolicy::default()
        };
        self.dice.percent(chance).then_some(policy)
    }

    /// A schedule, with this chance; seldom one that cannot be read.
    pub fn schedule_of_runs(&mut self, chance: usize) -> String {
        let schedules = ["* * * * *", "@every 7s", "@hourly", "CRON_TZ=Europe/Berlin 30 2 * * *", "never"];
        let schedule = self.dice.word(&schedules).to_owned();
        if self.dice.percent(chance) { schedule } else { String::new() }
    }

    fn workflow_failure(&mut self) -> Option<Bytes> {
        match self.dice.below(5) {
            0 => self.blob(),
            1 => Some(application("Fatal", |failure| failure.non_retryable = true)),
            2 => Some(application("Slow", |failure| failure.next_retry_delay = delay(self.dice.span_ms()))),
            _usual => Some(application(self.dice.word(&["Flaky", "Listed"]), |_failure| {})),
        }
    }

    fn closing(&mut self) -> CommandAttributes {
        match self.dice.below(8) {
            0..=1 => CommandAttributes::CompleteWorkflow(close::Complete { result: self.blob() }),
            2..=3 => CommandAttributes::FailWorkflow(close::Fail { failure: self.workflow_failure() }),
            4 => CommandAttributes::CancelWorkflow(close::Cancel { details: self.blob() }),
            _again => CommandAttributes::ContinueAsNew(Box::new(close::ContinueAsNew {
                input: self.blob(),
                memo: if self.dice.percent(20) { self.map() } else { None },
                search_attributes: if self.dice.percent(20) { self.map() } else { None },
                workflow_run_timeout: self.dice.percent(20).then(|| Duration::from_ms(self.dice.span_ms())),
                backoff_start_interval: self.dice.percent(20).then(|| Duration::from_ms(self.dice.span_ms())),
                retry_policy: self.workflow_retries(20),
                cron_schedule: self.schedule_of_runs(20),
                inherit_build_id: self.dice.percent(50),
                ..close::ContinueAsNew::default()
            })),
        }
    }
}

fn of(order: CommandAttributes) -> Command {
    Command { command_type: order.command_type(), order: Some(order), ..Command::default() }
}
