//! The scenario: a script of calls that a fault may interrupt anywhere, then recovery until all runs have ended.

use anyhow::{Context, bail};
use everlog_tests::fate::{Fate, is_definite, is_passing};
use everlog_tests::patience;
use tonic::Code;
use tonic::transport::Channel;

use crate::checker::{Run, check, is_closed, origin};
use crate::client::{Act, Client};
use crate::client_log::Shared;
use crate::node::{Blow, Node, NodeDir};
use crate::power::Notes;
use crate::workflows::WORKFLOWS;

/// One call after the other, each worker's part at its place.
pub const SCRIPT: [Act; 35] = {
    use Act::*;
    [
        Start("order"),
        Work, // a marker and a timer
        Work, // the timer fired: an activity
        Labour,
        Signal("order", "paid"),
        Labour,
        Work,
        Query("order"),
        Signal("order", "packed"),
        Work,
        Read("order"),
        Start("chain"),
        Work, // a timer
        Work, // continued as new
        Work,
        Read("chain"),
        Signal("chain", "end"),
        Work,
        Start("patient"),
        Work,
        Cancel("patient"),
        Work,
        Start("doomed"),
        Work,
        Terminate("doomed"),
        SignalWithStart("greeted", "hello"),
        Work,
        Query("greeted"),
        SignalWithStart("greeted", "again"),
        Work,
        Start("flaky"),
        Work, // fails
        Work, // completes
        Read("flaky"),
        Read("greeted"),
    ]
};

/// The outcome of a scenario.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The fault happened before the script was over.
    pub hit: bool,
    /// The node continued after the fault.
    pub went_on: bool,
    /// The script was interrupted.
    pub interrupted: bool,
    /// Bytes that the loss of power took.
    pub lost_bytes: u64,
    pub notes: Notes,
    pub violations: Vec<String>,
}

/// The clients' log, and the next step of the script.
pub struct Scenario {
    pub client_log: Shared,
    next: usize,
}

/// Runs the script with a fault at a step, with a loss of power if wished, and then all workflows to their ends.
///
/// # Errors
/// A node cannot be started; anything else is a violation.
pub async fn live(
    node_dir: &NodeDir,
    step: u64,
    blow: Blow,
    power_fails: bool,
) -> anyhow::Result<(Outcome, Shared, Vec<Run>)> {
    let mut scenario = Scenario { client_log: Shared::default(), next: 0 };
    let mut outcome = Outcome::default();
    let mut node = node_dir.start_under_shim(step, blow)?;
    if scenario.begin(&mut node).await.is_err() {
        outcome.interrupted = true;
        outcome.went_on = scenario.go_on(&mut node, &mut outcome).await?;
    }
    outcome.end(node, blow).await?;
    outcome.notes = Notes::read(&node_dir.events())?;
    outcome.hit = outcome.notes.steps.is_none_or(|steps| step <= steps) && step > 0;
    if power_fails {
        outcome.lost_bytes = outcome.notes.lose_power()?;
    }
    let mut node = node_dir.start()?;
    let runs = match scenario.finish(&mut node).await {
        Ok(runs) => runs,
        Err(error) => {
            outcome.violations.push(format!("after the blow: {error:#}"));
            Vec::new()
        }
    };
    outcome.violations.extend(check(&scenario.client_log.open(), &runs));
    Ok((outcome, scenario.client_log.clone(), runs))
}

impl Outcome {
    /// Ends a node, and looks how it does that.
    async fn end(&mut self, mut node: Node, blow: Blow) -> anyhow::Result<()> {
        if node.end()?.is_none() {
            node.ask_to_stop()?;
        }
        match (node.ended().await?, blow) {
            (None, _) => self.violations.push("the node does not end".into()),
            (Some(status), Blow::Error(_)) if status.code().is_none_or(|code| code > 2) => {
                self.violations.push(format!("the node ended with {status}"));
            }
            (Some(_), _) => {}
        }
        Ok(())
    }
}

impl Scenario {
    /// The script, until a call fails. What was refused is not done.
    async fn begin(&mut self, node: &mut Node) -> anyhow::Result<()> {
        let client = Client { channel: node.connect().await?, client_log: self.client_log.clone() };
        for act in &SCRIPT {
            let done = match act {
                Act::Query(id) => client.query_and_work(id).await,
                act => client.act(*act).await,
            };
            self.next += usize::from(!done.as_ref().is_err_and(is_definite));
            done?;
        }
        Ok(())
    }

    /// Continues with a node after its fault; false if the node ended. Only its end shows which.
    async fn go_on(&mut self, node: &mut Node, outcome: &mut Outcome) -> anyhow::Result<bool> {
        match self.finish(node).await {
            Ok(_runs) => Ok(true),
            Err(_) if node.ended().await?.is_some() => Ok(false),
            Err(error) => {
                outcome.violations.push(format!("the node neither went on nor ended: {error:#}"));
                Ok(false)
            }
        }
    }

