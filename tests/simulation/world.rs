//! The world of one seed: nodes over one broker, clients and workers. One event happens after the other.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use everlog_engine::level;
use everlog_log::Log;
use everlog_partition::{Error, TaskKind};
use everlog_wire::{Body, Error as WireError, Record as Entry};

use crate::checker;
use crate::clients::{ClientContext, Endpoint, address};
use crate::clock::{Clock, Tasks};
use crate::commands::Commands;
use crate::dice::Dice;
use crate::disk::Disk;
use crate::exchange::Net;
use crate::gateway::Gateway;
use crate::ingress::Connector;
use crate::log::{Broker, Nasty, Removed, Shared, incarnation};
use crate::node::{Node, PARTITION, PARTITIONS};
use crate::observations::Observations;
use crate::plan::{Plan, Shock};
use crate::public::Producer;
use crate::rules::Without;
use crate::workers::Worker;
use crate::workflow::{Program, Step};

/// Of a thousand moments, those in which a node without the partition brings rows.
const PREPARES_PERMILLE: u32 = 20;
/// How often somebody looks after the nodes, in ms.
const LOOK_MS: i64 = 250;
/// How long everything may take to end once there is peace, in ms.
const ENDED_WITHIN_MS: i64 = 180_000;
/// How far a clock may be off, in ms.
const SKEW_MS: i64 = 10_000;
/// What may wait for a commit beyond the bound, in bytes: what was under way, what ends work, and the rows of all runs
/// that have changed, which are counted when a commit begins.
const OVERLAY_SLACK_BYTES: u64 = 16 << 10;
/// The same for the histories of runs that a reset has made, which come at once.
const RESET_SLACK_BYTES: u64 = 48 << 10;
/// The same for the runs that one firing starts and ends, and for what goes between them and their schedule.
const SCHEDULE_SLACK_BYTES: u64 = 16 << 10;
/// More steps than any seed needs.
const STEPS_MAX: u64 = 400_000;

/// What became of a seed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    pub violations: Vec<String>,
    pub steps: u64,
    /// The same for the same seed.
    pub trace: u64,
    pub answers: u64,
    pub queries: u64,
    pub records: u64,
    /// The most that waited for a commit.
    pub overlay_bytes: u64,
    /// Why owners gave up, and how often.
    pub ends: BTreeMap<String, u64>,
}

pub struct World {
    plan: Plan,
    dice: Dice,
    broker: Shared,
    clock: Clock,
    tasks: Tasks,
    context: ClientContext,
    nodes: Vec<Option<Node>>,
    commands: Commands,
    /// What nodes tell each other, where they share queues.
    net: Option<Arc<Net>>,
    /// What brings public commands in, of each node.
    connectors: Vec<Option<Connector>>,
    commands_seen: [u8; 16],
    /// Nodes that are down, with their rows and the moment of their return.
    down: Vec<(usize, Disk, i64)>,
    shocks: Vec<(i64, Shock)>,
    next_look_ms: i64,
    instances: u64,
    at_peace: bool,
    verdict: Verdict,
}

/// Runs a plan to its end.
pub fn run(plan: Plan) -> Verdict {
    let _taken_out = Without::rule(plan.rule);
    World::new(plan).run()
}

