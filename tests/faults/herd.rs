//! A herd: ten thousand timers due in the same second. All fire, none early, and other calls go through.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use bytes::Bytes;
use everlog_engine::command::{Command, Order};
use everlog_engine::machine::{close, timer};
use everlog_engine::time::Duration as Span;
use everlog_temporal_api::full::temporal::api::history::v1::history_event::Attributes;
use everlog_temporal_api::full::temporal::api::history::v1::{History, HistoryEvent};
use everlog_temporal_api::taskqueue::TaskQueue;
use everlog_temporal_api::workflowservice::{
    DescribeWorkflowExecutionRequest, PollWorkflowTaskQueueRequest, PollWorkflowTaskQueueResponse,
    RespondWorkflowTaskCompletedRequest, StartWorkflowExecutionResponse,
};
use everlog_tests::raw;
use everlog_tests::server::Server;
use prost::Message;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tonic::Request;
use tonic::transport::Channel;

use crate::client::{NAMESPACE, execution, now_ms, signal, start, until};

const RUNS: usize = 10_000;
const WORKERS: usize = 64;
/// How late the last of the herd may be, on a machine that does other things too.
const LATENESS_MS_MAX: i64 = 30_000;
/// How long any other call may take while the herd passes.
const OTHERS_MAX: Duration = Duration::from_secs(2);
/// How long other calls are watched before the herd comes.
const CALM: Duration = Duration::from_secs(1);
/// How much longer than the starts it may take to set the timers: other tests are at work on the same machine, now more, now less.
const SLOWER_MAX: u32 = 3;

fn command(order: Order) -> Command {
    Command { command_type: order.command_type(), order: Some(order), ..Command::default() }
}

async fn complete(channel: &Channel, task_token: Bytes, order: Order) -> anyhow::Result<()> {
    let request = RespondWorkflowTaskCompletedRequest {
        task_token,
        commands: vec![command(order)],
        identity: "tests".into(),
        namespace: NAMESPACE.into(),
        ..RespondWorkflowTaskCompletedRequest::default()
    };
    raw::send(channel, request).await.context("a completion")?;
    Ok(())
}

/// Starts every run and keeps its first task in hand.
async fn start_all(channel: &Channel) -> anyhow::Result<Vec<Bytes>> {
    let next = Arc::new(AtomicUsize::new(0));
    let mut starters = JoinSet::new();
    for _ in 0..WORKERS {
        let (channel, next) = (channel.clone(), next.clone());
        starters.spawn(async move {
            let mut tokens = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= RUNS {
                    return anyhow::Ok(tokens);
                }
                let mut request = start(&format!("herd-{number}"), "herd");
                request.request_eager_execution = true;
                request.workflow_task_timeout = Some(prost_types::Duration { seconds: 120, nanos: 0 });
                let answer = raw::send(&channel, request).await.context("a start")?;
                let task = StartWorkflowExecutionResponse::decode(answer)?.eager_workflow_task;
                tokens.push(task.context("the first task comes with the start")?.task_token);
            }
        });
    }
    let mut tokens = Vec::new();
    while let Some(some) = starters.join_next().await {
        tokens.extend(some??);
    }
    Ok(tokens)
}

