//! The notes of the shim: how many steps there were, and what a disk would still hold after a loss of power.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// What was noted about one node.
#[derive(Debug, Default)]
pub struct Notes {
    /// All steps, where the node ended by itself.
    pub steps: Option<u64>,
    pub syncs: u64,
    pub replies: u64,
    /// Requests that change something on a broker, and their answers.
    pub talks: u64,
    /// Files that were made under the shim, and up to where they are on the disk.
    durable: BTreeMap<PathBuf, u64>,
}

impl Notes {
    pub fn read(events: &Path) -> anyhow::Result<Self> {
        let mut notes = Self::default();
        for line in std::fs::read_to_string(events).unwrap_or_default().lines() {
            notes.take(line).with_context(|| format!("the note {line:?}"))?;
        }
        Ok(notes)
    }

    fn take(&mut self, line: &str) -> anyhow::Result<()> {
        let (kind, rest) = line.split_once(' ').context("it is one word")?;
        let sized = || -> anyhow::Result<(u64, &Path)> {
            let (size, path) = rest.split_once(' ').context("it has no path")?;
            Ok((size.parse()?, Path::new(path)))
        };
        match kind {
            "C" => drop(self.durable.insert(rest.into(), 0)),
            "U" => drop(self.durable.remove(Path::new(rest))),
            "S" => {
                let (size, path) = sized()?;
                self.syncs += 1;
                self.durable.entry(path.into()).and_modify(|synced| *synced = size.max(*synced));
            }
            "T" => {
                let (size, path) = sized()?;
                self.durable.entry(path.into()).and_modify(|synced| *synced = size.min(*synced));
            }
            "R" => {
                let (from, to) = rest.split_once('\t').context("it has no target")?;
                self.rename(Path::new(from), Path::new(to));
            }
            "P" => self.replies += 1,
            "K" => self.talks += 1,
            "E" => self.steps = Some(rest.parse()?),
            _ => anyhow::bail!("of an unknown kind"),
        }
        Ok(())
    }

    fn rename(&mut self, from: &Path, to: &Path) {
        let moved: Vec<_> = self.durable.extract_if(.., |path, _| path.starts_with(from)).collect();
        for (path, synced) in moved {
            let rest = path.strip_prefix(from).unwrap_or(&path);
            let target = if rest.as_os_str().is_empty() { to.into() } else { to.join(rest) };
            self.durable.insert(target, synced);
        }
    }

    /// Takes from every file what was not synced, and says how many bytes that were.
    pub fn lose_power(&self) -> anyhow::Result<u64> {
        let mut lost_bytes = 0;
        for (path, synced) in &self.durable {
            let Ok(size) = std::fs::metadata(path).map(|file| file.len()) else {
                continue;
            };
            if size > *synced {
                File::options().write(true).open(path)?.set_len(*synced)?;
                lost_bytes += size - synced;
            }
        }
        Ok(lost_bytes)
    }
}
