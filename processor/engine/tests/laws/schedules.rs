//! The law of schedules: whatever comes, in whatever order, each time becomes one action or is counted with a reason, and
//! what shall not overlap does not.

use std::collections::BTreeSet;

use everlog_engine::machine::fire_timers::FireTimers;
use everlog_engine::machine::schedule::event::ScheduleEventKind;
use everlog_engine::machine::schedule::request::{
    BackfillRecord, CreateSchedule, PatchRecord, PatchSchedule, TriggerRecord,
};
use everlog_engine::request::Request;
use everlog_engine::{Outcome, Run};
use everlog_schedules::overlap::OverlapPolicy;
use everlog_schedules::spec::{SpecDuration, SpecTime};
use everlog_schedules::state::ScheduleState;

use super::dice::Dice;
use crate::stories::retries::policy;
use crate::world::{EPOCH_MS, World, a_definition, application, every};

const CASES: u64 = 60;
const STEPS: usize = 400;
const POLICIES: [OverlapPolicy; 6] = [
    OverlapPolicy::Skip,
    OverlapPolicy::BufferOne,
    OverlapPolicy::BufferAll,
    OverlapPolicy::CancelOther,
    OverlapPolicy::TerminateOther,
    OverlapPolicy::AllowAll,
];

/// A schedule among its runs, and what it has told.
struct ScheduleCase {
    world: World,
    dice: Dice,
    interval_s: i64,
    may_overlap: bool,
    /// Nominal times of scheduled actions that were started or skipped.
    settled: BTreeSet<i64>,
    missed: u64,
    /// Actions of triggers and backfills that were started or skipped.
    manual: BTreeSet<u64>,
    /// The number of the last event that was told.
    last_event_id: i64,
}

