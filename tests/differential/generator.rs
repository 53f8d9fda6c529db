//! Generates a program from a seed: one move after the other, with a rough model of the state they lead to.
//!
//! The model only has to yield programs that get somewhere. Where it is wrong, a poll ends empty on both servers.

use std::collections::BTreeSet;

use everlog_tests::dice::Dice;
use serde_json::{Map, Value, json};

use crate::moves::under_way::{self, At, UnderWay};
use crate::moves::{MOVES, Move, OPENINGS, administration, operators};
use crate::program::{Program, Step};

/// The workflow of a program, and its queues.
pub const WORKFLOW: &str = "~w";
pub const QUEUE: &str = "~q";
pub const STICKY: &str = "~s";
/// The queue of its children.
pub const CHILD_QUEUE: &str = "~cq";
/// A queue that nobody polls.
pub const IDLE: &str = "~idle";

/// Programs of seeds from this one on are about updates that are under way.
pub const UNDER_WAY: u64 = 100_000;
/// From this one on about what operators do to activities and runs.
pub const OPERATED: u64 = 200_000;
/// And from this one on about queues, clusters and namespaces.
pub const ADMINISTERED: u64 = 300_000;
const MOVES_MIN: u64 = 4;
const MOVES_MAX: u64 = 11;
/// How long what the last step has caused may take to happen.
const SETTLES_MS: u64 = 1_000;
pub const CALL_WITHIN_S: u64 = 10;
/// How long a poll is for a task that is to be there.
pub const POLL_WITHIN_S: u64 = 14;
/// The same, where the task before has to time out first.
const TIMED_OUT_POLL_WITHIN_S: u64 = 34;
/// A Temporal server ends polls a second before the caller does.
const STAY_WITHIN_S: u64 = 3;

/// Where the run's workflow task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    None,
    Scheduled,
    Held,
}

/// How a workflow task has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Completed,
    Failed,
    TimedOut,
}

/// The state of a generator: the program so far, and the rough model.
#[derive(Debug)]
pub struct Generator {
    pub dice: Dice,
    steps: Vec<Step>,
    /// Counts whatever needs a name.
    serial: usize,
    pub is_open: bool,
    /// The last run ended as it should.
    pub is_closed_well: bool,
    pub task: Task,
    /// Something has happened while a task was held.
    pub has_news: bool,
    /// Workflow tasks that were completed in this run.
    pub completed: usize,
    /// The current attempt of the workflow task.
    pub attempt: usize,
    /// A task was tried again: what a further attempt did is one batch, and its start no point to go back to.
    pub has_tried_again: bool,
    /// How first attempts of tasks of this run have ended, and those of the first run: points to go back to.
    pub ends: Vec<End>,
    pub first_ends: Option<Vec<End>>,
    pub is_cancel_requested: bool,
    /// Completions go to the sticky queue.
    pub is_sticky: bool,
    /// Workflow tasks time out soon.
    pub is_hasty: bool,
    pub timers: Vec<String>,
    /// Children that have begun.
    pub children: Vec<String>,
    pub activities: Vec<String>,
    /// Events of each type that were waited for in this run.
    awaited: Vec<&'static str>,
    /// The run has begun with events of another.
    is_marked: bool,
    /// Something of this run, or of one before it, happens soon by itself.
    pub is_timely: bool,
    /// A run has waited before its first task.
    pub is_delayed: bool,
    /// The first task came with the answer to the start.
    pub is_eager: bool,
    /// The first run has little time, and so have those that are made of it.
    pub is_short: bool,
    /// Runs follow by a schedule: there an update that is not taken by the one does not go over to the next.
    pub is_repeated: bool,
    /// The same of the first chain of this workflow.
    pub is_repeated_first: bool,
    /// A policy may have a further attempt follow a run that fails.
    pub is_retried: bool,
    /// The run ended while its task kept failing: a Temporal server has it asked nothing then.
    pub is_closed_failing: bool,
    /// The run goes on from another one of its chain, and was not started by that one's request.
    pub is_continued: bool,
    /// The chain is not the first one of this workflow.
    pub is_later_chain: bool,
    /// A run was deleted: at a Temporal server nothing can be made of one that went on as that.
    pub has_deleted: bool,
    /// A run was reset: there pages of its history end where its base does, and an update that came over, and that its worker
    /// has ignored, is there again once a call has failed.
    pub has_reset: bool,
    /// Its last task was completed by a worker that keeps the run.
    is_kept: bool,
    /// The request that started the current run.
    pub started_by: String,
    /// Updates of the current run that later moves speak of.
    pub under_way: Vec<UnderWay>,
    /// The run was kept from closing by news, and takes no update while its worker has the next task.
    pub is_closing: bool,
    /// A queue has got build ids.
    pub has_build_ids: bool,
    /// How tasks have ended, and how far an update was then.
    pub met: BTreeSet<(&'static str, At)>,
}

impl Generator {
    pub fn new(seed: u64) -> Self {
        Self {
            dice: Dice::new(seed),
            steps: Vec::new(),
            serial: 0,
            is_open: false,
            is_closed_well: false,
            task: Task::None,
            has_news: false,
            completed: 0,
            attempt: 1,
            has_tried_again: false,
            ends: Vec::new(),
            first_ends: None,
            is_cancel_requested: false,
            is_sticky: false,
            is_hasty: false,
            timers: Vec::new(),
            children: Vec::new(),
            activities: Vec::new(),
            awaited: Vec::new(),
            is_marked: false,
            is_timely: false,
            is_delayed: false,
            is_eager: false,
            is_short: false,
            is_repeated: false,
            is_repeated_first: false,
            is_retried: false,
            is_closed_failing: false,
            is_continued: false,
            is_later_chain: false,
            has_deleted: false,
            has_reset: false,
            is_kept: false,
            started_by: String::new(),
            under_way: Vec::new(),
            is_closing: false,
            has_build_ids: false,
            met: BTreeSet::new(),
        }
    }

