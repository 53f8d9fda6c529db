//! A herd: ten thousand timers due in the same second. All fire, none early, and other calls go through.
//!
//! They are set an hour ahead, and the server's clock jumps: however long it takes to set them, they come due together.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use bytes::Bytes;
use everlog_engine::command::{Command, CommandAttributes};
use everlog_engine::machine::{close, timer};
use everlog_engine::time::Duration as Span;
use everlog_temporal_api::full::temporal::api::history::v1::history_event::Attributes;
use everlog_temporal_api::full::temporal::api::history::v1::{History, HistoryEvent};
use everlog_temporal_api::taskqueue::TaskQueue;
use everlog_temporal_api::workflowservice::{
    DescribeWorkflowExecutionRequest, PollWorkflowTaskQueueRequest, PollWorkflowTaskQueueResponse,
    RespondWorkflowTaskCompletedRequest, StartWorkflowExecutionResponse,
};
use everlog_tests::server::{Server, is_on_kafka};
use everlog_tests::{patience, shim};
use prost::Message;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tonic::Status;
use tonic::transport::Channel;

use crate::client::{NAMESPACE, execution, now_ms, send, signal, start};

const RUNS: usize = 10_000;
const WORKERS: usize = 64;
const HOUR_MS: i64 = 3_600_000;
/// Where the brokers' clock counts nobody sets it. Timers that are not set by then are due at once.
const DUE_ON_KAFKA_MS: i64 = 30_000;
/// How often others go through their calls before the herd comes.
const CALM_ROUNDS: usize = 200;
/// How many of the herd may be done while one call of somebody else is under way. Whoever is served in turn with the workers
/// sees some dozens; who waits until the herd has passed sees nearly all of them.
const PASS_MAX: usize = RUNS / 4;

fn command(order: CommandAttributes) -> Command {
    Command { command_type: order.command_type(), order: Some(order), ..Command::default() }
}

async fn complete(channel: &Channel, task_token: Bytes, order: CommandAttributes) -> anyhow::Result<()> {
    let request = RespondWorkflowTaskCompletedRequest {
        task_token,
        commands: vec![command(order)],
        identity: "tests".into(),
        namespace: NAMESPACE.into(),
        ..RespondWorkflowTaskCompletedRequest::default()
    };
    send(channel, request).await.context("a completion")?;
    Ok(())
}

/// Starts every run, with a timer that is due at the same moment.
async fn start_all(channel: &Channel, due_ms: i64) -> anyhow::Result<()> {
    let next = Arc::new(AtomicUsize::new(0));
    let mut starters = JoinSet::new();
    for _ in 0..WORKERS {
        let (channel, next) = (channel.clone(), next.clone());
        starters.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= RUNS {
                    return anyhow::Ok(());
                }
                let mut request = start(&format!("herd-{number}"), "herd");
                request.request_eager_execution = true;
                request.workflow_task_timeout = Some(prost_types::Duration { seconds: 120, nanos: 0 });
                let answer = send(&channel, request).await.context("a start")?;
                let task = StartWorkflowExecutionResponse::decode(answer)?.eager_workflow_task;
                let token = task.context("the first task comes with the start")?.task_token;
                let wait = Some(Span::from_ms((due_ms - now_ms()).max(1)));
                let order = timer::Start { timer_id: "wait".into(), start_to_fire_timeout: wait };
                complete(&channel, token, CommandAttributes::StartTimer(order)).await?;
            }
        });
    }
    while let Some(started) = starters.join_next().await {
        started??;
    }
    Ok(())
}