/// Sets every run's timer to the same moment.
async fn set_all(channel: &Channel, tokens: Vec<Bytes>, due_ms: i64) -> anyhow::Result<()> {
    let mut setters = JoinSet::new();
    for share in tokens.chunks(tokens.len().div_ceil(WORKERS)) {
        let (channel, share) = (channel.clone(), share.to_vec());
        setters.spawn(async move {
            for token in share {
                let wait = Some(Span::from_ms((due_ms - now_ms()).max(1)));
                let order = timer::Start { timer_id: "wait".into(), start_to_fire_timeout: wait };
                complete(&channel, token, Order::StartTimer(order)).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(set) = setters.join_next().await {
        set??;
    }
    Ok(())
}

/// How late the timer of this history fired, in ms by the server's own clock.
fn lateness_ms(events: &[HistoryEvent]) -> anyhow::Result<i64> {
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
    let late_ms = fired_ms - due_ms.context("a timer was started")?;
    anyhow::ensure!(late_ms >= 0, "a timer fired {} ms early", -late_ms);
    Ok(late_ms)
}

/// Works on whatever comes until the whole herd is done; how late each timer fired.
async fn work_off(channel: &Channel) -> anyhow::Result<Vec<i64>> {
    let done = Arc::new(AtomicUsize::new(0));
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        let (channel, done) = (channel.clone(), done.clone());
        workers.spawn(async move {
            let mut late_ms = Vec::new();
            while done.load(Ordering::Relaxed) < RUNS {
                let Some(task) = poll(&channel).await? else {
                    continue;
                };
                let history = History::decode(task.history.unwrap_or_default())?;
                late_ms.push(lateness_ms(&history.events)?);
                complete(
                    &channel,
                    task.task_token,
                    Order::CompleteWorkflow(close::Complete { result: None }),
                )
                .await?;
                done.fetch_add(1, Ordering::Relaxed);
            }
            anyhow::Ok(late_ms)
        });
    }
    let mut late_ms = Vec::new();
    while let Some(some) = workers.join_next().await {
        late_ms.extend(some??);
    }
    Ok(late_ms)
}

async fn poll(channel: &Channel) -> anyhow::Result<Option<PollWorkflowTaskQueueResponse>> {
    let request = PollWorkflowTaskQueueRequest {
        namespace: NAMESPACE.into(),
        task_queue: Some(TaskQueue { name: "herd".into(), kind: 1, ..TaskQueue::default() }),
        identity: "tests".into(),
        ..PollWorkflowTaskQueueRequest::default()
    };
    let mut call = Request::new(Bytes::from(request.encode_to_vec()));
    // Short, so that workers notice the end; a task that is on its way when the time is over comes again.
    call.set_timeout(Duration::from_secs(3));
    let answer = raw::call(channel, &raw::path_of::<PollWorkflowTaskQueueRequest>(), call).await?;
    let task = PollWorkflowTaskQueueResponse::decode(answer.into_inner())?;
    Ok((!task.task_token.is_empty()).then_some(task))
}

/// Other people's calls, one after the other, until told to stop; how long each took.
async fn others(channel: Channel, name: &str, stop: watch::Receiver<bool>) -> anyhow::Result<Vec<Duration>> {
    let mut took = Vec::new();
    for number in 0.. {
        if *stop.borrow() {
            break;
        }
        let id = format!("{name}-{number}");
        let begun = Instant::now();
        raw::send(&channel, start(&id, "nobody")).await.context("a start of somebody else")?;
        took.push(begun.elapsed());
        let begun = Instant::now();
        signal(&channel, &id, "changed", 100).await.context("a signal of somebody else")?;
        took.push(begun.elapsed());
        let begun = Instant::now();
        let describe =
            DescribeWorkflowExecutionRequest { namespace: NAMESPACE.into(), execution: execution(&id) };
        raw::send(&channel, describe).await.context("a description for somebody else")?;
        took.push(begun.elapsed());
    }
    Ok(took)
}

/// Runs the calls of others beside something else.
async fn beside_others<T>(
    channel: Channel,
    name: &'static str,
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<(T, Vec<Duration>)> {
    let (stop, stopped) = watch::channel(false);
    let others = tokio::spawn(others(channel, name, stopped));
    let worked = work.await;
    stop.send_replace(true);
    let took = others.await??;
    Ok((worked?, took))
}

fn percentile<T: Ord + Copy>(values: &mut [T], percent: usize) -> Option<T> {
    values.sort_unstable();
    values.get((values.len() * percent / 100).min(values.len().saturating_sub(1))).copied()
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_timers_of_one_second_all_fire_none_early_and_others_are_served() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut server = Server::start(dir.path(), &[]).await?;
    let channel = server.connect().await?;
    let begun = Instant::now();
    let tokens = start_all(&channel).await?;
    let started = begun.elapsed();
    let due_ms = now_ms() + i64::try_from((started * SLOWER_MAX + CALM * 2).as_millis())?;
    set_all(&channel, tokens, due_ms).await?;
    let left_ms = due_ms - now_ms();
    anyhow::ensure!(
        left_ms > 0,
        "the machine is too slow: the last timer was set {} ms too late, {started:?} for the starts",
        -left_ms
    );
    let calm = until("the herd is due", async || now_ms() >= due_ms);
    let ((), mut calm_took) = beside_others(server.connect().await?, "calm", calm).await?;
    let (mut late_ms, mut herd_took) =
        beside_others(server.connect().await?, "crowded", work_off(&channel)).await?;
    anyhow::ensure!(server.is_running(), "the server has ended");
    anyhow::ensure!(late_ms.len() == RUNS, "{} timers fired", late_ms.len());
    println!(
        "{RUNS} starts took {started:?}; lateness p50 {:?} ms, p99 {:?} ms, max {:?} ms; others' p50 {:?}, p99 {:?}, max {:?} \
         of {} calls, in the calm before p99 {:?} of {} calls",
        percentile(&mut late_ms, 50),
        percentile(&mut late_ms, 99),
        late_ms.iter().max(),
        percentile(&mut herd_took, 50),
        percentile(&mut herd_took, 99),
        herd_took.iter().max(),
        herd_took.len(),
        percentile(&mut calm_took, 99),
        calm_took.len(),
    );
    anyhow::ensure!(late_ms.iter().all(|late_ms| *late_ms <= LATENESS_MS_MAX), "the herd passes too slowly");
    anyhow::ensure!(herd_took.iter().all(|took| *took <= OTHERS_MAX), "others wait too long");
    Ok(())
}
