//! What the embedded log acknowledged survives a kill and a loss of power; without syncs it does not.
//!
//! A child process writes under `shim/disk.c`, which notes what was synced; it is killed, every file is cut back to
//! what a disk would still have, and the log is opened again.

#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that is not as expected")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use everlog_log::{Error, Log};
use everlog_rocks::log::{Embedded, Options};

const PARTITIONS: u32 = 4;
const KILLS: u64 = 24;
const KILL: i32 = 9;

/// A directory that children write to, the shim, and what was acknowledged so far.
struct Bench {
    dir: tempfile::TempDir,
    acked: BTreeMap<(u32, u64), String>,
    trimmed: BTreeMap<u32, u64>,
    refused: usize,
    ended: bool,
}

/// The shim, built once for all tests.
fn shim() -> &'static Path {
    static SHIM: OnceLock<PathBuf> = OnceLock::new();
    SHIM.get_or_init(|| everlog_tests::shim::build("disk", env!("CARGO_TARGET_TMPDIR")).unwrap())
}

impl Bench {
    fn new() -> Self {
        Bench {
            dir: tempfile::tempdir().unwrap(),
            acked: BTreeMap::new(),
            trimmed: BTreeMap::new(),
            refused: 0,
            ended: false,
        }
    }

    fn log_dir(&self) -> PathBuf {
        self.dir.path().join("log")
    }

