//! The lives of schedules at Everlog and at a Temporal server: what is started, and what is described behind each step.
//!
//! The schedules of a Temporal server change behind the calls that change them. There a step is over when descriptions
//! stay the same for a while. At Everlog it is over when all is as it was there, which has to come.

mod allowed;
mod author;
mod life;
mod player;
mod view;
mod worker;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use everlog_tests::patience;
use futures::StreamExt;
use tonic::transport::Channel;

use crate::compare::{Difference, Uses, compare_by, met};
use crate::live::{asked_in, at_once};
use crate::lives::allowed::ALLOWED_IN_LIVES;
use crate::lives::author::LifeAuthor;
use crate::lives::life::Life;
use crate::lives::player::{LifePlayer, Rest};
use crate::recording::{read, written};
use crate::runner::Noted;
use crate::schema::Schema;
use crate::servers::{Everlog, Reference};

/// How many lives the fixed set has.
const LIVES: usize = 54;
/// How many live at both servers where nobody says how many.
const LIVE: u64 = 200;
/// How many of them at a time: more than these are too much for a Temporal server on two cores, which then answers late.
const LIVES_AT_ONCE: usize = 12;
const SEEDS: &str = "EVERLOG_DIFFERENTIAL_LIVES";
const ONCE: &str = "EVERLOG_DIFFERENTIAL_ONCE";

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("differential/lives.txt")
}

/// What many lives have shown.
#[derive(Default)]
pub struct LivesReport {
    pub lives: usize,
    /// Those that differed, with what differed.
    pub differing: Vec<(Life, Vec<Difference>)>,
    /// Those that differed once and not again.
    unsteady: Vec<(u64, Vec<Difference>)>,
    uses: Uses,
}

/// One server, and what its answers are read with.
#[derive(Clone)]
struct LifeServer {
    channel: Channel,
    schema: Arc<Schema>,
}

impl LifeServer {
    /// Waits until schedules work there, which is later than that the server answers.
    async fn warm_up(&self) -> Result<()> {
        let mut life = LifeAuthor::write(0);
        life.steps.truncate(1);
        patience::until("schedules work", async || {
            let noted = self.play(&life, Rest::Same).await;
            noted.is_ok_and(|noted| noted[0].answer["schedule"].is_object())
        })
        .await?;
        Ok(())
    }

    async fn play(&self, life: &Life, rest: Rest<'_>) -> Result<Vec<Noted>> {
        let nanos = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_nanos();
        // As long as every other, so that sizes agree.
        let own = format!("l{:08x}n{nanos:020x}-", life.seed);
        LifePlayer::new(self.channel.clone(), self.schema.clone(), own, life, rest).play().await
    }

    /// Plays a life whose answers are known, and gives what differs. Whoever is hurried does not wait long for what does
    /// not come.
    async fn compare(
        &self,
        life: &Life,
        known: &[Noted],
        is_hurried: bool,
        uses: &mut Uses,
    ) -> Result<Vec<Difference>> {
        let allowed = met(ALLOWED_IN_LIVES, known);
        let rest = Rest::Known { answers: known, allowed: &allowed, is_hurried };
        let noted = self.play(life, rest).await?;
        // Where it has not come to what was known, it was left.
        let is_left = noted.len() < known.len();
        let compared = if is_left { &known[..noted.len()] } else { known };
        let mut differences = compare_by(&allowed, compared, &noted, uses);
        if is_left && differences.is_empty() {
            let step = noted.len().to_string();
            let (reference, everlog) = ("more answers".into(), "none".into());
            differences.push(Difference { step, path: "step".to_owned(), reference, everlog });
        }
        Ok(differences)
    }
}

/// Plays lives of all seeds that are asked for at both servers.
pub async fn run_live(place: &str) -> Result<LivesReport> {
    let (reference, everlog) = (Reference::start(place).await?, Everlog::start().await?);
    let schema = Arc::new(Schema::new()?);
    let begun = Instant::now();
    let theirs = LifeServer { channel: reference.connect().await?, schema: schema.clone() };
    let ours = LifeServer { channel: everlog.connect().await?, schema };
    theirs.warm_up().await?;
    let mut report = LivesReport::default();
    let seeds = asked_in(SEEDS, |count| (0..count).collect())?.unwrap_or_else(|| (0..LIVE).collect());
    let both = async |life: Life, is_hurried: bool| {
        let mut uses = Uses::new();
        let known = theirs.play(&life, Rest::Same).await?;
        let differences = ours.compare(&life, &known, is_hurried, &mut uses).await?;
        if std::env::var("EVERLOG_DIFFERENTIAL_NOTED").is_ok() {
            println!("{life}");
            known.iter().for_each(|noted| println!("reference: {}: {}", noted.step, noted.answer));
        }
        anyhow::Ok((life, differences, uses))
    };
    let plays = seeds.into_iter().map(|seed| both(LifeAuthor::write(seed), true));
    let mut plays = futures::stream::iter(plays).buffer_unordered(at_once(LIVES_AT_ONCE));
    let mut differing = Vec::new();
    while let Some(played) = plays.next().await {
        let (life, differences, uses) = played?;
        if let Some(first) = differences.first() {
            println!("life {}: {} differences, {first}", life.seed, differences.len());
            differing.push((life, differences));
        } else {
            report.add(uses);
        }
    }
    // What does not come again is of the load.
    for (life, before) in differing {
        let (life, differences, uses) = both(life, false).await?;
        if differences.is_empty() {
            report.unsteady.push((life.seed, before));
        } else {
            report.differing.push((life, differences));
        }
        report.add(uses);
    }
    println!("{} lives in {:.0?}", report.lives, begun.elapsed());
    Ok(report)
}

