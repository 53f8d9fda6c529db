//! `everlog state import`: the files of an export become a new log.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use everlog_config::Config;
use everlog_log::{Output, Topic, bucket_owner, buckets_of};
use everlog_partition::transfer::{
    ExportedPositions, MovedMessage, StateRow, deleted_namespace_row, moved_row, state_row,
};

use super::manifest::{ExportManifest, FileKind};
use super::progress::TransferProgress;
use super::row_file::{Row, RowReader};
use super::target::Target;
use super::verify;
use crate::{ExitStatus, write_line};

/// Imports an export into the log of the settings.
pub fn run(mut config: Config, from: &Path, partitions: Option<u32>) -> Result<ExitStatus> {
    let mut progress = TransferProgress::begin();
    let manifest = ExportManifest::read(from)?;
    progress.step(&format!("checking {} MiB", manifest.bytes() >> 20));
    manifest.check(from, |_| {})?;
    let import = Import { dir: from, manifest: &manifest };
    let positions = import.positions()?;
    let mut target = Target::create(&mut config, partitions)?;
    target.begin(positions.first_of(target.log().incarnation()));
    import.messages(&positions, &target)?;
    import.rows(&mut target, &mut progress)?;
    target.commit_all()?;
    target.put_control(&import.all(FileKind::Control)?)?;
    progress.step(&format!("imported {}; comparing it with the export", progress.total()));
    let differences = verify::differences(&manifest, &target, &mut progress)?;
    if !differences.is_empty() {
        for difference in &differences {
            write_line(&format!("fail  {difference}"))?;
        }
        eprintln!("everlog: the new log differs from the export, and no node serves it");
        return Ok(ExitStatus::Failure);
    }
    let partitions = target.log().partitions();
    target.finish()?;
    write_line(&format!("ok    {} partitions; {}", partitions, setting(&config, partitions)))?;
    Ok(ExitStatus::Success)
}

/// What a node has to have set, to serve the new log.
fn setting(config: &Config, partitions: u32) -> String {
    match config.kafka.is_used() {
        true => format!("to serve it, set kafka.prefix = \"{}\"", config.kafka.prefix),
        false => format!(
            "to serve it, set server.data_dir = \"{}\" and log.partitions = {partitions}",
            config.server.data_dir.display()
        ),
    }
}

struct Import<'a> {
    dir: &'a Path,
    manifest: &'a ExportManifest,
}

impl Import<'_> {
    /// The rows of a kind, which are few.
    fn all(&self, kind: FileKind) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        for file in self.manifest.of_kind(kind) {
            let mut reader = RowReader::open(&self.dir.join(&file.name))?;
            while let Some(row) = reader.read()? {
                rows.push(row);
            }
        }
        Ok(rows)
    }

    fn positions(&self) -> Result<ExportedPositions> {
        let mut positions = ExportedPositions::default();
        for (key, value) in self.all(FileKind::Positions)? {
            let partition: [u8; 4] = key.try_into().ok().context("a position of no partition")?;
            positions.add(u32::from_be_bytes(partition), value.into())?;
        }
        Ok(positions)
    }

    /// Messages under way become the first requests of their receivers' journals, in the order of their senders.
    fn messages(&self, positions: &ExportedPositions, target: &Target) -> Result<()> {
        let mut untaken: BTreeMap<(u32, u64, u32), Bytes> = BTreeMap::new();
        for (key, value) in self.all(FileKind::Messages)? {
            let number = |at: usize| Some(u32::from_be_bytes(key.get(at..at + 4)?.try_into().ok()?));
            let last = key.get(8..16).and_then(|last| Some(u64::from_be_bytes(last.try_into().ok()?)));
            let (to, from, last) = number(0)
                .zip(number(4))
                .zip(last)
                .map(|((to, from), last)| (to, from, last))
                .context("a message without a number")?;
            // Its sender may not know yet that it was taken, and may have kept what stands in the receiver's journal.
            if !positions.has_taken(to, from, last) {
                untaken.insert((from, last, to), value.into());
            }
        }
        let mut records: BTreeMap<u32, Vec<Bytes>> = BTreeMap::new();
        for bytes in untaken.into_values() {
            if let Some(message) = MovedMessage::read(bytes, target.log().partitions())? {
                records.entry(message.to).or_default().push(message.record);
            }
        }
        records.iter().try_for_each(|(partition, records)| target.append(*partition, records))
    }

    /// Rows of all partitions, in the order of their buckets.
    fn rows(&self, target: &mut Target, progress: &mut TransferProgress) -> Result<()> {
        let mut deleted_namespaces = BTreeSet::new();
        let topics = [
            (FileKind::Changelog, Topic::Changelog),
            (FileKind::History, Topic::History),
            (FileKind::Timers, Topic::Timers),
        ];
        for (kind, topic) in topics {
            for file in self.manifest.of_kind(kind) {
                let mut reader = RowReader::open(&self.dir.join(&file.name))?;
                while let Some((key, value)) = reader.read()? {
                    progress.row(key.len() + value.len(), || kind.name().into());
                    if topic == Topic::Changelog && state_row(&key) != StateRow::Workflow {
                        deleted_namespaces.insert(key.get(2..).unwrap_or_default().to_vec());
                        continue;
                    }
                    let moved = if topic == Topic::Changelog { moved_row(&key, &value)? } else { None };
                    let value = moved.unwrap_or_else(|| value.into());
                    let partition = owner(&key, target.log().partitions())?;
                    target.put(partition, Output::new(topic, key.into(), Some(value)))?;
                }
            }
        }
        for partition in 0..target.log().partitions() {
            let first = buckets_of(partition, target.log().partitions()).start;
            for rest in &deleted_namespaces {
                let key = [&[0, 0][..], rest].concat();
                let (key, value) = deleted_namespace_row(&key, u16::try_from(first)?);
                target.put(partition, Output::new(Topic::Changelog, key, Some(value)))?;
            }
        }
        Ok(())
    }
}

fn owner(key: &[u8], partitions: u32) -> Result<u32> {
    let bucket = key.first_chunk().map(|bucket| u16::from_be_bytes(*bucket));
    let bucket = bucket.filter(|bucket| u32::from(*bucket) < everlog_log::BUCKETS);
    ensure!(bucket.is_some(), "a row of no bucket");
    Ok(bucket_owner(bucket.unwrap_or_default(), partitions))
}
