//! Runs programs on both servers at once and reports the differences.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use futures::StreamExt;
use tonic::transport::Channel;

use crate::allowed::ALLOWED;
use crate::compare::{Difference, Uses, differ, on_course, without_indices};
use crate::coverage::Coverage;
use crate::generator::{ADMINISTERED, Generator, OPERATED, UNDER_WAY};
use crate::program::Program;
use crate::runner::{Noted, Runner};
use crate::schema::Schema;
use crate::servers::{Everlog, Reference};
use crate::shrink;

const SEEDS: u64 = 200;
pub const AT_ONCE: usize = 24;
/// How many of those that differed.
const AGAIN_AT_ONCE: &[usize] = &[6, 1];

/// What many programs have shown.
#[derive(Default)]
pub struct Report {
    pub programs: usize,
    /// Programs that differed, with what differed.
    pub differing: Vec<(Program, Vec<Difference>)>,
    /// Programs that left their course at both servers, see [`on_course`], by the move in which they did and the one before.
    pub left: BTreeMap<String, Vec<u64>>,
    /// Programs that differed once and not again.
    pub unsteady: Vec<(u64, Vec<Difference>)>,
    pub uses: Uses,
    pub coverage: Coverage,
    pub table: String,
    /// What so many programs should have met more often.
    pub lacking: Vec<String>,
}

/// Both servers, and what their answers are read with.
#[derive(Clone)]
pub struct Pair {
    pub reference: Channel,
    pub everlog: Channel,
    pub schema: Arc<Schema>,
}

impl Pair {
    /// What both servers note of a program.
    pub async fn play(&self, program: &Program) -> Result<(Vec<Noted>, Vec<Noted>)> {
        let reference = play(&self.reference, &self.schema, program);
        let everlog = play(&self.everlog, &self.schema, program);
        let (reference, everlog) = tokio::join!(reference, everlog);
        Ok((reference?, everlog?))
    }
}

/// Plays a program at one server, under ids that no other run of it has.
pub async fn play(channel: &Channel, schema: &Arc<Schema>, program: &Program) -> Result<Vec<Noted>> {
    let nanos = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_nanos();
    // As long as every other, so that sizes agree.
    let own = format!("p{:08x}n{:020x}-", program.seed, nanos);
    Runner::new(channel.clone(), schema.clone(), own).play(program).await
}

fn show(server: &str, noted: &[Noted]) {
    noted.iter().for_each(|noted| println!("{server}: {}: {}", noted.step, noted.answer));
}

/// The seeds that the settings ask for, if they do: numbers and ranges.
pub fn asked() -> Result<Option<Vec<u64>>> {
    asked_in("EVERLOG_DIFFERENTIAL_SEEDS", first)
}

/// The seeds that a variable asks for, if it does: numbers and ranges, or so many as `first` gives.
pub fn asked_in(variable: &str, first: fn(u64) -> Vec<u64>) -> Result<Option<Vec<u64>>> {
    let Ok(text) = std::env::var(variable) else { return Ok(None) };
    if let Ok(count) = text.parse::<u64>() {
        return Ok(Some(first(count)));
    }
    let mut seeds = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        match part.split_once("..") {
            Some((from, to)) => seeds.extend(from.parse::<u64>()?..to.parse()?),
            None => seeds.push(part.parse()?),
        }
    }
    Ok(Some(seeds))
}

/// So many programs of any kind, and a tenth as many of each of the others.
fn first(count: u64) -> Vec<u64> {
    let others = [UNDER_WAY, OPERATED, ADMINISTERED].into_iter().flat_map(|first| first..first + count / 10);
    (0..count).chain(others).collect()
}

/// How many programs run at a time.
pub fn at_once(unless_asked: usize) -> usize {
    let asked = std::env::var("EVERLOG_DIFFERENTIAL_AT_ONCE").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(unless_asked)
}

/// Runs the programs of all seeds at both servers.
pub async fn run(place: &str) -> Result<Report> {
    let (reference, everlog) = (Reference::start(place).await?, Everlog::start().await?);
    let schema = Arc::new(Schema::new()?);
    let pair = Pair { reference: reference.connect().await?, everlog: everlog.connect().await?, schema };
    let begun = Instant::now();
    let mut report = Report::default();
    let plays = asked()?.unwrap_or_else(|| first(SEEDS)).into_iter().map(|seed| {
        let pair = pair.clone();
        async move {
            let program = Generator::write(seed);
            let noted = pair.play(&program).await;
            (program, noted)
        }
    });
    let is_noting = std::env::var("EVERLOG_DIFFERENTIAL_NOTED").is_ok();
    let mut plays = futures::stream::iter(plays).buffer_unordered(at_once(AT_ONCE));
    while let Some((program, noted)) = plays.next().await {
        let (reference, everlog) = noted?;
        if is_noting {
            println!("{program}");
            show("reference", &reference);
            show("everlog", &everlog);
        }
        report.coverage.count(&program, &reference);
        let seed = program.seed;
        report.add(program, &reference, &everlog);
        // At once, for those who wait.
        if let Some((_, differences)) = report.differing.last().filter(|(program, _)| program.seed == seed) {
            println!("program {seed}: {} differences, {}", differences.len(), differences[0]);
        }
    }
    drop(plays);
    if std::env::var("EVERLOG_DIFFERENTIAL_ONCE").is_err() {
        report.settle(&pair).await?;
    }
    report.table = report.coverage.table(&pair.schema);
    report.lacking = report.coverage.lacking(&pair.schema);
    println!("{} programs in {:.0?}", report.programs, begun.elapsed());
    Ok(report)
}

