//! What a Temporal server has answered to a fixed set of programs, so that no such server is needed.
//!
//! What the file looks like is said in recording.rs.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::StreamExt;
use tonic::transport::Channel;

use crate::allowed::OPEN;
use crate::compare::{Difference, Uses, compare, differ, on_course};
use crate::generator::{ADMINISTERED, Generator, OPERATED, UNDER_WAY};
use crate::live::{AT_ONCE, Report, asked, at_once, play};
use crate::moves::{MOVES, OPENINGS};
use crate::program::Program;
use crate::recording::{read, written};
use crate::runner::Noted;
use crate::schema::Schema;
use crate::servers::{Everlog, Reference};

/// How many programs the fixed set has.
const PROGRAMS: usize = 100;
/// So many are the first that do; of the others, up to a seed, those come first that have a move which none has had.
const ANY: usize = 60;
const CHOSEN_UNTIL: u64 = 220;
/// Behind them: the first that find bugs of `planted.toml` which none of those finds.
const FINDERS: &[u64] = &[80, 406];
/// Behind them: the first about updates that are under way.
const UNDER_WAY_PROGRAMS: usize = 16;
/// And of them those that find bugs of `planted.toml` which none of those finds.
const UNDER_WAY_FINDERS: &[u64] = &[100_031, 100_109, 100_290];
/// Behind them: the first about what operators do to activities and runs.
const OPERATED_PROGRAMS: usize = 24;
/// Behind them: the first about queues, clusters and namespaces.
const ADMINISTERED_PROGRAMS: usize = 24;
/// How many of them run at a time: they mostly wait.
const HELD_AT_ONCE: usize = 100;
/// What takes so long at the reference while it is recorded is not recorded, so that no check waits for it. What is recorded
/// is run, however long that takes.
const TAKES_LONG: Duration = Duration::from_secs(30);

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("differential/recorded.txt")
}

/// Programs about one thing, behind those of any kind.
struct Family {
    name: &'static str,
    /// Their seeds begin here.
    seed: u64,
    programs: usize,
    finders: &'static [u64],
}

/// All of them, in the order of the file.
const FAMILIES: &[Family] = &[
    Family { name: "under way", seed: UNDER_WAY, programs: UNDER_WAY_PROGRAMS, finders: UNDER_WAY_FINDERS },
    Family { name: "operated", seed: OPERATED, programs: OPERATED_PROGRAMS, finders: &[] },
    Family { name: "administered", seed: ADMINISTERED, programs: ADMINISTERED_PROGRAMS, finders: &[] },
];

/// Writes the file again: programs that do not take long, and whose answers do not depend on time. Where `what` names a family,
/// what comes before it stays as it is.
pub async fn record(place: &str, what: &str) -> Result<()> {
    let reference = Reference::start(place).await?;
    let (channel, schema) = (reference.connect().await?, Arc::new(Schema::new()?));
    let named = FAMILIES.iter().position(|family| family.name == what);
    let mut text = match named {
        Some(place) => before(FAMILIES[place].seed, &std::fs::read_to_string(path())?).to_owned(),
        None => any_kind(&channel, &schema).await?,
    };
    for family in &FAMILIES[named.unwrap_or_default()..] {
        text.push_str(&first(family.seed, family.programs, &channel, &schema).await?);
        text.push_str(&finders(family.finders, &channel, &schema).await?);
    }
    std::fs::write(path(), text)?;
    Ok(())
}

/// The first programs of seeds from one on.
async fn first(seed: u64, count: usize, channel: &Channel, schema: &Arc<Schema>) -> Result<String> {
    let tried = |seed| tried(seed, channel, schema);
    let mut plays = futures::stream::iter((seed..).map(tried)).buffered(at_once(AT_ONCE));
    let (mut text, mut so_far) = (String::new(), 0);
    while so_far < count {
        let tried = plays.next().await.context("seeds never end")??;
        let Some((program, noted)) = tried else { continue };
        so_far += 1;
        text.push_str(&written(program.seed, &program.mark(), noted));
    }
    Ok(text)
}

/// The programs of the file that come before those of seeds from one on.
fn before(first: u64, text: &str) -> &str {
    let is_later = |at: &usize| {
        let seed = text[*at..].strip_prefix("program ").and_then(|rest| rest.split(' ').next()?.parse().ok());
        seed.is_some_and(|seed: u64| seed >= first)
    };
    let lines = text.match_indices('\n').map(|(at, _)| at + 1);
    &text[..lines.filter(is_later).min().unwrap_or(text.len())]
}

