//! A full disk: nothing more is taken, nothing acknowledged is lost, and with space it goes on.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use everlog_temporal_api::full::temporal::api::history::v1::history_event::Attributes;
use everlog_temporal_api::{errordetails, rpc};
use everlog_tests::server::Server;
use everlog_tests::{page, raw};
use prost::Message;
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::client::{events, signal, start, until};

const MIB: u64 = 1 << 20;
const DISK_BYTES: u64 = 96 * MIB;
const SIGNAL_BYTES: usize = 200_000;
const RUNS: usize = 4;
/// More than the disk has room for.
const SIGNALS_MAX: usize = 2_000;
/// `ResourceExhaustedCause::PersistenceStorageLimit`.
const STORAGE_LIMIT: i32 = 9;

/// A small disk of its own, in memory; gone when dropped.
struct Disk {
    dir: tempfile::TempDir,
}

impl Disk {
    /// None where this process may not mount, which only a machine of a developer may say.
    fn mount() -> anyhow::Result<Option<Self>> {
        let disk = Self {
            dir: tempfile::tempdir()?,
        };
        let size = format!("size={DISK_BYTES}");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "everlog-test"])
            .arg(disk.path())
            .output();
        match mounted {
            Ok(output) if output.status.success() => Ok(Some(disk)),
            other => {
                let why = other.map(|output| String::from_utf8_lossy(&output.stderr).trim().to_owned());
                anyhow::ensure!(
                    std::env::var("CI").as_deref() != Ok("true"),
                    "a disk cannot be mounted: {why:?}"
                );
                println!("SKIPPED: a small disk cannot be mounted here (it takes root): {why:?}");
                Ok(None)
            }
        }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn data(&self) -> PathBuf {
        self.path().join("data")
    }

    fn grow(&self) -> anyhow::Result<()> {
        let size = format!("remount,size={}", 4 * DISK_BYTES);
        let status = Command::new("mount")
            .args(["-o", &size])
            .arg(self.path())
            .status()?;
        anyhow::ensure!(status.success(), "the disk cannot be made larger");
        Ok(())
    }

    /// Takes every byte that is left.
    fn fill(&self) -> anyhow::Result<PathBuf> {
        let path = self.path().join("ballast");
        let mut ballast = File::create(&path)?;
        for chunk in [1 << 20, 4_096, 1] {
            let zeros = vec![0; chunk];
            while ballast.write_all(&zeros).is_ok() {}
        }
        Ok(path)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // The folder below it is removed after this.
        drop(Command::new("umount").arg("--lazy").arg(self.path()).status());
    }
}

/// What a client was told.
#[derive(Default)]
struct Ledger {
    acknowledged: BTreeSet<(String, String)>,
    sent: usize,
}

impl Ledger {
    async fn signal(&mut self, channel: &Channel, bytes: usize) -> Result<(), Status> {
        let (id, name) = (
            format!("run-{}", self.sent % RUNS),
            format!("signal-{}", self.sent),
        );
        self.sent += 1;
        signal(channel, &id, &name, bytes).await?;
        self.acknowledged.insert((id, name));
        Ok(())
    }

    /// Every acknowledged signal is there once, and none that was not sent.
    async fn check(&self, channel: &Channel) -> anyhow::Result<()> {
        let mut found = BTreeSet::new();
        for number in 0..RUNS {
            let id = format!("run-{number}");
            for event in events(channel, &id).await? {
                if let Some(Attributes::WorkflowExecutionSignaledEventAttributes(signaled)) = event.attributes
                {
                    let signal = (id.clone(), signaled.signal_name);
                    anyhow::ensure!(found.insert(signal.clone()), "{signal:?} is there twice");
                }
            }
        }
        let lost: Vec<_> = self.acknowledged.difference(&found).collect();
        anyhow::ensure!(lost.is_empty(), "acknowledged and lost: {lost:?}");
        Ok(())
    }
}

async fn start_runs(channel: &Channel) -> anyhow::Result<()> {
    for number in 0..RUNS {
        raw::send(channel, start(&format!("run-{number}"), "nobody")).await?;
    }
    Ok(())
}

async fn is_ready(server: &Server) -> bool {
    page::get(server.metrics_address(), "/health/ready")
        .await
        .is_ok_and(|(status, _)| status == 200)
}

