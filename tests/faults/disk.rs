//! A full disk: nothing more is taken, nothing acknowledged is lost, and with space it goes on.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, mpsc};

use anyhow::Context;
use everlog_log::Log;
use everlog_rocks::log::{Embedded, Options};
use everlog_temporal_api::enums::ResourceExhaustedCause;
use everlog_temporal_api::full::temporal::api::history::v1::history_event::Attributes;
use everlog_temporal_api::{errordetails, rpc};
use everlog_tests::page;
use everlog_tests::patience::{self, until};
use everlog_tests::server::Server;
use prost::Message;
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::client::{events, send, signal, start};

const MIB: u64 = 1 << 20;
const SIGNAL_BYTES: usize = 200_000;
const RUNS: usize = 4;
/// As many in a row mean that the disk stays full.
const REFUSALS: usize = 60;
/// More than the disk has room for.
const SIGNALS_MAX: usize = 2_000;
/// The least that can be asked to be kept free.
const LEAST: &str = "1048576";

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
/// last refusal.
async fn fill(ledger: &mut Ledger, channel: &Channel) -> anyhow::Result<Status> {
    let mut looks = patience::looks();
    let mut refusals = 0;
    while ledger.acknowledged.len() < SIGNALS_MAX {
        let Err(status) = ledger.signal(channel, SIGNAL_BYTES).await else {
            refusals = 0;
            continue;
        };
        anyhow::ensure!(status.code() == Code::ResourceExhausted, "refused with {status:?}");
        refusals += 1;
        if refusals == REFUSALS {
            println!("{} signals fitted; then {:?}", ledger.acknowledged.len(), status.message());
            return Ok(status);
        }
        looks.tick().await;
    }
    anyhow::bail!("the disk never fills")
}

/// Refused by the log, alive, not ready, and every onlooker can see why: all at once. The database may make room now
/// and then by tidying up, so it is kept full meanwhile.
async fn refuses(server: &mut Server, ledger: &mut Ledger, channel: &Channel) -> anyhow::Result<()> {
    let mut refusal = None;
    until("it refuses, is not ready and says why", async || {
        refusal = ledger.signal(channel, SIGNAL_BYTES).await.err();
        let ready = page::get(server.metrics_address(), "/health/ready").await;
        let metric = page::metric(server.metrics_address(), "everlog_disk_full").await;
        refusal.is_some()
            && ready.is_ok_and(|(status, page)| status == 503 && page.contains("disk is full"))
            && metric.is_ok_and(|full| full == Some(1.0))
    })
    .await?;
    check_refusal(&refusal.context("it is refused")?)?;
    let (status, page) = page::get(server.metrics_address(), "/health/live").await?;
    anyhow::ensure!(status == 200, "{status} {page}");
    ledger.check(channel).await?;
    anyhow::ensure!(server.is_running(), "the process ended");
    Ok(())
}

/// With space a server goes on by itself, and has lost nothing: neither then nor after a crash.
async fn goes_on(mut server: Server, mut ledger: Ledger, channel: &Channel) -> anyhow::Result<()> {
    until("it is ready again", async || is_ready(&server).await).await?;
    until("writes are taken again", async || ledger.signal(channel, SIGNAL_BYTES).await.is_ok()).await?;
    // The database looks for space every few seconds, so a call may still be refused for a moment.
    until("starts are taken", async || send(channel, start("late", "nobody")).await.is_ok()).await?;
    anyhow::ensure!(page::metric(server.metrics_address(), "everlog_disk_full").await? == Some(0.0));
    ledger.check(channel).await?;
    anyhow::ensure!(server.is_running(), "the process ended");
    server.crash().await?;
    ledger.check(&server.connect().await?).await
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
    check_refusal(&fill(&mut ledger, &channel).await?)?;
    refuses(&mut server, &mut ledger, &channel).await?;
    disk.grow(4 * disk_bytes)?;
    goes_on(server, ledger, &channel).await
}