/// When the timer of this history fired, by the server's own clock; it did once, and not early.
fn fired_ms(events: &[HistoryEvent]) -> anyhow::Result<i64> {
    let (mut due_ms, mut fired_ms) = (None, Vec::new());
    for event in events {
        let time = event.event_time.unwrap_or_default();
        let time_ms = time.seconds * 1_000 + i64::from(time.nanos) / 1_000_000;
        match &event.attributes {
            Some(Attributes::TimerStartedEventAttributes(started)) => {
                let wait = started.start_to_fire_timeout.unwrap_or_default();
                due_ms = Some(time_ms + wait.seconds * 1_000 + i64::from(wait.nanos) / 1_000_000);
            }
            Some(Attributes::TimerFiredEventAttributes(_)) => fired_ms.push(time_ms),
            _other => {}
        }
    }
    let [fired_ms] = fired_ms[..] else { anyhow::bail!("the timer fired {} times", fired_ms.len()) };
    let due_ms = due_ms.context("a timer was started")?;
    ensure!(fired_ms >= due_ms, "a timer fired {} ms early", due_ms - fired_ms);
    Ok(fired_ms)
}

/// Works on whatever comes until the whole herd is done; when each timer fired.
async fn work_off(channel: &Channel, done: &Arc<AtomicUsize>) -> anyhow::Result<Vec<i64>> {
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        let (channel, done) = (channel.clone(), done.clone());
        workers.spawn(async move {
            let (mut fired, mut deadline) = (Vec::new(), patience::deadline());
            while done.load(Ordering::Relaxed) < RUNS {
                let Some(task) = poll(&channel).await? else {
                    let done = done.load(Ordering::Relaxed);
                    ensure!(!deadline.is_over(), "of {RUNS} timers {done} came to a worker");
                    continue;
                };
                let history = History::decode(task.history.unwrap_or_default())?;
                fired.push(fired_ms(&history.events)?);
                let end = CommandAttributes::CompleteWorkflow(close::Complete { result: None });
                complete(&channel, task.task_token, end).await?;
                done.fetch_add(1, Ordering::Relaxed);
                deadline = patience::deadline();
            }
            anyhow::Ok(fired)
        });
    }
    let mut fired = Vec::new();
    while let Some(some) = workers.join_next().await {
        fired.extend(some??);
    }
    Ok(fired)
}

/// Ends empty after a second, so that workers notice the end.
async fn poll(channel: &Channel) -> anyhow::Result<Option<PollWorkflowTaskQueueResponse>> {
    let request = PollWorkflowTaskQueueRequest {
        namespace: NAMESPACE.into(),
        task_queue: Some(TaskQueue { name: "herd".into(), kind: 1, ..TaskQueue::default() }),
        identity: "tests".into(),
        ..PollWorkflowTaskQueueRequest::default()
    };
    let task = PollWorkflowTaskQueueResponse::decode(send(channel, request).await.context("a poll")?)?;
    Ok((!task.task_token.is_empty()).then_some(task))
}

/// A call of somebody else: how long it took, and how many of the herd were done meanwhile.
struct Served {
    took: Duration,
    passed: usize,
}

async fn served(
    done: &AtomicUsize,
    call: impl Future<Output = Result<Bytes, Status>>,
) -> Result<Served, Status> {
    let (begun, before) = (Instant::now(), done.load(Ordering::Relaxed));
    call.await?;
    Ok(Served { took: begun.elapsed(), passed: done.load(Ordering::Relaxed) - before })
}

/// Other people's calls, one after the other, for so many rounds or until told to stop.
async fn others(
    channel: Channel,
    name: &str,
    done: Arc<AtomicUsize>,
    rounds: usize,
    stop: watch::Receiver<bool>,
) -> anyhow::Result<Vec<Served>> {
    let mut calls = Vec::new();
    for number in 0..rounds {
        if *stop.borrow() {
            break;
        }
        let id = format!("{name}-{number}");
        let begin = send(&channel, start(&id, "nobody"));
        calls.push(served(&done, begin).await.context("a start of somebody else")?);
        let change = signal(&channel, &id, "changed", 100);
        calls.push(served(&done, change).await.context("a signal of somebody else")?);
        let describe =
            DescribeWorkflowExecutionRequest { namespace: NAMESPACE.into(), execution: execution(&id) };
        let describe = send(&channel, describe);
        calls.push(served(&done, describe).await.context("a description for somebody else")?);
    }
    Ok(calls)
}

