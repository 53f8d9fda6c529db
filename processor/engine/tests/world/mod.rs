//! A world around the engine: a journal, a replica that decides its records, a clock, and a transcript.
//!
//! After every request the replica checks the laws of one step. After every verb an empty replica decides the whole
//! journal again, and the two replicas are compared.

mod audit;
mod clients;
mod laws;
mod operators;
mod rebuilt;
mod replica;
mod schedules;
mod transcript;
mod turn;
mod updates;
mod workers;

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use everlog_engine::machine::{activity_attempt, fire_timers, workflow_task};
use everlog_engine::request::{Request, RequestRecord};
use everlog_engine::{Grace, Outcome, Reply, Run, Settings, Stamp, TaskGrant, level};
use everlog_wire::{Body, Record};
use expect_test::Expect;

pub use clients::{a_signal, start, text};
pub use operators::all;
pub use replica::Replica;
pub use schedules::{a_definition, every, patch};
pub use turn::{Turn, fields, payload};
pub use updates::{acceptance, an_update, bare, fields_of_outcome, rejection, response};
pub use workers::{application, delay, failure_of};

/// The random id of the worlds' journals.
pub const INCARNATION: [u8; 16] = [7; 16];
/// When every world begins, in ms.
pub const EPOCH_MS: i64 = 1_000_000_000_000;
const NAMESPACE: &str = "8a3c0000-0000-4000-8000-000000000001";

pub fn seconds(count: i64) -> i64 {
    count * 1_000
}

pub fn minutes(count: i64) -> i64 {
    count * 60_000
}

pub fn hours(count: i64) -> i64 {
    count * 3_600_000
}

/// A journal record with what its decision is given besides the state.
struct Entry {
    record: Bytes,
    stamp: Stamp,
    settings: Settings,
}

pub struct World {
    pub replica: Replica,
    pub settings: Settings,
    pub now_ms: i64,
    journal: Vec<Entry>,
    owner_ms: i64,
    workflow_id: String,
    /// Letters that have not arrived.
    letters: VecDeque<RequestRecord>,
    /// The last workflow task that was handed out.
    pub grant: Option<TaskGrant>,
    /// The last attempt of each activity that was handed out.
    pub attempts: BTreeMap<String, activity_attempt::Target>,
    names: transcript::Names,
    story: String,
    told_ms: i64,
    /// What is remembered already and told together with the next verb.
    told_later: String,
    /// Every order is told, not only those of verbs.
    pub loud: bool,
    /// Nothing is told, and nothing replayed behind each verb.
    pub quick: bool,
}

impl World {
    pub fn new() -> Self {
        Self::with(|_standard| {})
    }

