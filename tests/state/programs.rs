//! Programs that are begun before an export, and go on after an import where they were: each event is there once.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, ensure};
use bytes::Bytes;
use everlog_temporal_api::common::WorkflowType;
use everlog_temporal_api::enums::EventType;
use everlog_temporal_api::full::temporal::api::history::v1::HistoryEvent;
use everlog_temporal_api::schedule::schedule_action::Action;
use everlog_temporal_api::schedule::{
    IntervalSpec, Schedule, ScheduleAction, SchedulePatch, ScheduleSpec, TriggerImmediatelyRequest,
};
use everlog_temporal_api::workflow::NewWorkflowExecutionInfo;
use everlog_temporal_api::workflowservice::{
    CreateScheduleRequest, DescribeScheduleRequest, DescribeScheduleResponse, PatchScheduleRequest,
};
use everlog_tests::page;
use prost::Message;
use serde_json::json;

use crate::worker::{Worker, count, end, has, queue, schedule_activity, start_child, start_timer};

const CHILDREN: usize = 4;
/// Far enough for an export, and near enough for a test.
const TIMER_MS: i64 = 1_500;
const JSON: (&str, &str) = ("Content-Type", "application/json");

/// What a worker has in its hands, and what clients know.
#[derive(Default)]
pub struct Programs {
    tokens: BTreeMap<String, Bytes>,
    histories: BTreeMap<String, Vec<HistoryEvent>>,
    /// Those that have a delayed command.
    delayed: BTreeSet<usize>,
}

impl Programs {
    /// Begins each kind of program, with a command that is delayed: over HTTP, which a log on Kafka does not take.
    pub async fn begin(&mut self, worker: &Worker, number: usize) -> anyhow::Result<()> {
        self.begin_delayed(worker, number).await?;
        self.begin_on_any_log(worker, number).await
    }

    /// Begins each other kind of program.
    pub async fn begin_on_any_log(&mut self, worker: &Worker, number: usize) -> anyhow::Result<()> {
        let id = |kind: &str| format!("{kind}-{number}");
        // A history that has ended.
        worker.start(&id("done"), "done", "").await?;
        let task = worker.task(&id("done")).await?;
        worker.complete(task.token, vec![end()]).await?;
        self.histories.insert(id("done"), worker.history(&id("done")).await?);
        // An activity in a worker's hands.
        worker.start(&id("activity"), "activity", "").await?;
        let task = worker.task(&id("activity")).await?;
        worker.complete(task.token, vec![schedule_activity(&id("activity"))]).await?;
        let token = worker.activity(&id("activity")).await?;
        worker.heartbeat(&token).await?;
        self.tokens.insert(id("activity"), token);
        // A workflow task in a worker's hands, and a signal behind it.
        worker.start(&id("buffered"), "buffered", "").await?;
        let task = worker.task(&id("buffered")).await?;
        worker.signal(&id("buffered"), "look").await?;
        self.tokens.insert(id("buffered"), task.token);
        // Children in other partitions, of which one has ended.
        worker.start(&id("parent"), "parent", "").await?;
        let task = worker.task(&id("parent")).await?;
        let children = (0..CHILDREN).map(|child| start_child(&format!("child-{number}-{child}")));
        worker.complete(task.token, children.collect()).await?;
        let first = worker.task(&format!("child-{number}-0")).await?;
        worker.complete(first.token, vec![end()]).await?;
        worker.start(&id("cron"), "cron", "@every 1s").await?;
        self.begin_later(worker, number).await
    }

    /// What happens at a time.
    async fn begin_later(&mut self, worker: &Worker, number: usize) -> anyhow::Result<()> {
        let id = |kind: &str| format!("{kind}-{number}");
        worker.caller.send(schedule(&id("schedule"))).await?;
        worker.start(&id("timer"), "timer", "").await?;
        let task = worker.task(&id("timer")).await?;
        worker.complete(task.token, vec![start_timer(TIMER_MS)]).await
    }

    async fn begin_delayed(&mut self, worker: &Worker, number: usize) -> anyhow::Result<()> {
        let id = |kind: &str| format!("{kind}-{number}");
        worker.start(&id("delayed"), "delayed", "").await?;
        let at = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_millis();
        let at = at + u128::try_from(TIMER_MS)?;
        let body = json!({
            "key": id("delayed"),
            "value": {"type": "signal", "signal": {"name": "late"}},
            "headers": {"deliver-at": at.to_string()},
        });
        let (status, answer) = page::ask(worker.http, "POST /commands", &[JSON], &body.to_string()).await?;
        ensure!(status == 200, "{status}: {answer}");
        self.delayed.insert(number);
        Ok(())
    }