impl ScheduleCase {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let mut world = World::new();
        world.quick = true;
        let interval_s = 1 + dice.below(120) as i64;
        let overlap = *dice.one(&POLICIES);
        let mut definition = a_definition(overlap);
        definition.spec = every(interval_s * 1_000);
        definition.policies.keep_original_workflow_id = dice.percent(20);
        if dice.percent(50) {
            let window = SpecDuration::of_ns((10 + dice.below(600) as i64) * 1_000_000_000);
            definition.policies.catchup_window = Some(window);
        }
        if dice.percent(50) {
            definition.action.retry_policy = policy(2);
        }
        let order = CreateSchedule { definition, ..CreateSchedule::default() };
        let made = world.on_schedule("s").order(Request::CreateSchedule(Box::new(order)));
        let may_overlap = overlap == OverlapPolicy::AllowAll;
        let (settled, manual) = (BTreeSet::new(), BTreeSet::new());
        let mut case =
            Self { world, dice, interval_s, may_overlap, settled, missed: 0, manual, last_event_id: 0 };
        case.heard(&made);
        case
    }

    fn play(mut self) {
        for _ in 0..STEPS {
            match self.dice.below(100) {
                0..=39 => self.deliver(),
                40..=64 => self.pass_time(),
                65..=89 => self.end_a_run(),
                90..=95 => self.trigger(),
                96..=98 => self.backfill(),
                _seldom => self.world.take_over(),
            }
            self.check();
        }
        while let Some(outcome) = self.world.deliver() {
            self.heard(&outcome);
        }
        self.check();
        self.compare_runs();
        self.world.replay();
    }

    fn state(&mut self) -> ScheduleState {
        self.world.on_schedule("s").schedule_state().clone()
    }

    fn deliver(&mut self) {
        if let Some(outcome) = self.world.deliver() {
            self.heard(&outcome);
        }
    }

    /// Seconds, or an outage of minutes.
    fn pass_time(&mut self) {
        let most_ms = if self.dice.percent(5) { 1_200_000 } else { 60_000 };
        self.world.now_ms += self.dice.below(most_ms) as i64;
        let mut woken = 0;
        while let Some((due_ms, workflow_id, run_id)) = self.world.replica.next_deadline(self.world.grace())
            && due_ms <= self.world.now_ms
        {
            let outcome = self.world.on(&workflow_id).order_for(run_id, Request::FireTimers(FireTimers {}));
            self.heard(&outcome);
            woken += 1;
            assert!(woken < 10_000, "an alarm that is due for ever");
        }
    }

    fn end_a_run(&mut self) {
        let open: Vec<String> = started_runs(&self.world).map(|run| run.start.workflow_id.clone()).collect();
        if open.is_empty() {
            return;
        }
        let workflow_id = self.dice.one(&open).clone();
        let world = self.world.on(&workflow_id);
        if world.run().head.task.as_ref().is_some_and(|task| !task.is_started()) {
            world.claim();
        }
        match self.dice.below(10) {
            0..=3 => drop(world.answer_if_open(|t| t.complete("done"))),
            4..=5 => drop(world.answer_if_open(|t| t.fail(application("no", |_as_it_is| {})))),
            6 => drop(world.answer_if_open(|t| t.continue_as_new(|_again| {}))),
            7 => drop(world.answer_if_open(|t| t.cancel())),
            8 => drop(world.terminate("enough")),
            _seldom => {
                let events = world.run().head.next_event_id;
                if events > 4 {
                    world.reset(4);
                }
            }
        }
    }

    fn trigger(&mut self) {
        let patch = PatchRecord { trigger: Some(TriggerRecord::default()), ..PatchRecord::default() };
        self.patch(patch);
    }

    fn backfill(&mut self) {
        let end_ms = self.world.now_ms - self.dice.below(100_000) as i64;
        let start_ms = end_ms - self.dice.below(300_000) as i64;
        let (start, end) = (SpecTime::of_ms(start_ms), SpecTime::of_ms(end_ms));
        let backfills = vec![BackfillRecord { start, end, overlap: 0 }];
        self.patch(PatchRecord { backfills, ..PatchRecord::default() });
    }

    fn patch(&mut self, patch: PatchRecord) {
        let order = PatchSchedule { request_id: String::new(), patch };
        let outcome = self.world.on_schedule("s").order(Request::PatchSchedule(order));
        self.heard(&outcome);
    }

    fn heard(&mut self, outcome: &Outcome) {
        for event in &outcome.schedule_events {
            self.last_event_id += 1;
            assert_eq!(event.event_id, self.last_event_id, "events are numbered without a gap");
            let (number, nominal_s, is_manual) = match &event.kind {
                ScheduleEventKind::Fired(fired) => (fired.run.number, fired.nominal_s, fired.is_manual),
                ScheduleEventKind::Skipped(skipped) => (skipped.number, skipped.nominal_s, skipped.is_manual),
                ScheduleEventKind::Missed(missed) => {
                    self.missed += missed.count;
                    continue;
                }
                ScheduleEventKind::Created(_) if event.event_id == 1 => continue,
                other => panic!("nobody has asked for {other:?}"),
            };
            let is_new = if is_manual { self.manual.insert(number) } else { self.settled.insert(nominal_s) };
            assert!(is_new, "action {number} of {nominal_s} was told twice");
        }
    }

    fn check(&mut self) {
        let state = self.state();
        let began_s = EPOCH_MS / 1_000;
        let times =
            state.position.searched_s.div_euclid(self.interval_s) - began_s.div_euclid(self.interval_s);
        let waiting = state.buffer.iter().filter(|action| !action.is_manual).count();
        let starting = state.running.iter().filter(|run| run.is_starting() && !run.action.is_manual).count();
        let told = self.settled.len() + waiting + starting;
        assert_eq!(times, told as i64 + self.missed as i64, "a time is lost, or counted twice: {state:?}");
        let counts = state.counts;
        let dropped = counts.skipped + counts.dropped + counts.clashed + counts.refused;
        assert_eq!(counts.started + dropped, (self.settled.len() + self.manual.len()) as u64);
        assert_eq!(counts.missed, self.missed);
        let open = started_runs(&self.world).count();
        assert!(open <= 1 || self.may_overlap, "{open} runs overlap");
    }

    /// The schedule knows the chains that are open, and no others.
    fn compare_runs(&mut self) {
        let state = self.state();
        let known: BTreeSet<_> = state.running_runs().map(|run| run.first_run_id.clone()).collect();
        let open: BTreeSet<_> = started_runs(&self.world).map(|run| run.start.first_run_id.clone()).collect();
        let foreign: Vec<_> = known.difference(&open).collect();
        assert!(foreign.is_empty(), "the schedule takes {foreign:?} for running");
        let counted = known.len() as u64 + state.running_beyond;
        assert_eq!(counted, open.len() as u64, "the schedule takes other runs for running");
        assert!(!state.is_starting(), "a start was not answered");
    }
}

/// Open runs of which the schedule waits for the end.
fn started_runs(world: &World) -> impl Iterator<Item = &Run> {
    let runs = world.replica.all().map(|stored| stored.run.as_ref()).filter(|run| run.is_open());
    runs.filter(|run| run.start.watcher.as_ref().is_some_and(|watcher| !watcher.is_told))
}

#[test]
fn each_time_becomes_one_action_or_is_counted_with_a_reason() {
    for seed in 1..=CASES {
        println!("seed {seed}");
        ScheduleCase::new(seed).play();
    }
}
