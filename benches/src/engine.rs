//! The engine alone: how many records one core decides per second, and what a record allocates.

use std::alloc::System;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use everlog_engine::api_types::{ActivityType, TaskQueue};
use everlog_engine::command::{self, Command};
use everlog_engine::machine::{
    activity, activity_attempt, close, signal, start, workflow_task, workflow_task_completed,
};
use everlog_engine::request::{Request, RequestRecord};
use everlog_engine::time::Duration;
use everlog_engine::{Outcome, Reply, Run, Settings, Stamp, View, decide};
use prost::Message;
use stats_alloc::{Region, StatsAlloc};

const NAMESPACE: &str = "7d4cbe0a-32c5-5c0f-8d6c-0e8f6f3d2a11";
const ROUNDS: usize = 5;

/// Prints a row per kind of record.
///
/// # Errors
/// None today; the signature is that of the other benches.
pub fn run(allocator: &'static StatsAlloc<System>) -> anyhow::Result<()> {
    println!(
        "| record | records/s of one core (min, median, max of {ROUNDS}) | allocations | bytes allocated |"
    );
    println!("|---|---|---|---|");
    row(allocator, "a signal", 1, 100_000, signals);
    row(allocator, "a workflow task that schedules an activity", 1, 50_000, tasks);
    row(allocator, "a whole workflow with one activity (7 records)", 7, 10_000, workflows);
    Ok(())
}

fn row(
    allocator: &'static StatsAlloc<System>,
    name: &str,
    records: usize,
    count: usize,
    bench: fn(usize) -> f64,
) {
    bench(count / 10);
    let region = Region::new(allocator);
    let mut rates: Vec<f64> = (0..ROUNDS).map(|_| (count * records) as f64 / bench(count)).collect();
    let change = region.change();
    let steps = (count * records * ROUNDS) as f64;
    rates.sort_by(f64::total_cmp);
    println!(
        "| {name} | {:.0}, {:.0}, {:.0} | {:.1} | {:.0} |",
        rates[0],
        rates[ROUNDS / 2],
        rates[ROUNDS - 1],
        change.allocations as f64 / steps,
        change.bytes_allocated as f64 / steps,
    );
}

/// One workflow and the clockwork around it.
struct World {
    run: Option<Arc<Run>>,
    stamp: Stamp,
    settings: Settings,
    written_bytes: usize,
}

impl World {
    fn new(number: usize) -> Self {
        let stamp = Stamp {
            incarnation: [7; 16],
            partition: 0,
            offset: number as u64 * 100,
            now_ms: 1_000,
            owner_ms: 0,
            level: everlog_engine::level::LATEST,
        };
        Self { run: None, stamp, settings: Settings::standard(), written_bytes: 0 }
    }

    /// Decodes, decides and encodes one record, as a partition does.
    fn step(&mut self, order: Request) -> Outcome {
        let input = RequestRecord {
            namespace_id: NAMESPACE.into(),
            workflow_id: "order-1".into(),
            run_id: String::new(),
            sender: None,
            request: Some(order),
        };
        let bytes: Bytes = input.encode_to_vec().into();
        let input = RequestRecord::decode(bytes).expect("was just encoded");
        self.stamp.offset += 1;
        self.stamp.now_ms += 1;
        let view = View { run: self.run.clone(), current: self.run.clone(), ..View::default() };
        let outcome = decide(&view, &input, &self.stamp, &self.settings);
        for step in &outcome.steps {
            for event in step.events() {
                self.written_bytes += event.encode_to_vec().len();
            }
            self.run = Some(step.run.clone());
        }
        outcome
    }

    fn started(number: usize) -> Self {
        let mut world = Self::new(number);
        world.step(Request::Start(Box::new(start::Begin {
            request_id: "request".into(),
            workflow_type: "Order".into(),
            task_queue: "orders".into(),
            input: Some(payload()),
            identity: "bench".into(),
            retention_ms: 86_400_000,
            ..start::Begin::default()
        })));
        world
    }

