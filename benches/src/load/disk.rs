//! What an fdatasync costs on a disk: the floor under every durable answer.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use hdrhistogram::Histogram;

const APPENDS: usize = 500;
const APPEND_BYTES: usize = 4096;

/// Appends 4 KiB and syncs, 500 times, in a file of its own in `directory`; latencies in microseconds.
pub fn fdatasync_us(directory: &Path) -> anyhow::Result<Histogram<u64>> {
    let path = directory.join(format!("everlog-load-{}.fdatasync", std::process::id()));
    let measured = append_and_sync(&path);
    std::fs::remove_file(&path).with_context(|| format!("{} cannot be removed", path.display()))?;
    measured.with_context(|| format!("{} cannot be written", path.display()))
}

fn append_and_sync(path: &Path) -> anyhow::Result<Histogram<u64>> {
    let mut file = OpenOptions::new().create_new(true).append(true).open(path)?;
    let mut latencies_us = Histogram::new(3)?;
    let block = [0x5A; APPEND_BYTES];
    for _ in 0..APPENDS {
        let began = Instant::now();
        file.write_all(&block)?;
        file.sync_data()?;
        latencies_us.record(began.elapsed().as_micros() as u64)?;
    }
    Ok(latencies_us)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_gone_afterwards() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(fdatasync_us(directory.path()).unwrap().len(), APPENDS as u64);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
