//! Why a caller is not identified, and why the authenticator does not start.

use std::path::PathBuf;

/// Why a call has no principal. Neither text has a token, a key or a hash of one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// What the caller shows is not accepted. The reason is for the log, and not for the caller.
    #[error("denied: {0}")]
    Denied(String),
    /// It cannot be judged now: no keys could be fetched. The caller should try again.
    #[error("unavailable: {0}")]
    Unavailable(String),
}

/// Why the settings of identities cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// A file cannot be read, or has a fault, whose line is named.
    #[error("{}: {fault} (auth.{setting})", path.display())]
    File {
        /// The setting that names it.
        setting: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong.
        fault: String,
    },
    /// A value is not allowed.
    #[error("auth.{setting}: {fault}")]
    Setting {
        /// Its key.
        setting: &'static str,
        /// What is wrong.
        fault: String,
    },
}

/// What kind of denial it is, for the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenialClass {
    /// The header `authorization` is malformed, or there are two.
    Header,
    /// An API key that no line has.
    UnknownKey,
    /// A key or a token that has expired.
    Expired,
    /// A token that is malformed, or signed by an algorithm or a key that is not accepted.
    Token,
    /// A token's signature is wrong.
    Signature,
    /// A token's claims are not accepted: issuer, audience, subject, or a time ahead.
    Claims,
    /// A certificate that cannot be read.
    Certificate,
}

impl DenialClass {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Header,
        Self::UnknownKey,
        Self::Expired,
        Self::Token,
        Self::Signature,
        Self::Claims,
        Self::Certificate,
    ];

    /// As in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::UnknownKey => "unknown-key",
            Self::Expired => "expired",
            Self::Token => "token",
            Self::Signature => "signature",
            Self::Claims => "claims",
            Self::Certificate => "certificate",
        }
    }
}

/// Why a caller is not identified, with its class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unidentified {
    /// [`AuthError::Denied`].
    Denied(DenialClass, String),
    /// [`AuthError::Unavailable`].
    Unavailable(String),
}

impl Unidentified {
    pub(crate) fn denied(class: DenialClass, reason: impl Into<String>) -> Self {
        Self::Denied(class, reason.into())
    }
}

impl From<Unidentified> for AuthError {
    fn from(refusal: Unidentified) -> Self {
        match refusal {
            Unidentified::Denied(_, reason) => Self::Denied(reason),
            Unidentified::Unavailable(reason) => Self::Unavailable(reason),
        }
    }
}
