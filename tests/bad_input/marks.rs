//! What is beyond a mark is taken, logged and counted, once for a run; what is exactly there is not.

use std::path::PathBuf;

use anyhow::{Context, ensure};
use bytes::Bytes;
use everlog_temporal_api::workflowservice::DescribeWorkflowExecutionResponse;
use everlog_tests::page;
use everlog_tests::server::{LOG, Server};

use crate::ids::signal_for;
use crate::sizes::memo;
use crate::worker::upsert_memo;
use crate::world::{Run, World, payloads_of};

const EVENTS: i64 = 5;
const HISTORY_BYTES: i64 = 20_000;
/// The other marks are where they are by default.
const STATE_BYTES: usize = 1 << 20;
const MEMO_BYTES: usize = 2_048;
const BLOB_BYTES: usize = 512 << 10;

const HISTORIES: &str = "everlog_partition_large_histories_total";
const STATES: &str = "everlog_partition_large_states_total";
const MEMOS: &str = "everlog_partition_large_memos_total";
const PAYLOADS: &str = "everlog_partition_large_payloads_total";

/// How a log line names what there is too much of.
const WORDS: [&str; 5] =
    ["events", "bytes of its history", "bytes of its state", "bytes of its memo", "bytes of one payload"];

struct Harness {
    server: Server,
    world: World,
    log: PathBuf,
    _dir: tempfile::TempDir,
}

async fn harness() -> anyhow::Result<Harness> {
    let dir = tempfile::tempdir()?;
    let log = dir.path().join("log");
    let path = log.to_str().context("a path of text")?;
    let (events, bytes) = (EVENTS.to_string(), HISTORY_BYTES.to_string());
    let variables = [
        ("EVERLOG_LIMITS__HISTORY_EVENTS_WARN", events.as_str()),
        ("EVERLOG_LIMITS__HISTORY_BYTES_WARN", &bytes),
        (LOG, path),
    ];
    let server = Server::start(&dir.path().join("data"), &variables).await?;
    let world = World::new(server.connect().await?).await?;
    Ok(Harness { server, world, log, _dir: dir })
}

impl Harness {
    /// How many runs were beyond a mark so far.
    async fn counted(&self, metric: &str) -> anyhow::Result<f64> {
        page::metric(self.server.metrics_address(), metric).await?.context("the metric is there")
    }

    /// What the log says of a run.
    fn said(&self, run: &Run) -> anyhow::Result<Vec<&'static str>> {
        let log = std::fs::read_to_string(&self.log)?;
        let lines = log.lines().filter(|line| line.contains("\"WARN\"") && line.contains(&run.run_id));
        let said = lines.flat_map(|line| {
            let of = |words: &&&str| line.contains(&format!("a run is beyond its mark of {words},"));
            WORDS.iter().filter(of).copied().collect::<Vec<_>>()
        });
        Ok(said.collect())
    }

    async fn signal(&self, run: &Run, input: Option<Bytes>) -> anyhow::Result<()> {
        let mut signal = signal_for(&self.world, &run.id);
        signal.input = input;
        self.world.send(signal).await?;
        Ok(())
    }

    async fn history_bytes(&self, run: &Run) -> anyhow::Result<i64> {
        let described: DescribeWorkflowExecutionResponse =
            self.world.answer(self.world.describe(&run.id)).await?;
        Ok(described.workflow_execution_info.context("a description has it")?.history_size_bytes)
    }
}

/// An encoded memo of exactly so many bytes.
fn memo_of(encoded_bytes: usize) -> Bytes {
    let around = memo(encoded_bytes).len() - encoded_bytes;
    memo(encoded_bytes - around)
}