/// Writes the file again: the first lives that go at the reference twice alike.
pub async fn record(place: &str) -> Result<()> {
    let reference = Reference::start(place).await?;
    let theirs = LifeServer { channel: reference.connect().await?, schema: Arc::new(Schema::new()?) };
    theirs.warm_up().await?;
    let twice = async |seed: u64| {
        let life = LifeAuthor::write(seed);
        let noted = theirs.play(&life, Rest::Same).await?;
        let again = theirs.play(&life, Rest::Same).await?;
        let differences = compare_by(&[], &noted, &again, &mut Uses::new());
        if let Some(first) = differences.first() {
            println!("life {seed} is left out, as it is not steady: {first}");
        }
        let is_whole = noted.len() >= life.steps.len();
        if !is_whole {
            println!("life {seed} is left out, as it did not come to rest behind step {}", noted.len() - 1);
        }
        anyhow::Ok((differences.is_empty() && is_whole).then(|| written(seed, &life.mark(), noted)))
    };
    let mut plays = futures::stream::iter((0..).map(twice)).buffered(at_once(LIVES_AT_ONCE));
    let (mut text, mut count) = (String::new(), 0);
    while count < LIVES {
        if let Some(written) = plays.next().await.context("seeds never end")?? {
            text.push_str(&written);
            count += 1;
            std::fs::write(path(), &text)?;
        }
    }
    Ok(())
}

/// Plays the fixed set and compares with the file.
pub async fn run() -> Result<LivesReport> {
    let everlog = Everlog::start().await?;
    let ours = LifeServer { channel: everlog.connect().await?, schema: Arc::new(Schema::new()?) };
    let recorded = read(&std::fs::read_to_string(path()).context("differential/lives.txt")?)?;
    ensure!(recorded.len() == LIVES, "the file has {} lives", recorded.len());
    let asked = asked_in(SEEDS, |count| (0..count).collect())?;
    let (mut report, mut held) = (LivesReport::default(), Vec::new());
    for (seed, mark, known) in recorded {
        if asked.as_ref().is_some_and(|asked| !asked.contains(&seed)) {
            continue;
        }
        let life = LifeAuthor::write(seed);
        let is_same = life.mark() == mark;
        ensure!(
            is_same,
            "life {seed} is not what was recorded: record it again (tests/differential/main.rs)"
        );
        held.push((life, known));
    }
    let compare = async |(life, known): (Life, Vec<Noted>)| {
        let mut uses = Uses::new();
        let differences = ours.compare(&life, &known, true, &mut uses).await?;
        anyhow::Ok((life, known, differences, uses))
    };
    let mut plays = futures::stream::iter(held.into_iter().map(compare)).buffer_unordered(at_once(LIVES));
    let mut differing = Vec::new();
    while let Some(played) = plays.next().await {
        let (life, known, differences, uses) = played?;
        if differences.is_empty() {
            report.add(uses);
        } else {
            differing.push((life, known, differences));
        }
    }
    let is_once = std::env::var(ONCE).is_ok();
    // Once more until one differs still: what does not come again is of the load.
    for (life, known, before) in differing {
        let mut uses = Uses::new();
        let is_over = is_once || !report.differing.is_empty();
        let differences =
            if is_over { before.clone() } else { ours.compare(&life, &known, false, &mut uses).await? };
        if differences.is_empty() {
            report.unsteady.push((life.seed, before));
        } else {
            report.differing.push((life, differences));
        }
        report.add(uses);
    }
    Ok(report)
}

impl LivesReport {
    fn add(&mut self, uses: Uses) {
        self.lives += 1;
        uses.into_iter().for_each(|(field, times)| *self.uses.entry(field).or_default() += times);
    }
}

impl fmt::Display for LivesReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 8;
        for (life, differences) in &self.differing {
            writeln!(f, "{life}")?;
            differences.iter().take(SHOWN).try_for_each(|one| writeln!(f, "    {one}"))?;
            writeln!(f, "    {} differences\n", differences.len())?;
        }
        for (seed, differences) in &self.unsteady {
            writeln!(f, "life {seed} differed once and not again:")?;
            differences.iter().take(2).try_for_each(|one| writeln!(f, "    {one}"))?;
        }
        writeln!(f, "Allowed differences")?;
        for allowed in ALLOWED_IN_LIVES {
            let times = self.uses.get(allowed.field).copied().unwrap_or_default();
            writeln!(f, "  {times:>6} {}: {}", allowed.field, allowed.reason)?;
        }
        let (differing, unsteady) = (self.differing.len(), self.unsteady.len());
        writeln!(f, "{} lives, {differing} differ, {unsteady} differed once", self.lives)
    }
}