    /// The program of a seed.
    pub fn write(seed: u64) -> Program {
        let mut generator = Self::new(seed);
        let moves = match seed {
            ADMINISTERED.. => generator.move_on(administration::OPENINGS, administration::MOVES),
            OPERATED.. => generator.move_on(operators::OPENINGS, operators::MOVES),
            UNDER_WAY.. => generator.move_on(under_way::OPENINGS, under_way::MOVES),
            _any_kind => generator.move_on(OPENINGS, MOVES),
        };
        if (UNDER_WAY..OPERATED).contains(&seed) {
            under_way::finish(&mut generator);
        }
        generator.step(Step::Pause { ms: SETTLES_MS });
        Program { seed, steps: generator.steps, moves }
    }

    /// An opening, and some moves that fit.
    pub fn move_on(&mut self, openings: &[Move], all: &[Move]) -> Vec<(&'static str, usize)> {
        let mut moves = Vec::new();
        let any: Vec<usize> = (0..openings.len()).collect();
        let opening = &openings[self.weighed(&any, |at| openings[at].weight)];
        moves.push((opening.name, 0));
        (opening.write)(self);
        let count = MOVES_MIN + self.dice.below(MOVES_MAX - MOVES_MIN + 1);
        for _move in 0..count {
            let fitting: Vec<usize> = (0..all.len()).filter(|at| (all[*at].fits)(self)).collect();
            if fitting.is_empty() {
                break;
            }
            let one = &all[self.weighed(&fitting, |at| all[at].weight)];
            moves.push((one.name, self.steps.len()));
            (one.write)(self);
        }
        moves
    }

    fn weighed(&mut self, from: &[usize], weight: impl Fn(usize) -> u64) -> usize {
        let mut left = self.dice.below(from.iter().map(|at| weight(*at)).sum());
        for at in from {
            match left.checked_sub(weight(*at)) {
                Some(rest) => left = rest,
                None => return *at,
            }
        }
        from.last().copied().unwrap_or_default()
    }