impl Report {
    /// Compares what both servers noted.
    pub fn add(&mut self, program: Program, reference: &[Noted], everlog: &[Noted]) {
        self.programs += 1;
        let compared = on_course(&program, reference, everlog).0;
        if compared.len() < reference.len() {
            let step = compared.last().and_then(|noted| noted.step.parse().ok()).unwrap_or_default();
            let moves: Vec<_> = program.moves_to(step).collect();
            let place = moves[moves.len().saturating_sub(2)..].join(", ");
            self.left.entry(place).or_default().push(program.seed);
        }
        let differences = differ(&program, reference, everlog, &mut self.uses);
        if !differences.is_empty() {
            self.differing.push((program, differences));
        }
    }

    /// Runs programs that differ again, a few at a time and then one by one: what does not come again is of the load.
    async fn settle(&mut self, pair: &Pair) -> Result<()> {
        for at_once in AGAIN_AT_ONCE {
            self.settle_with(pair, *at_once).await?;
        }
        Ok(())
    }

    async fn settle_with(&mut self, pair: &Pair, at_once: usize) -> Result<()> {
        let is_shrinking = std::env::var("EVERLOG_DIFFERENTIAL_SHRINK").is_ok();
        let plays =
            std::mem::take(&mut self.differing).into_iter().map(|(program, differences)| async move {
                let noted = pair.play(&program).await;
                (program, differences, noted)
            });
        let mut plays = futures::stream::iter(plays).buffer_unordered(at_once);
        while let Some((program, differences, noted)) = plays.next().await {
            let (reference, everlog) = noted?;
            let again = differ(&program, &reference, &everlog, &mut Uses::new());
            if again.is_empty() {
                self.unsteady.push((program.seed, differences));
            } else if is_shrinking {
                self.differing.push(shrink::shrink(pair, program, again).await?);
            } else {
                self.differing.push((program, again));
            }
        }
        Ok(())
    }
}

impl Report {
    /// All differences by the field they are in, with an example and the programs.
    fn by_field(&self) -> Vec<(&Difference, BTreeSet<u64>)> {
        let mut fields: BTreeMap<String, (&Difference, BTreeSet<u64>)> = BTreeMap::new();
        for (program, differences) in &self.differing {
            for one in differences {
                let field = without_indices(&one.path);
                fields.entry(field).or_insert((one, BTreeSet::new())).1.insert(program.seed);
            }
        }
        let mut fields: Vec<_> = fields.into_values().collect();
        fields.sort_by_key(|(_, seeds)| std::cmp::Reverse(seeds.len()));
        fields
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 8;
        for (program, differences) in &self.differing {
            writeln!(f, "{program}")?;
            differences.iter().take(SHOWN).try_for_each(|one| writeln!(f, "    {one}"))?;
            writeln!(f, "    {} differences\n", differences.len())?;
        }
        for (one, seeds) in self.by_field() {
            writeln!(f, "in {} programs {seeds:?}: {one}", seeds.len())?;
        }
        for (seed, differences) in &self.unsteady {
            writeln!(f, "program {seed} differed once and not again:")?;
            differences.iter().take(2).try_for_each(|one| writeln!(f, "    {one}"))?;
        }
        writeln!(f, "{}{}", self.coverage, self.table)?;
        writeln!(f, "Allowed differences")?;
        for allowed in ALLOWED {
            let times = self.uses.get(allowed.field).copied().unwrap_or_default();
            writeln!(f, "  {times:>6} {}: {}", allowed.field, allowed.reason)?;
        }
        writeln!(f, "Where programs left their course")?;
        self.left
            .iter()
            .try_for_each(|(place, seeds)| writeln!(f, "  {:>6} {place}: {seeds:?}", seeds.len()))?;
        let (differing, unsteady) = (self.differing.len(), self.unsteady.len());
        writeln!(
            f,
            "{} programs, {differing} differ, {unsteady} differed once, {} left their course",
            self.programs,
            self.left.values().map(Vec::len).sum::<usize>()
        )
    }
}