/// Runs the calls of others beside something else.
async fn beside_others<T>(
    channel: Channel,
    done: &Arc<AtomicUsize>,
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<(T, Vec<Served>)> {
    let (stop, stopped) = watch::channel(false);
    let others = tokio::spawn(others(channel, "crowded", done.clone(), usize::MAX, stopped));
    let worked = work.await;
    stop.send_replace(true);
    let calls = others.await??;
    Ok((worked?, calls))
}

fn percentile<T: Ord + Copy>(values: impl Iterator<Item = T>, percent: usize) -> Option<T> {
    let mut values: Vec<T> = values.collect();
    values.sort_unstable();
    values.get((values.len() * percent / 100).min(values.len().saturating_sub(1))).copied()
}

fn print(what: &str, calls: &[Served]) {
    let took = |percent| percentile(calls.iter().map(|call| call.took), percent);
    let passed = |percent| percentile(calls.iter().map(|call| call.passed), percent);
    println!(
        "{what}: {} calls of others took p50 {:?}, p99 {:?}, max {:?}; meanwhile of the herd p50 {:?}, p99 {:?}, max {:?}",
        calls.len(),
        took(50),
        took(99),
        took(100),
        passed(50),
        passed(99),
        passed(100),
    );
}

/// A server whose clock is set by a byte of a file, an hour at a time.
async fn server_and_clock(dir: &tempfile::TempDir) -> anyhow::Result<(Server, File)> {
    let (shim, path) = (shim::build("clock", env!("CARGO_TARGET_TMPDIR"))?, dir.path().join("hours"));
    std::fs::write(&path, [0])?;
    let hours = File::options().write(true).open(&path)?;
    let [shim, path] = [&shim, &path].map(|path| path.to_str().context("a path of text"));
    let variables = [("EVERLOG_GATEWAY__POLL_WAIT_MS", "1000"), ("LD_PRELOAD", shim?), ("SHIM_CLOCK", path?)];
    // The brokers have a clock of their own.
    let variables = if is_on_kafka() { &variables[..1] } else { &variables };
    Ok((Server::start(&dir.path().join("data"), variables).await?, hours))
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_timers_of_one_second_all_fire_none_early_and_others_are_served() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let (mut server, hours) = server_and_clock(&dir).await?;
    let (channel, other) = (server.connect().await?, server.connect().await?);
    let (begun, begun_ms) = (Instant::now(), now_ms());
    let due_ms = begun_ms + if is_on_kafka() { DUE_ON_KAFKA_MS } else { HOUR_MS };
    start_all(&channel, due_ms).await?;
    println!("{RUNS} starts took {:?}", begun.elapsed());
    let done = Arc::new(AtomicUsize::new(0));
    let (_never, running) = watch::channel(false);
    let calm = others(other.clone(), "calm", done.clone(), CALM_ROUNDS, running).await?;
    print("in the calm", &calm);
    if is_on_kafka() {
        let left_ms = u64::try_from(due_ms - now_ms()).unwrap_or_default();
        patience::pass(Duration::from_millis(left_ms)).await;
    }
    let herd = async {
        let set_ms = now_ms() + if is_on_kafka() { 0 } else { HOUR_MS };
        if !is_on_kafka() {
            hours.write_all_at(&[1], 0)?;
        }
        Ok((set_ms, work_off(&channel, &done).await?))
    };
    let ((set_ms, fired), crowded) = beside_others(other, &done, herd).await?;
    ensure!(server.is_running(), "the server has ended");
    ensure!(fired.len() == RUNS, "{} timers fired", fired.len());
    let late = |percent| percentile(fired.iter().map(|fired_ms| fired_ms - set_ms), percent);
    println!("lateness p50 {:?} ms, p99 {:?} ms, max {:?} ms", late(50), late(99), late(100));
    print("in the herd", &crowded);
    let passed = percentile(crowded.iter().map(|call| call.passed), 100).unwrap_or(RUNS);
    ensure!(passed <= PASS_MAX, "somebody else waited while {passed} of the herd passed");
    Ok(())
}
