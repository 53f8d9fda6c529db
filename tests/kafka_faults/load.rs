//! The load: a fixed number of workflows at a time. Each is started, signalled and awaited, then the next one begins.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use anyhow::{Context, bail, ensure};
use everlog_tests::dice::Dice;
use everlog_tests::fate::Fate;
use everlog_tests::patience;
use tokio::task::JoinSet;

use crate::client::Client;
use crate::client_log::Deed;
use crate::commands::Commands;
use crate::reader::Seen;
use crate::workflows::SIGNALS;
use crate::{account, kin, listed, register};

/// Of a thousand workflows, those that get a signal besides that is tried only once.
const HINTS_PERMILLE: u32 = 300;

/// Of a thousand workflows, those that are looked for in lists.
const LISTED_PERMILLE: u32 = 250;

/// Workflows under way. They end when this is dropped.
pub struct Load {
    course: Arc<Course>,
    slots: JoinSet<anyhow::Result<()>>,
}

#[derive(Default)]
struct Course {
    ends: AtomicBool,
    begun: AtomicU64,
    ended: AtomicU64,
    /// The numbers of those that have begun and not ended.
    open: Mutex<BTreeSet<u64>>,
}

impl Course {
    fn open(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.open.lock().expect("nobody panics while it is open")
    }
}

/// Kinds that records may start. Who terminates must know that the start has been taken.
const BY_RECORDS: [&str; 3] = ["plain", "chain", "house"];

/// Kinds of one run, behind which no other begins.
const ENDS_ONCE: [&str; 2] = ["plain", "doomed"];

/// What a slot works with.
#[derive(Clone)]
struct Slot {
    client: Client,
    seen: Arc<Seen>,
    course: Arc<Course>,
    /// Orders by records, where the node takes them.
    commands: Option<Arc<Commands>>,
}

impl Load {
    /// Begins with `open` workflows.
    pub fn begin(
        client: &Client,
        seen: &Arc<Seen>,
        commands: Option<Arc<Commands>>,
        open: usize,
        seed: u64,
    ) -> Self {
        let course = Arc::new(Course::default());
        let mut dice = Dice::new(seed);
        let mut slots = JoinSet::new();
        for _ in 0..open {
            let (client, seen, course) = (client.clone(), Arc::clone(seen), Arc::clone(&course));
            let slot = Slot { client, seen, course, commands: commands.clone() };
            slots.spawn(slot.serve(dice.fork()));
        }
        Self { course, slots }
    }

    /// How many workflows came to their end.
    pub fn ended(&self) -> u64 {
        self.course.ended.load(Ordering::Relaxed)
    }

    /// Waits until `more` further workflows have come to their end, however long all of them take: the next one has to come.
    pub async fn further(&mut self, more: u64) -> anyhow::Result<()> {
        let wanted = self.ended() + more;
        let mut looks = patience::looks();
        let (mut deadline, mut last) = (patience::deadline(), self.ended());
        while last < wanted {
            looks.tick().await;
            if let Some(ended) = self.slots.try_join_next() {
                ended.context("a slot")??;
            }
            let ended = self.ended();
            if ended > last {
                (deadline, last) = (patience::deadline(), ended);
            }
            ensure!(!deadline.is_over(), "{} of {more} workflows do not end", wanted - last);
        }
        Ok(())
    }

    /// Waits until each workflow that is open at this moment has ended, whatever others begin meanwhile. The next fault would have every
    /// task offered again: what is lost now must not wait for it.
    pub async fn turn_over(&mut self) -> anyhow::Result<()> {
        let mut left = self.course.open().clone();
        let (mut looks, mut deadline) = (patience::looks(), patience::deadline());
        while !left.is_empty() {
            looks.tick().await;
            if let Some(ended) = self.slots.try_join_next() {
                ended.context("a slot")??;
            }
            let before = left.len();
            left = left.intersection(&self.course.open()).copied().collect();
            if left.len() < before {
                deadline = patience::deadline();
            }
            if deadline.is_over() {
                let names: Vec<_> = left.iter().map(|number| id(*number)).collect();
                bail!("these were open when all nodes were there again, and do not end: {names:?}");
            }
        }
        Ok(())
    }

