//! A case: a small world with narrow limits, a few workflows, and some hundred orders drawn by dice.

use std::collections::BTreeMap;

use everlog_engine::machine::{activity_attempt, fire_timers, workflow_task};
use everlog_engine::request::Request;
use everlog_engine::{Outcome, Reply, Run};

use super::dice::Dice;
use super::liveness;
use super::sights::Sights;
use crate::world::World;

/// Orders of a case, at least.
pub const STEPS: u64 = 250;
/// Tokens that are remembered to be used too late.
const TOKENS_MAX: usize = 12;
const WORKFLOWS: [&str; 4] = ["a", "b", "c", "child"];

pub struct Case {
    pub world: World,
    pub dice: Dice,
    /// Tokens of tasks that were handed out, with their runs; the last ones.
    pub tasks: Vec<(String, workflow_task::Token)>,
    /// The same of activities.
    pub attempts: Vec<(String, activity_attempt::Target)>,
}

impl Case {
    pub fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let world = World::with(|settings| {
            settings.buffered_events_max = *dice.one(&[3, 8, 100]);
            settings.buffered_bytes_max = *dice.one(&[600, 2_000, 1 << 20]);
            settings.history_events_max = *dice.one(&[60, 300, 100_000]);
            settings.history_bytes_max = *dice.one(&[6_000, 100_000, 1 << 30]);
            settings.state_bytes_max = *dice.one(&[400, 800, 1 << 30]);
            settings.suggest_events = *dice.one(&[20, 100]);
            settings.pending_activities_max = *dice.one(&[2, 4, 10]);
            settings.pending_children_max = *dice.one(&[1, 3]);
            settings.pending_signals_max = *dice.one(&[1, 3]);
            settings.pending_cancels_max = *dice.one(&[1, 3]);
            settings.signals_max = *dice.one(&[5, 50]);
            settings.blob_bytes_max = 400;
            settings.memo_bytes_max = 200;
            settings.search_attribute_bytes_max = 100;
            settings.search_attributes_bytes_max = 200;
            settings.search_attributes_max = 3;
            settings.id_bytes_max = 20;
            settings.kept_failure_bytes_max = *dice.one(&[0, 100, 4_096]);
            settings.task_heartbeat_max_ms = *dice.one(&[5_000, 1_800_000]);
            settings.wake_slice_max = *dice.one(&[1, 2, 100]);
            settings.continue_interval_min_ms = *dice.one(&[0, 1_000]);
            settings.updates_in_flight_max = *dice.one(&[2, 10]);
            settings.updates_max = *dice.one(&[5, 12, 2_000]);
            settings.updates_bytes_max = *dice.one(&[400, 1 << 20]);
        });
        Self { world, dice, tasks: Vec::new(), attempts: Vec::new() }
    }

    pub fn play(&mut self, sights: &mut Sights) {
        for _step in 0..STEPS {
            let workflow_id = self.dice.word(&WORKFLOWS);
            self.world.on(workflow_id);
            if self.dice.percent(25) {
                self.let_time_pass();
            }
            if self.dice.percent(1) {
                self.world.take_over();
            }
            while self.dice.percent(40) && self.deliver(sights) {}
            let (run_id, order) = self.draw();
            let outcome = self.world.order_for(run_id, order);
            self.learn(&outcome);
            sights.outcome(&outcome);
        }
        self.world.replay();
        liveness::left_alone(self, sights);
        liveness::settled(self, sights);
        self.world.replay();
    }

    /// The letter that was sent first arrives; false where none is on its way.
    pub fn deliver(&mut self, sights: &mut Sights) -> bool {
        let Some(outcome) = self.world.deliver() else { return false };
        self.learn(&outcome);
        sights.outcome(&outcome);
        true
    }

    fn learn(&mut self, outcome: &Outcome) {
        let mut tasks = Vec::new();
        let mut attempts = Vec::new();
        match &outcome.reply {
            Reply::Task(grant) => tasks.push(grant.run.clone()),
            Reply::Activity(grant) => attempts.push((grant.run.clone(), grant.activity.clone())),
            Reply::Completed(completed) => {
                tasks.extend(completed.task.as_ref().map(|grant| grant.run.clone()));
                let granted = completed.activities.iter();
                attempts.extend(granted.map(|grant| (grant.run.clone(), grant.activity.clone())));
            }
            Reply::Started(started) => tasks.extend(started.task.as_ref().map(|grant| grant.run.clone())),
            Reply::Done
            | Reply::Rejected(_)
            | Reply::Gone
            | Reply::Heartbeat(_)
            | Reply::Update(_)
            | Reply::Schedule(_)
            | Reply::ActivityOptions(_)
            | Reply::RunOptions(_) => {}
        }
        for run in tasks {
            if let Some(task) = run.started_task() {
                self.tasks.push((run.start.run_id.clone(), task.token()));
            }
        }
        for (run, activity) in attempts {
            let target = activity_attempt::Target {
                scheduled_event_id: activity.scheduled_event_id,
                attempt: activity.attempt,
                claim: activity.claim,
                activity_id: String::new(),
            };
            self.attempts.push((run.start.run_id.clone(), target));
        }
        let surplus = self.tasks.len().saturating_sub(TOKENS_MAX);
        self.tasks.drain(..surplus);
        let surplus = self.attempts.len().saturating_sub(TOKENS_MAX);
        self.attempts.drain(..surplus);
    }

    /// Mostly a little, often to the next deadline, seldom far beyond.
    fn let_time_pass(&mut self) {
        let span_ms = match self.dice.below(10) {
            0..=3 => self.dice.below(2_000) as i64,
            4..=5 => 1_000 * self.dice.below(30) as i64,
            6 => 60_000 * self.dice.below(90) as i64,
            _to_a_deadline => match self.world.replica.next_deadline(self.world.grace()) {
                Some((due_ms, _, _)) => (due_ms.saturating_sub(self.world.now_ms)).clamp(0, 86_400_000),
                None => 0,
            },
        };
        self.world.now_ms = self.world.now_ms.saturating_add(span_ms);
    }

    /// Wakes the run that wants to be woken first; false where none does, or it is not due.
    pub fn wake_first(&mut self, sights: &mut Sights) -> Option<Outcome> {
        let (due_ms, workflow_id, run_id) = self.world.replica.next_deadline(self.world.grace())?;
        self.world.now_ms = self.world.now_ms.max(due_ms);
        self.world.on(&workflow_id);
        let outcome = self.world.order_for(run_id, Request::FireTimers(fire_timers::FireTimers {}));
        sights.outcome(&outcome);
        Some(outcome)
    }

    /// The current run of the present workflow.
    pub fn run(&self) -> Option<&Run> {
        self.world.current()
    }

    /// Everything that is open, by workflow.
    pub fn open(&self) -> BTreeMap<String, Run> {
        let open = self.world.replica.all().filter(|stored| stored.run.is_open());
        open.map(|stored| (stored.run.start.workflow_id.clone(), stored.run.as_ref().clone())).collect()
    }
}
