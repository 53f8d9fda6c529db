//! The commands by hand, apart from the node: `auth`, `events`, `replies`, `rejections`, `command`, `schemas`, `cluster`,
//! `doctor`, `state`, `completions`, `man`. Each file has the definition of its command line and what it does.

pub mod auth;
pub mod cluster;
mod command_json;
pub mod completions;
pub mod doctor;
mod event_table;
mod http_client;
mod json_line;
pub mod man;
mod nodes;
mod public_topics;
pub mod read;
pub mod schemas;
pub mod send;
pub mod state;
mod table;

use std::io::{ErrorKind, Write};

use anyhow::Result;
use everlog_config::logs::visible;

/// How a command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// It succeeded.
    Success,
    /// The outcome is unknown.
    Unknown,
    /// Something is wrong, and was printed: a command was refused, a record cannot be read, a check failed.
    Failure,
}

impl ExitStatus {
    /// The exit code; 1 means that the command could not begin.
    pub fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Unknown => 2,
            Self::Failure => 3,
        }
    }
}

/// Prints a line, or a JSON object. False where the reader is gone. Control characters of foreign text are escaped.
fn write_line(line: &str) -> Result<bool> {
    let line = if line.starts_with('{') { visible::json(line) } else { visible::lines(line) };
    let mut out = std::io::stdout().lock();
    unless_closed(
        out.write_all(line.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()),
    )
}

/// Whether standard output took what was written. False where its reader is gone.
fn unless_closed(written: std::io::Result<()>) -> Result<bool> {
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error.into()),
    }
}
