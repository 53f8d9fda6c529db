//! Clients of several nodes whose node dies.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context;
use everlog_temporal_api::workflowservice::{StartWorkflowExecutionRequest, StartWorkflowExecutionResponse};
use everlog_tests::fate::Fate;
use everlog_tests::patience;
use prost::Message;
use tokio::task::JoinSet;

use crate::client::{Client, Connection, start};
use crate::client_log::{Deed, Via};
use crate::cluster::FaultCluster;
use crate::environment::{Environment, Outcome, Size, TOOK_A_GROUP};
use crate::rows::several::{rejoin, rounds, until_taken};

/// Clients that start one workflow after the other at the node that dies, and what they have by then at least.
const STARTERS: usize = 6;
const STARTED: usize = 12;

/// A start with the run that it was answered with, if it was.
struct Started {
    call: usize,
    request: StartWorkflowExecutionRequest,
    run_id: Option<String>,
}

/// F6: SIGKILL of the gateway in the middle of starts; clients go to another node, and a start that is sent again has
/// the run that it had.
pub async fn killed<const NODES: usize>(cluster: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    let mut environment = Environment::of_nodes(&cluster, &format!("f6x{NODES}"), size, NODES).await?;
    let (mut load, _) = environment.load_with_records()?;
    let mut outcome = Outcome::default();
    let mut answered = 0;
    for round in 0..rounds(size) {
        load.further(size.open as u64 / 2).await?;
        let victim = round as usize % NODES;
        let (told, mut starters) = (Arc::<AtomicUsize>::default(), JoinSet::new());
        for starter in 0..STARTERS {
            let (client, place) = (environment.client.clone(), environment.node_at(victim).place()?);
            starters.spawn(start_all(client, place, format!("gateway-{round}-{starter}"), Arc::clone(&told)));
        }
        let has_started = async || told.load(Ordering::Relaxed) >= STARTED;
        patience::until("a gateway takes some starts", has_started).await?;
        let before = environment.times_said(TOOK_A_GROUP);
        environment.kill(victim)?;
        outcome.injected += 1;
        let starts: Vec<Started> = starters.join_all().await.into_iter().flatten().collect();
        let (broken_off, whole): (Vec<_>, Vec<_>) = starts.iter().partition(|start| start.run_id.is_none());
        outcome.seen += u64::from(!broken_off.is_empty() && whole.len() >= STARTED);
        answered += whole.len();
        environment.turn_from(victim)?;
        for start in starts {
            let wrong = again(&environment.client, start).await?;
            outcome.violations.extend(wrong);
        }
        until_taken(&environment, before).await?;
        rejoin(environment.node_at(victim)).await?;
        environment.turn_to_all()?;
    }
    outcome.how =
        format!("{answered} starts were answered by a node that died, and had their runs elsewhere");
    Ok(environment.finish(load, outcome).await?.0)
}

/// Starts workflows at one node until it does not answer.
async fn start_all(
    client: Client,
    place: Connection,
    prefix: String,
    told: Arc<AtomicUsize>,
) -> Vec<Started> {
    let mut all = Vec::new();
    for number in 0.. {
        let id = format!("{prefix}-{number}");
        let (call, identity) = client.client_log.sent(&id, Deed::Start, Via::Grpc);
        let request = start(&id, identity);
        let run_id = match client.ask_of(&place, &request).await {
            Ok(answer) => StartWorkflowExecutionResponse::decode(answer).ok().map(|answer| answer.run_id),
            Err(_no_answer) => None,
        };
        let is_over = run_id.is_none();
        all.push(Started { call, request, run_id });
        if is_over {
            break;
        }
        told.fetch_add(1, Ordering::Relaxed);
    }
    all
}

/// The same start twice more, at other nodes; what is wrong with the answers. In the end the workflow is terminated.
async fn again(client: &Client, started: Started) -> anyhow::Result<Option<String>> {
    let id = &started.request.workflow_id;
    let mut runs: Vec<String> = started.run_id.into_iter().collect();
    for _ in 0..2 {
        let answer = client.insist_on(&started.request).await.with_context(|| format!("{id} again"))?;
        runs.push(StartWorkflowExecutionResponse::decode(answer)?.run_id);
    }
    client.client_log.settle(started.call, Fate::Acked);
    client.terminate(id).await?;
    let is_one = runs.iter().all(|run| *run == runs[0]);
    Ok((!is_one).then(|| format!("{id}: the same start had the runs {runs:?}")))
}
