//! The workflows: the commands that a workflow's code issues for a given history.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use everlog_engine::api_types::{ActivityType, RetryPolicy, TaskQueue, WorkflowType};
use everlog_engine::command::{self, Command};
use everlog_engine::event::{Attributes, HistoryEvent};
use everlog_engine::machine::{activity, child, close, timer};
use everlog_engine::time::Duration;

use crate::clients::address;
use crate::node::{PARTITION, PARTITIONS};

pub const QUEUE: &str = "q";
/// The type of the workflows' children.
pub const LEAF: &str = "Leaf";

/// A workflow's program: generations left, then a step each. It is its input.
#[derive(Clone, Debug)]
pub struct Program {
    pub generations: u8,
    pub steps: Vec<Step>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Activity,
    /// Two activities at once.
    Both,
    Timer,
    Signal,
    /// A child that has nothing to do.
    Child,
}

impl Program {
    pub fn encode(&self) -> Bytes {
        let steps = self.steps.iter().map(|step| match step {
            Step::Activity => 0,
            Step::Both => 1,
            Step::Timer => 2,
            Step::Signal => 3,
            Step::Child => 4,
        });
        std::iter::once(self.generations).chain(steps).collect()
    }

    /// Where nothing was given there is nothing to do.
    fn read(bytes: &[u8]) -> Self {
        let Some((generations, steps)) = bytes.split_first() else {
            return Self { generations: 0, steps: Vec::new() };
        };
        let steps = steps.iter().map(|step| match step {
            0 => Step::Activity,
            1 => Step::Both,
            2 => Step::Timer,
            3 => Step::Signal,
            _ => Step::Child,
        });
        Self { generations: *generations, steps: steps.collect() }
    }

    pub fn signals(&self) -> usize {
        self.steps.iter().filter(|step| **step == Step::Signal).count()
    }
}

#[derive(Default)]
struct World {
    program: Option<Program>,
    scheduled: BTreeMap<String, i64>,
    done: BTreeSet<i64>,
    timers: BTreeSet<String>,
    fired: BTreeSet<String>,
    signals: usize,
    run_id: String,
    /// Children that were asked for; true of those that have ended.
    children: BTreeMap<String, bool>,
}

impl World {
    fn of(history: &[HistoryEvent]) -> Self {
        let mut world = Self::default();
        for event in history {
            match event.attributes.as_ref() {
                Some(Attributes::WorkflowStarted(started)) => {
                    world.program = Some(Program::read(&started.input.clone().unwrap_or_default()));
                    world.run_id.clone_from(&started.original_execution_run_id);
                }
                Some(Attributes::ActivityScheduled(scheduled)) => {
                    world.scheduled.insert(scheduled.activity_id.clone(), event.event_id);
                }
                Some(Attributes::ActivityCompleted(completed)) => {
                    world.done.insert(completed.scheduled_event_id);
                }
                Some(Attributes::ActivityFailed(failed)) => {
                    world.done.insert(failed.scheduled_event_id);
                }
                Some(Attributes::ActivityTimedOut(late)) => {
                    world.done.insert(late.scheduled_event_id);
                }
                Some(Attributes::TimerStarted(started)) => {
                    world.timers.insert(started.timer_id.clone());
                }
                Some(Attributes::TimerFired(fired)) => {
                    world.fired.insert(fired.timer_id.clone());
                }
                Some(Attributes::StartChildInitiated(initiated)) => {
                    world.children.insert(initiated.workflow_id.clone(), false);
                }
                Some(Attributes::ChildCompleted(closed)) => {
                    let child = closed.workflow_execution.clone().unwrap_or_default();
                    world.children.insert(child.workflow_id, true);
                }
                Some(Attributes::WorkflowSignaled(_)) => world.signals += 1,
                _other => {}
            }
        }
        world
    }

