//! Errors of the registry, with Confluent's codes and messages.

/// Why a request was refused or failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No such subject.
    #[error("Subject '{0}' not found.")]
    SubjectUnknown(String),
    /// The subject has no such version; `None`: it has no latest one.
    #[error("Version {} not found.", number(*.0))]
    VersionUnknown(Option<u32>),
    /// No such schema.
    #[error("Schema {0}not found")]
    SchemaUnknown(String),
    /// The subject is soft-deleted already; it can be deleted permanently.
    #[error("Subject '{0}' was soft deleted. Set permanent=true to delete permanently")]
    SubjectDeleted(String),
    /// The subject must be soft-deleted before it is deleted permanently.
    #[error("Subject '{0}' was not deleted first before being permanently deleted")]
    SubjectNotDeleted(String),
    /// The version is soft-deleted already; it can be deleted permanently.
    #[error("Subject '{0}' Version {1} was soft deleted. Set permanent=true to delete permanently")]
    VersionDeleted(String, u32),
    /// The version must be soft-deleted before it is deleted permanently.
    #[error("Subject '{0}' Version {1} was not deleted first before being permanently deleted")]
    VersionNotDeleted(String, u32),
    /// The subject has no compatibility level of its own.
    #[error("Subject '{0}' does not have subject-level compatibility configured")]
    LevelUnknown(String),
    /// The subject has no mode of its own.
    #[error("Subject '{0}' does not have subject-level mode configured")]
    ModeUnknown(String),
    /// The schema is invalid or not supported.
    #[error("Invalid schema: {0}")]
    SchemaInvalid(String),
    /// The version is neither a number from 1 nor `latest`.
    #[error(
        "The specified version '{0}' is not a valid version id. Allowed values are between [1, 2^31-1] and the string \"latest\""
    )]
    VersionInvalid(String),
    /// No such compatibility level.
    #[error(
        "Invalid compatibility level. Valid values are none, backward, forward, full, backward_transitive, forward_transitive, and full_transitive"
    )]
    LevelInvalid,
    /// No such mode.
    #[error("Invalid mode. Valid values are READWRITE and READONLY")]
    ModeInvalid,
    /// The mode of the subject does not allow it.
    #[error("{0}")]
    NotPermitted(String),
    /// The request is malformed.
    #[error("Unprocessable entity: {0}")]
    Request(String),
    /// The schema is incompatible with an earlier version.
    #[error(
        "Schema being registered is incompatible with an earlier schema for subject \"{subject}\", details: {detail}"
    )]
    Incompatible {
        /// The subject.
        subject: String,
        /// The incompatibilities.
        detail: String,
    },
    /// A limit of the registry is reached.
    #[error("Limit reached: {0}")]
    Limit(String),
    /// The storage failed, or a stored row is damaged.
    #[error("Error in the backend data store: {0}")]
    Storage(String),
    /// To parse and compare the schemas takes more steps than this limit.
    #[error(
        "Invalid schema: to parse and compare it takes more than {0} steps, the limit registry.check_steps_max; \
         reduce its types, fields, symbols or bytes, or the versions of the subject"
    )]
    TooMuchWork(usize),
    /// The schemas of a list have more bytes than this limit.
    #[error(
        "The schemas of this list have more than {0} bytes, the limit registry.list_bytes_max; request fewer with limit and offset"
    )]
    ListTooLong(usize),
    /// The caller has closed its connection.
    #[error("The caller has closed its connection")]
    Abandoned,
    /// Too many requests run at once.
    #[error("Too many requests at once")]
    Busy,
}

impl Error {
    /// The HTTP status.
    pub fn status(&self) -> u16 {
        match self {
            Self::SubjectUnknown(_)
            | Self::VersionUnknown(_)
            | Self::SchemaUnknown(_)
            | Self::SubjectDeleted(_)
            | Self::SubjectNotDeleted(_)
            | Self::VersionDeleted(..)
            | Self::VersionNotDeleted(..)
            | Self::LevelUnknown(_)
            | Self::ModeUnknown(_) => 404,
            Self::Incompatible { .. } => 409,
            Self::SchemaInvalid(_)
            | Self::VersionInvalid(_)
            | Self::LevelInvalid
            | Self::ModeInvalid
            | Self::NotPermitted(_)
            | Self::Request(_)
            | Self::TooMuchWork(_)
            | Self::ListTooLong(_) => 422,
            Self::Limit(_) => 429,
            Self::Storage(_) => 500,
            Self::Busy | Self::Abandoned => 503,
        }
    }

    /// Confluent's error code.
    pub fn code(&self) -> u32 {
        match self {
            Self::SubjectUnknown(_) => 40_401,
            Self::VersionUnknown(_) => 40_402,
            Self::SchemaUnknown(_) => 40_403,
            Self::SubjectDeleted(_) => 40_404,
            Self::SubjectNotDeleted(_) => 40_405,
            Self::VersionDeleted(..) => 40_406,
            Self::VersionNotDeleted(..) => 40_407,
            Self::LevelUnknown(_) => 40_408,
            Self::ModeUnknown(_) => 40_409,
            Self::Incompatible { .. } => 409,
            Self::SchemaInvalid(_) | Self::TooMuchWork(_) => 42_201,
            Self::VersionInvalid(_) => 42_202,
            Self::LevelInvalid => 42_203,
            Self::ModeInvalid => 42_204,
            Self::NotPermitted(_) => 42_205,
            Self::Request(_) | Self::ListTooLong(_) => 422,
            Self::Limit(_) => 42_901,
            Self::Storage(_) => 50_001,
            Self::Busy | Self::Abandoned => 50_302,
        }
    }
}

/// Confluent's clients know the latest version as -1.
fn number(version: Option<u32>) -> i64 {
    version.map_or(-1, i64::from)
}
