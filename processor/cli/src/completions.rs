//! `everlog completions`: a script by which a shell completes the command line.

use std::io::Write;

use anyhow::Result;
use clap::{Args, ValueEnum};
use clap_complete::Shell;

use crate::{ExitStatus, unless_closed};

/// `everlog completions`
#[derive(Args, Debug)]
pub struct Completions {
    /// The shell.
    #[arg(value_name = "SHELL")]
    pub shell: CompletingShell,
}

/// The shells that packages bring scripts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CompletingShell {
    /// Put the script at /etc/bash_completion.d/everlog.
    Bash,
    /// Put the script into a folder of $fpath, as _everlog.
    Zsh,
    /// Put the script at ~/.config/fish/completions/everlog.fish.
    Fish,
}

/// Prints the script.
///
/// # Errors
/// Standard output cannot be written.
pub fn run(command: clap::Command, asked: &Completions) -> Result<ExitStatus> {
    let mut out = std::io::stdout().lock();
    unless_closed(out.write_all(&script(command, asked.shell)).and_then(|()| out.flush()))?;
    Ok(ExitStatus::Success)
}

/// The script of a shell for a command line.
pub fn script(mut command: clap::Command, shell: CompletingShell) -> Vec<u8> {
    let shell = match shell {
        CompletingShell::Bash => Shell::Bash,
        CompletingShell::Zsh => Shell::Zsh,
        CompletingShell::Fish => Shell::Fish,
    };
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    script
}