    /// One of these.
    pub fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.dice.index(all.len())].clone()
    }

    /// A name that the program has not used.
    pub fn fresh(&mut self, what: &str) -> String {
        self.serial += 1;
        format!("~{what}{}", self.serial)
    }

    /// A chance of so many of a hundred.
    pub fn percent(&mut self, chance: u32) -> bool {
        self.dice.permille(chance * 10)
    }

    pub fn step(&mut self, step: Step) {
        self.steps.push(step);
    }

    pub fn call(&mut self, method: &'static str, request: Value) {
        self.step(Step::Call { method, request, within_s: CALL_WITHIN_S });
    }

    pub fn begin(&mut self, name: &str, method: &'static str, request: Value) {
        self.step(Step::Begin { name: name.to_owned(), method, request, within_s: CALL_WITHIN_S });
    }

    pub fn join(&mut self, name: &str) {
        self.step(Step::Join { name: name.to_owned() });
    }

    /// Waits for one more event of this type.
    pub fn wait_for(&mut self, event: &'static str) {
        self.awaited.push(event);
        let count = self.awaited.iter().filter(|awaited| **awaited == event).count();
        let is_marked = self.is_marked;
        self.step(Step::Await { workflow: WORKFLOW.to_owned(), event, count, is_marked });
    }

    /// Waits until a run of another workflow has an event of this type.
    pub fn wait_for_of(&mut self, workflow: &str, event: &'static str) {
        self.step(Step::Await { workflow: workflow.to_owned(), event, count: 1, is_marked: false });
    }

    /// A run has begun that has events of another one.
    pub fn begun_anew(&mut self, request_id: &str) {
        let chain = (self.is_repeated, self.is_retried, self.is_later_chain);
        self.begun(request_id);
        (self.is_repeated, self.is_retried, self.is_later_chain) = chain;
        (self.is_marked, self.has_reset) = (true, true);
        // What it goes on from; more of what the base had may be there.
        self.ends.push(End::Failed);
        self.step(Step::Mark { workflow: WORKFLOW.to_owned() });
    }

    /// A run has begun.
    pub fn begun(&mut self, request_id: &str) {
        if !self.started_by.is_empty() {
            self.first_ends.get_or_insert(std::mem::take(&mut self.ends));
        }
        self.ends.clear();
        self.is_continued = self.started_by == request_id;
        if !self.is_continued {
            (self.is_repeated, self.is_retried) = (false, false);
            self.is_later_chain = !self.started_by.is_empty();
        }
        self.is_open = true;
        self.task = Task::Scheduled;
        self.has_news = false;
        self.completed = 0;
        self.is_kept = false;
        self.attempt = 1;
        self.is_cancel_requested = false;
        self.timers.clear();
        self.activities.clear();
        self.awaited.clear();
        self.is_marked = false;
        self.started_by = request_id.to_owned();
    }

    /// The run has ended.
    pub fn ended(&mut self, is_well: bool) {
        self.is_closed_failing = self.attempt + usize::from(self.task == Task::Held) > 2;
        self.is_open = false;
        self.is_closed_well = is_well;
        self.task = Task::None;
        self.has_news = false;
    }

    /// The run is the first of this workflow.
    pub fn is_first_run(&self) -> bool {
        self.first_ends.is_none()
    }

    /// Something has happened that the workflow has to hear of.
    pub fn happened(&mut self) {
        match self.task {
            Task::None if self.is_open => self.task = Task::Scheduled,
            Task::Held => self.has_news = true,
            _ => {}
        }
    }

    /// A worker that keeps the run polls in vain: whoever does not for ten seconds gets no task of its queue more.
    pub fn stay(&mut self) {
        if self.is_kept && self.is_sticky && self.task == Task::None {
            self.poll_in_vain();
        }
    }

    /// A worker is there that will keep the run: otherwise a task that follows the one it holds at once goes to the normal queue.
    fn stay_for_more(&mut self, request: &Value) {
        let is_asked_for = |field: &str| request[field] == Value::Bool(true);
        let is_given =
            is_asked_for("force_create_new_workflow_task") && !is_asked_for("return_new_workflow_task");
        if self.is_sticky && (self.has_news || is_given) {
            self.poll_in_vain();
        }
    }

    fn poll_in_vain(&mut self) {
        let request = json!({"namespace": "default", "task_queue": sticky_queue(), "identity": "worker"});
        self.step(Step::Call { method: "PollWorkflowTaskQueue", request, within_s: STAY_WITHIN_S });
    }

    /// Where workflow tasks and questions come to.
    pub fn queue(&self) -> Value {
        match self.is_kept && self.is_sticky {
            true => sticky_queue(),
            false => json!({"name": QUEUE, "kind": "TASK_QUEUE_KIND_NORMAL"}),
        }
    }

    /// Takes the workflow task that waits.
    pub fn take(&mut self) {
        if self.task == Task::Held {
            return;
        }
        self.poll(self.queue());
        if self.task == Task::Scheduled {
            self.task = Task::Held;
        }
    }

    /// Polls this queue of workflow tasks.
    pub fn poll(&mut self, task_queue: Value) {
        let request = json!({"namespace": "default", "task_queue": task_queue, "identity": "worker"});
        // Nothing waits: no need to wait for long.
        let within_s = match self.task {
            Task::None => STAY_WITHIN_S,
            // One that has failed twice is tried again when its time is over.
            _ if self.attempt > 2 => TIMED_OUT_POLL_WITHIN_S,
            _ => POLL_WITHIN_S,
        };
        self.step(Step::Call { method: "PollWorkflowTaskQueue", request, within_s });
    }

    /// Polls for an activity.
    pub fn poll_activity(&mut self) {
        let request = json!({
            "namespace": "default",
            "task_queue": {"name": QUEUE, "kind": "TASK_QUEUE_KIND_NORMAL"},
            "identity": "worker",
        });
        self.step(Step::Call { method: "PollActivityTaskQueue", request, within_s: POLL_WITHIN_S });
    }

    /// A completion as it is sent, with further fields.
    pub fn completion(&mut self, commands: Vec<Value>, more: Value) -> Value {
        let mut request = json!({
            "namespace": "default",
            "task_token": format!("@task {WORKFLOW}"),
            "commands": commands,
            "identity": "worker",
        });
        if self.is_sticky {
            request["sticky_attributes"] = json!({
                "worker_task_queue": sticky_queue(),
                "schedule_to_start_timeout": "10s",
            });
        }
        merged(request, more)
    }

    /// Completes the held task with commands that make sense and do not close the run.
    pub fn complete(&mut self, commands: Vec<Value>) {
        self.complete_with(commands, json!({}));
    }

    /// The same, with further fields.
    pub fn complete_with(&mut self, commands: Vec<Value>, more: Value) {
        let request = self.completion(commands, more);
        self.stay_for_more(&request);
        self.call("RespondWorkflowTaskCompleted", request);
        self.completed += 1;
        self.ends.push(End::Completed);
        self.is_kept = self.is_sticky;
        self.attempt = 1;
        self.task = if self.has_news { Task::Scheduled } else { Task::None };
        self.has_news = false;
    }

    /// Takes and completes in one go.
    pub fn turn(&mut self, commands: Vec<Value>) {
        self.take();
        self.complete(commands);
    }

    /// The held task has failed or timed out.
    pub fn task_lost(&mut self, end: End) {
        if self.attempt == 1 {
            self.ends.push(end);
        }
        self.task = Task::Scheduled;
        self.has_news = false;
        self.is_kept = false;
        self.attempt += 1;
        self.has_tried_again = true;
        self.completed = self.completed.max(usize::from(self.attempt > 2));
    }

    /// Sends a task to the workflow where none waits, so that there is one to take.
    pub fn wake(&mut self) {
        if self.task == Task::None {
            self.signal("wake");
        }
    }

    /// Signals the current run.
    pub fn signal(&mut self, name: &str) {
        self.stay();
        let request_id = self.fresh("r");
        let input = payloads(&[&self.fresh("input")]);
        let request = json!({
            "namespace": "default",
            "workflow_execution": {"workflow_id": WORKFLOW},
            "signal_name": name,
            "input": input,
            "identity": "caller",
            "request_id": request_id,
        });
        self.call("SignalWorkflowExecution", request);
        self.happened();
    }
}

