//! The plan of a seed: nodes, clients and workers, the faults of the log, and the faults of nodes with their times.

use everlog_partition::Rule;

use crate::dice::Dice;
use crate::log::{Nasty, Removed};
use crate::workflow::{Program, Step};

/// Something that befalls the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shock {
    /// A node loses everything volatile, and perhaps its latest rows.
    Crash { node: usize },
    /// A node comes back with the rows of an earlier day.
    OldRows { node: usize },
    /// A node comes back without rows.
    NoRows { node: usize },
    /// A node takes the partition, whoever has it.
    TakeOver { node: usize },
    /// A node stands still.
    Pause { node: usize, span_ms: i64 },
    /// The coordinator of transactions is away.
    Away { span_ms: i64 },
    /// The log's clock jumps.
    LogClock { by_ms: i64 },
    /// A node's clock jumps.
    NodeClock { node: usize, by_ms: i64 },
    /// Somebody writes nonsense into the journal.
    Noise,
}

/// How often workers misbehave, per thousand tasks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Habits {
    pub dies: u32,
    pub repeats: u32,
    pub misses: u32,
    pub fails: u32,
}

/// The plan of one seed.
#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub nodes: usize,
    pub programs: Vec<Program>,
    pub nasty: Nasty,
    pub habits: Habits,
    /// When the last thing breaks, in ms from the beginning.
    pub chaos_ms: i64,
    pub shocks: Vec<(i64, Shock)>,
    /// Somebody brings updates, and public commands do.
    pub updates: bool,
    /// Somebody takes a workflow back.
    pub resets: bool,
    /// There is a schedule, and all nodes know of schedules.
    pub schedules: bool,
    /// Operators pause, reset and change runs and activities, and all nodes know of it.
    pub operators: bool,
    /// Public commands come along, too.
    pub forwards: bool,
    /// The topic of public commands is deleted and made again.
    pub commands_made_again: bool,
    /// Somebody sends what makes the engine panic.
    pub poison: bool,
    /// Some of those who use the nodes do it by Temporal's API.
    pub gateways: bool,
    /// Workers ask at the home of their queue, which is one of several nodes.
    pub homes: bool,
    pub removed: Option<Removed>,
    /// A rule that the product does without.
    pub rule: Option<Rule>,
    /// Uncommitted bytes that a partition may keep.
    pub overlay_bytes_max: usize,
    /// Tells what happens.
    pub loud: bool,
}

impl Plan {
    pub fn of(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let nodes = 1 + dice.index(3);
        let chaos_ms = dice.span(3_000, 12_000);
        let count = 1 + dice.index(4);
        let programs = (0..count).map(|_| program(&mut dice)).collect();
        let mut plan = Self {
            seed,
            nodes,
            programs,
            nasty: nasty(&mut dice),
            habits: Habits::default(),
            chaos_ms,
            shocks: Vec::new(),
            updates: false,
            resets: false,
            schedules: false,
            operators: false,
            forwards: false,
            commands_made_again: false,
            poison: false,
            gateways: false,
            homes: false,
            removed: None,
            rule: None,
            overlay_bytes_max: 64 << 20,
            loud: false,
        };
        if dice.permille(500) {
            let mut chance = || if dice.permille(500) { 150 } else { 0 };
            plan.habits = Habits { dies: chance(), repeats: chance(), misses: chance(), fails: chance() };
        }
        plan.forwards = dice.permille(400);
        plan.shocks = shocks(&mut dice, nodes, chaos_ms);
        plan.commands_made_again = plan.forwards && dice.permille(100);
        plan.poison = dice.permille(100);
        plan.gateways = dice.permille(250);
        if dice.permille(200) {
            plan.overlay_bytes_max = 1 << dice.span(8, 14);
        }
        plan.updates = dice.permille(400);
        plan.resets = dice.permille(300);
        plan.homes = nodes > 1 && dice.permille(500);
        plan.schedules = dice.permille(300);
        plan
    }

    /// The same, with a rule taken out of the product.
    pub fn without_rule(mut self, rule: Rule) -> Self {
        self.rule = Some(rule);
        self
    }

    /// The same, with a rule taken out of the log.
    pub fn without(mut self, removed: Removed) -> Self {
        self.removed = Some(removed);
        self
    }
}

fn program(dice: &mut Dice) -> Program {
    let steps = [Step::Activity, Step::Both, Step::Timer, Step::Signal, Step::Child];
    let generations = if dice.permille(300) { 1 + dice.below(2) as u8 } else { 0 };
    let length = 1 + dice.index(4);
    let mut steps: Vec<_> = (0..length).map(|_| steps[dice.index(steps.len())]).collect();
    if generations > 0 {
        // Signals go to the first run, and a chain must not wait for them.
        steps.retain(|step| *step != Step::Signal);
        steps.push(Step::Timer);
    }
    Program { generations, steps }
}

fn nasty(dice: &mut Dice) -> Nasty {
    let mut chance = |most: u32| if dice.permille(500) { dice.below(u64::from(most)) as u32 } else { 0 };
    let unknown = chance(80);
    Nasty {
        immediate: false,
        append_unknown: unknown,
        append_lost: chance(900),
        append_late_ms: i64::from(chance(9_000)),
        append_placeless: chance(400),
        append_busy: chance(30),
        commit_unknown: chance(60),
        commit_lost: chance(900),
        commit_full: chance(50),
        delay_ms: i64::from(2 + chance(150)),
        follow_ms: i64::from(2 + chance(300)),
        clean: chance(400),
        drift: chance(500),
    }
}

fn shocks(dice: &mut Dice, nodes: usize, chaos_ms: i64) -> Vec<(i64, Shock)> {
    let kinds: Vec<u64> = (0..9).filter(|_| dice.permille(400)).collect();
    let count = if kinds.is_empty() { 0 } else { dice.below(8) };
    let mut shocks = Vec::new();
    for _ in 0..count {
        let node = dice.index(nodes);
        let shock = match kinds[dice.index(kinds.len())] {
            0 => Shock::Crash { node },
            1 => Shock::OldRows { node },
            2 => Shock::NoRows { node },
            3 => Shock::TakeOver { node },
            4 => Shock::Pause { node, span_ms: dice.span(50, 8_000) },
            5 => Shock::Away { span_ms: dice.span(50, 4_000) },
            6 => Shock::LogClock { by_ms: dice.span(-20_000, 20_000) },
            7 => Shock::NodeClock { node, by_ms: dice.span(-20_000, 20_000) },
            _ => Shock::Noise,
        };
        shocks.push((dice.span(0, chaos_ms), shock));
    }
    shocks.sort_by_key(|(at_ms, _)| *at_ms);
    shocks
}
