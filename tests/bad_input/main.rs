//! Bad input: whatever is sent, the answer is the documented one, nothing stops, and a refusal leaves nothing.
//!
//! The table has the 85 kinds of bad input that are known from Temporal's server, with its codes and messages. With
//! EVERLOG_BAD_INPUT_REFERENCE=host:port the same table is also sent there, and the differences are printed.

mod batches;
mod commands;
mod contents;
mod crowds;
mod holding;
mod ids;
mod limits;
mod lists;
mod marks;
mod namespaces;
mod poison;
mod polls;
mod queues;
mod resets;
mod row;
mod schedules;
mod sizes;
mod starts;
mod tokens;
mod transport;
mod updates;
mod worker;
mod world;

use std::collections::BTreeSet;

use anyhow::Context;
use everlog_tests::page;
use everlog_tests::server::Server;
use tonic::Code;
use tonic::transport::Endpoint;

use row::{Note, Observation, Row};
use world::{BYSTANDER, World};

/// Kinds of bad input that the table must cover.
const KINDS: u8 = 85;
/// An update without a worker waits for as long as it can: what is answered at once is answered before.
const PATIENT: &[(&str, &str)] = &[("EVERLOG_GATEWAY__HISTORY_WAIT_MS", "60000")];

fn table() -> Vec<Row> {
    let mut rows = ids::rows();
    rows.extend(namespaces::rows());
    rows.extend(starts::rows());
    rows.extend(starts::attribute_rows());
    rows.extend(sizes::rows());
    rows.extend(commands::rows());
    rows.extend(commands::attribute_rows());
    rows.extend(tokens::rows());
    rows.extend(polls::rows());
    rows.extend(queues::rows());
    rows.extend(transport::rows());
    rows.extend(updates::rows());
    rows.extend(resets::rows());
    rows.extend(batches::rows());
    rows.extend(schedules::rows());
    rows.extend(lists::rows());
    rows.sort_by_key(|row| row.number);
    rows
}

#[test]
fn the_table_covers_every_kind() {
    let covered: BTreeSet<u8> = table().iter().map(|row| row.number).collect();
    assert!(covered.iter().copied().eq(1..=KINDS), "{covered:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_is_refused_as_documented_and_leaves_nothing() -> anyhow::Result<()> {
    let (dir, tight_dir) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let mut server = Server::start(dir.path(), PATIENT).await?;
    let mut tight_server = Server::start(tight_dir.path(), sizes::TIGHT).await?;
    let world = World::new(server.connect().await?).await?;
    let tight_world = World::new(tight_server.connect().await?).await?;
    let mut faults = Vec::new();
    let rows = table();
    for row in &rows {
        let world = if row.tight { &tight_world } else { &world };
        faults.extend(try_row(row, world).await);
    }
    for server in [&mut server, &mut tight_server] {
        faults.extend(hurt(server).await?);
    }
    let (later, differ) = (
        count(&rows, |note| matches!(note, Note::Later(_))),
        count(&rows, |note| matches!(note, Note::Differs(_))),
    );
    println!(
        "{} rows of {KINDS} kinds: {later} of later features, {differ} other than Temporal on purpose",
        rows.len()
    );
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
    Ok(())
}

fn count(rows: &[Row], wanted: fn(&Note) -> bool) -> usize {
    rows.iter().filter(|row| wanted(&row.expected.note)).count()
}

/// Sends a row's input and looks at the answer and at what it left.
async fn try_row(row: &Row, world: &World) -> Vec<String> {
    let observation = match (row.action)(world.clone()).await {
        Ok(observation) => observation,
        Err(error) => return vec![format!("{row}\n    the story breaks off: {error:#}")],
    };
    let mut faults: Vec<String> = row.judge(&observation).into_iter().collect();
    faults.extend(traces(row, &observation, world).await);
    faults
}

/// What a refusal left behind and must not have.
async fn traces(row: &Row, observation: &Observation, world: &World) -> Option<String> {
    if observation.code != Some(Code::Ok)
        && let Some(id) = &observation.unknown_id
    {
        let found = world.send(world.describe(id)).await;
        if !found.as_ref().is_err_and(|status| status.code() == Code::NotFound) {
            return Some(format!("{row}\n    was refused, and {id} is known: {found:?}"));
        }
    }
    match world.history_length(BYSTANDER).await {
        Ok(2) => None,
        other => Some(format!("{row}\n    the bystander is not what it was: {other:?}")),
    }
}

/// What the server has suffered.
async fn hurt(server: &mut Server) -> anyhow::Result<Vec<String>> {
    let mut faults = Vec::new();
    if !server.is_running() {
        faults.push("the server has ended".to_owned());
        return Ok(faults);
    }
    let panics = page::metric(server.metrics_address(), "service_panics").await?;
    if panics.unwrap_or(0.0) > 0.0 {
        faults.push(format!("{panics:?} panics"));
    }
    let (status, page) = page::get(server.metrics_address(), "/health/ready").await?;
    if status != 200 {
        faults.push(format!("the server is not ready: {page}"));
    }
    let world = World::new(server.connect().await?).await.context("the server serves no longer");
    faults.extend(world.err().map(|error| format!("{error:#}")));
    Ok(faults)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reference_server_answers_the_same() -> anyhow::Result<()> {
    let Ok(address) = std::env::var("EVERLOG_BAD_INPUT_REFERENCE") else {
        println!("skipped: EVERLOG_BAD_INPUT_REFERENCE names no server to compare with");
        return Ok(());
    };
    let channel = Endpoint::from_shared(format!("http://{address}"))?.connect().await?;
    let world = World::new(channel).await?;
    let (mut same, mut other, mut left_out) = (0, 0, 0);
    for row in table() {
        if row.tight || matches!(row.expected.note, Note::Later(_)) {
            left_out += 1;
            continue;
        }
        let faults = try_row(&row, &world).await;
        if faults.is_empty() {
            same += 1
        } else {
            other += 1
        }
        faults.iter().for_each(|fault| println!("{fault}"));
    }
    println!("{same} rows the same, {other} not, {left_out} left out");
    Ok(())
}