    /// Each goes on, and ends.
    pub async fn finish(&mut self, worker: &Worker, number: usize) -> anyhow::Result<()> {
        let id = |kind: &str| format!("{kind}-{number}");
        let once = |history: &[HistoryEvent], kind: EventType| {
            ensure!(count(history, kind) == 1, "{kind:?} of {number}: {} times", count(history, kind));
            Ok(())
        };
        let history = self.histories.remove(&id("done")).context("it was begun")?;
        ensure!(worker.history(&id("done")).await? == history, "the history of {} differs", id("done"));

        let token = self.tokens.remove(&id("activity")).context("it was begun")?;
        worker.heartbeat(&token).await?;
        worker.complete_activity(token.clone()).await?;
        ensure!(worker.complete_activity(token).await.is_err(), "an activity is completed once");
        let task = worker.task(&id("activity")).await?;
        once(&task.history, EventType::ActivityTaskCompleted)?;
        worker.complete(task.token, vec![end()]).await?;

        let token = self.tokens.remove(&id("buffered")).context("it was begun")?;
        worker.complete(token, Vec::new()).await?;
        let task = worker.task(&id("buffered")).await?;
        once(&task.history, EventType::WorkflowExecutionSignaled)?;
        worker.complete(task.token, vec![end()]).await?;

        for child in 1..CHILDREN {
            let task = worker.task(&format!("child-{number}-{child}")).await?;
            worker.complete(task.token, vec![end()]).await?;
        }
        let ended = EventType::ChildWorkflowExecutionCompleted;
        let task = worker.task_that(&id("parent"), |history| count(history, ended) >= CHILDREN).await?;
        ensure!(count(&task.history, ended) == CHILDREN, "children of {number} have ended more than once");
        let started = count(&task.history, EventType::ChildWorkflowExecutionStarted);
        ensure!(started == CHILDREN, "{started} children of {number} were started");
        worker.complete(task.token, vec![end()]).await?;
        self.finish_later(worker, number).await
    }

    async fn finish_later(&mut self, worker: &Worker, number: usize) -> anyhow::Result<()> {
        let id = |kind: &str| format!("{kind}-{number}");
        let fired = |history: &[HistoryEvent]| has(history, EventType::TimerFired);
        let task = worker.task_that(&id("timer"), fired).await?;
        ensure!(count(&task.history, EventType::TimerFired) == 1, "a timer of {number} fires once");
        worker.complete(task.token, vec![end()]).await?;

        if self.delayed.remove(&number) {
            let signaled = EventType::WorkflowExecutionSignaled;
            let history = worker.until_history(&id("delayed"), |history| has(history, signaled)).await?;
            ensure!(count(&history, signaled) == 1, "a delayed command of {number} counts once");
        }

        let first = worker.task(&id("cron")).await?;
        worker.complete(first.token, vec![end()]).await?;
        let second = worker.task(&id("cron")).await?;
        ensure!(second.run_id != first.run_id, "the cron chain of {number} goes on");

        let about = DescribeScheduleRequest { namespace: "default".into(), schedule_id: id("schedule") };
        let described = DescribeScheduleResponse::decode(worker.caller.send(about).await?)?;
        ensure!(described.schedule.is_some_and(|schedule| schedule.action.is_some()));
        worker.caller.send(trigger(&id("schedule"))).await?;
        worker.task(&id("schedule")).await?;
        Ok(())
    }
}

/// A schedule that starts a workflow each hour.
fn schedule(id: &str) -> CreateScheduleRequest {
    let start = NewWorkflowExecutionInfo {
        workflow_id: format!("run-of-{id}"),
        workflow_type: Some(WorkflowType { name: "scheduled".into() }),
        task_queue: queue(id),
        ..NewWorkflowExecutionInfo::default()
    };
    let interval = Some(prost_types::Duration { seconds: 3_600, nanos: 0 });
    let spec =
        ScheduleSpec { interval: vec![IntervalSpec { interval, phase: None }], ..ScheduleSpec::default() };
    CreateScheduleRequest {
        namespace: "default".into(),
        schedule_id: id.into(),
        request_id: format!("make {id}"),
        schedule: Some(Schedule {
            spec: Some(spec),
            action: Some(ScheduleAction { action: Some(Action::StartWorkflow(start)) }),
            ..Schedule::default()
        }),
        ..CreateScheduleRequest::default()
    }
}

fn trigger(id: &str) -> PatchScheduleRequest {
    PatchScheduleRequest {
        namespace: "default".into(),
        schedule_id: id.into(),
        request_id: format!("trigger {id}"),
        patch: Some(SchedulePatch {
            trigger_immediately: Some(TriggerImmediatelyRequest::default()),
            ..SchedulePatch::default()
        }),
        ..PatchScheduleRequest::default()
    }
}