    fn start(&self, mode: &str, seed: u64, settings: &[(&str, u64)]) -> Child {
        let _ = std::fs::remove_file(self.dir.path().join("events"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_log_writer"));
        command.arg(self.log_dir()).arg(mode).arg(seed.to_string());
        command.env("LD_PRELOAD", shim());
        command.env("SHIM_DIR", self.log_dir()).env("SHIM_EVENTS", self.dir.path().join("events"));
        command.envs(settings.iter().map(|(name, value)| (name, value.to_string())));
        let said = std::fs::File::create(self.dir.path().join("said")).unwrap();
        command.stdout(Stdio::piped()).stderr(said).spawn().unwrap()
    }

    /// What the last child had to say besides what it prints.
    fn said(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("said")).unwrap_or_default()
    }

    /// Notes what a child prints; kills it after so many acknowledgements; true if it was killed by anyone.
    fn follow(&mut self, mut child: Child, acks_max: Option<usize>) -> bool {
        let mut acks = 0;
        let mut printed = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        // Lines that were printed before the kill count, so reading goes on to the end; half a line is none.
        while printed.read_line(&mut line).unwrap() > 0 && line.ends_with('\n') {
            let words: Vec<&str> = line.trim_end().splitn(4, ' ').collect();
            match words[..] {
                ["ack", partition, offset, text] => {
                    let place = (partition.parse().unwrap(), offset.parse().unwrap());
                    assert_eq!(
                        self.acked.insert(place, text.into()),
                        None,
                        "{place:?} was acknowledged twice"
                    );
                    acks += 1;
                }
                ["trim", partition, below] => {
                    self.trimmed.insert(partition.parse().unwrap(), below.parse().unwrap());
                }
                ["refused", ..] => self.refused += 1,
                ["end"] => self.ended = true,
                _ => {}
            }
            if acks_max == Some(acks) {
                child.kill().unwrap();
            }
            line.clear();
        }
        let status = child.wait().unwrap();
        if status.signal().is_some_and(|signal| signal != KILL) {
            println!("the child ends with {status}");
        }
        status.signal() == Some(KILL)
    }

    /// Durable lengths of the files that the child touched, and its count of syncs.
    fn durable(&self) -> (BTreeMap<PathBuf, u64>, usize) {
        let events = std::fs::read_to_string(self.dir.path().join("events")).unwrap_or_default();
        let (mut durable, mut syncs) = (BTreeMap::new(), 0);
        for event in events.lines() {
            let (kind, rest) = event.split_once(' ').unwrap();
            let sized = || {
                rest.split_once(' ')
                    .map(|(size, path)| (size.parse::<u64>().unwrap(), PathBuf::from(path)))
                    .unwrap()
            };
            match kind {
                "C" => drop(durable.insert(rest.into(), 0)),
                "S" => {
                    let (size, path) = sized();
                    syncs += 1;
                    durable.entry(path).and_modify(|synced: &mut u64| *synced = size.max(*synced));
                }
                "T" => {
                    let (size, path) = sized();
                    durable.entry(path).and_modify(|synced| *synced = size.min(*synced));
                }
                "U" => drop(durable.remove(Path::new(rest))),
                "R" => {
                    let (from, to) = rest.split_once('\t').unwrap();
                    rename(&mut durable, Path::new(from), Path::new(to));
                }
                other => panic!("unknown event {other}"),
            }
        }
        (durable, syncs)
    }

    /// Takes from every file what was not synced: `keep` says how much of the rest stays, `fill` what it becomes.
    fn lose_power(&self, random: &mut Random, nasty: bool) -> usize {
        let (durable, syncs) = self.durable();
        for (path, synced) in durable {
            let Ok(size) = std::fs::metadata(&path).map(|file| file.len()) else {
                continue;
            };
            let file = std::fs::File::options().write(true).open(&path).unwrap();
            let unsynced = size.saturating_sub(synced);
            let kept = if nasty { random.below(unsynced + 1) } else { 0 };
            file.set_len(synced + kept).unwrap();
            let is_wal = path.extension().is_some_and(|kind| kind == "log");
            if is_wal && kept > 0 && random.below(2) == 0 {
                // Pages of an unsynced tail come to the disk in any order: some are still zeros.
                let at = synced + random.below(kept);
                let zeros = vec![0; random.below(synced + kept - at + 1) as usize];
                file.write_all_at(&zeros, at).unwrap();
            }
        }
        syncs
    }

    fn open(&self) -> Result<Embedded, Error> {
        Embedded::open(Options { partitions: PARTITIONS, ..Options::new(self.log_dir()) })
    }

    /// What is missing of all that was ever acknowledged, trims included.
    fn lost(&self, log: &Embedded) -> usize {
        let mut lost = 0;
        for partition in 0..PARTITIONS {
            let bounds = log.bounds(partition).unwrap();
            lost += usize::from(bounds.start < self.trimmed.get(&partition).copied().unwrap_or(0));
            let mut next = bounds.start;
            let mut found = BTreeMap::new();
            while next < bounds.end {
                let records = log.read(partition, next, 1 << 20).unwrap();
                next += records.len() as u64;
                found.extend(records.into_iter().map(|record| (record.offset, record.bytes)));
            }
            for ((_, offset), text) in self.acked.range((partition, bounds.start)..(partition + 1, 0)) {
                lost += usize::from(found.get(offset).is_none_or(|bytes| bytes != text));
            }
        }
        lost
    }
}

fn rename(durable: &mut BTreeMap<PathBuf, u64>, from: &Path, to: &Path) {
    let moved: Vec<_> = durable.extract_if(.., |path, _| path.starts_with(from)).collect();
    for (path, synced) in moved {
        let rest = path.strip_prefix(from).unwrap();
        let target = if rest.as_os_str().is_empty() { to.into() } else { to.join(rest) };
        durable.insert(target, synced);
    }
}

/// xorshift: the same numbers for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}

#[test]
fn what_was_acknowledged_survives_a_loss_of_power() {
    let seed = 0x9e37_79b9;
    let mut random = Random(seed);
    let mut bench = Bench::new();
    let (mut syncs, mut torn_bytes) = (0, 0);
    for round in 1..=KILLS {
        // Killed after so many acknowledgements, wherever that is; or where a write is made and not yet synced, so
        // that there is something to tear whatever the machine is doing.
        let is_torn = round % 2 == 0;
        let killed = if is_torn {
            let sync = 1 + random.below(25 * round);
            bench.follow(bench.start("always", round, &[("SHIM_KILL_SYNC", sync)]), None)
        } else {
            let acks = 1 + random.below(150 * round) as usize;
            bench.follow(bench.start("always", round, &[]), Some(acks))
        };
        assert!(killed, "seed {seed}, round {round}: the child ends before its kill: {}", bench.said());
        syncs += bench.lose_power(&mut random, is_torn);
        let log = bench.open().unwrap_or_else(|e| panic!("seed {seed}, round {round}: {e}"));
        torn_bytes += log.recovery().torn_bytes;
        assert_eq!(bench.lost(&log), 0, "seed {seed}, round {round}: of {}", bench.acked.len());
        if log.bounds(0).unwrap().end > 0 {
            assert!(
                log.position(0).unwrap().is_none_or(|(applied, _)| applied <= log.bounds(0).unwrap().end)
            );
        }
    }
    println!(
        "{KILLS} kills, {} acknowledged, {syncs} syncs, {torn_bytes} bytes of torn tails",
        bench.acked.len()
    );
    // A child that is killed after its acknowledgements has made them, and a batch holds at most a few.
    assert!(bench.acked.len() > 5_000 && torn_bytes > 0);
}

#[test]
fn without_syncs_a_loss_of_power_loses_what_was_acknowledged() {
    let mut random = Random(7);
    let mut bench = Bench::new();
    let child = bench.start("never", 1, &[]);
    bench.follow(child, Some(3000));
    bench.lose_power(&mut random, false);
    match bench.open() {
        Ok(log) => assert!(bench.lost(&log) > 0, "the test would not notice a loss"),
        Err(error) => assert!(matches!(error, Error::Corrupt { .. }), "{error}"),
    }
}

#[test]
fn a_kill_at_any_step_of_the_write_path_loses_nothing() {
    let mut random = Random(11);
    let mut points = 0;
    for step in (1..).step_by(3) {
        let mut bench = Bench::new();
        let child = bench.start("script", 1, &[("SHIM_KILL_AT", step)]);
        let killed = bench.follow(child, None);
        bench.lose_power(&mut random, step % 2 == 0);
        let log = bench.open().unwrap_or_else(|e| panic!("step {step}: {e}"));
        assert_eq!(bench.lost(&log), 0, "step {step}");
        if !killed {
            break;
        }
        points += 1;
    }
    println!("{points} points");
    assert!(points >= 40, "{points} points");
}

#[test]
fn an_error_at_any_step_of_the_write_path_loses_nothing() {
    for (errno, count) in [(5, 1), (28, 1), (28, 6)] {
        let mut points = 0;
        for step in (1..).step_by(5) {
            let mut bench = Bench::new();
            let settings = [("SHIM_FAIL_AT", step), ("SHIM_FAIL_COUNT", count), ("SHIM_ERRNO", errno)];
            let child = bench.start("script", 1, &settings);
            bench.follow(child, None);
            let log = bench.open().unwrap_or_else(|e| panic!("errno {errno} at step {step}: {e}"));
            assert_eq!(bench.lost(&log), 0, "errno {errno} at step {step}");
            // Behind its last step the child ends as if nothing had been asked of it.
            if bench.ended && bench.refused == 0 && points > 40 {
                break;
            }
            points += 1;
        }
        println!("errno {errno}, {count} times: {points} points");
    }
}

#[test]
fn a_disk_that_has_room_again_takes_appends_again() {
    let mut healed = 0;
    // Which step is a write to the log depends on what opening did, so each is tried until three are found.
    for step in 100..400 {
        let mut bench = Bench::new();
        let settings = [("SHIM_FAIL_AT", step), ("SHIM_FAIL_COUNT", 1), ("SHIM_ERRNO", 28)];
        bench.follow(bench.start("retry", 1, &settings), None);
        assert_eq!(bench.lost(&bench.open().unwrap()), 0, "step {step}");
        healed += usize::from(bench.refused > 0 && bench.ended);
        if healed == 3 {
            return;
        }
    }
    panic!("{healed} times an append was refused and the next ones taken");
}
