//! What a call needs.

use crate::roles::Roles;

/// What a call needs, as Temporal's own table of methods says, with a worker of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing.
    Open,
    /// To be known: to have some grant, whatever it is.
    Known,
    /// A role in its namespace, or in the cluster: any of these.
    Namespace(Roles),
    /// A role in any namespace, or in the cluster: any of these.
    Somewhere(Roles),
    /// A role in the cluster: any of these.
    System(Roles),
}

impl Access {
    /// Reads what is in a namespace.
    pub const READ: Self = Self::Namespace(Roles::READER);
    /// Changes what is in a namespace.
    pub const WRITE: Self = Self::Namespace(Roles::WRITER);
    /// Polls, or answers what a poll gave.
    pub const WORK: Self = Self::Namespace(Roles::WRITER.and(Roles::WORKER));
    /// What clients and workers read to know where they are.
    pub const READ_OR_WORK: Self = Self::Namespace(Roles::READER.and(Roles::WORKER));
    /// Changes a namespace.
    pub const ADMIN: Self = Self::Namespace(Roles::ADMIN);
    /// Reads which namespaces there are: those that it may read in.
    pub const READ_SOMEWHERE: Self = Self::Somewhere(Roles::READER);
    /// Reads what is the cluster's.
    pub const SYSTEM_READ: Self = Self::System(Roles::READER);
    /// Changes what is the cluster's.
    pub const SYSTEM_ADMIN: Self = Self::System(Roles::ADMIN);

    /// True if it changes namespaces or the cluster: such calls have a line in the audit log.
    pub fn is_of_admins(self) -> bool {
        matches!(self, Self::ADMIN | Self::SYSTEM_ADMIN)
    }
}