fn sticky_queue() -> Value {
    json!({"name": STICKY, "kind": "TASK_QUEUE_KIND_STICKY", "normal_name": QUEUE})
}

/// A payload of a text.
pub fn payload(text: &str) -> Value {
    json!({"metadata": {"encoding": "json/plain"}, "data": format!("\"{text}\"")})
}

pub fn payloads(texts: &[&str]) -> Value {
    json!({"payloads": texts.iter().map(|text| payload(text)).collect::<Vec<_>>()})
}

/// An application's failure.
pub fn failure(kind: &str, is_final: bool) -> Value {
    json!({
        "message": format!("{kind} happened"),
        "source": "worker",
        "stack_trace": "line 1\nline 2",
        "application_failure_info": {"type": kind, "non_retryable": is_final, "details": payloads(&["why"])},
        "cause": {"message": "deeper", "application_failure_info": {"type": "Cause"}},
    })
}

/// A tree with the fields of another put over its own.
pub fn merged(base: Value, more: Value) -> Value {
    let (Value::Object(mut base), Value::Object(more)) = (base, more) else { return Value::Null };
    for (key, value) in more {
        base.insert(key, value);
    }
    base.retain(|_, value| !value.is_null());
    Value::Object(base)
}

/// A command of a kind: `START_TIMER`, with its attributes.
pub fn command(kind: &str, attributes: Value) -> Value {
    let field = format!("{}_command_attributes", kind.to_lowercase());
    let mut command = Map::new();
    command.insert("command_type".to_owned(), format!("COMMAND_TYPE_{kind}").into());
    command.insert(field, attributes);
    Value::Object(command)
}
