//! Workers: they poll, work, disappear in between, and answer late, twice or never.

use everlog_engine::event::{History, HistoryEvent};
use everlog_engine::machine::{activity_attempt, workflow_task, workflow_task_completed};
use everlog_engine::request::Request;
use everlog_partition::{
    ActivityTask, Delivery, Poll, QueryAnswer, QueryTask, QueueKey, Router, TaskKind, Want, WorkflowTask,
};
use prost::Message;

use crate::clients::{ClientContext, NAMESPACE, address, input};
use crate::dice::Dice;
use crate::updates;
use crate::workflow::{self, QUEUE};

/// How often an answer is tried again.
const TRIES: usize = 4;

/// A worker and its habits, per thousand tasks, while there is no peace.
pub struct Worker {
    pub context: ClientContext,
    pub name: String,
    pub kind: TaskKind,
    pub dice: Dice,
    /// It never answers.
    pub dies: u32,
    /// It answers twice.
    pub repeats: u32,
    /// The task never reaches it.
    pub misses: u32,
    /// The attempt fails.
    pub fails: u32,
}

impl Worker {
    pub async fn work(mut self) {
        let mut number = 0_u64;
        loop {
            number += 1;
            let (namespace_id, name, kind) = (NAMESPACE.to_owned(), QUEUE.to_owned(), self.kind);
            let queue = QueueKey { namespace_id, name, kind };
            let Some(router) = self.context.home(&queue, &mut self.dice) else {
                self.context.rest(&mut self.dice).await;
                continue;
            };
            let poll = Poll {
                namespace_id: queue.namespace_id,
                queue: queue.name,
                kind,
                sticky: false,
                normal_queue: None,
                identity: self.name.clone(),
                poll_id: format!("{}-{number}", self.name),
                rate_per_second: None,
                version: None,
            };
            let patience_ms = self.dice.span(1_000, 5_000);
            let delivery = self.context.clock.within(patience_ms, router.poll(poll)).await;
            // Who has given it need not be who has offered it.
            let owner = self.context.router(&mut self.dice).unwrap_or(router);
            match delivery {
                Some(Ok(delivery)) => self.take(&owner, delivery).await,
                Some(Err(_)) => self.context.rest(&mut self.dice).await,
                None => {}
            }
        }
    }

    fn does(&mut self, chance: u32) -> bool {
        !self.context.is_peace() && self.dice.permille(chance)
    }

    async fn take(&mut self, router: &Router, delivery: Delivery) {
        if self.does(self.misses) {
            return;
        }
        self.context.observations.borrow_mut().tasks += 1;
        match delivery {
            Delivery::Workflow(mut task) => {
                if let Some(receipt) = task.receipt.take() {
                    receipt.accept();
                }
                self.run(router, *task).await;
            }
            Delivery::Activity(mut task) => {
                if let Some(receipt) = task.receipt.take() {
                    receipt.accept();
                }
                self.act(*task).await;
            }
            Delivery::Query(mut task) => {
                if let Some(receipt) = task.receipt.take() {
                    receipt.accept();
                }
                self.answer(router, *task).await;
            }
            Delivery::Remote(_) | Delivery::Nothing => {}
        }
    }

    fn read_history(&self, bytes: bytes::Bytes) -> Vec<HistoryEvent> {
        match events(bytes) {
            Ok(events) => events,
            Err(error) => {
                self.context
                    .observations
                    .borrow_mut()
                    .violate(format!("a task's history cannot be read: {error}"));
                Vec::new()
            }
        }
    }