    /// A world with other limits.
    pub fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = Settings::standard();
        change(&mut settings);
        Self {
            replica: Replica::default(),
            settings,
            now_ms: EPOCH_MS,
            journal: Vec::new(),
            owner_ms: 0,
            workflow_id: "order-1".into(),
            letters: VecDeque::new(),
            grant: None,
            attempts: BTreeMap::new(),
            names: transcript::Names::default(),
            story: String::new(),
            told_ms: EPOCH_MS,
            told_later: String::new(),
            loud: false,
            quick: false,
        }
    }

    /// From here on the verbs mean this workflow.
    pub fn on(&mut self, workflow_id: &str) -> &mut Self {
        self.workflow_id = workflow_id.into();
        self
    }

    /// The current run of the workflow.
    pub fn run(&self) -> &Run {
        self.current().expect("the workflow was started")
    }

    /// The current run of the workflow, if there is one.
    pub fn current(&self) -> Option<&Run> {
        self.replica.current_run(&self.workflow_id)
    }

    /// What was told so far.
    pub fn story(&self) -> &str {
        &self.story
    }

    /// The token of the workflow task that was handed out last.
    pub fn token(&self) -> workflow_task::Token {
        let grant = self.grant.as_ref().expect("a task was handed out");
        grant.run.started_task().expect("it is started").token()
    }

    /// Compares the transcript with what is expected of it, and begins a new one.
    pub fn expect(&mut self, expected: Expect) -> &mut Self {
        expected.assert_eq(&std::mem::take(&mut self.story));
        self
    }

    /// Forgets the transcript so far, because it only prepared the test.
    pub fn hush(&mut self) -> &mut Self {
        self.story.clear();
        self
    }

    pub(crate) fn say(&mut self, line: &str) {
        self.story.push_str(line);
        self.story.push('\n');
    }

    /// One verb: `text` is what comes in.
    pub(crate) fn verb(&mut self, text: &str, order: Request) -> Outcome {
        if self.quick {
            return self.order(order);
        }
        self.say(&format!("> {text}"));
        let outcome = self.order(order);
        self.tell(&outcome);
        self.replay();
        outcome
    }

    pub(crate) fn tell(&mut self, outcome: &Outcome) {
        let mut lines = self.names.outcome(&self.replica, outcome);
        let before = std::mem::take(&mut self.told_later);
        if !before.is_empty() {
            match lines.first_mut().filter(|line| line.starts_with("< ")) {
                Some(line) => line.insert_str(2, &format!("{before}, ")),
                None => lines.insert(0, format!("< {before}")),
            }
        }
        for line in lines {
            self.say(&line);
        }
    }

    /// Appends an order for the workflow's current run to the journal and decides it.
    pub fn order(&mut self, order: Request) -> Outcome {
        self.order_for(String::new(), order)
    }

    /// Appends an order for a named run to the journal and decides it.
    pub fn order_for(&mut self, run_id: String, order: Request) -> Outcome {
        let workflow_id = self.workflow_id.clone();
        self.append(RequestRecord {
            namespace_id: NAMESPACE.into(),
            workflow_id,
            run_id,
            request: Some(order),
            ..RequestRecord::default()
        })
    }

    pub fn append(&mut self, input: RequestRecord) -> Outcome {
        let stamp = Stamp {
            incarnation: INCARNATION,
            partition: 3,
            offset: 100 + 2 * self.journal.len() as u64,
            now_ms: self.now_ms,
            owner_ms: self.owner_ms,
            level: level::LATEST,
        };
        if self.loud {
            let line = format!(
                "@ {} > {}: {}",
                transcript::clock(self.now_ms),
                input.workflow_id,
                transcript::order(&input)
            );
            self.say(&line);
        }
        let record = Record::new(1, Body::Input(input)).encode();
        let outcome = self.replica.take(&record, &stamp, &self.settings);
        if self.loud {
            self.tell(&outcome);
        }
        self.journal.push(Entry { record, stamp, settings: self.settings.clone() });
        self.letters.extend(outcome.messages.iter().cloned());
        self.remember(&outcome);
        outcome
    }

    /// The letters that are on their way, the first first.
    pub fn letters(&self) -> impl Iterator<Item = &RequestRecord> {
        self.letters.iter()
    }

    /// The letters that are on their way arrive, and those that they lead to.
    pub fn post(&mut self) -> &mut Self {
        while self.post_one() {}
        self
    }

    /// The letter that was sent first arrives, and nothing is told.
    pub fn deliver(&mut self) -> Option<Outcome> {
        let letter = self.letters.pop_front()?;
        Some(self.append(letter))
    }

    fn post_one(&mut self) -> bool {
        let Some(letter) = self.letters.pop_front() else { return false };
        self.say(&format!("> letter to {}: {}", letter.workflow_id, transcript::letter(&letter)));
        let outcome = self.append(letter);
        self.tell(&outcome);
        self.replay();
        true
    }

    fn remember(&mut self, outcome: &Outcome) {
        match &outcome.reply {
            Reply::Task(grant) => self.grant = Some(grant.as_ref().clone()),
            Reply::Activity(grant) => self.keep(&grant.activity),
            Reply::Completed(completed) => {
                self.grant = completed.task.clone().or(self.grant.take());
                for grant in &completed.activities {
                    self.keep(&grant.activity);
                }
            }
            Reply::Started(started) => {
                if let Some(grant) = &started.task {
                    self.grant = Some(grant.as_ref().clone());
                }
            }
            Reply::Done
            | Reply::Rejected(_)
            | Reply::Gone
            | Reply::Heartbeat(_)
            | Reply::Update(_)
            | Reply::Schedule(_)
            | Reply::ActivityOptions(_)
            | Reply::RunOptions(_) => {}
        }
    }

    fn keep(&mut self, activity: &everlog_engine::machine::activity::Activity) {
        let target = activity_attempt::Target {
            scheduled_event_id: activity.scheduled_event_id,
            attempt: activity.attempt,
            claim: activity.claim,
            activity_id: String::new(),
        };
        self.attempts.insert(activity.activity_id.clone(), target);
    }

    /// Decides the whole journal from zero and compares.
    pub fn replay(&self) {
        let mut replica = Replica::default();
        for entry in &self.journal {
            replica.take(&entry.record, &entry.stamp, &entry.settings);
        }
        assert!(replica == self.replica, "a replay came to another state\n{}", self.story);
        self.replica.rebuild();
    }

    /// A crash: the journal is replayed, and a new owner takes over.
    pub fn crash(&mut self) -> &mut Self {
        self.replay();
        self.take_over();
        self.say(&format!("~ crash, {} events replayed", self.replica.events()));
        self
    }

    /// A new owner takes over.
    pub fn take_over(&mut self) {
        self.owner_ms = self.now_ms;
    }

    /// What the present owner grants to workers.
    pub fn grace(&self) -> Grace {
        Grace { owner_ms: self.owner_ms }
    }

    /// Time passes while nobody looks at deadlines.
    pub fn pass(&mut self, span_ms: i64) -> &mut Self {
        self.now_ms += span_ms;
        self.say(&format!("@ {}", transcript::clock(self.now_ms)));
        self.told_ms = self.now_ms;
        self
    }

    /// Time passes, and every run is woken when it wants to be.
    pub fn advance(&mut self, span_ms: i64) -> &mut Self {
        let end_ms = self.now_ms + span_ms;
        while let Some((due_ms, workflow_id, run_id)) = self.replica.next_deadline(self.grace())
            && due_ms <= end_ms
        {
            self.now_ms = self.now_ms.max(due_ms);
            self.wake_run(&workflow_id, &run_id);
        }
        self.now_ms = end_ms;
        if self.told_ms != end_ms {
            self.say(&format!("@ {}", transcript::clock(end_ms)));
            self.told_ms = end_ms;
        }
        self
    }

    /// The run is woken, whether or not something is due.
    pub fn wake(&mut self) -> &mut Self {
        self.verb("wake", Request::FireTimers(fire_timers::FireTimers {}));
        self
    }

    fn wake_run(&mut self, workflow_id: &str, run_id: &str) {
        let workflow_id = workflow_id.to_owned();
        let input = RequestRecord {
            namespace_id: NAMESPACE.into(),
            workflow_id,
            run_id: run_id.to_owned(),
            sender: None,
            request: Some(Request::FireTimers(fire_timers::FireTimers {})),
        };
        let outcome = self.append(input);
        let is_settled = !outcome.steps.is_empty() || outcome.expired;
        assert!(is_settled, "a deadline has come and nothing was due\n{}", self.story);
        if self.told_ms != self.now_ms {
            self.say(&format!("@ {}", transcript::clock(self.now_ms)));
            self.told_ms = self.now_ms;
        }
        self.tell(&outcome);
        self.replay();
    }
}