impl World {
    pub fn new(plan: Plan) -> Self {
        let mut dice = Dice::new(plan.seed ^ 0xabcd);
        let mut broker = Broker::new(PARTITIONS, plan.nasty, dice.fork());
        broker.removed = plan.removed;
        broker.loud = plan.loud;
        let commands = Commands::new(incarnation(&mut dice));
        let clock = Clock::new(broker.now_ms);
        let begin_ms = broker.now_ms;
        let peace_ms = begin_ms + plan.chaos_ms;
        let broker = Shared::new(broker);
        let nodes = (0..plan.nodes).map(|id| Some(start(id, &broker, &clock, Disk::default(), &plan)));
        let nodes = nodes.collect();
        let net = plan.homes.then(|| Net::new(clock.clone(), dice.fork(), plan.removed));
        let observations = Rc::new(RefCell::new(Observations::default()));
        let context =
            ClientContext { clock: clock.clone(), observations, endpoints: Rc::default(), peace_ms };
        let mut shocks: Vec<_> =
            plan.shocks.iter().map(|(at_ms, shock)| (begin_ms + at_ms, *shock)).collect();
        shocks.sort_by_key(|(at_ms, _)| std::cmp::Reverse(*at_ms));
        let mut world = Self {
            plan,
            dice,
            broker,
            clock,
            tasks: Tasks::default(),
            context,
            nodes,
            net,
            connectors: Vec::new(),
            commands_seen: commands.incarnation(),
            commands,
            down: Vec::new(),
            shocks,
            next_look_ms: begin_ms,
            instances: 0,
            at_peace: false,
            verdict: Verdict::default(),
        };
        world.share();
        world.populate();
        world.connect();
        world
    }

    fn populate(&mut self) {
        let programs = self.plan.programs.clone();
        let ids = (0..).map(|number| format!("w{number}"));
        let ids = ids.filter(|id| address(id, "").partition(PARTITIONS) == PARTITION);
        let mut clients = 0;
        let mut forwarded_to = None;
        for (workflow_id, program) in ids.zip(programs) {
            let signals = program.signals() + self.dice.index(4);
            let context = || self.context.clone();
            self.tasks.spawn(context().start(workflow_id.clone(), program, self.dice.fork()));
            self.tasks.spawn(context().signal(workflow_id.clone(), signals, 0, self.dice.fork()));
            self.tasks.spawn(context().signal(workflow_id.clone(), self.dice.index(3), 1, self.dice.fork()));
            self.tasks.spawn(context().read(workflow_id.clone(), self.dice.fork()));
            self.tasks.spawn(context().ask(workflow_id.clone(), self.dice.fork()));
            if self.plan.poison {
                self.tasks.spawn(context().poison(workflow_id.clone(), self.dice.fork()));
                clients += 1;
            }
            if self.plan.updates {
                let count = 1 + self.dice.index(4);
                self.tasks.spawn(context().update(workflow_id.clone(), count, self.dice.fork()));
                clients += 1;
            }
            if self.plan.operators {
                self.tasks.spawn(context().operate(workflow_id.clone(), self.dice.fork()));
                clients += 1;
            }
            if self.plan.forwards {
                forwarded_to.get_or_insert(workflow_id.clone());
            }
            clients += 5;
        }
        if let Some(workflow_id) = forwarded_to {
            let count = 1 + self.dice.below(10);
            let (context, commands) = (self.context.clone(), self.commands.clone());
            let producer = Producer::new(context, commands, workflow_id, self.plan.updates, self.dice.fork());
            self.tasks.spawn(producer.produce(count, self.plan.commands_made_again));
            clients += 1;
        }
        if self.plan.resets {
            clients += self.populate_with_regret();
        }
        if self.plan.schedules {
            self.tasks.spawn(self.context.clone().schedule(self.plan.chaos_ms, self.dice.fork()));
            clients += 1;
        }
        self.context.observations.borrow_mut().people_left = clients;
        for number in 0..4 {
            let habits = self.plan.habits;
            let worker = Worker {
                context: self.context.clone(),
                name: format!("worker-{number}"),
                kind: if number % 2 == 1 { TaskKind::Activity } else { TaskKind::Workflow },
                dice: self.dice.fork(),
                dies: habits.dies,
                repeats: habits.repeats,
                misses: habits.misses,
                fails: habits.fails,
            };
            self.tasks.spawn(worker.work());
        }
    }