    /// Everything that is left, with workers beside it; all runs as they stand at the end.
    async fn finish(&mut self, node: &mut Node) -> anyhow::Result<Vec<Run>> {
        let channel = node.connect().await?;
        let work = patience::answer("everything that is left", self.finish_at(channel.clone()));
        let ends = async {
            let mut looks = patience::looks();
            loop {
                looks.tick().await;
                if let Some(status) = node.end()? {
                    bail!("the node ended: {status}");
                }
            }
        };
        let finished = tokio::select! {
            finished = work => finished,
            ended = ends => return ended,
        };
        if let Ok(finished) = finished {
            finished?;
        }
        // Late or not: the histories show what is missing.
        histories(&Client { channel, client_log: Shared::default() }).await
    }

    async fn finish_at(&mut self, channel: Channel) -> anyhow::Result<()> {
        let client = Client { channel, client_log: self.client_log.clone() };
        self.repeat_unanswered(&client).await?;
        let others = async {
            let mut looks = patience::looks();
            while let Some(act) = SCRIPT.get(self.next) {
                // Before it is sent: should the node end meanwhile, it is among those without an answer.
                self.next += 1;
                if matches!(act, Act::Work | Act::Labour) {
                    continue;
                }
                let done = self.insist(&client, *act).await;
                if !matches!(done, Ok(true)) {
                    self.next -= 1;
                    done?;
                    looks.tick().await;
                }
            }
            all_closed(&client).await
        };
        tokio::select! {
            finished = others => finished,
            () = work(&client) => bail!("workers never end"),
            () = labour(&client) => bail!("workers never end"),
        }
    }

    /// A call until there is an answer that says something; false if it was refused for now.
    async fn insist(&self, client: &Client, act: Act) -> anyhow::Result<bool> {
        let Err(status) = client.act(act).await else { return Ok(true) };
        anyhow::ensure!(is_passing(&status), "{act:?} is refused: {status:?}");
        if is_definite(&status) || matches!(act, Act::Query(_) | Act::Read(_)) {
            return Ok(false);
        }
        self.repeat_unanswered(client).await?;
        Ok(true)
    }

    /// What may have been applied is sent again, as it was: once is enough for the server to know it.
    async fn repeat_unanswered(&self, client: &Client) -> anyhow::Result<()> {
        let unanswered: Vec<usize> = {
            let client_log = self.client_log.open();
            let unanswered =
                client_log.calls.iter().enumerate().filter(|(_, call)| call.fate == Fate::Unknown);
            unanswered.filter(|(_, call)| !call.path.contains("/Poll")).map(|(number, _)| number).collect()
        };
        for number in unanswered {
            let mut looks = patience::looks();
            while client.repeat(number).await.as_ref().is_err_and(is_passing) {
                looks.tick().await;
            }
        }
        Ok(())
    }
}

async fn work(client: &Client) {
    let mut looks = patience::looks();
    loop {
        if client.work().await.is_err() {
            looks.tick().await;
        }
    }
}

async fn labour(client: &Client) {
    let mut looks = patience::looks();
    loop {
        if client.labour().await.is_err() {
            looks.tick().await;
        }
    }
}

/// Waits until every workflow has come to its end. All of them have been started.
async fn all_closed(client: &Client) -> anyhow::Result<()> {
    let reader = Client { channel: client.channel.clone(), client_log: Shared::default() };
    let mut looks = patience::looks();
    let mut open: Vec<_> = WORKFLOWS.iter().collect();
    while !open.is_empty() {
        looks.tick().await;
        let mut still = Vec::new();
        for workflow in open {
            let last = match reader.read(workflow.id, "").await {
                Err(status) if status.code() == Code::NotFound => bail!("{} is not there", workflow.id),
                answer => answer.unwrap_or_default(),
            };
            let runs = 1 + usize::from(!origin(&last).0.is_empty());
            if !is_closed(&last) || runs != workflow.runs {
                still.push(workflow);
            }
        }
        open = still;
    }
    Ok(())
}

/// All runs of all workflows, each chain from its first one on.
async fn histories(client: &Client) -> anyhow::Result<Vec<Run>> {
    let mut all = Vec::new();
    for workflow in &WORKFLOWS {
        let mut chain = Vec::new();
        let mut run_id = String::new();
        loop {
            let events = match client.read(workflow.id, &run_id).await {
                Err(status) if status.code() == Code::NotFound => break,
                answer => answer.with_context(|| format!("the history of {} {run_id}", workflow.id))?,
            };
            let (before, first) = origin(&events);
            if run_id.is_empty() {
                run_id = client.latest(workflow.id).await?;
            }
            chain.push(Run { workflow_id: workflow.id.into(), run_id, events });
            run_id = before;
            if run_id.is_empty() || first.is_empty() {
                break;
            }
        }
        all.extend(chain.into_iter().rev());
    }
    Ok(all)
}
