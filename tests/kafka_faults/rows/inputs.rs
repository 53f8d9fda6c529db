//! Bad inputs: records that are too large or are sent again.

use std::collections::BTreeSet;

use everlog_temporal_api::full::temporal::api::common::v1::{Payload, Payloads};
use everlog_temporal_api::workflowservice::SignalWorkflowExecutionRequest;
use everlog_tests::dice::Dice;
use everlog_tests::fate::Fate;
use prost::Message;

use crate::client::{fate_of, signal};
use crate::client_log::Deed;
use crate::cluster::FaultCluster;
use crate::environment::{Environment, Outcome, Size};

/// `limits.blob_bytes_max` as it is by default.
const BLOB_BYTES_MAX: usize = 2 << 20;

/// F28: inputs around the limit, and many that are just below it: none stops a producer.
pub async fn oversized(cluster: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    let environment = Environment::open(&cluster, "f28", size, &[]).await?;
    let mut load = environment.load();
    let mut outcome = Outcome::default();
    load.further(size.open as u64 / 2).await?;
    let (mut taken, mut refused) = (0, 0);
    for time in 0..size.times {
        // Ends with a terminate, so that it takes whatever comes; more would pass what a history may have.
        let id = format!("large-{time}");
        environment.client.start(&id).await?;
        for bytes in [BLOB_BYTES_MAX - 1, BLOB_BYTES_MAX, BLOB_BYTES_MAX + 1, 2 * BLOB_BYTES_MAX, 8 << 20] {
            let deed = Deed::Signal { name: "large".into(), in_order: false };
            let make = |identity| large(&id, bytes, identity);
            outcome.injected += 1;
            match fate_of(&environment.client.once(&id, deed, make).await) {
                Fate::Acked => taken += 1,
                Fate::Refused => refused += 1,
                Fate::Unknown => outcome.violations.push(format!("{bytes} bytes: nobody knows")),
            }
        }
        environment.client.terminate(&id).await?;
    }
    load.further(size.open as u64 / 2).await?;
    outcome.seen = refused;
    outcome.how = format!("{taken} were taken, {refused} refused");
    if taken == 0 || refused == 0 {
        outcome.violations.push("one side of the limit was not met".into());
    }
    Ok(environment.finish(load, outcome).await?.0)
}

/// F25: records that come again under the same command id: at once, later, after the end of their workflow, and after a
/// node's death.
pub async fn repeated(cluster: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    let mut environment = Environment::open(&cluster, "f25", size, &[]).await?;
    let (mut load, commands) = environment.load_with_records()?;
    let mut dice = Dice::new(size.seed);
    let mut outcome = Outcome::default();
    for _ in 0..size.times {
        load.further(size.open as u64).await?;
        outcome.injected += commands.again(20, &mut dice).await?;
        environment.node.kill()?;
        outcome.injected += commands.again(20, &mut dice).await?;
        environment.node.start_again()?;
        environment.node.ready().await?;
    }
    load.further(size.open as u64).await?;
    let injected = outcome.injected;
    let (mut outcome, observations) = environment.finish(load, outcome).await?;
    let once: BTreeSet<&str> = observations.replies.iter().map(|told| told.command_id.as_str()).collect();
    outcome.seen = (observations.replies.len() - once.len()) as u64;
    outcome.how = format!("{injected} records came again, {} of them were answered", outcome.seen);
    Ok(outcome)
}

/// A signal whose input has about so many bytes, encoded exactly so many where that can be.
fn large(id: &str, bytes: usize, identity: String) -> SignalWorkflowExecutionRequest {
    let payloads = |size: usize| {
        let data = vec![b'x'; size].into();
        Payloads { payloads: vec![Payload { data, ..Payload::default() }] }.encode_to_vec()
    };
    let around = payloads(bytes).len() - bytes;
    SignalWorkflowExecutionRequest {
        input: Some(payloads(bytes - around).into()),
        ..signal(id, "large", identity)
    }
}
