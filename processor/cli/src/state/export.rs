//! `everlog state export`: a log at one moment, as files and a manifest.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use bytes::{BufMut, Bytes, BytesMut};
use everlog_config::Config;
use everlog_log::clock::now_ms;
use everlog_partition::transfer::{ExportedPositions, StateRow, Totals, UntoldMessage, state_row};
use everlog_store::Space;

use super::kafka_source::KafkaSource;
use super::manifest::{self, ExportManifest, FORMAT, FileEntry, FileKind};
use super::progress::TransferProgress;
use super::row_file::{RowWriter, hexadecimal};
use super::source::{EmbeddedSource, ExportSource, PartitionCut};
use crate::ExitStatus;

/// Exports the log of the settings into a directory, and keeps so many of the exports that stand beside it.
pub fn run(config: &Config, to: &Path, keep: Option<u32>) -> Result<ExitStatus> {
    let exported_ms = now_ms();
    let mut progress = TransferProgress::begin();
    make(to)?;
    let mut source: Box<dyn ExportSource> = match config.kafka.is_used() {
        true => Box::new(KafkaSource::open(config, to)?),
        false => Box::new(EmbeddedSource::open(config)?),
    };
    let (kind, log) = (source.kind(), source.log());
    let (partitions, incarnation) = (log.partitions(), hexadecimal(&log.incarnation()));
    drop(log);
    let mut export = Export {
        dir: to.into(),
        messages: RowWriter::create(&to.join(file_name(FileKind::Messages, None)))?,
        position_rows: RowWriter::create(&to.join(file_name(FileKind::Positions, None)))?,
        positions: ExportedPositions::default(),
        totals: Totals::default(),
        files: Vec::new(),
    };
    export.control(source.as_ref())?;
    for partition in 0..partitions {
        let cut = source.partition(partition)?;
        export.partition(partition, &cut, &mut progress)?;
        drop(cut);
        source.check()?;
        progress.step(&format!("partition {partition} of {partitions} exported"));
    }
    export.check_moment()?;
    let level = export.positions.level();
    let namespaces = manifest::counts(&export.totals);
    let files = export.finish()?;
    let manifest = ExportManifest {
        format: FORMAT,
        release: env!("CARGO_PKG_VERSION").into(),
        exported_ms,
        log: kind.into(),
        incarnation: incarnation.clone(),
        partitions,
        level,
        namespaces,
        files,
    };
    manifest.write(to)?;
    progress.step(&format!("exported {}", progress.total()));
    if let Some(keep) = keep {
        remove_older(to, (&incarnation, keep as usize), &mut progress)?;
    }
    Ok(ExitStatus::Success)
}

/// Removes whole exports of this log in the directory above, all but so many of the newest. Whatever else is there stays.
fn remove_older(
    to: &Path,
    (incarnation, keep): (&str, usize),
    progress: &mut TransferProgress,
) -> Result<()> {
    let own = to.canonicalize().with_context(|| format!("{} cannot be found", to.display()))?;
    let Some(above) = own.parent() else { return Ok(()) };
    let mut exports = Vec::new();
    for entry in std::fs::read_dir(above).with_context(|| format!("{} cannot be read", above.display()))? {
        let dir = entry?.path();
        if dir.is_dir()
            && !dir.is_symlink()
            && let Ok(manifest) = ExportManifest::read(&dir)
            && manifest.incarnation == incarnation
        {
            exports.push((manifest.exported_ms, dir));
        }
    }
    exports.sort_unstable();
    let spare = exports.len().saturating_sub(keep);
    for (_, dir) in exports.drain(..spare).filter(|(_, dir)| *dir != own) {
        std::fs::remove_dir_all(&dir).with_context(|| format!("{} cannot be removed", dir.display()))?;
        progress.step(&format!("removed {}", dir.display()));
    }
    Ok(())
}

/// The directory, for its owner alone.
fn make(dir: &Path) -> Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.with_context(|| format!("{} cannot be made", dir.display()))?;
    let mut entries = std::fs::read_dir(dir).with_context(|| format!("{} cannot be read", dir.display()))?;
    ensure!(
        entries.next().is_none(),
        "{} is not empty; name a new directory, for an export is never changed",
        dir.display()
    );
    Ok(())
}