    /// Those who take a workflow back, and how many they are.
    fn populate_with_regret(&mut self) -> u64 {
        let ids = (0..).map(|number| format!("back{number}"));
        let mut ids = ids.filter(|id| address(id, "").partition(PARTITIONS) == PARTITION);
        let id = ids.next().expect("the ids do not end");
        let steps = [Step::Activity, Step::Both, Step::Timer];
        let steps = (0..=self.dice.index(4)).map(|_| steps[self.dice.index(steps.len())]).collect();
        let (program, times) = (Program { generations: 0, steps }, 1 + self.dice.index(3));
        let (one, other) = (self.context.clone(), self.context.clone());
        self.tasks.spawn(one.take_back(id.clone(), program, times, self.dice.fork()));
        self.tasks.spawn(other.signal_current(id, self.dice.fork()));
        2
    }

    fn run(mut self) -> Verdict {
        let deadline_ms = self.context.peace_ms + ENDED_WITHIN_MS;
        loop {
            self.run_tasks();
            self.bring();
            self.gather();
            self.look_for_forgotten();
            if !self.verdict.violations.is_empty() {
                break;
            }
            if self.at_peace && self.has_ended() {
                let found = checker::check(&self.broker, &self.context.observations.borrow(), self.owner());
                self.verdict.violations.extend(found);
                break;
            }
            self.verdict.steps += 1;
            if self.clock.now_ms() > deadline_ms || self.verdict.steps > STEPS_MAX {
                let why = self.unfinished();
                self.verdict.violations.push(why);
                break;
            }
            self.step();
        }
        let observations = self.context.observations.borrow();
        self.verdict.answers = observations.answers;
        self.verdict.queries = observations.queries;
        self.verdict.records = self.broker.lock().stored(PARTITION).journal.len() as u64;
        drop(observations);
        self.verdict
    }

    fn gather(&mut self) {
        let mut found = std::mem::take(&mut self.context.observations.borrow_mut().violations);
        found.append(&mut self.broker.lock().violations);
        self.verdict.violations.append(&mut found);
    }

    fn owner(&self) -> Option<&Node> {
        let mut owners = self.nodes.iter().flatten().filter(|node| node.partition.is_some());
        owners.next().filter(|_| owners.next().is_none())
    }

    fn has_ended(&self) -> bool {
        let Some(owner) = self.owner() else { return false };
        let Some(partition) = &owner.partition else { return false };
        let mut broker = self.broker.lock();
        let stored = broker.stored(PARTITION);
        let end = stored.journal.len() as u64;
        let committed = stored.position.as_ref().is_some_and(|(applied, _)| *applied == end);
        let idle = self.context.observations.borrow().people_left == 0
            && self.down.is_empty()
            && broker.sessions_are_quiet();
        idle && committed
            && owner.places() == 0
            && partition.is_serving()
            && partition.is_idle()
            && partition.is_whole()
            && !owner.has_events()
    }

    fn unfinished(&self) -> String {
        let observations = self.context.observations.borrow();
        let left: Vec<_> =
            observations.started.keys().filter(|id| !observations.finished.contains(*id)).collect();
        let owners: Vec<_> = self
            .nodes
            .iter()
            .flatten()
            .map(|node| {
                (
                    node.id,
                    node.partition.as_ref().map(|partition| (partition.is_serving(), partition.is_idle())),
                )
            })
            .collect();
        let clients = observations.people_left;
        let places: Vec<_> = self.nodes.iter().flatten().map(Node::places).collect();
        let waiting = &observations.waiting;
        format!(
            "it does not end: workflows {left:?}, {clients} clients, owners {owners:?}, places {places:?}, waiting {waiting:?}, ends {:?}",
            self.verdict.ends
        )
    }

