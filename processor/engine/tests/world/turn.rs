//! A turn of a worker: what it answers to a workflow task.

use std::collections::BTreeMap;

use bytes::Bytes;
use everlog_engine::Run;
use everlog_engine::api_types::{ActivityType, Execution, Fields, MapEntry, TaskQueue, WorkflowType};
use everlog_engine::command::{Command, CommandAttributes};
use everlog_engine::machine::workflow_task::Sticky;
use everlog_engine::machine::{
    activity, child, close, external_workflow, marker, memo_and_search_attributes, timer,
    workflow_task_completed,
};
use everlog_engine::payload::Payload;
use everlog_engine::time::Duration;
use prost::Message;

use super::clients::text;
use super::transcript;

/// The answer under construction.
pub struct Turn {
    /// The Scheduled events of open activities, by their ids.
    open: BTreeMap<String, i64>,
    pub order: workflow_task_completed::Complete,
    pub words: Vec<String>,
}

impl Turn {
    pub fn new(run: &Run) -> Self {
        let order = workflow_task_completed::Complete {
            identity: "worker".into(),
            namespace: "shop".into(),
            ..workflow_task_completed::Complete::default()
        };
        let open = run.activities.values();
        let open = open.map(|activity| (activity.activity_id.clone(), activity.scheduled_event_id)).collect();
        Self { open, order, words: Vec::new() }
    }

    /// A command as it is, with what to call it.
    pub fn command(&mut self, word: &str, order: CommandAttributes) -> &mut Self {
        let command =
            Command { command_type: order.command_type(), order: Some(order), ..Command::default() };
        self.raw(word, command)
    }

    pub fn raw(&mut self, word: &str, command: Command) -> &mut Self {
        self.words.push(word.into());
        self.order.commands.push(command);
        self
    }

    pub fn start_timer(&mut self, id: &str, span_ms: i64) -> &mut Self {
        let start_to_fire_timeout = Some(Duration::from_ms(span_ms));
        let order = timer::Start { timer_id: id.into(), start_to_fire_timeout };
        self.command(
            &format!("start timer {id} {}", transcript::span(span_ms)),
            CommandAttributes::StartTimer(order),
        )
    }

    pub fn cancel_timer(&mut self, id: &str) -> &mut Self {
        self.command(
            &format!("cancel timer {id}"),
            CommandAttributes::CancelTimer(timer::Cancel { timer_id: id.into() }),
        )
    }

    /// An activity with a start-to-close timeout of 10 s and the default retry policy.
    pub fn activity(&mut self, id: &str) -> &mut Self {
        self.activity_with(id, "", |_schedule| {})
    }

    pub fn activity_with(
        &mut self,
        id: &str,
        note: &str,
        change: impl FnOnce(&mut activity::Schedule),
    ) -> &mut Self {
        let mut order = activity::Schedule {
            activity_id: id.into(),
            activity_type: Some(ActivityType { name: "Charge".into() }),
            task_queue: Some(TaskQueue::normal("orders")),
            input: Some(text(id)),
            start_to_close_timeout: Some(Duration::from_ms(10_000)),
            ..activity::Schedule::default()
        };
        change(&mut order);
        let word = format!("activity {id} {note}");
        self.command(word.trim_end(), CommandAttributes::ScheduleActivity(Box::new(order)))
    }

    /// Asks for the cancellation of an open activity.
    pub fn cancel_activity(&mut self, id: &str) -> &mut Self {
        let scheduled_event_id = self.open.get(id).copied().unwrap_or(9_999);
        self.cancel_scheduled(&format!("cancel activity {id}"), scheduled_event_id)
    }

    pub fn cancel_scheduled(&mut self, word: &str, scheduled_event_id: i64) -> &mut Self {
        self.command(
            word,
            CommandAttributes::RequestCancelActivity(activity::RequestCancel { scheduled_event_id }),
        )
    }

    pub fn marker(&mut self, name: &str) -> &mut Self {
        let details = vec![MapEntry { key: "data".into(), value: text(name) }];
        let order = marker::Record { marker_name: name.into(), details, ..marker::Record::default() };
        self.command(&format!("marker {name}"), CommandAttributes::RecordMarker(Box::new(order)))
    }

    pub fn memo(&mut self, entries: &[(&str, Option<&str>)]) -> &mut Self {
        let order = memo_and_search_attributes::Modify { upserted_memo: Some(fields(entries)) };
        self.command("memo", CommandAttributes::ModifyProperties(order))
    }

    pub fn search_attributes(&mut self, entries: &[(&str, Option<&str>)]) -> &mut Self {
        let order =
            memo_and_search_attributes::UpsertSearchAttributes { search_attributes: Some(fields(entries)) };
        self.command("search attributes", CommandAttributes::UpsertSearchAttributes(order))
    }

    /// A child on the parent's queue.
    pub fn child(&mut self, workflow_id: &str) -> &mut Self {
        self.child_with(workflow_id, "", |_start| {})
    }

