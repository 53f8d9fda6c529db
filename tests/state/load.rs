//! Workflows that send messages to others all the time, and the workers that bring them to their end, in a log or in its copy.
//!
//! Each has two children, a timer, and signals a sink, in whatever partitions these are. Whatever of it was under way at an export
//! happens once after an import.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use anyhow::ensure;
use everlog_engine::command::Command;
use everlog_temporal_api::enums::EventType;
use everlog_temporal_api::full::temporal::api::history::v1::HistoryEvent;
use everlog_temporal_api::full::temporal::api::history::v1::history_event::Attributes;
use everlog_tests::patience;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::worker::{Task, Worker, count, end, has, signal_other, start_child_on, start_timer};

const QUEUE: &str = "load";
const WORKERS: usize = 6;
const STARTERS: usize = 3;
/// Workflows that are open at a time.
const OPEN_MAX: usize = 24;
const SINKS: usize = 5;
const CHILDREN: [&str; 2] = ["-child-a", "-child-b"];
/// A task that a worker got after the export is handed out again soon.
const TASK_TIMEOUT_S: i64 = 3;
const TIMER_MS: i64 = 700;

/// A load on nodes.
pub struct Load {
    working: JoinSet<()>,
    begun: Arc<Mutex<Vec<String>>>,
    ended: Arc<AtomicUsize>,
}

impl Load {
    /// Begins at these nodes, the sinks first.
    pub async fn begin(workers: &[Worker]) -> anyhow::Result<Self> {
        for number in 0..SINKS {
            workers[0].start(&sink(number), "sink", "").await?;
        }
        let mut load = Self { working: JoinSet::new(), begun: Arc::default(), ended: Arc::default() };
        let room = Arc::new(Semaphore::new(OPEN_MAX));
        for (number, worker) in workers.iter().cycle().take(WORKERS).enumerate() {
            let (ended, has_room) = (Arc::clone(&load.ended), Arc::clone(&room));
            load.working.spawn(work(worker.clone(), move || {
                ended.fetch_add(1, Ordering::Relaxed);
                has_room.add_permits(1);
            }));
            if number < STARTERS {
                load.working.spawn(begin_workflows(
                    worker.clone(),
                    number,
                    Arc::clone(&load.begun),
                    Arc::clone(&room),
                ));
            }
        }
        Ok(load)
    }

    /// Workflows whose start was acknowledged.
    pub fn begun(&self) -> Vec<String> {
        self.begun.lock().expect("nobody panics with it").clone()
    }

    /// Waits until so many more workflows have ended.
    pub async fn goes_on(&self, more: usize) -> anyhow::Result<()> {
        let wanted = self.ended.load(Ordering::Relaxed) + more;
        let has_ended = async || self.ended.load(Ordering::Relaxed) >= wanted;
        Ok(patience::until("workflows end", has_ended).await?)
    }

    /// Nobody calls any more.
    pub async fn stop(mut self) {
        self.working.shutdown().await;
    }
}

fn sink(number: usize) -> String {
    format!("sink-{number}")
}

async fn begin_workflows(
    worker: Worker,
    starter: usize,
    begun: Arc<Mutex<Vec<String>>>,
    room: Arc<Semaphore>,
) {
    for number in 0.. {
        if let Ok(permit) = room.acquire().await {
            permit.forget();
        }
        let id = format!("load-{starter}-{number}");
        // The node may be gone: the load is stopped soon then.
        if worker.start_on(&id, "load", QUEUE, TASK_TIMEOUT_S).await.is_ok() {
            begun.lock().expect("nobody panics with it").push(id);
        }
    }
}

/// Takes tasks and completes them, for ever.
async fn work(worker: Worker, ended: impl Fn() + Send) {
    let mut looks = patience::looks();
    loop {
        match worker.poll(QUEUE).await {
            Ok(Some(task)) => {
                let commands = decided(&task);
                let is_parent = CHILDREN.iter().all(|suffix| !task.workflow_id.ends_with(suffix));
                let is_end = commands.len() == 1;
                // What came too late is handed out again.
                if worker.complete(task.token, commands).await.is_ok() && is_parent && is_end {
                    ended();
                }
            }
            Ok(None) => {}
            Err(_) => {
                looks.tick().await;
            }
        }
    }
}

fn decided(task: &Task) -> Vec<Command> {
    let id = &task.workflow_id;
    if CHILDREN.iter().any(|suffix| id.ends_with(suffix)) {
        return vec![end()];
    }
    if !has(&task.history, EventType::StartChildWorkflowExecutionInitiated) {
        let children =
            CHILDREN.iter().map(|suffix| start_child_on(&format!("{id}{suffix}"), QUEUE, TASK_TIMEOUT_S));
        return children.chain([signal_other(&sink_of(id), id), start_timer(TIMER_MS)]).collect();
    }
    let is_over = count(&task.history, EventType::ChildWorkflowExecutionCompleted) == CHILDREN.len()
        && has(&task.history, EventType::ExternalWorkflowExecutionSignaled)
        && has(&task.history, EventType::TimerFired);
    if is_over { vec![end()] } else { Vec::new() }
}

fn sink_of(id: &str) -> String {
    sink(id.bytes().map(usize::from).sum::<usize>() % SINKS)
}

/// Brings workflows of a copy to their end. Those that must be there are; of all that are there each thing has happened once.
pub async fn finish(worker: &Worker, known: &[String], all: &[String]) -> anyhow::Result<usize> {
    let mut working = JoinSet::new();
    for _ in 0..WORKERS {
        working.spawn(work(worker.clone(), || {}));
    }
    let mut found = Vec::new();
    for id in all {
        match worker.history(id).await {
            Ok(_) => found.push(id),
            Err(error) => ensure!(!known.contains(id), "{id} was acknowledged and is not there: {error}"),
        }
    }
    let closed = EventType::WorkflowExecutionCompleted;
    for id in &found {
        let history = worker.until_history(id, |history| has(history, closed)).await?;
        check(id, &history)?;
    }
    let mut signals: BTreeMap<String, usize> = BTreeMap::new();
    for number in 0..SINKS {
        for event in worker.history(&sink(number)).await? {
            if let Some(Attributes::WorkflowExecutionSignaledEventAttributes(signaled)) = event.attributes {
                *signals.entry(signaled.signal_name).or_default() += 1;
            }
        }
    }
    for id in &found {
        let times = signals.get(*id).copied().unwrap_or(0);
        ensure!(times == 1, "{id} has signaled {} {times} times", sink_of(id));
    }
    ensure!(signals.len() == found.len(), "{} have signaled, {} are there", signals.len(), found.len());
    Ok(found.len())
}

fn check(id: &str, history: &[HistoryEvent]) -> anyhow::Result<()> {
    let wanted = [
        (EventType::StartChildWorkflowExecutionInitiated, CHILDREN.len()),
        (EventType::ChildWorkflowExecutionStarted, CHILDREN.len()),
        (EventType::ChildWorkflowExecutionCompleted, CHILDREN.len()),
        (EventType::StartChildWorkflowExecutionFailed, 0),
        (EventType::SignalExternalWorkflowExecutionInitiated, 1),
        (EventType::ExternalWorkflowExecutionSignaled, 1),
        (EventType::SignalExternalWorkflowExecutionFailed, 0),
        (EventType::TimerStarted, 1),
        (EventType::TimerFired, 1),
    ];
    for (kind, times) in wanted {
        let found = count(history, kind);
        ensure!(found == times, "{id} has {found} of {kind:?}: {:?}", crate::worker::kinds(history));
    }
    Ok(())
}