    /// Begins no more workflows, and waits until those that are open have ended, one after the other.
    pub async fn pause(&mut self) -> anyhow::Result<()> {
        self.course.ends.store(true, Ordering::Relaxed);
        loop {
            match patience::answer("another workflow ends", self.slots.join_next()).await {
                Ok(Some(slot)) => slot.context("a slot")??,
                Ok(None) => return Ok(()),
                Err(late) => {
                    let begun = self.course.begun.load(Ordering::Relaxed);
                    bail!("{late}; {} of {begun} do not end", begun - self.ended());
                }
            }
        }
    }

    /// Begins no more workflows, and waits until those that are open have ended; how many there were.
    pub async fn drain(mut self) -> anyhow::Result<u64> {
        self.pause().await?;
        Ok(self.course.begun.load(Ordering::Relaxed))
    }
}

impl Slot {
    async fn serve(self, mut dice: Dice) -> anyhow::Result<()> {
        while !self.course.ends.load(Ordering::Relaxed) {
            let number = self.course.begun.fetch_add(1, Ordering::Relaxed);
            self.course.open().insert(number);
            self.workflow(number, &mut dice).await?;
            self.course.open().remove(&number);
            self.course.ended.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    async fn workflow(&self, number: u64, dice: &mut Dice) -> anyhow::Result<()> {
        let (kind, id) = (kind(number), id(number));
        if kind == "account" {
            return account::keep(&self.client, &self.seen, &id, dice).await;
        }
        let by_records =
            self.commands.as_ref().filter(|_| number % 3 == 2 && BY_RECORDS.contains(&kind)).map(Arc::as_ref);
        let is_listed = dice.permille(LISTED_PERMILLE);
        match by_records {
            Some(commands) => commands.start(&id, dice).await?,
            None => {
                let make = |identity| kin::start(&id, identity);
                let fate = self.client.insist(&id, Deed::Start, make).await?;
                ensure!(fate != Fate::Refused, "{id} cannot be started");
                if is_listed {
                    listed::has_begun(&self.client, &id).await?;
                }
            }
        }
        match kind {
            "doomed" => drop(self.client.terminate(&id).await?),
            "round" => kin::end_round(&self.client, &self.seen, &id).await?,
            "repair" => {}
            "house" => kin::empty_house(&self.seen, &id).await,
            _takes_signals => {
                if kind == register::PREFIX {
                    register::turn(&self.client, &id).await?;
                }
                self.signals(&id, by_records, dice).await?;
            }
        }
        self.seen.closed(&id).await;
        if is_listed && ENDS_ONCE.contains(&kind) {
            listed::has_closed(&self.client, &id).await?;
        }
        Ok(())
    }

    /// All signals that a workflow waits for, and others.
    async fn signals(&self, id: &str, by_records: Option<&Commands>, dice: &mut Dice) -> anyhow::Result<()> {
        for signal in 0..SIGNALS {
            let name = format!("go-{signal}");
            if dice.permille(HINTS_PERMILLE) {
                // Its outcome is in the client log.
                self.client.hint(id, "hint").await.ok();
            }
            match by_records {
                Some(commands) => commands.signal(id, &name, dice).await?,
                None => {
                    let fate = self.client.signal(id, &name).await?;
                    ensure!(fate != Fate::Refused, "{id} takes no signal");
                }
            }
        }
        Ok(())
    }
}

fn id(number: u64) -> String {
    format!("{}-{number}", kind(number))
}

/// What a workflow is, by its number.
fn kind(number: u64) -> &'static str {
    match number % 13 {
        0 => "chain",
        1 => "doomed",
        2 => register::PREFIX,
        3 => "house",
        5 => "repair",
        7 => "round",
        9 | 11 => "account",
        _most => "plain",
    }
}