    /// True if the activity is over; otherwise it is asked for unless it was.
    fn activity(&self, id: String, orders: &mut Vec<command::CommandAttributes>) -> bool {
        match self.scheduled.get(&id) {
            Some(scheduled) => self.done.contains(scheduled),
            None => {
                orders.push(schedule(id));
                false
            }
        }
    }
}

/// A Workflow Id of the simulated partition for the child of a step.
fn child_id(run_id: &str, number: usize) -> String {
    let ids = (0..).map(|turn| format!("{run_id}/{number}/{turn}"));
    let mut ids = ids.filter(|id| address(id, "").partition(PARTITIONS) == PARTITION);
    ids.next().expect("the ids do not end")
}

fn start_child(workflow_id: String) -> command::CommandAttributes {
    command::CommandAttributes::StartChild(Box::new(child::Start {
        workflow_id,
        workflow_type: Some(WorkflowType { name: LEAF.into() }),
        ..child::Start::default()
    }))
}

/// Signals in a history.
pub fn signals(history: &[HistoryEvent]) -> i64 {
    World::of(history).signals as i64
}

/// What the workflow does next.
pub fn think(history: &[HistoryEvent]) -> Vec<Command> {
    let world = World::of(history);
    let Some(program) = &world.program else { return Vec::new() };
    let mut orders = Vec::new();
    let mut wanted_signals = 0;
    for (number, step) in program.steps.iter().enumerate() {
        let over = match step {
            Step::Activity => world.activity(format!("a{number}"), &mut orders),
            Step::Both => {
                let one = world.activity(format!("a{number}"), &mut orders);
                let other = world.activity(format!("b{number}"), &mut orders);
                one && other
            }
            Step::Timer => {
                let timer_id = format!("t{number}");
                if !world.timers.contains(&timer_id) {
                    let span = Some(Duration::from_ms(100 + 900 * (number as i64 + 1)));
                    orders.push(command::CommandAttributes::StartTimer(timer::Start {
                        timer_id: timer_id.clone(),
                        start_to_fire_timeout: span,
                    }));
                }
                world.fired.contains(&timer_id)
            }
            Step::Child => {
                let id = child_id(&world.run_id, number);
                let known = world.children.get(&id).copied();
                if known.is_none() {
                    orders.push(start_child(id));
                }
                known == Some(true)
            }
            Step::Signal => {
                wanted_signals += 1;
                world.signals >= wanted_signals
            }
        };
        if !over {
            return commands(orders);
        }
    }
    orders.push(end(program, world.signals));
    commands(orders)
}

fn commands(orders: Vec<command::CommandAttributes>) -> Vec<Command> {
    let command = |order: command::CommandAttributes| Command {
        command_type: order.command_type(),
        order: Some(order),
        ..Command::default()
    };
    orders.into_iter().map(command).collect()
}

fn end(program: &Program, signals: usize) -> command::CommandAttributes {
    match program.generations {
        0 => command::CommandAttributes::CompleteWorkflow(close::Complete {
            result: Some(signals.to_string().into()),
        }),
        generations => {
            let next = Program { generations: generations - 1, steps: program.steps.clone() };
            let order =
                close::ContinueAsNew { input: Some(next.encode()), ..close::ContinueAsNew::default() };
            command::CommandAttributes::ContinueAsNew(Box::new(order))
        }
    }
}

fn schedule(activity_id: String) -> command::CommandAttributes {
    command::CommandAttributes::ScheduleActivity(Box::new(activity::Schedule {
        activity_id,
        activity_type: Some(ActivityType { name: "Work".into() }),
        task_queue: Some(TaskQueue::normal(QUEUE)),
        input: Some(Bytes::from_static(b"input")),
        start_to_close_timeout: Some(Duration::from_ms(3_000)),
        retry_policy: Some(RetryPolicy {
            initial_interval: Some(Duration::from_ms(200)),
            backoff_coefficient: 1.0,
            maximum_interval: Some(Duration::from_ms(200)),
            ..RetryPolicy::default()
        }),
        ..activity::Schedule::default()
    }))
}
