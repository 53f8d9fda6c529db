//! Rows about commands: what a worker may not ask for when it completes a workflow task.

use everlog_engine::command::{Command, Later, Order};
use everlog_engine::machine::{activity as engine_activity, timer as engine_timer};
use everlog_engine::time::Duration as Span;
use everlog_engine::vocabulary::RetryPolicy;
use everlog_temporal_api::full::temporal::api::history::v1::history_event::Attributes;

use crate::ids::signal_for;
use crate::row::{Action, Row, Told, invalid, row, story, taken};
use crate::worker::{activity, command, commands, complete, schedule, timer};
use crate::world::{World, text, told};

#[rustfmt::skip]
pub fn rows() -> Vec<Row> {
    vec![
        row(27, "a child workflow", commands(|| vec![command(Order::StartChild(Later {}))]),
            invalid("BadStartChildExecutionAttributes")
                .leaves("WORKFLOW_TASK_FAILED (BAD_START_CHILD_EXECUTION_ATTRIBUTES)").until("child workflows")),
        row(27, "a signal to another workflow", commands(|| vec![command(Order::SignalExternal(Later {}))]),
            invalid("BadSignalWorkflowExecutionAttributes")
                .leaves("WORKFLOW_TASK_FAILED (BAD_SIGNAL_WORKFLOW_EXECUTION_ATTRIBUTES)").until("external signals")),
        row(27, "a cancellation of another workflow", commands(|| vec![command(Order::RequestCancelExternal(Later {}))]),
            invalid("BadRequestCancelExternalWorkflowExecutionAttributes")
                .leaves("WORKFLOW_TASK_FAILED (BAD_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_ATTRIBUTES)")
                .until("external cancellations")),
        row(41, "retry policy of an activity: coefficient < 1", retry(|p| p.backoff_coefficient = 0.5),
            invalid("BadScheduleActivityAttributes").leaves(BAD_ACTIVITY).unlike(TOLD)),
        row(41, "retry policy of an activity: max < initial interval",
            retry(|p| p.maximum_interval = Some(Span::from_ms(1))),
            invalid("BadScheduleActivityAttributes").leaves(BAD_ACTIVITY).unlike(TOLD)),
        row(41, "retry policy of an activity: negative attempts", retry(|p| p.maximum_attempts = -1),
            invalid("BadScheduleActivityAttributes").leaves(BAD_ACTIVITY).unlike(TOLD)),
        row(41, "retry policy of an activity: bad timeout type",
            retry(|p| p.non_retryable_error_types = vec!["TemporalTimeout:Sometimes".into()]),
            invalid("BadScheduleActivityAttributes").leaves(BAD_ACTIVITY).unlike(TOLD)),
        row(39, "negative timeout of an activity",
            one(|a| a.start_to_close_timeout = Some(Span { seconds: -1, nanos: 0 })),
            invalid("BadScheduleActivityAttributes").leaves(BAD_ACTIVITY)),
        row(39, "negative timer", commands(|| vec![timer("wait", -1_000)]),
            invalid("BadStartTimerAttributes").leaves("WORKFLOW_TASK_FAILED (BAD_START_TIMER_ATTRIBUTES)")),
        row(44, "activity without a timeout to its close", one(|a| a.start_to_close_timeout = None),
            invalid("BadScheduleActivityAttributes").leaves(BAD_ACTIVITY)),
        row(44, "activity without an id", one(|a| a.activity_id.clear()),
            invalid("BadScheduleActivityAttributes").leaves(BAD_ACTIVITY)),
        row(44, "activity without a type", one(|a| a.activity_type = None),
            invalid("BadScheduleActivityAttributes").leaves(BAD_ACTIVITY)),
        row(44, "activity id > 1000 bytes", one(|a| a.activity_id = text(1_001)),
            invalid("BadScheduleActivityAttributes").leaves(BAD_ACTIVITY)),
        row(45, "heartbeat timeout > start-to-close: lowered", story(long_heartbeat), taken("60000 ms")),
        row(46, "two activities with one id", commands(|| vec![activity(|_fine| {}), activity(|_fine| {})]),
            invalid("ScheduleActivityDuplicateId").leaves("WORKFLOW_TASK_FAILED (SCHEDULE_ACTIVITY_DUPLICATE_ID)")),
        row(46, "two timers with one id", commands(|| vec![timer("wait", 60_000), timer("wait", 60_000)]),
            invalid("StartTimerDuplicateId").leaves("WORKFLOW_TASK_FAILED (START_TIMER_DUPLICATE_ID)")),
        row(47, "cancel of an unknown timer", commands(|| vec![cancel_timer("nothing")]),
            invalid("BadCancelTimerAttributes").leaves("WORKFLOW_TASK_FAILED (BAD_CANCEL_TIMER_ATTRIBUTES)")),
        row(47, "cancel of an unknown activity", commands(|| vec![cancel_activity(99)]),
            invalid("BadRequestCancelActivityAttributes")
                .leaves("WORKFLOW_TASK_FAILED (BAD_REQUEST_CANCEL_ACTIVITY_ATTRIBUTES)")),
        row(48, "complete while a new signal is buffered", story(complete_over_signal),
            invalid("UnhandledCommand").leaves("WORKFLOW_TASK_FAILED (UNHANDLED_COMMAND), SIGNALED, WORKFLOW_TASK_SCHEDULED")),
        row(49, "unknown command type", commands(|| vec![unknown()]),
            invalid("unknown command type").leaves(NOTHING_WRITTEN)),
        row(49, "a closing command that is not the last", commands(|| vec![complete(1), timer("wait", 1_000)]),
            invalid("invalid command sequence").leaves(NOTHING_WRITTEN)),
        row(49, "a command of no type", commands(|| vec![Command::default()]),
            invalid("unknown command type").leaves(NOTHING_WRITTEN)),
        row(50, "a bad command again, at attempt 2: not written again", story(bad_twice),
            invalid("BadScheduleActivityAttributes").leaves("1 failure written, last attempt 2")),
        row(70, "a command aimed at another namespace", commands(|| vec![command(Order::StartChild(Later {}))]),
            invalid("BadStartChildExecutionAttributes").until("child workflows")),
    ]
}

