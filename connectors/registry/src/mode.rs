//! The mode of a subject: whether it accepts changes.

/// The mode of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Schemas are read, registered and deleted.
    ReadWrite,
    /// Schemas are only read.
    ReadOnly,
}

impl Mode {
    /// All modes. Confluent's READONLY_OVERRIDE, IMPORT and FORWARD are not supported.
    pub const ALL: [Self; 2] = [Self::ReadWrite, Self::ReadOnly];

    /// The name in the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadWrite => "READWRITE",
            Self::ReadOnly => "READONLY",
        }
    }

    /// The mode of a name, in any case of letters.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name().eq_ignore_ascii_case(name))
    }
}
