//! The workers: they complete workflow tasks as the program of each workflow says, and complete activities.
//!
//! Half of them take whole histories; the others keep what they saw and ask at a sticky queue of their own for what is new.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use anyhow::ensure;
use everlog_temporal_api::enums::QueryResultType;
use everlog_temporal_api::full::temporal::api::history::v1::{History, HistoryEvent};
use everlog_temporal_api::query::WorkflowQueryResult;
use everlog_temporal_api::taskqueue::{StickyExecutionAttributes, TaskQueue};
use everlog_temporal_api::workflowservice::{
    PollActivityTaskQueueRequest, PollActivityTaskQueueResponse, PollWorkflowTaskQueueRequest,
    PollWorkflowTaskQueueResponse, RespondActivityTaskCompletedRequest, RespondQueryTaskCompletedRequest,
    RespondWorkflowTaskCompletedRequest,
};
use everlog_tests::dice::Dice;
use everlog_tests::fate::Fate;
use prost::Message;
use tokio::task::JoinSet;

use crate::client::{Client, NAMESPACE, QUEUE, queue};
use crate::client_log::Deed;
use crate::{register, workflows};

const AGAIN_AFTER: Duration = Duration::from_millis(100);
/// The queue of those that keep what they saw, and how long a task waits there: SDKs ask for as long.
const STICKY: &str = "faults-sticky";
const STICKY_WAIT_S: i64 = 10;
/// Runs that are kept at a time.
const KEPT_MAX: usize = 1_000;
/// Of a thousand attempts of activities, those of which a worker tells once, and never again.
const ONCE_PERMILLE: u32 = 100;

/// Workers, so many of each kind; they end when this is dropped.
pub fn employ(client: &Client, each: usize) -> JoinSet<()> {
    let plain = Worker { client: client.clone(), cache: None };
    let sticky = Worker { client: client.clone(), cache: Some(HistoryCache::default()) };
    let mut workers = JoinSet::new();
    for number in 0..each {
        let own = if number % 2 == 0 { &plain } else { &sticky };
        workers.spawn(own.clone().serve(queue()));
        if own.cache.is_some() {
            workers.spawn(own.clone().serve(sticky_queue()));
        }
        workers.spawn(labour(client.clone(), Dice::new(number as u64)));
    }
    workers
}

fn sticky_queue() -> Option<TaskQueue> {
    Some(TaskQueue { name: STICKY.into(), kind: 2, normal_name: QUEUE.into() })
}

/// Histories as far as a worker has seen them, by run id. Cheap to clone.
#[derive(Clone, Default)]
struct HistoryCache(Arc<Mutex<HashMap<String, Vec<HistoryEvent>>>>);

impl HistoryCache {
    fn open(&self) -> MutexGuard<'_, HashMap<String, Vec<HistoryEvent>>> {
        self.0.lock().expect("nobody panics while it is open")
    }

    /// Any other makes room for it.
    fn keep(&self, run_id: String, history: Vec<HistoryEvent>) {
        let mut cache = self.open();
        if cache.len() >= KEPT_MAX && !cache.contains_key(&run_id) {
            let any = cache.keys().next().cloned();
            any.map(|any| cache.remove(&any));
        }
        cache.insert(run_id, history);
    }
}

/// Cheap to clone: all share what they keep, where they keep something.
#[derive(Clone)]
struct Worker {
    client: Client,
    cache: Option<HistoryCache>,
}

impl Worker {
    /// Asks all the time: whoever is busy with a task keeps nobody from asking for the next one, as in SDKs.
    async fn serve(self, queue: Option<TaskQueue>) {
        let mut pause = tokio::time::interval(AGAIN_AFTER);
        let mut under_way = JoinSet::new();
        loop {
            match self.ask(queue.clone()).await {
                // What a worker is told of a task that it lost is no error.
                Ok(task) => drop(under_way.spawn(self.clone().work(task))),
                // A node that is away comes back.
                Err(_) => drop(pause.tick().await),
            }
            while under_way.try_join_next().is_some() {}
        }
    }

    async fn ask(&self, task_queue: Option<TaskQueue>) -> anyhow::Result<PollWorkflowTaskQueueResponse> {
        let make = |identity| PollWorkflowTaskQueueRequest {
            namespace: NAMESPACE.into(),
            task_queue,
            identity,
            ..Default::default()
        };
        self.client.poll(make).await
    }

