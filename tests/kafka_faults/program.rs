//! A program with Temporal's SDK, clients and workers at every node, that runs beside the load and judges for itself: what
//! it does are errands.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use crate::scene::Scene;

/// Of the Workflow Ids of its workflows.
pub const PREFIX: &str = "errand-";
/// What it says when it begins: before that it may have packages to fetch.
const BEGINS: &str = "# it begins";
const BEGINS_WITHIN: Duration = Duration::from_secs(180);
/// How long it may take to see its workflows end when it is told to end, and to judge them.
const ENDS_WITHIN: Duration = Duration::from_secs(300);
/// It does not outlast any row, or whoever has started it.
const AT_MOST: Duration = Duration::from_secs(4 * 3_600);

/// How many errands at a time, and how their clients try again.
#[derive(Clone, Copy, Debug)]
pub struct Errands {
    pub open: usize,
    /// As the SDK does for everybody, and then no call may fail. Otherwise they insist for longer.
    pub is_ordinary: bool,
}

/// A running program. It is told to end when dropped.
pub struct Program {
    /// It begins nothing more when its input ends.
    process: Child,
    said: PathBuf,
}

impl Program {
    /// Starts it, and waits until it begins.
    pub async fn start(scene: &Scene, errands: Errands) -> anyhow::Result<Self> {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
        let said = scene.dir.path().join("program.log");
        let addresses: Vec<_> = scene.nodes().map(|node| node.address.to_string()).collect();
        let mut command = Command::new(tests.join("sdk/run"));
        command.arg("program").arg(tests.join("sdk/kill/soak.py")).arg(addresses.join(","));
        let (span, open, seed) = (AT_MOST.as_secs(), errands.open, scene.size.seed);
        command.args([span.to_string(), open.to_string(), seed.to_string()]);
        command.args(errands.is_ordinary.then_some("ordinary"));
        command
            .stdin(Stdio::piped())
            .stdout(File::create(&said)?)
            .stderr(File::options().append(true).open(&said)?);
        let mut program = Self { process: command.spawn().context("tests/sdk/run")?, said };
        let (deadline, mut looks) =
            (Instant::now() + BEGINS_WITHIN, tokio::time::interval(Duration::from_millis(100)));
        while !program.said().contains(BEGINS) {
            looks.tick().await;
            let is_waited_for = Instant::now() < deadline && program.process.try_wait()?.is_none();
            ensure!(is_waited_for, "the program does not begin: {}", program.said());
        }
        Ok(program)
    }

    /// Ends it; what it has to complain about, and what it did.
    pub async fn end(mut self) -> anyhow::Result<(Vec<String>, String)> {
        drop(self.process.stdin.take());
        let (deadline, mut looks) =
            (Instant::now() + ENDS_WITHIN, tokio::time::interval(Duration::from_millis(100)));
        let status = loop {
            looks.tick().await;
            if let Some(status) = self.process.try_wait()? {
                break status;
            }
            ensure!(Instant::now() < deadline, "the program does not end: {}", self.said());
        };
        let said = self.said();
        let mut wrong: Vec<_> =
            said.lines().filter(|line| line.starts_with("FAIL")).map(str::to_owned).collect();
        if !status.success() && wrong.is_empty() {
            wrong.push(format!("the program ended with {status}: {said}"));
        }
        let did = said.lines().find(|line| line.contains("acknowledged")).unwrap_or_default().to_owned();
        Ok((wrong, did))
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.said).unwrap_or_default()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Ok(None) = self.process.try_wait() {
            // It has workers to end, too.
            Command::new("kill").arg("-TERM").arg(self.process.id().to_string()).status().ok();
            self.process.wait().ok();
        }
    }
}
