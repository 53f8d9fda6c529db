//! The mode of a subject: whether it takes new schemas.

/// What may be done with a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Everything.
    ReadWrite,
    /// Schemas are read, and neither registered nor deleted.
    ReadOnly,
}

impl Mode {
    /// All of them. Confluent's READONLY_OVERRIDE, IMPORT and FORWARD are not among them.
    pub const ALL: [Self; 2] = [Self::ReadWrite, Self::ReadOnly];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadWrite => "READWRITE",
            Self::ReadOnly => "READONLY",
        }
    }

    /// The mode of this name, in large or small letters.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name().eq_ignore_ascii_case(name))
    }
}
