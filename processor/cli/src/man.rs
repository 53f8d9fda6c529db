//! `everlog man`: the man pages of the command line, one for each command.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use clap_mangen::Man;

use crate::{ExitStatus, write_line};

/// `everlog man`
#[derive(Args, Debug)]
pub struct ManOptions {
    /// Write the pages into this folder; created if it is missing.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}

/// Writes the pages, and prints the name of each.
///
/// # Errors
/// The folder cannot be written.
pub fn run(command: clap::Command, asked: &ManOptions) -> Result<ExitStatus> {
    let dir = &asked.dir;
    std::fs::create_dir_all(dir).with_context(|| format!("the folder {}", dir.display()))?;
    for (name, page) in pages(command)? {
        let path = dir.join(name);
        std::fs::write(&path, page).with_context(|| format!("the page {}", path.display()))?;
        if !write_line(&path.display().to_string())? {
            break;
        }
    }
    Ok(ExitStatus::Success)
}

/// The pages, each with the name of its file, such as `everlog-cluster-drain.1`.
///
/// # Errors
/// A page cannot be rendered.
pub fn pages(command: clap::Command) -> Result<Vec<(String, Vec<u8>)>> {
    // A page shows the release. What a release is built from differs from build to build.
    let release = command.get_version().unwrap_or_default().to_owned();
    let source = format!("{} {release}", command.get_name());
    let mut command = command.long_version(None).disable_help_subcommand(true);
    command.build();
    let (mut pages, mut open) = (Vec::new(), vec![command]);
    while let Some(command) = open.pop() {
        open.extend(command.get_subcommands().filter(|each| !each.is_hide_set()).cloned());
        let page = Man::new(command).source(source.as_str()).manual("Everlog");
        let mut text = Vec::new();
        page.render(&mut text)?;
        pages.push((page.get_filename(), text));
    }
    pages.sort();
    Ok(pages)
}
