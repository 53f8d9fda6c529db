//! Producers of public commands, and what each expects of its commands.

use bytes::Bytes;
use everlog_log::consumer::Fetched;
use everlog_partition::Want;

use crate::clients::{ClientContext, address};
use crate::commands::{Commands, PARTITIONS};
use crate::dice::Dice;
use crate::log::incarnation;
use crate::observations::Sent;
use crate::rules::POISON;
use crate::workflow::QUEUE;

/// How late the last delayed command may be once all clocks are right, in ms.
const LATE_MS: i64 = 3_000;

/// What a public command is to come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A signal of this name, or a refusal.
    Signal(String),
    /// The outcome of an update of this id, or a refusal.
    Update(String),
    /// A run of this type, or a refusal.
    Run(String),
    /// A refusal.
    Refusal,
}

/// A public command as its producer knows it.
#[derive(Clone, Debug)]
pub struct Command {
    /// Partition and offset.
    pub place: (u32, u64),
    pub wanted: Wanted,
    /// Its outcome is to be told.
    pub replies: bool,
    /// Nothing puts it off.
    pub at_once: bool,
}

/// A producer for one workflow.
pub struct Producer {
    pub context: ClientContext,
    pub commands: Commands,
    pub workflow_id: String,
    /// Some of the commands are updates.
    updates: bool,
    pub dice: Dice,
    /// When the last of those that wait is due.
    last_ms: i64,
    /// Workflow Ids that runs were ordered for.
    started: Vec<String>,
}

impl Producer {
    pub fn new(
        context: ClientContext,
        commands: Commands,
        workflow_id: String,
        updates: bool,
        dice: Dice,
    ) -> Self {
        Self { context, commands, workflow_id, updates, dice, last_ms: 0, started: Vec::new() }
    }

    /// Produces so many commands, and then as many to a topic that was made again, where that is planned.
    pub async fn produce(mut self, count: u64, again: bool) {
        while !self.context.observations.borrow().started.contains_key(&self.workflow_id) {
            self.context.rest(&mut self.dice).await;
        }
        for number in 0..count {
            self.one(number, !again).await;
        }
        self.wait().await;
        if again {
            let incarnation = incarnation(&mut self.dice);
            self.commands.made_again(incarnation);
            for number in count..count * 2 {
                self.one(number, false).await;
            }
            self.wait().await;
        }
        let last_ms = self.last_ms.max(self.context.peace_ms);
        self.context.clock.sleep((last_ms - self.context.clock.now_ms()).max(1_000)).await;
        // As long as nothing is appended, nobody hears that the log's clock was set.
        let late_ms = LATE_MS + self.context.observations.borrow().log_was_set_ms;
        self.context.clock.sleep(late_ms).await;
        while let Some(workflow_id) = self.started.pop() {
            self.ends(&workflow_id).await;
        }
        self.context.observations.borrow_mut().people_left -= 1;
    }

    /// Waits until a run that was ordered is over, if it has ever begun.
    async fn ends(&mut self, workflow_id: &str) {
        loop {
            if let Some(router) = self.context.router(&mut self.dice) {
                let call = router.read(address(workflow_id, ""), Want::State);
                match self.context.call("a look", &mut self.dice, call).await {
                    Ok(Some(reading)) if reading.run.is_open() => {}
                    Ok(_) => return,
                    Err(_) => {}
                }
            }
            self.context.rest(&mut self.dice).await;
        }
    }

    async fn wait(&mut self) {
        while !self.commands.all_committed() {
            self.context.rest(&mut self.dice).await;
        }
    }

    async fn one(&mut self, number: u64, may_repeat: bool) {
        let workflow_id = self.workflow_id.clone();
        let mut headers: Vec<(String, Option<Bytes>)> = Vec::new();
        let mut header = |name: &str, value: String| headers.push((name.into(), Some(value.into())));
        let (mut key, mut copies, mut at_once) = (workflow_id.clone(), 1, true);
        let replies = self.dice.permille(400);
        if replies {
            header("reply-topic", "replies".into());
        }
        let (value, wanted) = match self.dice.below(10) {
            0 => ("{\"type\":".to_owned(), Wanted::Refusal),
            1 => {
                header("namespace", "nowhere".into());
                (signal("nobody"), Wanted::Refusal)
            }
            2 => (signal(&format!("{POISON}/{workflow_id}/{number}")), Wanted::Refusal),
            3 => {
                let kind = format!("Public-{number}-of-{workflow_id}");
                key = id_of_the_partition(&kind);
                self.started.push(key.clone());
                (start(&kind), Wanted::Run(kind))
            }
            4 if may_repeat => {
                header("command-id", format!("{workflow_id}-{number}"));
                copies = 2;
                let name = format!("{workflow_id}/forwarded/{number}");
                (signal(&name), Wanted::Signal(name))
            }
            9 if self.updates => {
                let id = format!("{workflow_id}/forwarded/{number}");
                (update(&id), Wanted::Update(id))
            }
            kind => {
                if kind < 7 {
                    let due_ms = self.context.clock.now_ms() + self.dice.span(0, 5_000);
                    header("deliver-at", due_ms.to_string());
                    (self.last_ms, at_once) = (self.last_ms.max(due_ms), false);
                }
                let name = format!("{workflow_id}/forwarded/{number}");
                (signal(&name), Wanted::Signal(name))
            }
        };
        if let Wanted::Signal(name) = &wanted {
            let sent = Sent { workflow_id: workflow_id.clone(), acknowledged: false };
            self.context.observations.borrow_mut().signals.insert(name.clone(), sent);
        }
        let partition = PARTITIONS[workflow_id.len() % PARTITIONS.len()];
        for _ in 0..copies {
            let gap = if self.dice.permille(200) { self.dice.below(3) } else { 0 };
            let (key, value) = (Some(key.clone().into()), Some(value.clone().into()));
            let record = Fetched { key, value, headers: headers.clone(), ..Fetched::default() };
            let place = (partition, self.commands.produce(partition, gap, record));
            let command = Command { place, wanted: wanted.clone(), replies, at_once };
            self.context.observations.borrow_mut().commands.push(command);
            if self.dice.permille(300) {
                self.context.rest(&mut self.dice).await;
            }
        }
    }
}

fn signal(name: &str) -> String {
    format!(r#"{{"type":"signal","signal":{{"name":"{name}","input":[1]}}}}"#)
}

fn update(id: &str) -> String {
    format!(r#"{{"type":"update","update":{{"id":"{id}","name":"add","input":[1]}}}}"#)
}

fn start(kind: &str) -> String {
    format!(r#"{{"type":"start","start":{{"workflow_type":"{kind}","task_queue":"{QUEUE}"}}}}"#)
}

/// A Workflow Id that the partition owns.
pub fn id_of_the_partition(name: &str) -> String {
    let mut ids = (0..).map(|number| format!("{name}-{number}"));
    let its = |id: &String| address(id, "").partition(crate::node::PARTITIONS) == crate::node::PARTITION;
    ids.find(its).expect("one in so many")
}