    /// Lets one thing happen, the earliest; of several at once, any.
    fn step(&mut self) {
        let now_ms = self.clock.now_ms();
        let broker_ms = self.broker.lock().next_ms();
        let shock_ms = self.shocks.last().map(|(at_ms, _)| *at_ms);
        let peace_ms = if self.at_peace { None } else { Some(self.context.peace_ms) };
        let mut choices: Vec<(i64, usize)> = Vec::new();
        let fixed = [broker_ms, self.clock.next_ms(), shock_ms, Some(self.next_look_ms), peace_ms];
        for (choice, at_ms) in fixed.into_iter().enumerate() {
            choices.extend(at_ms.map(|at_ms| (at_ms.max(now_ms), choice)));
        }
        for (index, node) in self.nodes.iter().enumerate() {
            let due_ms = node.as_ref().and_then(|node| node.due_ms(now_ms));
            choices.extend(due_ms.map(|at_ms| (at_ms.max(now_ms), 5 + index)));
        }
        let at_ms = choices.iter().map(|(at_ms, _)| *at_ms).min().unwrap_or(now_ms);
        choices.retain(|(due_ms, _)| *due_ms == at_ms);
        if peace_ms.is_some_and(|peace_ms| peace_ms <= at_ms) {
            // First what breaks last, then peace: who wakes at this moment finds all clocks right, and they stay so.
            choices.retain(|(_, choice)| matches!(choice, 2 | 4));
            choices.truncate(1);
        }
        let (_, choice) = choices[self.dice.index(choices.len())];
        self.clock.advance(at_ms);
        self.broker.lock().now_ms = at_ms;
        let mark = (at_ms as u64) ^ ((choice as u64) << 48);
        self.verdict.trace = (self.verdict.trace.rotate_left(5) ^ mark).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        match choice {
            0 => self.broker.happen(),
            1 => self.clock.wake(),
            2 => self.shock(),
            3 => self.look(),
            4 => self.make_peace(),
            node => self.turn(node - 5),
        }
    }

    fn turn(&mut self, index: usize) {
        self.take_turn(index);
        self.share();
    }

    fn take_turn(&mut self, index: usize) {
        let now_ms = self.clock.now_ms();
        let events_max = 1 + self.dice.index(8);
        let Some(node) = self.nodes[index].as_mut() else { return };
        if let Err(error) = node.turn(events_max, now_ms) {
            self.give_up(index, &error);
        } else if let Some(partition) = &node.partition {
            let bytes = partition.stats().overlay_bytes.load(Ordering::Relaxed);
            self.verdict.overlay_bytes = self.verdict.overlay_bytes.max(bytes);
            let resets = if self.plan.resets { RESET_SLACK_BYTES } else { 0 };
            let schedules = if self.plan.schedules { SCHEDULE_SLACK_BYTES } else { 0 };
            let slack_bytes = OVERLAY_SLACK_BYTES + resets + schedules;
            if bytes > self.plan.overlay_bytes_max as u64 * 2 + slack_bytes {
                self.verdict.violations.push(format!("{bytes} bytes wait for a commit"));
            }
        }
    }

    /// The partition of a node cannot go on.
    fn give_up(&mut self, index: usize, error: &Error) {
        let now_ms = self.clock.now_ms();
        let Some(node) = self.nodes[index].as_mut() else { return };
        node.partition = None;
        node.next_ms = None;
        let again_ms = now_ms + self.dice.span(50, 1_000);
        self.broker.lock().say(|| format!("node {index} gives up: {error}"));
        let (name, again) = match error {
            Error::Superseded { .. } => ("superseded", false),
            Error::Log(everlog_log::Error::Fenced { .. }) => ("fenced", false),
            Error::Log(everlog_log::Error::Unknown { .. }) => ("unknown", true),
            Error::Log(everlog_log::Error::OutOfRange { .. }) => ("out of range", true),
            Error::Stale { .. } => {
                node.disk = Disk::default();
                ("stale", true)
            }
            Error::Journal { detail, .. } if detail.starts_with("the journal holds") => ("trimmed", true),
            Error::Journal { .. } | Error::Log(_) | Error::Store(_) | Error::Wire(_) => {
                let what = format!("the owner on node {index} gives up: {error}");
                self.verdict.violations.push(what);
                ("unsound", true)
            }
        };
        node.retry_ms = again.then_some(again_ms);
        *self.verdict.ends.entry(name.to_owned()).or_default() += 1;
    }

    fn recover(&mut self, index: usize) {
        let now_ms = self.clock.now_ms();
        self.instances += 1;
        let instance = self.instances;
        let Some(node) = self.nodes[index].as_mut() else { return };
        self.broker.lock().say(|| format!("node {index} takes over as {instance}, handle {}", node.log.by));
        if let Err(error) = node.recover(instance, now_ms) {
            self.give_up(index, &error);
        }
        self.show_routers();
    }

