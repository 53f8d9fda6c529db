//! `everlog doctor --bundle FILE`: one archive with what a bug report needs, and without secrets.
//!
//! What cannot be had is named in it. No payload is in it but what log lines quote, and they quote none.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use everlog_config::Config;
use everlog_config::node_file::{NodeFile, reachable};
use everlog_config::secrets::Secrets;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use crate::cluster;
use crate::doctor::Finding;
use crate::http_client::{HttpNode, HttpOptions, NodeUrl};

/// The folder of everything in the archive.
const FOLDER: &str = "everlog-bundle";
/// Bytes that are taken of the end of each log.
const LOG_BYTES_MAX: u64 = 16 << 20;
/// Lines that are asked of the journal of the system.
const JOURNAL_LINES: &str = "50000";
/// The unit that the packages install.
const UNIT: &str = "everlog";

/// What is gathered from.
pub struct Sources<'a> {
    pub config: &'a Config,
    /// What the doctor has found, or why it could not look.
    pub findings: &'a Result<Vec<Finding>>,
    /// The release, and what it is built from.
    pub release: &'a str,
    /// Files of log lines; where none is named the journal of the system is asked.
    pub logs: &'a [PathBuf],
}

/// The entries of the archive, and what could not be had.
struct Entries {
    secrets: Secrets,
    found: Vec<(String, String)>,
    missing: Vec<String>,
}

/// Writes the archive; only its owner may read it.
///
/// # Errors
/// There is a file of this name, or it cannot be written.
pub fn write(file: &Path, sources: &Sources<'_>) -> Result<()> {
    let shown = file.display();
    let out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    let out = out.with_context(|| format!("{shown} cannot be made (--bundle)"))?;
    let entries = gather(sources);
    pack(out, &entries).with_context(|| format!("{shown} cannot be written"))
}

fn gather(sources: &Sources<'_>) -> Vec<(String, String)> {
    let Sources { config, findings, release, logs } = sources;
    let environment = everlog_config::environment();
    let secrets = Secrets::of(config, &environment);
    let mut entries = Entries { secrets, found: Vec::new(), missing: Vec::new() };
    entries.add("release.txt", Ok((*release).to_owned()));
    entries.add("settings.toml", Ok(config.to_file()));
    let names = environment.keys().filter(|name| name.starts_with("EVERLOG_") || name.starts_with("OTEL_"));
    entries.add("variables.txt", Ok(names.map(|name| format!("{name}\n")).collect()));
    entries.add("machine.txt", Ok(machine(&config.server.data_dir)));
    let lines =
        findings.as_ref().map(|findings| findings.iter().map(|finding| finding.json() + "\n").collect());
    entries.add("findings.jsonl", lines.map_err(|error| anyhow::anyhow!("{error:#}")));
    let node = node_of(config);
    for (name, path) in
        [("metrics.txt", "/metrics"), ("ready.txt", "/health/ready"), ("live.txt", "/health/live")]
    {
        entries.add(name, page(node.as_ref(), path));
    }
    if config.kafka.is_used() {
        entries.add("cluster.jsonl", cluster::status_lines(config).map(|lines| lines.join("\n")));
    }
    if logs.is_empty() {
        entries.add("log.txt", journal());
    }
    for (at, log) in logs.iter().enumerate() {
        entries.add(&format!("log-{}.txt", at + 1), end_of(log));
    }
    let missing = std::mem::take(&mut entries.missing);
    if !missing.is_empty() {
        entries.add("missing.txt", Ok(missing.concat()));
    }
    entries.found
}

impl Entries {
    /// Each is looked through for secrets, and so is why one could not be had.
    fn add(&mut self, name: &str, text: Result<String>) {
        match text {
            Ok(text) => self.found.push((name.to_owned(), self.secrets.hide(&text))),
            Err(error) => self.missing.push(format!("{name}: {error:#}\n")),
        }
    }
}

fn pack(out: File, entries: &[(String, String)]) -> Result<()> {
    let mut archive = tar::Builder::new(GzEncoder::new(out, Compression::default()));
    let now_s = everlog_log::clock::now_ms() / 1_000;
    for (name, text) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(u64::try_from(now_s).unwrap_or(0));
        archive.append_data(&mut header, format!("{FOLDER}/{name}"), text.as_bytes())?;
    }
    archive.into_inner()?.finish()?.sync_all()?;
    Ok(())
}

/// Where the node serves metrics and health, from this machine: with an embedded log its data directory says so.
fn node_of(config: &Config) -> Option<HttpNode> {
    let address = match config.kafka.is_used() {
        true => reachable(config.server.metrics_address),
        false => NodeFile::read(&config.server.data_dir)?.health_address(),
    };
    Some(HttpNode::new(NodeUrl::new(address, false), HttpOptions::default()))
}

/// A page of the node, with its status where that says something.
fn page(node: Option<&HttpNode>, path: &str) -> Result<String> {
    let node = node.context("no node has run on the data directory")?;
    let (status, text) = node.text(path).with_context(|| format!("{}{path}", node.url()))?;
    Ok(if status == 200 { text } else { format!("status {status}\n{text}") })
}

/// The last lines of a file.
fn end_of(log: &Path) -> Result<String> {
    let shown = log.display();
    let mut file = File::open(log).with_context(|| format!("{shown} cannot be read (--logs)"))?;
    let begin = file.metadata()?.len().saturating_sub(LOG_BYTES_MAX);
    file.seek(SeekFrom::Start(begin))?;
    let mut bytes = Vec::new();
    file.take(LOG_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// What the journal of the system has of the node.
fn journal() -> Result<String> {
    let asked = Command::new("journalctl")
        .args(["--unit", UNIT, "--lines", JOURNAL_LINES, "--no-pager", "--quiet", "--output", "cat"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    match asked {
        Ok(output) if output.status.success() && !output.stdout.is_empty() => {
            let text = String::from_utf8_lossy(&output.stdout);
            let begin = text.len().saturating_sub(usize::try_from(LOG_BYTES_MAX)?);
            Ok(text.get(text.ceil_char_boundary(begin)..).unwrap_or_default().to_owned())
        }
        Ok(_) | Err(_) => {
            bail!("the journal of the system has none of the unit {UNIT}; name files by --logs")
        }
    }
}

/// The machine that this runs on, which is the node's where it is run beside it.
fn machine(data_dir: &Path) -> String {
    let kernel = |name: &str| std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let disk = rustix::fs::statvfs(data_dir).ok();
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let memory =
        memory.lines().filter(|line| line.starts_with("MemTotal") || line.starts_with("MemAvailable"));
    let about = json!({
        "system": kernel("ostype").trim(),
        "kernel": kernel("osrelease").trim(),
        "machine": std::env::consts::ARCH,
        "cores": cores,
        "memory": memory.collect::<Vec<_>>(),
        "data_dir_bytes": disk.as_ref().map(|disk| disk.f_blocks.saturating_mul(disk.f_frsize)),
        "data_dir_free_bytes": disk.as_ref().map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize)),
    });
    format!("{about:#}\n")
}
