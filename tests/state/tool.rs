//! The binary, run by hand.

use std::path::Path;
use std::process::{Command, Output};

use anyhow::ensure;
use everlog_tests::server::binary;

/// How it ended, and what it said.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub err: String,
}

/// Runs `everlog state`.
pub fn state(words: &[&str], variables: &[(&str, &str)]) -> anyhow::Result<Ended> {
    let mut command = Command::new(binary()?);
    command.arg("state").args(words).envs(variables.iter().copied());
    let Output { status, stdout, stderr } = command.output()?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(Ended { code: status.code(), err: text(stderr) + &text(stdout) })
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Exports an embedded log.
pub fn export_from(data_dir: &Path, to: &Path) -> anyhow::Result<()> {
    let ended = state(&["export", "--to", &shown(to), "--data-dir", &shown(data_dir)], &[])?;
    ensure!(ended.code == Some(0), "{ended:?}");
    Ok(())
}

/// Tries to import into a new embedded log.
pub fn try_import_into(from: &Path, data_dir: &Path, partitions: u32) -> anyhow::Result<Ended> {
    let partitions = partitions.to_string();
    let words =
        ["import", "--from", &shown(from), "--data-dir", &shown(data_dir), "--partitions", &partitions];
    state(&words, &[])
}

/// Imports into a new embedded log.
pub fn import_into(from: &Path, data_dir: &Path, partitions: u32) -> anyhow::Result<()> {
    let ended = try_import_into(from, data_dir, partitions)?;
    ensure!(ended.code == Some(0), "{ended:?}");
    Ok(())
}