    fn claim(&mut self) -> workflow_task::Token {
        let pending = self.run.as_ref().and_then(|run| run.head.task.clone()).unwrap_or_default();
        self.step(Request::ClaimTask(workflow_task::Claim {
            scheduled_event_id: pending.scheduled_event_id,
            attempt: pending.attempt,
            sticky: false,
            identity: "worker".into(),
            poll_id: "poll".into(),
            stamp: 0,
        }));
        let pending = self.run.as_ref().and_then(|run| run.head.task.clone()).unwrap_or_default();
        pending.token()
    }

    fn complete(&mut self, orders: Vec<command::CommandAttributes>) {
        let token = self.claim();
        let commands = orders.into_iter().map(|order| Command {
            command_type: order.command_type(),
            order: Some(order),
            ..Command::default()
        });
        let outcome = self.step(Request::CompleteTask(Box::new(workflow_task_completed::Complete {
            token: Some(token),
            commands: commands.collect(),
            identity: "worker".into(),
            ..workflow_task_completed::Complete::default()
        })));
        assert!(matches!(outcome.reply, Reply::Completed(_)), "the completion is accepted");
    }

    fn activity(&mut self) {
        let id = self.run.as_ref().and_then(|run| run.activities.keys().next().copied()).unwrap_or_default();
        self.step(Request::ClaimActivity(activity_attempt::Claim {
            scheduled_event_id: id,
            attempt: 1,
            identity: "worker".into(),
            poll_id: "poll".into(),
            stamp: 0,
        }));
        let claim = self.stamp.offset + 1;
        let target = activity_attempt::Target {
            scheduled_event_id: id,
            attempt: 1,
            claim,
            activity_id: String::new(),
        };
        let outcome = self.step(Request::CompleteActivity(activity_attempt::Complete {
            target: Some(target),
            result: Some(payload()),
            identity: "worker".into(),
            worker_version: None,
        }));
        assert!(matches!(outcome.reply, Reply::Done), "the result is accepted");
    }
}

fn payload() -> Bytes {
    Bytes::from_static(&[b'x'; 100])
}

fn schedule() -> command::CommandAttributes {
    command::CommandAttributes::ScheduleActivity(Box::new(activity::Schedule {
        activity_id: "1".into(),
        activity_type: Some(ActivityType { name: "Charge".into() }),
        task_queue: Some(TaskQueue::normal("orders")),
        input: Some(payload()),
        start_to_close_timeout: Some(Duration::from_ms(10_000)),
        ..activity::Schedule::default()
    }))
}

fn signals(count: usize) -> f64 {
    let mut seconds = 0.0;
    for batch in 0..count.div_ceil(1_000) {
        let mut world = World::started(batch);
        let begun = Instant::now();
        for number in 0..1_000 {
            world.step(Request::Signal(signal::Signal {
                name: "changed".into(),
                input: Some(payload()),
                identity: "bench".into(),
                request_id: format!("request-{number}"),
                ..signal::Signal::default()
            }));
        }
        seconds += begun.elapsed().as_secs_f64();
    }
    seconds
}

fn tasks(count: usize) -> f64 {
    let mut worlds: Vec<World> = (0..count).map(World::started).collect();
    let tokens: Vec<_> = worlds.iter_mut().map(World::claim).collect();
    let begun = Instant::now();
    for (world, token) in worlds.iter_mut().zip(tokens) {
        let order = schedule();
        world.step(Request::CompleteTask(Box::new(workflow_task_completed::Complete {
            token: Some(token),
            commands: vec![Command {
                command_type: order.command_type(),
                order: Some(order),
                ..Command::default()
            }],
            identity: "worker".into(),
            ..workflow_task_completed::Complete::default()
        })));
    }
    begun.elapsed().as_secs_f64()
}

fn workflows(count: usize) -> f64 {
    let begun = Instant::now();
    for number in 0..count {
        let mut world = World::started(number);
        world.complete(vec![schedule()]);
        world.activity();
        world.complete(vec![command::CommandAttributes::CompleteWorkflow(close::Complete {
            result: Some(payload()),
        })]);
        assert!(world.run.is_some_and(|run| !run.is_open()), "the workflow is complete");
    }
    begun.elapsed().as_secs_f64()
}
