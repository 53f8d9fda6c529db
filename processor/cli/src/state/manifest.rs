//! The manifest of an export. It is written last: a directory without one is no export.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use everlog_partition::transfer::{NamespaceTotals, Totals};
use serde::{Deserialize, Serialize};

use super::row_file::{Written, digest};

/// The format of exports that this release writes, and the latest that it reads.
pub const FORMAT: u32 = 1;
const FILE: &str = "manifest.json";

/// What an export has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportManifest {
    /// Of the directory and its files.
    pub format: u32,
    /// The release that has made it.
    pub release: String,
    /// When the export began, in ms since 1970-01-01 UTC.
    pub exported_ms: i64,
    /// `embedded` or `kafka`.
    pub log: String,
    /// The random id of the log, in hexadecimal digits.
    pub incarnation: String,
    /// Partitions of the log.
    pub partitions: u32,
    /// The highest level of decisions in it.
    pub level: u32,
    /// What each namespace has, by its UUID.
    pub namespaces: BTreeMap<String, NamespaceCounts>,
    /// The files, in the order in which they are imported.
    pub files: Vec<FileEntry>,
}

/// What a namespace has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceCounts {
    pub runs: u64,
    pub open_runs: u64,
    pub events: u64,
    pub workflow_tasks: u64,
    pub activities: u64,
    pub timers: u64,
}

/// A file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    pub name: String,
    pub kind: FileKind,
    pub rows: u64,
    pub bytes: u64,
    pub sha256: String,
}

/// What the rows of a file are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    Control,
    Positions,
    Messages,
    Changelog,
    History,
    Timers,
}

impl FileKind {
    /// What names of files begin with.
    pub fn name(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Positions => "positions",
            Self::Messages => "messages",
            Self::Changelog => "changelog",
            Self::History => "history",
            Self::Timers => "timers",
        }
    }
}

impl FileEntry {
    /// A file that was written.
    pub fn of(name: String, kind: FileKind, written: Written) -> Self {
        let Written { rows, bytes, sha256 } = written;
        Self { name, kind, rows, bytes, sha256 }
    }
}

impl ExportManifest {
    /// Files of a kind, in order.
    pub fn of_kind(&self, kind: FileKind) -> impl Iterator<Item = &FileEntry> {
        self.files.iter().filter(move |file| file.kind == kind)
    }

    /// Rows of a kind.
    pub fn rows(&self, kind: FileKind) -> u64 {
        self.of_kind(kind).map(|file| file.rows).sum()
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Writes it, durably. The export is whole then.
    pub fn write(&self, dir: &Path) -> Result<()> {
        let (path, new) = (dir.join(FILE), dir.join("manifest.new"));
        let write = || {
            let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
            file.write_all(&serde_json::to_vec_pretty(self)?)?;
            file.write_all(b"\n")?;
            file.sync_all()?;
            std::fs::rename(&new, &path)?;
            File::open(dir)?.sync_all()
        };
        write().with_context(|| format!("{} cannot be written", path.display()))
    }

    /// Reads the manifest of an export.
    pub fn read(dir: &Path) -> Result<Self> {
        let path = dir.join(FILE);
        if !path.exists() {
            bail!("{} is no export, or one that was not finished: it has no {FILE}", dir.display());
        }
        let text = std::fs::read(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        let damaged = || format!("{} is damaged", path.display());
        let value: serde_json::Value = serde_json::from_slice(&text).with_context(damaged)?;
        let format = value["format"].as_u64().with_context(damaged)?;
        ensure!(
            format <= u64::from(FORMAT),
            "{} has format {format}, this release reads up to {FORMAT}: import it with the release that has exported it \
             ({})",
            dir.display(),
            value["release"].as_str().unwrap_or("unknown")
        );
        serde_json::from_value(value).with_context(damaged)
    }

    /// Reads each file once and compares it with the manifest.
    pub fn check(&self, dir: &Path, mut passed: impl FnMut(u64)) -> Result<()> {
        for file in &self.files {
            // A name leads nowhere else.
            ensure!(!file.name.contains(['/', '\\']), "the manifest names a file outside: {}", file.name);
            let path = dir.join(&file.name);
            ensure!(path.exists(), "{} is missing; nothing was imported", path.display());
            let (sha256, bytes) = digest(&path)?;
            ensure!(
                bytes == file.bytes,
                "{} has {bytes} bytes, the manifest says {}: it was cut or changed; nothing was imported",
                path.display(),
                file.bytes
            );
            ensure!(
                sha256 == file.sha256,
                "{} is not what was exported: its SHA-256 differs from the manifest's; nothing was imported",
                path.display()
            );
            passed(bytes);
        }
        Ok(())
    }

    /// The counts, as they are compared.
    pub fn totals(&self) -> Totals {
        let totals = |counts: &NamespaceCounts| NamespaceTotals {
            runs: counts.runs,
            open_runs: counts.open_runs,
            events: counts.events,
            workflow_tasks: counts.workflow_tasks,
            activities: counts.activities,
            timers: counts.timers,
        };
        Totals(self.namespaces.iter().map(|(id, counts)| (id.clone(), totals(counts))).collect())
    }
}

/// The counts, as they are written.
pub fn counts(totals: &Totals) -> BTreeMap<String, NamespaceCounts> {
    let counts = |totals: &NamespaceTotals| NamespaceCounts {
        runs: totals.runs,
        open_runs: totals.open_runs,
        events: totals.events,
        workflow_tasks: totals.workflow_tasks,
        activities: totals.activities,
        timers: totals.timers,
    };
    totals.0.iter().map(|(id, found)| (id.clone(), counts(found))).collect()
}