/// Somebody else takes all the space at once, while calls go on, and gives it back.
async fn take_and_give_back(disk_bytes: u64, variables: &[(&str, &str)]) -> anyhow::Result<()> {
    let Some(disk) = Disk::mount(disk_bytes)? else {
        return Ok(());
    };
    let mut server = Server::start(&disk.data(), variables).await?;
    let channel = server.connect().await?;
    start_runs(&channel).await?;
    let mut ledger = Ledger::default();
    for _ in 0..40 {
        ledger.signal(&channel, SIGNAL_BYTES).await?;
    }
    let ballast = disk.fill()?;
    for _ in 0..40 {
        if let Err(status) = ledger.signal(&channel, SIGNAL_BYTES).await {
            check_refusal(&status)?;
        }
    }
    refuses(&mut server, &mut ledger, &channel).await?;
    fs::remove_file(ballast)?;
    goes_on(server, ledger, &channel).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_loses_nothing_and_goes_on_with_space() -> anyhow::Result<()> {
    // 264 MiB of it are kept free, and the write-ahead log takes 130 MiB from the beginning.
    fill_and_free(640 * MIB, &[]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_full_disk_loses_nothing_and_goes_on_with_space() -> anyhow::Result<()> {
    let variables = [("EVERLOG_LOG__FREE_BYTES_MIN", LEAST), ("EVERLOG_MEMORY__DATABASE_BYTES", "8388608")];
    fill_and_free(64 * MIB, &variables).await
}

/// What is kept free follows from the write buffers then.
#[tokio::test(flavor = "multi_thread")]
async fn a_reserve_that_is_too_small_loses_nothing_and_goes_on_with_space() -> anyhow::Result<()> {
    let variables = [("EVERLOG_LOG__FREE_BYTES_MIN", LEAST), ("EVERLOG_MEMORY__DATABASE_BYTES", "33554432")];
    fill_and_free(96 * MIB, &variables).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_without_a_byte_left_loses_nothing_and_goes_on_with_space() -> anyhow::Result<()> {
    let variables = [("EVERLOG_LOG__FREE_BYTES_MIN", LEAST), ("EVERLOG_MEMORY__DATABASE_BYTES", "16777216")];
    take_and_give_back(96 * MIB, &variables).await
}

/// The log alone, which is told that there is always room: the database itself meets the wall.
fn open_log(disk: &Disk) -> anyhow::Result<Embedded> {
    Ok(Embedded::open(Options {
        partitions: 1,
        write_buffer_bytes: 4 << 20,
        free_bytes: Arc::new(|_: &Path| Ok(u64::MAX)),
        ..Options::new(disk.data())
    })?)
}

/// True where the record is durable, false where there was no room for it; never a wait without end.
fn append(log: &Embedded, record: u64) -> anyhow::Result<bool> {
    let (done, wait) = mpsc::channel();
    let mut bytes = vec![0; SIGNAL_BYTES];
    bytes[..8].copy_from_slice(&record.to_be_bytes());
    log.append(0, vec![bytes.into()], Box::new(move |outcome| drop(done.send(outcome))));
    match wait.recv_timeout(patience::most()).context("the log hangs")? {
        Ok(_appended) => Ok(true),
        Err(everlog_log::Error::Full { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// All records that are there, by the number they begin with.
fn records(log: &Embedded) -> anyhow::Result<Vec<u64>> {
    let bounds = log.bounds(0)?;
    let mut found = Vec::new();
    while found.len() < usize::try_from(bounds.end)? {
        for record in log.read(0, found.len() as u64, 8 << 20)? {
            found.push(u64::from_be_bytes(record.bytes[..8].try_into()?));
        }
    }
    Ok(found)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_met_the_wall_hangs_nobody_and_goes_on_with_space() -> anyhow::Result<()> {
    for disk_bytes in [24 * MIB, 33 * MIB + 20_480, 42 * MIB + 77_824] {
        let Some(disk) = Disk::mount(disk_bytes)? else {
            return Ok(());
        };
        let log = open_log(&disk)?;
        let (mut taken, mut refusals) = (Vec::new(), 0);
        for record in 0.. {
            if append(&log, record)? {
                taken.push(record);
                continue;
            }
            refusals += 1;
            anyhow::ensure!(log.is_full(), "nobody can see that it is full");
            if refusals == 200 {
                break;
            }
        }
        disk.grow(4 * disk_bytes)?;
        // Nobody asks for anything, and it finds out by itself.
        until("it goes on", async || !log.is_full()).await?;
        anyhow::ensure!(append(&log, u64::MAX)?, "it is full again");
        taken.push(u64::MAX);
        anyhow::ensure!(records(&log)? == taken, "lost or doubled");
        drop(log);
        anyhow::ensure!(records(&open_log(&disk)?)? == taken, "lost or doubled over a restart");
    }
    Ok(())
}