    async fn work(self, task: PollWorkflowTaskQueueResponse) -> anyhow::Result<()> {
        if task.task_token.is_empty() {
            return Ok(());
        }
        let execution = task.workflow_execution.unwrap_or_default();
        let (id, run_id) = (execution.workflow_id, execution.run_id);
        let news = History::decode(task.history.unwrap_or_default())?.events;
        let history = self.whole(&id, &run_id, news).await?;
        if task.query.is_some() {
            let answer = RespondQueryTaskCompletedRequest {
                task_token: task.task_token,
                completed_type: QueryResultType::Answered.into(),
                query_result: Some(register::answer(&history)),
                namespace: NAMESPACE.into(),
                ..Default::default()
            };
            self.client.ask(&answer).await?;
            return Ok(());
        }
        let said = workflows::next(&id, &history, task.messages);
        let (deed, closes) =
            (Deed::Complete { events: said.events(), refuses: said.refuses() }, said.closes());
        let query_results = answers(task.queries.into_keys(), &history);
        let make = |identity| RespondWorkflowTaskCompletedRequest {
            task_token: task.task_token,
            commands: said.commands,
            messages: said.messages,
            query_results,
            sticky_attributes: self.cache.is_some().then(|| StickyExecutionAttributes {
                worker_task_queue: sticky_queue(),
                schedule_to_start_timeout: Some(prost_types::Duration { seconds: STICKY_WAIT_S, nanos: 0 }),
            }),
            identity,
            namespace: NAMESPACE.into(),
            ..Default::default()
        };
        // Whoever is asked next, by a query perhaps, must know by then what this one knew.
        let cache = self.cache.as_ref().filter(|_| !closes);
        cache.inspect(|cache| cache.keep(run_id.clone(), history));
        // As SDKs do: the task would be its own until it is over, and after a take-over that is long.
        let fate = self.client.insist(&id, deed, make).await;
        if !matches!(fate, Ok(Fate::Acked)) || closes {
            self.cache.iter().for_each(|cache| drop(cache.open().remove(&run_id)));
        }
        fate.map(drop)
    }

    /// What came with a task, behind what is kept of its run; what was not kept is asked for.
    async fn whole(
        &self,
        id: &str,
        run_id: &str,
        news: Vec<HistoryEvent>,
    ) -> anyhow::Result<Vec<HistoryEvent>> {
        let first = news.first().map(|event| event.event_id);
        if first == Some(1) {
            return Ok(news);
        }
        let cache = self.cache.as_ref().and_then(|cache| cache.open().get(run_id).cloned());
        let mut history = match cache {
            Some(cache) => cache,
            None => self.client.history(id, run_id).await?,
        };
        if let Some(first) = first {
            // What a worker refused was never written, and its numbers come again.
            history.retain(|event| event.event_id < first);
        }
        history.extend(news);
        let is_whole = (1..).zip(&history).all(|(number, event)| event.event_id == number);
        ensure!(is_whole, "{id} {run_id}: a task from event {first:?} on does not fit what its worker has");
        Ok(history)
    }
}

/// Answers to the queries that came with a task.
fn answers(
    ids: impl Iterator<Item = String>,
    history: &[HistoryEvent],
) -> BTreeMap<String, WorkflowQueryResult> {
    let result_type = QueryResultType::Answered.into();
    let answer = Some(register::answer(history));
    let result = WorkflowQueryResult { result_type, answer, ..Default::default() };
    ids.map(|id| (id, result.clone())).collect()
}

async fn labour(client: Client, mut dice: Dice) {
    let mut pause = tokio::time::interval(AGAIN_AFTER);
    loop {
        if carry_out(&client, &mut dice).await.is_err() {
            pause.tick().await;
        }
    }
}

/// One attempt of an activity.
async fn carry_out(client: &Client, dice: &mut Dice) -> anyhow::Result<()> {
    let task: PollActivityTaskQueueResponse = client
        .poll(|identity| PollActivityTaskQueueRequest {
            namespace: NAMESPACE.into(),
            task_queue: queue(),
            identity,
            ..Default::default()
        })
        .await?;
    if task.task_token.is_empty() {
        return Ok(());
    }
    let id = task.workflow_execution.map(|execution| execution.workflow_id).unwrap_or_default();
    let make = |identity| RespondActivityTaskCompletedRequest {
        task_token: task.task_token,
        identity,
        namespace: NAMESPACE.into(),
        ..Default::default()
    };
    if dice.permille(ONCE_PERMILLE) {
        client.once(&id, Deed::Return, make).await?;
    } else {
        client.insist(&id, Deed::Return, make).await?;
    }
    Ok(())
}
