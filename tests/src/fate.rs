//! What a client may conclude from what it was answered.

use tonic::{Code, Status};

/// What a client knows of its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// No answer, or one that says nothing.
    Unknown,
    /// It must have its effect, once.
    Acked,
    /// It must have no effect.
    Refused,
}

/// True where the same request may well be taken later.
pub fn is_passing(status: &Status) -> bool {
    status.code() == Code::ResourceExhausted || !is_definite(status)
}

/// True where the server itself says that nothing was done.
pub fn is_definite(status: &Status) -> bool {
    match status.code() {
        Code::Ok
        | Code::Cancelled
        | Code::Unknown
        | Code::DeadlineExceeded
        | Code::Aborted
        | Code::Internal
        | Code::Unavailable
        | Code::DataLoss => false,
        Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::ResourceExhausted
        | Code::FailedPrecondition
        | Code::OutOfRange
        | Code::Unimplemented
        | Code::Unauthenticated => true,
    }
}