/// Programs of any kind, with as many moves as can be.
async fn any_kind(channel: &Channel, schema: &Arc<Schema>) -> Result<String> {
    let tried = |seed| tried(seed, channel, schema);
    let mut plays = futures::stream::iter((0_u64..).map(tried)).buffered(at_once(AT_ONCE));
    let (mut text, mut count) = (String::new(), 0);
    let mut missing: BTreeSet<&str> = OPENINGS.iter().chain(MOVES).map(|one| one.name).collect();
    while count < PROGRAMS {
        let tried = plays.next().await.context("seeds never end")??;
        let Some((program, noted)) = tried else { continue };
        let is_new = program.moves.iter().any(|(one, _)| missing.contains(one));
        if !is_new && count >= ANY && !missing.is_empty() && program.seed < CHOSEN_UNTIL {
            continue;
        }
        missing.retain(|one| !program.moves.iter().any(|(there, _)| there == one));
        count += 1;
        text.push_str(&written(program.seed, &program.mark(), noted));
    }
    text.push_str(&finders(FINDERS, channel, schema).await?);
    println!("moves that no program has: {missing:?}");
    Ok(text)
}

/// Programs that have to be there.
async fn finders(seeds: &[u64], channel: &Channel, schema: &Arc<Schema>) -> Result<String> {
    let mut text = String::new();
    for seed in seeds {
        let found = tried(*seed, channel, schema).await?;
        let (program, noted) = found.with_context(|| format!("program {seed} is left out"))?;
        text.push_str(&written(program.seed, &program.mark(), noted));
    }
    Ok(text)
}

/// What the reference answers to a program; none where that takes long or depends on time.
async fn tried(seed: u64, channel: &Channel, schema: &Arc<Schema>) -> Result<Option<(Program, Vec<Noted>)>> {
    let program = Generator::write(seed);
    let begun = Instant::now();
    let noted = play(channel, schema, &program).await?;
    let why = if begun.elapsed() >= TAKES_LONG {
        "it takes long".to_owned()
    } else if on_course(&program, &noted, &noted).0.len() < noted.len() {
        "it leaves its course".to_owned()
    } else {
        let again = play(channel, schema, &program).await?;
        match compare(&noted, &again, &mut Uses::new()).first() {
            Some(difference) => format!("it is not steady, {difference}"),
            None => return Ok(Some((program, noted))),
        }
    };
    println!("program {seed} is left out: {why}");
    Ok(None)
}

/// Runs the fixed set and compares with the file.
pub async fn run() -> Result<Report> {
    let everlog = Everlog::start().await?;
    let (channel, schema) = (everlog.connect().await?, Arc::new(Schema::new()?));
    let text = std::fs::read_to_string(path()).context("differential/recorded.txt")?;
    let recorded = read(&text)?;
    let of_family = |family: &Family| family.programs + family.finders.len();
    let all_programs = PROGRAMS + FINDERS.len() + FAMILIES.iter().map(of_family).sum::<usize>();
    ensure!(recorded.len() == all_programs, "the file has {} programs", recorded.len());
    let is_open = |seed: u64| OPEN.iter().any(|(seeds, _)| seeds.contains(&seed));
    // Whoever names programs wants to see how they differ.
    let asked = asked()?;
    let is_held = |seed: u64| asked.as_ref().map_or(!is_open(seed), |asked| asked.contains(&seed));
    let held = recorded.into_iter().filter(|(seed, ..)| is_held(*seed));
    let (mut report, mut all) = (Report::default(), Vec::new());
    for (seed, mark, reference) in held {
        let program = Generator::write(seed);
        let is_same = program.mark() == mark;
        ensure!(
            is_same,
            "program {seed} is not what was recorded: record it again (tests/differential/main.rs)"
        );
        report.coverage.count(&program, &reference);
        all.push(Held { program, reference, differences: Vec::new() });
    }
    // Once more those that differ, and then each alone, until one differs still: what does not come again is of the load.
    let most = at_once(HELD_AT_ONCE);
    let differing = play_all(all, most, &channel, &schema, &mut report).await?;
    let mut differing = play_all(differing, most, &channel, &schema, &mut report).await?;
    while let Some(held) = differing.pop() {
        let again = play_all(vec![held], 1, &channel, &schema, &mut report).await?;
        if !again.is_empty() {
            differing.extend(again);
            break;
        }
    }
    for held in differing {
        report.programs += 1;
        report.differing.push((held.program, held.differences));
    }
    report.table = report.coverage.table(&schema);
    Ok(report)
}

/// A program of the fixed set.
struct Held {
    program: Program,
    reference: Vec<Noted>,
    /// In which it differed when it was played last.
    differences: Vec<Difference>,
}

/// Plays programs, so many at a time. Those that differ are given back.
async fn play_all(
    all: Vec<Held>,
    at_once: usize,
    channel: &Channel,
    schema: &Arc<Schema>,
    report: &mut Report,
) -> Result<Vec<Held>> {
    let plays = all.into_iter().map(|held| async {
        let everlog = play(channel, schema, &held.program).await;
        (held, everlog)
    });
    let mut plays = futures::stream::iter(plays).buffer_unordered(at_once);
    let mut differing = Vec::new();
    while let Some((held, everlog)) = plays.next().await {
        let Held { program, reference, differences: before } = held;
        let everlog = everlog?;
        let differences = differ(&program, &reference, &everlog, &mut Uses::new());
        if !differences.is_empty() {
            differing.push(Held { program, reference, differences });
            continue;
        }
        if !before.is_empty() {
            report.unsteady.push((program.seed, before));
        }
        report.add(program, &reference, &everlog);
    }
    Ok(differing)
}