/// The refusal says that the disk is full, in words, code and detail.
fn check_refusal(status: &Status) -> anyhow::Result<()> {
    anyhow::ensure!(
        status.code() == Code::ResourceExhausted,
        "refused with {status:?}"
    );
    let details = rpc::Status::decode(status.details())?.details;
    let detail = details
        .first()
        .map(|detail| detail.value.clone())
        .unwrap_or_default();
    let failure = errordetails::ResourceExhaustedFailure::decode(detail.as_slice())?;
    anyhow::ensure!(failure.cause == STORAGE_LIMIT, "its cause is {}", failure.cause);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_writes_loses_nothing_and_goes_on_with_space() -> anyhow::Result<()> {
    let Some(disk) = Disk::mount()? else { return Ok(()) };
    let free_bytes_min = (24 * MIB).to_string();
    let mut server = Server::start(&disk.data(), &[("EVERLOG_LOG__FREE_BYTES_MIN", &free_bytes_min)]).await?;
    let channel = server.connect().await?;
    start_runs(&channel).await?;
    let mut ledger = Ledger::default();
    let refusal = loop {
        anyhow::ensure!(ledger.sent < SIGNALS_MAX, "the disk never fills");
        if let Err(status) = ledger.signal(&channel, SIGNAL_BYTES).await {
            break status;
        }
    };
    println!(
        "{} signals fitted; then: {:?} {:?}",
        ledger.acknowledged.len(),
        refusal.code(),
        refusal.message()
    );
    check_refusal(&refusal)?;
    // Alive, not ready, and every reader can see why.
    until("readiness ends", async || !is_ready(&server).await).await?;
    let (status, page) = page::get(server.metrics_address(), "/health/ready").await?;
    anyhow::ensure!(status == 503 && page.contains("disk is full"), "{status} {page}");
    let (status, page) = page::get(server.metrics_address(), "/health/live").await?;
    anyhow::ensure!(status == 200, "{status} {page}");
    anyhow::ensure!(page::metric(server.metrics_address(), "everlog_disk_full").await? == Some(1.0));
    // Whoever asks again is told the same, whatever it is that would be written; readers are served.
    let begin = raw::send(&channel, start("late", "nobody")).await;
    check_refusal(&begin.err().unwrap_or_else(|| Status::ok("taken")))?;
    for _ in 0..10 {
        check_refusal(
            &ledger
                .signal(&channel, 1)
                .await
                .err()
                .unwrap_or_else(|| Status::ok("taken")),
        )?;
    }
    ledger.check(&channel).await?;

    disk.grow()?;
    until("writes are taken again", async || {
        ledger.signal(&channel, SIGNAL_BYTES).await.is_ok()
    })
    .await?;
    until("it is ready again", async || is_ready(&server).await).await?;
    anyhow::ensure!(page::metric(server.metrics_address(), "everlog_disk_full").await? == Some(0.0));
    raw::send(&channel, start("late", "nobody")).await?;
    ledger.check(&channel).await?;
    server.crash().await?;
    ledger.check(&server.connect().await?).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_without_a_byte_left_loses_nothing() -> anyhow::Result<()> {
    let Some(disk) = Disk::mount()? else { return Ok(()) };
    let variables = [("EVERLOG_LOG__FREE_BYTES_MIN", "1048576")];
    let mut server = Server::start(&disk.data(), &variables).await?;
    let channel = server.connect().await?;
    start_runs(&channel).await?;
    let mut ledger = Ledger::default();
    for _ in 0..40 {
        ledger.signal(&channel, SIGNAL_BYTES).await?;
    }
    // Somebody else takes all the space at once, while calls go on.
    let ballast = disk.fill()?;
    for _ in 0..40 {
        if let Err(status) = ledger.signal(&channel, SIGNAL_BYTES).await {
            let fits = matches!(
                status.code(),
                Code::ResourceExhausted | Code::Unavailable | Code::Unknown
            );
            anyhow::ensure!(fits, "refused with {status:?}");
        }
    }
    let acknowledged = ledger.acknowledged.len();
    until("readiness ends", async || !is_ready(&server).await).await?;
    fs::remove_file(ballast)?;
    let went_on = server.is_running();
    if !went_on {
        drop(server);
        server = Server::start(&disk.data(), &variables).await?;
    }
    let channel = server.connect().await?;
    until("writes are taken again", async || {
        ledger.signal(&channel, SIGNAL_BYTES).await.is_ok()
    })
    .await?;
    println!("{acknowledged} acknowledged before and during; the process went on by itself: {went_on}");
    ledger.check(&channel).await?;
    server.crash().await?;
    ledger.check(&server.connect().await?).await
}