const TOLD: &str = "the task fails, so that the history says why it goes on no further";
const BAD_ACTIVITY: &str = "WORKFLOW_TASK_FAILED (BAD_SCHEDULE_ACTIVITY_ATTRIBUTES)";
/// The whole transcript: the task is still with the worker.
const NOTHING_WRITTEN: &str = "STARTED, WORKFLOW_TASK_SCHEDULED, WORKFLOW_TASK_STARTED.";

fn one(edit: impl Fn(&mut engine_activity::Schedule) + Send + Sync + Copy + 'static) -> Action {
    commands(move || vec![activity(edit)])
}

fn retry(edit: impl Fn(&mut RetryPolicy) + Send + Sync + Copy + 'static) -> Action {
    one(move |order| {
        let mut policy =
            RetryPolicy { initial_interval: Some(Span::from_ms(1_000)), ..RetryPolicy::default() };
        edit(&mut policy);
        order.retry_policy = Some(policy);
    })
}

fn cancel_timer(id: &str) -> Command {
    command(Order::CancelTimer(engine_timer::Cancel { timer_id: id.into() }))
}

fn cancel_activity(scheduled_event_id: i64) -> Command {
    command(Order::RequestCancelActivity(engine_activity::RequestCancel { scheduled_event_id }))
}

fn unknown() -> Command {
    Command { command_type: 99, ..Command::default() }
}

async fn long_heartbeat(world: World) -> anyhow::Result<Told> {
    let run = world.begin(|_fine| {}).await?;
    let order = engine_activity::Schedule { heartbeat_timeout: Some(Span::from_ms(90_000)), ..schedule() };
    let told = world.work(&run, vec![command(Order::ScheduleActivity(Box::new(order)))]).await?;
    let mut left = "none".to_owned();
    for event in world.events(&run).await? {
        if let Some(Attributes::ActivityTaskScheduledEventAttributes(scheduled)) = event.attributes {
            let timeout = scheduled.heartbeat_timeout.unwrap_or_default();
            left = format!("{} ms", timeout.seconds * 1_000 + i64::from(timeout.nanos) / 1_000_000);
        }
    }
    Ok(Told { left, ..told })
}

async fn complete_over_signal(world: World) -> anyhow::Result<Told> {
    let run = world.begin(|_fine| {}).await?;
    let task = world.task(&run).await?;
    world.send(signal_for(&world, &run.id)).await?;
    let told = told(world.send(world.completion(&task.task_token, vec![complete(1)])).await);
    world.leaving(&run, told).await
}

async fn bad_twice(world: World) -> anyhow::Result<Told> {
    let run = world.begin(|_fine| {}).await?;
    let bad = || vec![activity(|order| order.start_to_close_timeout = None)];
    world.work(&run, bad()).await?;
    let task = world.task(&run).await?;
    let told = told(world.send(world.completion(&task.task_token, bad())).await);
    let failures = world.transcript(&run).await?.matches("WORKFLOW_TASK_FAILED").count();
    Ok(Told { left: format!("{failures} failure written, last attempt {}", task.attempt), ..told })
}