    pub fn child_with(
        &mut self,
        workflow_id: &str,
        note: &str,
        change: impl FnOnce(&mut child::Start),
    ) -> &mut Self {
        let mut order = child::Start {
            workflow_id: workflow_id.into(),
            workflow_type: Some(WorkflowType { name: "Parcel".into() }),
            input: Some(text(workflow_id)),
            ..child::Start::default()
        };
        change(&mut order);
        let word = format!("child {workflow_id} {note}");
        self.command(word.trim_end(), CommandAttributes::StartChild(Box::new(order)))
    }

    pub fn signal_other(&mut self, workflow_id: &str, child_only: bool) -> &mut Self {
        let order = external_workflow::SignalOther {
            execution: Some(Execution { workflow_id: workflow_id.into(), run_id: String::new() }),
            signal_name: "hello".into(),
            child_workflow_only: child_only,
            ..external_workflow::SignalOther::default()
        };
        let only = if child_only { ", if it is a child" } else { "" };
        self.command(
            &format!("signal {workflow_id}{only}"),
            CommandAttributes::SignalExternal(Box::new(order)),
        )
    }

    pub fn cancel_other(&mut self, workflow_id: &str, child_only: bool) -> &mut Self {
        let order = external_workflow::CancelOther {
            workflow_id: workflow_id.into(),
            child_workflow_only: child_only,
            reason: "enough".into(),
            ..external_workflow::CancelOther::default()
        };
        let only = if child_only { ", if it is a child" } else { "" };
        self.command(
            &format!("cancel {workflow_id}{only}"),
            CommandAttributes::RequestCancelExternal(Box::new(order)),
        )
    }

    /// A signal for one run of another workflow; `note` says for which.
    pub fn signal_run(&mut self, workflow_id: &str, run_id: &str, note: &str) -> &mut Self {
        let order = external_workflow::SignalOther {
            execution: Some(Execution { workflow_id: workflow_id.into(), run_id: run_id.into() }),
            signal_name: "hello".into(),
            ..external_workflow::SignalOther::default()
        };
        self.command(
            &format!("signal {workflow_id}, {note}"),
            CommandAttributes::SignalExternal(Box::new(order)),
        )
    }

    /// A request to cancel one run of another workflow; `note` says which.
    pub fn cancel_run(&mut self, workflow_id: &str, run_id: &str, note: &str) -> &mut Self {
        let order = external_workflow::CancelOther {
            workflow_id: workflow_id.into(),
            run_id: run_id.into(),
            ..external_workflow::CancelOther::default()
        };
        self.command(
            &format!("cancel {workflow_id}, {note}"),
            CommandAttributes::RequestCancelExternal(Box::new(order)),
        )
    }

    pub fn complete(&mut self, result: &str) -> &mut Self {
        let order = close::Complete { result: Some(text(result)) };
        self.command("complete the workflow", CommandAttributes::CompleteWorkflow(order))
    }

    pub fn fail(&mut self, failure: Bytes) -> &mut Self {
        self.command(
            "fail the workflow",
            CommandAttributes::FailWorkflow(close::Fail { failure: Some(failure) }),
        )
    }

    pub fn cancel(&mut self) -> &mut Self {
        self.command(
            "cancel the workflow",
            CommandAttributes::CancelWorkflow(close::Cancel { details: None }),
        )
    }

    pub fn continue_as_new(&mut self, change: impl FnOnce(&mut close::ContinueAsNew)) -> &mut Self {
        let mut order =
            close::ContinueAsNew { input: Some(text("again")), ..close::ContinueAsNew::default() };
        change(&mut order);
        self.command("continue as new", CommandAttributes::ContinueAsNew(Box::new(order)))
    }

    /// The worker keeps the run in its cache; tasks wait for it for 10 s.
    pub fn sticky(&mut self, queue: &str) -> &mut Self {
        self.words.push(format!("sticky on {queue}"));
        self.order.sticky = Some(Sticky { queue: queue.into(), schedule_to_start_ms: 10_000 });
        self
    }

    /// The worker needs more time.
    pub fn force(&mut self) -> &mut Self {
        self.words.push("one more task".into());
        self.order.force_new_task = true;
        self
    }

    /// The worker takes the next task with the answer.
    pub fn return_new(&mut self) -> &mut Self {
        self.words.push("at once".into());
        self.order.return_new_task = true;
        self
    }
}

/// An encoded map of JSON texts; a key without a value is to be removed.
pub fn fields(entries: &[(&str, Option<&str>)]) -> Bytes {
    let entry = |(key, value): &(&str, Option<&str>)| MapEntry {
        key: (*key).into(),
        value: match value {
            Some(value) => payload("json/plain", &format!("\"{value}\"")),
            None => payload("binary/null", ""),
        },
    };
    Fields { entries: entries.iter().map(entry).collect() }.encode_to_vec().into()
}

/// One encoded payload.
pub fn payload(encoding: &str, data: &str) -> Bytes {
    let encoding = MapEntry { key: "encoding".into(), value: Bytes::copy_from_slice(encoding.as_bytes()) };
    let data = Bytes::copy_from_slice(data.as_bytes());
    Payload { metadata: vec![encoding], data }.encode_to_vec().into()
}