#[tokio::test]
async fn a_memo_and_a_state_that_are_beyond_their_marks_are_told_once() -> anyhow::Result<()> {
    let harness = harness().await?;
    let rows: [(&str, usize, f64, &[&str]); 4] = [
        (MEMOS, MEMO_BYTES, 0.0, &[]),
        (MEMOS, MEMO_BYTES + 1, 1.0, &["bytes of its memo"]),
        (STATES, STATE_BYTES, 0.0, &["bytes of its history", "bytes of its memo"]),
        (STATES, STATE_BYTES + 1, 1.0, &["bytes of its history", "bytes of its state", "bytes of its memo"]),
    ];
    for (metric, bytes, more, words) in rows {
        let before = harness.counted(metric).await?;
        let run = harness.world.begin(|start| start.memo = Some(memo_of(bytes))).await?;
        let observation = (harness.counted(metric).await? - before, harness.said(&run)?);
        ensure!(observation.0 == more && observation.1 == words, "a memo of {bytes} bytes: {observation:?}");
    }
    let run = harness.world.begin(|start| start.memo = Some(memo_of(MEMO_BYTES + 1))).await?;
    let before = harness.counted(MEMOS).await?;
    for bytes in [MEMO_BYTES, MEMO_BYTES + 1] {
        harness.world.work(&run, vec![upsert_memo(memo_of(bytes))]).await?;
        harness.signal(&run, None).await?;
    }
    let said = harness.said(&run)?;
    let memos = said.iter().filter(|words| **words == "bytes of its memo").count();
    ensure!(harness.counted(MEMOS).await? == before && memos == 1, "it was told before: {said:?}");
    Ok(())
}

#[tokio::test]
async fn a_payload_that_is_beyond_its_mark_is_told_once() -> anyhow::Result<()> {
    let harness = harness().await?;
    let run = harness.world.begin(|_fine| {}).await?;
    for (bytes, runs) in [(BLOB_BYTES, 0.0), (BLOB_BYTES + 1, 1.0), (BLOB_BYTES + 1, 1.0)] {
        harness.signal(&run, payloads_of(bytes)).await?;
        let (observation, said) = (harness.counted(PAYLOADS).await?, harness.said(&run)?);
        let lines = said.iter().filter(|words| **words == "bytes of one payload").count();
        ensure!((observation, lines as f64) == (runs, runs), "{bytes} bytes: {observation}, {said:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_history_that_is_beyond_its_mark_of_events_is_told_once() -> anyhow::Result<()> {
    let harness = harness().await?;
    let run = harness.world.begin(|_fine| {}).await?;
    for (events, histories) in [(3, 0.0), (4, 0.0), (EVENTS, 0.0), (EVENTS + 1, 1.0), (EVENTS + 2, 1.0)] {
        harness.signal(&run, None).await?;
        ensure!(harness.world.history_length(&run.id).await? == events);
        let (observation, said) = (harness.counted(HISTORIES).await?, harness.said(&run)?);
        let expected = if histories > 0.0 { &["events"][..] } else { &[] };
        ensure!(observation == histories && said == expected, "{events} events: {observation}, {said:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_history_that_is_beyond_its_mark_of_bytes_is_told() -> anyhow::Result<()> {
    const RUNS_MAX: usize = 200;
    let harness = harness().await?;
    // A request id and the time of an event take a byte more or less: runs are begun until they have come to both sides.
    let (mut at, mut beyond, mut runs, mut around) = (0, 0, 0, 0);
    while at == 0 || beyond == 0 {
        runs += 1;
        ensure!(runs < RUNS_MAX, "{at} at the mark, {beyond} a byte beyond it");
        let run = harness.world.begin(|_fine| {}).await?;
        let begun = harness.history_bytes(&run).await?;
        let input = HISTORY_BYTES - begun - around + i64::from(runs % 2 == 0);
        let before = harness.counted(HISTORIES).await?;
        harness.signal(&run, payloads_of(usize::try_from(input)?)).await?;
        let bytes = harness.history_bytes(&run).await?;
        around = bytes - begun - input;
        let (more, said) = (harness.counted(HISTORIES).await? - before, harness.said(&run)?);
        let is_beyond = bytes > HISTORY_BYTES;
        let expected = if is_beyond { &["bytes of its history"][..] } else { &[] };
        ensure!(
            more == f64::from(u8::from(is_beyond)) && said == expected,
            "{bytes} bytes: {more}, {said:?}"
        );
        at += usize::from(bytes == HISTORY_BYTES);
        beyond += usize::from(bytes == HISTORY_BYTES + 1);
    }
    Ok(())
}