    async fn run(&mut self, router: &Router, task: WorkflowTask) {
        let start = &task.run.start;
        let events = self.read_history(task.history.history.clone());
        let Some(pending) = task.run.head.task.clone() else { return };
        // What is not written yet may be written otherwise.
        let written = task.run.head.next_event_id;
        let fixed: Vec<_> = events.iter().filter(|event| event.event_id < written).cloned().collect();
        self.context.observations.borrow_mut().saw(&start.workflow_id, &start.run_id, &fixed);
        let ids = events.iter().map(|event| event.event_id);
        if !ids.eq(1..=events.len() as i64) {
            let what = format!("a task of {} with a torn history", start.run_id);
            self.context.observations.borrow_mut().violate(what);
        }
        self.context.clock.sleep(self.dice.span(0, 30)).await;
        if self.does(self.dies) {
            return;
        }
        let signals = workflow::signals(&events);
        let answers: Vec<_> = task.queries.iter().map(|(id, _)| answer(id, signals)).collect();
        let (messages, mut commands) = updates::said(&task.run);
        commands.extend(workflow::think(&events));
        let order = workflow_task_completed::Complete {
            token: Some(workflow_task::Task::token(&pending)),
            commands,
            messages,
            identity: self.name.clone(),
            ..workflow_task_completed::Complete::default()
        };
        let times = if self.does(self.repeats) { 2 } else { 1 };
        for _ in 0..times {
            let mut router = router.clone();
            for _ in 0..TRIES {
                let order =
                    input(&start.workflow_id, &start.run_id, Request::CompleteTask(Box::new(order.clone())));
                let call = router.complete_task(order, answers.clone());
                if self.context.call("a completion", &mut self.dice, call).await.is_ok() {
                    break;
                }
                self.context.rest(&mut self.dice).await;
                let Some(other) = self.context.router(&mut self.dice) else { break };
                router = other;
            }
        }
    }

    async fn act(&mut self, task: ActivityTask) {
        let start = task.run.start.clone();
        if task.scheduled.input.is_none() {
            self.context
                .observations
                .borrow_mut()
                .violate(format!("an activity of {} lost its input", start.run_id));
        }
        self.context.clock.sleep(self.dice.span(0, 400)).await;
        if self.does(self.dies) {
            return;
        }
        let target = Some(activity_attempt::Target {
            scheduled_event_id: task.activity.scheduled_event_id,
            attempt: task.activity.attempt,
            claim: task.activity.claim,
            activity_id: String::new(),
        });
        let identity = self.name.clone();
        let order = match self.does(self.fails) {
            true => Request::FailActivity(activity_attempt::Fail {
                target,
                identity,
                ..activity_attempt::Fail::default()
            }),
            false => {
                let result = Some(bytes::Bytes::from_static(b"done"));
                Request::CompleteActivity(activity_attempt::Complete {
                    target,
                    result,
                    identity,
                    worker_version: None,
                })
            }
        };
        let times = if self.does(self.repeats) { 2 } else { 1 };
        for _ in 0..times * TRIES {
            if let Some(router) = self.context.router(&mut self.dice) {
                let call = router.order(input(&start.workflow_id, &start.run_id, order.clone()));
                if self.context.call("an activity's end", &mut self.dice, call).await.is_ok() && times == 1 {
                    return;
                }
            }
            self.context.rest(&mut self.dice).await;
        }
    }

    async fn answer(&mut self, router: &Router, task: QueryTask) {
        let start = task.run.start.clone();
        let mut events = self.read_history(task.history.history.clone());
        if task.sticky {
            let want = Want::History { from_event_id: 1, batches_max: 0 };
            let reading = router.read(address(&start.workflow_id, &start.run_id), want).await;
            let Ok(Some(reading)) = reading else { return };
            events = self.read_history(reading.page.history);
        }
        self.context.observations.borrow_mut().saw(&start.workflow_id, &start.run_id, &events);
        self.context.clock.sleep(self.dice.span(0, 30)).await;
        if self.does(self.dies) {
            return;
        }
        let answer = answer(&task.query_id, workflow::signals(&events));
        let call = router.answer_query(address(&start.workflow_id, &start.run_id), answer);
        // Nobody may wait for it any more.
        let _gone = self.context.call("an answer to a query", &mut self.dice, call).await;
    }
}

pub fn events(history: bytes::Bytes) -> Result<Vec<HistoryEvent>, prost::DecodeError> {
    History::decode(history).map(|history| history.events)
}

fn answer(query_id: &str, signals: i64) -> QueryAnswer {
    QueryAnswer {
        query_id: query_id.to_owned(),
        succeeded: true,
        result: Some(signals.to_string().into()),
        error_message: String::new(),
        failure: None,
    }
}