    /// A node that has nothing brings its rows, as one does that is to have the partition next.
    fn prepare(&mut self) {
        if !self.dice.permille(PREPARES_PERMILLE) {
            return;
        }
        let now_ms = self.clock.now_ms();
        let index = self.dice.index(self.nodes.len());
        let Some(node) = self.nodes[index].as_mut().filter(|node| node.partition.is_none()) else { return };
        if let Err(Error::Stale { .. }) = node.prepare(now_ms) {
            node.disk = Disk::default();
        }
    }

    /// Brings nodes back, and sees that somebody owns the partition.
    fn look(&mut self) {
        let now_ms = self.clock.now_ms();
        self.next_look_ms = now_ms + LOOK_MS;
        let (back, down) =
            std::mem::take(&mut self.down).into_iter().partition(|(_, _, at_ms)| *at_ms <= now_ms);
        self.down = down;
        let back: Vec<(usize, Disk, i64)> = back;
        for (index, disk, _) in back {
            self.nodes[index] = Some(start(index, &self.broker, &self.clock, disk, &self.plan));
        }
        self.share();
        if let Some(net) = &self.net
            && (self.at_peace || self.dice.permille(200))
        {
            net.place(self.at_peace);
        }
        self.connect();
        self.rebalance();
        self.prepare();
        let awake = |node: &&Node| node.asleep_until_ms <= now_ms;
        let retrying = self.nodes.iter().flatten().filter(awake);
        let retrying: Vec<_> =
            retrying.filter(|node| node.retry_ms.is_some_and(|at_ms| at_ms <= now_ms)).collect();
        let retrying: Vec<_> = retrying.iter().map(|node| node.id).collect();
        let owned = self.nodes.iter().flatten().any(|node| node.partition.is_some() && awake(&node));
        if let Some(index) = retrying.first() {
            if owned {
                // Somebody else has it by now.
                if let Some(node) = self.nodes[*index].as_mut() {
                    node.retry_ms = None;
                }
            } else {
                self.recover(*index);
            }
        } else if !owned && !self.nodes.iter().flatten().any(|node| node.retry_ms.is_some()) {
            let able: Vec<_> = self.nodes.iter().flatten().filter(awake).map(|node| node.id).collect();
            if !able.is_empty() {
                let index = able[self.dice.index(able.len())];
                self.recover(index);
            }
        }
        self.show_routers();
    }

    fn show_routers(&self) {
        let mut nodes: Vec<_> = self.nodes.iter().flatten().collect();
        nodes.sort_by_key(|node| (node.partition.is_none(), -node.recovered_ms));
        let endpoints = nodes.iter().map(|node| Endpoint {
            router: node.router.clone(),
            gateway: node.gateway.clone(),
            desk: node.desk.clone(),
        });
        *self.context.endpoints.borrow_mut() = endpoints.collect();
    }

    fn make_peace(&mut self) {
        self.at_peace = true;
        let now_ms = self.clock.now_ms();
        {
            let mut broker = self.broker.lock();
            broker.nasty = Nasty::calm();
            broker.away_until_ms = 0;
            broker.asleep.clear();
        }
        self.net.iter().for_each(|net| net.calm());
        self.set_log_clock(0);
        for node in self.nodes.iter_mut().flatten() {
            node.asleep_until_ms = now_ms;
            node.set_clock(0, true, now_ms);
            // The operator raises the level, while a node serves.
            node.level.0.store(level::LATEST, Ordering::Relaxed);
        }
        for (_, _, at_ms) in &mut self.down {
            *at_ms = now_ms;
        }
    }

