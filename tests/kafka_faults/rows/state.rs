//! Faults of the rows beside the log: lost, damaged, foreign, old, or on a full disk.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};
use bytes::Bytes;
use everlog_tests::dice::Dice;
use everlog_tests::patience;

use crate::cluster::FaultCluster;
use crate::environment::{Environment, Outcome, Size};
use crate::load::Load;
use crate::node::Node;
use crate::observations::{Line, line};

/// How long the disk stays full once the node has noticed: it has more files than one.
const FULL_FOR: Duration = Duration::from_secs(10);
/// What a node says when it cannot use rows.
const ASIDE: &str = "rows set aside";

/// F17: the directory is removed while the node is down, in the end after all have come to rest: then describe and
/// history of every workflow are what they were, byte for byte.
pub async fn gone(cluster: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    let mut environment = Environment::open(&cluster, "f17", size, &[]).await?;
    let mut load = environment.load();
    let mut outcome = Outcome::default();
    for _ in 0..size.times {
        load.further(size.open as u64).await?;
        environment.node.kill()?;
        fs::remove_dir_all(environment.node.rows())?;
        outcome.injected += 1;
        environment.node.start_again()?;
        environment.node.ready().await?;
        outcome.seen += u64::from(environment.node.rows().join("0").exists());
    }
    load.pause().await?;
    let before = all(&environment).await?;
    ensure!(environment.node.stop().await?.success(), "it ended badly: {}", environment.node.last_words());
    fs::remove_dir_all(environment.node.rows())?;
    environment.node.start_again()?;
    environment.node.ready().await?;
    let after = all(&environment).await?;
    let differs = before.iter().filter(|(id, told)| after.get(*id) != Some(told)).count();
    if differs > 0 {
        outcome.violations.push(format!("describe or history of {differs} of {} differ", before.len()));
    }
    outcome.how = format!("rebuilt; describe and history of {} the same", before.len());
    Ok(environment.finish(load, outcome).await?.0)
}

/// What the node says of every workflow: describe and history.
async fn all(environment: &Environment) -> anyhow::Result<BTreeMap<String, (Bytes, Vec<Line>)>> {
    let mut all = BTreeMap::new();
    for call in environment.client.client_log.calls() {
        if all.contains_key(&call.workflow_id) {
            continue;
        }
        let history = environment.client.history(&call.workflow_id, "").await?;
        let described = environment.client.describe(&call.workflow_id, "").await?;
        ensure!(!history.is_empty(), "{} has no history", call.workflow_id);
        all.insert(call.workflow_id, (described, history.iter().map(line).collect()));
    }
    Ok(all)
}

/// How a file can be damaged.
const DAMAGES: [(&str, &str); 5] = [
    ("a table", ".sst"),
    ("the manifest", "MANIFEST"),
    ("the write-ahead log", ".log"),
    ("CURRENT", "CURRENT"),
    ("a table's end", ".sst"),
];

/// F18: a byte is flipped, a file cut short or removed, in one partition after the other.
pub async fn damaged(cluster: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    let mut environment = Environment::open(&cluster, "f18", size, &[]).await?;
    let mut load = environment.load();
    let mut dice = Dice::new(size.seed);
    let mut outcome = Outcome::default();
    let mut hit = Vec::new();
    for round in 0..(2 * size.times).max(5) as usize {
        load.further(size.open as u64).await?;
        // An end in order leaves tables behind.
        let status = environment.node.stop().await?;
        ensure!(status.success(), "it ended with {status}: {}", environment.node.last_words());
        let (what, name) = DAMAGES[round % DAMAGES.len()];
        let before = environment.node.times_said(ASIDE);
        if damage(&environment.node.rows().join((round % 4).to_string()), what, name, &mut dice)? {
            outcome.injected += 1;
        }
        environment.node.start_again()?;
        environment.node.ready().await?;
        load.further(size.open as u64 / 2).await?;
        let seen = environment.node.times_said(ASIDE) > before;
        outcome.seen += u64::from(seen);
        hit.push(format!("{what}: {}", if seen { "set aside" } else { "not looked at" }));
    }
    outcome.how = hit.join(", ");
    Ok(environment.finish(load, outcome).await?.0)
}

/// Damages the newest file whose name contains `name`; false where there is none.
fn damage(dir: &Path, what: &str, name: &str, dice: &mut Dice) -> anyhow::Result<bool> {
    let files: Vec<PathBuf> = fs::read_dir(dir)
        .with_context(|| dir.display().to_string())?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.file_name().is_some_and(|file| file.to_string_lossy().contains(name)))
        .filter(|path| path.metadata().is_ok_and(|file| file.len() > 0))
        .collect();
    let Some(file) = files.into_iter().max() else { return Ok(false) };
    let mut bytes = fs::read(&file)?;
    match what {
        "CURRENT" => fs::remove_file(&file)?,
        "a table's end" => {
            bytes.truncate(bytes.len() / 2);
            fs::write(&file, bytes)?;
        }
        _flipped => {
            let place = dice.index(bytes.len());
            bytes[place] ^= 0x55;
            fs::write(&file, bytes)?;
        }
    }
    Ok(true)
}

