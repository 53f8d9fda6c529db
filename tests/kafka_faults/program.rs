//! A program with Temporal's SDK, clients and workers at every node, that runs beside the load and judges for itself: what
//! it does are errands.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use everlog_tests::patience;

use crate::environment::Environment;

/// Of the Workflow Ids of its workflows.
pub const PREFIX: &str = "errand-";
/// What it says when it begins: before that it may have packages to fetch.
const BEGINS: &str = "# it begins";
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
    pub async fn start(environment: &Environment, errands: Errands) -> anyhow::Result<Self> {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
        let said = environment.dir.path().join("program.log");
        let addresses: Vec<_> = environment.nodes().map(|node| node.address.to_string()).collect();
        let mut command = Command::new(tests.join("sdk/run"));
        command.arg("program").arg(tests.join("sdk/kill/soak.py")).arg(addresses.join(","));
        let (span, open, seed) = (AT_MOST.as_secs(), errands.open, environment.size.seed);
        command.args([span.to_string(), open.to_string(), seed.to_string()]);
        command.args(errands.is_ordinary.then_some("ordinary"));
        command
            .stdin(Stdio::piped())
            .stdout(File::create(&said)?)
            .stderr(File::options().append(true).open(&said)?);
        let mut program = Self { process: command.spawn().context("tests/sdk/run")?, said };
        let begins = |program: &mut Self| {
            ensure!(program.process.try_wait()?.is_none(), "the program has ended: {}", program.said());
            Ok(program.said().contains(BEGINS).then_some(()))
        };
        program.until("the program begins", begins).await?;
        Ok(program)
    }

    /// Ends it; what it has to complain about, and what it did.
    pub async fn end(mut self) -> anyhow::Result<(Vec<String>, String)> {
        drop(self.process.stdin.take());
        let ends = |program: &mut Self| Ok(program.process.try_wait()?);
        let status = self.until("the program ends", ends).await?;
        let said = self.said();
        let mut wrong: Vec<_> =
            said.lines().filter(|line| line.starts_with("FAIL")).map(str::to_owned).collect();
        if !status.success() && wrong.is_empty() {
            wrong.push(format!("the program ended with {status}: {said}"));
        }
        let did = said.lines().find(|line| line.contains("acknowledged")).unwrap_or_default().to_owned();
        Ok((wrong, did))
    }

    /// Waits for something, as long as it goes on to say what it does: there is much to judge.
    async fn until<T>(
        &mut self,
        what: &str,
        look: impl Fn(&mut Self) -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<T> {
        let (mut deadline, mut looks) = (patience::deadline(), patience::looks());
        let mut said_bytes = 0;
        loop {
            if let Some(found) = look(self)? {
                return Ok(found);
            }
            let said = self.said();
            if said.len() > said_bytes {
                (deadline, said_bytes) = (patience::deadline(), said.len());
            }
            ensure!(!deadline.is_over(), "{what}: it does not come to pass: {said}");
            looks.tick().await;
        }
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