    fn shock(&mut self) {
        let Some((_, shock)) = self.shocks.pop() else { return };
        self.broker.lock().say(|| format!("{shock:?}"));
        let now_ms = self.clock.now_ms();
        match shock {
            Shock::Crash { node } => self.crash(node, |dice, disk| {
                let lost = dice.index(4);
                disk.copy(disk.writes().saturating_sub(lost))
            }),
            Shock::OldRows { node } => {
                self.crash(node, |dice, disk| disk.copy(dice.index(disk.writes() + 1)))
            }
            Shock::NoRows { node } => self.crash(node, |_, _| Disk::default()),
            Shock::TakeOver { node } => self.recover(node),
            Shock::Pause { node, span_ms } => {
                if let Some(node) = self.nodes[node].as_mut() {
                    node.asleep_until_ms = now_ms + span_ms;
                    let mut broker = self.broker.lock();
                    broker.asleep.insert(node.log.by, now_ms + span_ms);
                    if let Some(connector) = self.connectors.get(node.id).and_then(Option::as_ref) {
                        broker.asleep.insert(connector.by, now_ms + span_ms);
                    }
                }
            }
            Shock::Away { span_ms } => self.broker.lock().away_until_ms = now_ms + span_ms,
            Shock::LogClock { by_ms } => {
                let clock_ms = self.broker.lock().clock_ms + by_ms;
                self.set_log_clock(clock_ms.clamp(-SKEW_MS, SKEW_MS));
            }
            Shock::NodeClock { node, by_ms } => {
                if let Some(node) = self.nodes[node].as_mut() {
                    let clock_ms = node.clock_ms.load(Ordering::Relaxed) + by_ms;
                    // A driver notices it within a turn; a machine that stood still knows of nothing for a while.
                    node.set_clock(clock_ms.clamp(-SKEW_MS, SKEW_MS), by_ms % 2 == 0, now_ms);
                }
            }
            Shock::Noise => {
                let noise: Bytes = (0..self.dice.index(12)).map(|_| self.dice.throw() as u8).collect();
                let is_meant = match Entry::read(noise.clone()) {
                    // Of a later release: an owner gives up rather than skip it.
                    Err(WireError::Version { .. }) => true,
                    // Under the first term of all they are limits like any others, and nearly all of them 0.
                    Ok(entry) => matches!(entry.body, Some(Body::Settings(_))),
                    Err(WireError::Decode { .. }) => false,
                };
                if is_meant {
                    return;
                }
                let (told, _) = self.broker.lock().arrive(PARTITION, vec![noise]);
                told.into_iter().for_each(|tell| tell());
            }
        }
    }

    fn set_log_clock(&self, clock_ms: i64) {
        let before_ms = std::mem::replace(&mut self.broker.lock().clock_ms, clock_ms);
        self.context.observations.borrow_mut().log_was_set_ms += (clock_ms - before_ms).max(0);
    }

    fn crash(&mut self, index: usize, rows: impl FnOnce(&mut Dice, &Disk) -> Disk) {
        let Some(node) = self.nodes[index].take() else { return };
        self.broker.lock().died(node.log.by);
        self.net.iter().for_each(|net| net.dies(index));
        if let Some(connector) = self.connectors.get_mut(index).and_then(Option::take) {
            self.commands.leave(connector.member);
            self.broker.lock().died(connector.by);
        }
        let disk = node.die();
        let disk = rows(&mut self.dice, &disk);
        let back_ms = self.clock.now_ms() + self.dice.span(0, 3_000);
        self.down.push((index, disk, back_ms));
        self.show_routers();
    }
}

fn start(id: usize, broker: &Shared, clock: &Clock, disk: Disk, plan: &Plan) -> Node {
    if plan.removed == Some(Removed::OldRows) {
        disk.boast();
    }
    let mut node = Node::start(id, broker, &clock.shared(), disk);
    node.overlay_bytes_max = plan.overlay_bytes_max;
    if plan.schedules || plan.operators {
        node.level.0.store(level::LATEST, Ordering::Relaxed);
    }
    node.gateway = plan.gateways.then(|| Rc::new(Gateway::over(&node.router)));
    debug_assert_eq!(node.log.partitions(), PARTITIONS);
    node
}

mod apart;
