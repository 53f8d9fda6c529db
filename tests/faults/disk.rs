//! A full disk: nothing more is taken, nothing acknowledged is lost, and with space it goes on.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use everlog_temporal_api::enums::ResourceExhaustedCause;
use everlog_temporal_api::full::temporal::api::history::v1::history_event::Attributes;
use everlog_temporal_api::{errordetails, rpc};
use everlog_tests::page;
use everlog_tests::server::Server;
use prost::Message;
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::client::{events, send, signal, start, until};

const MIB: u64 = 1 << 20;
const SIGNAL_BYTES: usize = 200_000;
const RUNS: usize = 4;
/// As many in a row mean that the disk stays full.
const REFUSALS: usize = 8;
const PAUSE: Duration = Duration::from_millis(150);
/// More than the disk has room for.
const SIGNALS_MAX: usize = 2_000;

/// A small disk of its own, in memory; gone when dropped.
struct Disk {
    dir: tempfile::TempDir,
}

impl Disk {
    /// None where this process may not mount, which only a machine of a developer may say.
    fn mount(bytes: u64) -> anyhow::Result<Option<Self>> {
        let disk = Self { dir: tempfile::tempdir()? };
        let size = format!("size={bytes}");
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

    fn grow(&self, bytes: u64) -> anyhow::Result<()> {
        let size = format!("remount,size={bytes}");
        let status = Command::new("mount").args(["-o", &size]).arg(self.path()).status()?;
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
        let (id, name) = (format!("run-{}", self.sent % RUNS), format!("signal-{}", self.sent));
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
        send(channel, start(&format!("run-{number}"), "nobody")).await?;
    }
    Ok(())
}

async fn is_ready(server: &Server) -> bool {
    page::get(server.metrics_address(), "/health/ready").await.is_ok_and(|(status, _)| status == 200)
}

/// The refusal says that the disk is full, in words, code and detail.
fn check_refusal(status: &Status) -> anyhow::Result<()> {
    anyhow::ensure!(status.code() == Code::ResourceExhausted, "refused with {status:?}");
    let details = rpc::Status::decode(status.details())?.details;
    let detail = details.first().map(|detail| detail.value.clone()).unwrap_or_default();
    let failure = errordetails::ResourceExhaustedFailure::decode(detail.as_slice())?;
    let cause = failure.cause();
    anyhow::ensure!(cause == ResourceExhaustedCause::PersistenceStorageLimit, "its cause is {cause:?}");
    Ok(())
}

/// Sends signals until they are refused for good: at first the database still tidies up and makes room again. The
/// first refusal of all.
async fn fill(ledger: &mut Ledger, channel: &Channel) -> anyhow::Result<Status> {
    let mut pause = tokio::time::interval(PAUSE);
    let (mut first, mut refusals) = (None, 0);
    while ledger.sent < SIGNALS_MAX {
        let Err(status) = ledger.signal(channel, SIGNAL_BYTES).await else {
            refusals = 0;
            continue;
        };
        refusals += 1;
        let is_over = refusals == REFUSALS || status.code() != Code::ResourceExhausted;
        let first = first.get_or_insert(status);
        if is_over {
            let (count, code) = (ledger.acknowledged.len(), first.code());
            println!("{count} signals fitted; the first refusal: {code:?} {:?}", first.message());
            return Ok(first.clone());
        }
        pause.tick().await;
    }
    anyhow::bail!("the disk never fills")
}

/// Alive, not ready, and every reader can see why.
async fn shows_that_it_is_full(server: &Server) -> anyhow::Result<()> {
    until("readiness ends", async || !is_ready(server).await).await?;
    let (status, page) = page::get(server.metrics_address(), "/health/ready").await?;
    anyhow::ensure!(status == 503 && page.contains("disk is full"), "{status} {page}");
    let (status, page) = page::get(server.metrics_address(), "/health/live").await?;
    anyhow::ensure!(status == 200, "{status} {page}");
    anyhow::ensure!(page::metric(server.metrics_address(), "everlog_disk_full").await? == Some(1.0));
    Ok(())
}

/// The refusals of a server on a full disk, to whoever asks; readers are served. Where what it had in hand could not
/// be written either, it ends instead.
async fn refuses(server: &Server, ledger: &mut Ledger, channel: &Channel) -> anyhow::Result<()> {
    shows_that_it_is_full(server).await?;
    for _ in 0..10 {
        if let Err(status) = ledger.signal(channel, 1).await {
            check_refusal(&status)?;
        }
    }
    ledger.check(channel).await
}

/// Fills a disk of so many bytes, gives it space again, and looks at everything in between.
async fn fill_and_free(disk_bytes: u64, variables: &[(&str, &str)]) -> anyhow::Result<()> {
    let Some(disk) = Disk::mount(disk_bytes)? else {
        return Ok(());
    };
    let mut server = Server::start(&disk.data(), variables).await?;
    let channel = server.connect().await?;
    start_runs(&channel).await?;
    let mut ledger = Ledger::default();
    let refusal = fill(&mut ledger, &channel).await?;
    let refused = refuses(&server, &mut ledger, &channel).await;
    disk.grow(4 * disk_bytes)?;
    let settled = until("it serves or ends", async || !server.is_running() || is_ready(&server).await).await;
    let went_on = settled.is_ok() && server.is_running();
    println!("the process went on by itself: {went_on}");
    if went_on {
        check_refusal(&refusal)?;
        refused?;
    } else {
        drop(server);
        server = Server::start(&disk.data(), variables).await?;
    }
    let channel = server.connect().await?;
    until("writes are taken again", async || ledger.signal(&channel, SIGNAL_BYTES).await.is_ok()).await?;
    until("it is ready again", async || is_ready(&server).await).await?;
    anyhow::ensure!(page::metric(server.metrics_address(), "everlog_disk_full").await? == Some(0.0));
    send(&channel, start("late", "nobody")).await?;
    ledger.check(&channel).await?;
    server.crash().await?;
    ledger.check(&server.connect().await?).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_loses_nothing_and_goes_on_with_space() -> anyhow::Result<()> {
    fill_and_free(192 * MIB, &[]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_without_a_byte_left_loses_nothing() -> anyhow::Result<()> {
    let Some(disk) = Disk::mount(96 * MIB)? else {
        return Ok(());
    };
    let variables =
        [("EVERLOG_LOG__FREE_BYTES_MIN", "1048576"), ("EVERLOG_MEMORY__DATABASE_BYTES", "16777216")];
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
            let fits = matches!(status.code(), Code::ResourceExhausted | Code::Unavailable | Code::Unknown);
            anyhow::ensure!(fits, "refused with {status:?}");
        }
    }
    let acknowledged = ledger.acknowledged.len();
    until("readiness ends", async || !is_ready(&server).await).await?;
    fs::remove_file(ballast)?;
    // It may end, since what it had in hand could not be written; then it is started again, as by any supervisor.
    let settled = until("it serves or ends", async || !server.is_running() || is_ready(&server).await).await;
    let went_on = settled.is_ok() && server.is_running();
    if !went_on {
        drop(server);
        server = Server::start(&disk.data(), &variables).await?;
    }
    let channel = server.connect().await?;
    until("writes are taken again", async || ledger.signal(&channel, SIGNAL_BYTES).await.is_ok()).await?;
    println!("{acknowledged} acknowledged before and during; the process went on by itself: {went_on}");
    ledger.check(&channel).await?;
    server.crash().await?;
    ledger.check(&server.connect().await?).await
}
