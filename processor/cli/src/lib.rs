//! What is done by hand, beside a node or without one: public topics are read, commands sent, schemas registered, a
//! log looked at.

pub mod cluster;
mod command_json;
pub mod doctor;
mod http_client;
mod json_line;
mod nodes;
mod public_topics;
pub mod read;
pub mod schemas;
pub mod send;
mod table;

use std::io::{ErrorKind, Write};

use anyhow::Result;
use everlog_config::logs::visible;

/// How a command ends, as an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// As it was wished.
    Well,
    /// Nobody knows whether it is done.
    Unknown,
    /// Something is wrong, and was told: a command was refused, a record cannot be read, a check failed.
    Badly,
}

impl Ended {
    /// The exit code; 1 is for what could not be begun.
    pub fn code(self) -> u8 {
        match self {
            Self::Well => 0,
            Self::Unknown => 2,
            Self::Badly => 3,
        }
    }
}

/// Writes a line, or a JSON object; false where nobody reads any more. What others wrote does nothing to a terminal.
fn write_line(line: &str) -> Result<bool> {
    let line = if line.starts_with('{') { visible::json(line) } else { visible::lines(line) };
    let mut out = std::io::stdout().lock();
    let written =
        out.write_all(line.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error.into()),
    }
}