fn file_name(kind: FileKind, partition: Option<u32>) -> String {
    match partition {
        Some(partition) => format!("{}-{partition:05}.rows", kind.name()),
        None => format!("{}.rows", kind.name()),
    }
}

/// What is written of an export.
struct Export {
    dir: PathBuf,
    messages: RowWriter,
    position_rows: RowWriter,
    positions: ExportedPositions,
    totals: Totals,
    files: Vec<FileEntry>,
}

impl Export {
    fn control(&mut self, source: &dyn ExportSource) -> Result<()> {
        let name = file_name(FileKind::Control, None);
        let mut writer = RowWriter::create(&self.dir.join(&name))?;
        for (key, value) in source.control_rows()? {
            writer.row(&key, &value)?;
        }
        self.files.push(FileEntry::of(name, FileKind::Control, writer.finish()?));
        Ok(())
    }

    fn partition(
        &mut self,
        partition: u32,
        cut: &PartitionCut,
        progress: &mut TransferProgress,
    ) -> Result<()> {
        if let Some(position) = &cut.position {
            self.positions.add(partition, position.clone())?;
            self.position_rows.row(&partition.to_be_bytes(), position)?;
        }
        let spaces = [
            (Space::State, FileKind::Changelog),
            (Space::History, FileKind::History),
            (Space::Timers, FileKind::Timers),
        ];
        for (space, kind) in spaces {
            let name = file_name(kind, Some(partition));
            let mut writer = RowWriter::create(&self.dir.join(&name))?;
            let mut failed = None;
            let [from, to] = [cut.buckets.start, cut.buckets.end]
                .map(|bucket| u16::try_from(bucket).unwrap_or(u16::MAX).to_be_bytes());
            cut.rows.scan(space, &from, &to, &mut |key, value| {
                progress.row(key.len() + value.len(), || format!("{} of partition {partition}", kind.name()));
                let written = match space {
                    Space::State => self.state_row(partition, key, value, &mut writer),
                    Space::History | Space::Timers | Space::Index => writer.row(key, value),
                };
                failed = written.err();
                failed.is_none()
            })?;
            if let Some(error) = failed {
                return Err(error);
            }
            self.files.push(FileEntry::of(name, kind, writer.finish()?));
        }
        Ok(())
    }

    fn state_row(&mut self, partition: u32, key: &[u8], value: &[u8], writer: &mut RowWriter) -> Result<()> {
        match state_row(key) {
            StateRow::Message { to, number } => self.messages.row(&message_key(to, partition, number), value),
            StateRow::Workflow => {
                self.totals.add(key, value)?;
                writer.row(key, value)
            }
            StateRow::DeletedNamespace => writer.row(key, value),
        }
    }

    /// Nobody has taken what nobody has sent.
    fn check_moment(&self) -> Result<()> {
        if let Some(UntoldMessage { from, to, taken, sent }) = self.positions.untold() {
            bail!(
                "the export is not of one moment: partition {to} has taken message {taken} of partition {from}, which has \
                 sent {sent}; this is a defect, please report it"
            );
        }
        Ok(())
    }

    fn finish(self) -> Result<Vec<FileEntry>> {
        let name = |kind| file_name(kind, None);
        let (messages, positions) = (self.messages.finish()?, self.position_rows.finish()?);
        let mut files = self.files;
        files.push(FileEntry::of(name(FileKind::Positions), FileKind::Positions, positions));
        files.push(FileEntry::of(name(FileKind::Messages), FileKind::Messages, messages));
        // In the order of their kinds, and of the partitions: rows are in the order of their buckets then.
        files.sort_by(|one, other| (one.kind, &one.name).cmp(&(other.kind, &other.name)));
        Ok(files)
    }
}

/// The key of a message: receiver, sender, number.
fn message_key(to: u32, from: u32, number: u64) -> Bytes {
    let mut key = BytesMut::with_capacity(16);
    key.put_u32(to);
    key.put_u32(from);
    key.put_u64(number);
    key.freeze()
}