/// F19: the rows are those of another log, further on than this one.
pub async fn foreign(cluster: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    let mut other = Environment::open(&cluster, "f19-other", size, &[]).await?;
    let mut load = other.load();
    load.further(2 * size.open as u64).await?;
    load.pause().await?;
    ensure!(other.node.stop().await?.success(), "it ended badly: {}", other.node.last_words());
    let mut environment = Environment::open(&cluster, "f19", size, &[]).await?;
    let mut load = environment.load();
    load.further(size.open as u64).await?;
    environment.node.kill()?;
    fs::remove_dir_all(environment.node.rows())?;
    copy(&other.node.rows(), &environment.node.rows())?;
    environment.node.start_again()?;
    environment.node.ready().await?;
    load.further(size.open as u64).await?;
    let seen = environment.node.times_said(ASIDE);
    let outcome = Outcome {
        injected: 4,
        seen,
        how: format!("{seen} of 4 partitions' rows set aside"),
        ..Outcome::default()
    };
    Ok(environment.finish(load, outcome).await?.0)
}

/// F20: the rows are a copy of a while ago.
pub async fn old(cluster: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    let mut environment = Environment::open(&cluster, "f20", size, &[]).await?;
    let mut load = environment.load();
    let mut outcome = Outcome::default();
    let kept = environment.dir.path().join("kept");
    for _ in 0..size.times {
        load.further(size.open as u64 / 2).await?;
        environment.node.kill()?;
        let _ = fs::remove_dir_all(&kept);
        copy(&environment.node.rows(), &kept)?;
        environment.node.start_again()?;
        environment.node.ready().await?;
        load.further(2 * size.open as u64).await?;
        environment.node.kill()?;
        fs::remove_dir_all(environment.node.rows())?;
        copy(&kept, &environment.node.rows())?;
        outcome.injected += 1;
        environment.node.start_again()?;
        environment.node.ready().await?;
        outcome.seen += 1;
    }
    outcome.how = format!("rolled forward; {} set aside", environment.node.times_said(ASIDE));
    Ok(environment.finish(load, outcome).await?.0)
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status()?;
    ensure!(status.success(), "cp -a {} {}", from.display(), to.display());
    Ok(())
}

/// A small disk of memory, unmounted when dropped. It needs a system that lets us.
pub struct SmallDisk {
    pub dir: tempfile::TempDir,
}

impl SmallDisk {
    pub fn new(size_mib: u64) -> anyhow::Result<Self> {
        let dir = tempfile::tempdir()?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size_mib}m"), "tmpfs"]).arg(dir.path());
        ensure!(mount.status()?.success(), "a tmpfs cannot be mounted here: root may");
        Ok(Self { dir })
    }

    fn ballast(&self) -> PathBuf {
        self.dir.path().join("ballast")
    }

    /// Leaves no byte free.
    pub fn fill(&self) -> anyhow::Result<()> {
        let mut ballast = fs::File::create(self.ballast())?;
        let block = vec![0x55; 64 << 10];
        // It ends with the disk.
        while ballast.write_all(&block).is_ok() {}
        Ok(())
    }

    pub fn free(&self) -> anyhow::Result<()> {
        Ok(fs::remove_file(self.ballast())?)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        Command::new("umount").arg("-l").arg(self.dir.path()).status().ok();
    }
}

/// F21: no space is left where the node keeps its rows; then there is again.
pub async fn full(cluster: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    let disk = SmallDisk::new(96)?;
    let mut environment = Environment::open_in(&cluster, "f21", size, &[], Some(disk.dir.path())).await?;
    let mut load = environment.load();
    let mut outcome = Outcome::default();
    let mut how = Vec::new();
    for _ in 0..size.times {
        load.further(size.open as u64).await?;
        let before = complaints(&environment.node);
        disk.fill()?;
        outcome.injected += 1;
        let node = &mut environment.node;
        let notices = async || complaints(node) > before || node.is_alive().is_ok_and(|alive| !alive);
        outcome.seen += u64::from(patience::until("the node notices", notices).await.is_ok());
        patience::pass(FULL_FOR).await;
        disk.free()?;
        how.push(go_on(&mut environment.node, &load).await?);
    }
    outcome.how = how.join(", ");
    Ok(environment.finish(load, outcome).await?.0)
}

fn complaints(node: &Node) -> usize {
    node.said().to_lowercase().matches("no space").count()
}

/// Waits until something goes on, and starts the node again if it ends before, as one without space may; what it did.
async fn go_on(node: &mut Node, load: &Load) -> anyhow::Result<String> {
    let (ended, mut did) = (load.ended(), "went on".to_owned());
    let (deadline, mut looks) = (patience::deadline(), patience::looks());
    while load.ended() <= ended {
        if let Some(status) = node.end()? {
            did = format!("ended with {status}");
            node.start_again()?;
            node.ready().await?;
        }
        ensure!(!deadline.is_over(), "nothing goes on: {}", node.last_words());
        looks.tick().await;
    }
    Ok(did)
}
