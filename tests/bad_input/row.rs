//! A row of the table: an input, what has to be answered, and what may be left behind.

use std::fmt;
use std::pin::Pin;

use tonic::Code;

use crate::world::World;

/// What came of an input.
#[derive(Clone, Debug, Default)]
pub struct Observation {
    /// The answer's code.
    pub code: Option<Code>,
    /// Its message.
    pub message: String,
    /// The type of its first detail.
    pub detail: String,
    /// What is left behind, in words: mostly the events of a run.
    pub left: String,
    /// A Workflow Id that must not be known if the input was refused.
    pub unknown_id: Option<String>,
}

/// An input on its way.
pub type Story = Pin<Box<dyn Future<Output = anyhow::Result<Observation>> + Send>>;
/// Sends an input and tells what came of it.
pub type Action = Box<dyn Fn(World) -> Story + Send + Sync>;

/// Why a row is not as Temporal has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// It is.
    Same,
    /// The feature that it is about comes later; until then it is refused, never dropped.
    Later(&'static str),
    /// We differ on purpose, and why.
    Differs(&'static str),
}

/// What has to be answered.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// The code.
    pub code: Code,
    /// How the message begins.
    pub message: &'static str,
    /// The type of the first detail; empty = not looked at.
    pub detail: &'static str,
    /// A part of what is left behind; empty = not looked at.
    pub left: &'static str,
    /// How it stands to Temporal.
    pub note: Note,
}

/// A row.
pub struct Row {
    /// Its number in the list of bad inputs, 1 to 85; several rows may have the same.
    pub number: u8,
    /// The input, in words.
    pub input: &'static str,
    /// Sends it.
    pub action: Action,
    /// What has to be answered.
    pub expected: Expected,
    /// It needs the server with tight limits.
    pub tight: bool,
}

pub fn row(number: u8, input: &'static str, action: Action, expected: Expected) -> Row {
    Row { number, input, action, expected, tight: false }
}

/// A row for the server with tight limits.
pub fn tight(number: u8, input: &'static str, action: Action, expected: Expected) -> Row {
    Row { tight: true, ..row(number, input, action, expected) }
}

/// An input that takes more than one call.
pub fn story<F>(tell: fn(World) -> F) -> Action
where
    F: Future<Output = anyhow::Result<Observation>> + Send + 'static,
{
    Box::new(move |world| Box::pin(tell(world)))
}

/// Refused with a code and a message that begins so.
pub fn refused(code: Code, message: &'static str) -> Expected {
    Expected { code, message, detail: "", left: "", note: Note::Same }
}

/// Refused as never valid.
pub fn invalid(message: &'static str) -> Expected {
    refused(Code::InvalidArgument, message)
}

/// Accepted, and this is left behind.
pub fn taken(left: &'static str) -> Expected {
    Expected { left, ..refused(Code::Ok, "") }
}

/// Not served yet at all.
pub fn later(feature: &'static str) -> Expected {
    Expected { note: Note::Later(feature), ..refused(Code::Unimplemented, "") }
}

impl Expected {
    /// With a first detail of this type.
    pub fn with(self, detail: &'static str) -> Self {
        Self { detail, ..self }
    }

    /// And this is left behind.
    pub fn leaves(self, left: &'static str) -> Self {
        Self { left, ..self }
    }

    /// Until the feature comes.
    pub fn until(self, feature: &'static str) -> Self {
        Self { note: Note::Later(feature), ..self }
    }

    /// Other than Temporal, on purpose.
    pub fn unlike(self, why: &'static str) -> Self {
        Self { note: Note::Differs(why), ..self }
    }

    fn fits(&self, observation: &Observation) -> bool {
        observation.code == Some(self.code)
            && observation.message.starts_with(self.message)
            && (self.detail.is_empty() || observation.detail.ends_with(self.detail))
            && observation.left.contains(self.left)
    }
}

impl Row {
    /// What is wrong with the answer, if something is.
    pub fn judge(&self, observation: &Observation) -> Option<String> {
        if self.expected.fits(observation) {
            return None;
        }
        Some(format!("{self}\n    expected {}\n    got      {observation}", self.expected))
    }
}

impl fmt::Display for Row {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "row {}, {}", self.number, self.input)
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(formatter, self.code, self.message, self.detail, self.left)
    }
}

impl fmt::Display for Observation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = self.code.unwrap_or(Code::Unknown);
        show(formatter, code, &self.message, &self.detail, &self.left)
    }
}

fn show(
    formatter: &mut fmt::Formatter<'_>,
    code: Code,
    message: &str,
    detail: &str,
    left: &str,
) -> fmt::Result {
    write!(formatter, "{code:?} {message:.300?}")?;
    if !detail.is_empty() {
        write!(formatter, " [{detail}]")?;
    }
    if !left.is_empty() {
        write!(formatter, " leaving {left:.600}")?;
    }
    Ok(())
}
