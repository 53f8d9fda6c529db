//! Roles: a set of Temporal's four.

use serde::{Deserialize, Serialize};

/// A set of roles. Each is a bit, with Temporal's numbers: worker 1, reader 2, writer 4, admin 8.
///
/// A writer is a reader as well, and an admin is all: [`Roles::named`] gives their bits together. A worker is none of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Roles(u8);

impl Roles {
    /// No role.
    pub const NONE: Self = Self(0);
    /// Polls, and answers what it got there.
    pub const WORKER: Self = Self(1);
    /// Reads.
    pub const READER: Self = Self(2);
    /// Changes what runs.
    pub const WRITER: Self = Self(4);
    /// Changes namespaces.
    pub const ADMIN: Self = Self(8);

    /// What a word grants: `worker`, `read`, `write` or `admin`, in any case; none for other words.
    pub fn named(word: &str) -> Option<Self> {
        let named = |name: &str| word.eq_ignore_ascii_case(name);
        match () {
            () if named("worker") => Some(Self::WORKER),
            () if named("read") => Some(Self::READER),
            () if named("write") => Some(Self::WRITER.and(Self::READER)),
            () if named("admin") => Some(Self::ADMIN.and(Self::WRITER).and(Self::READER).and(Self::WORKER)),
            () => None,
        }
    }

    /// These and those.
    #[must_use]
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// True if one of the others is among these.
    pub const fn has_any(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }

    /// True if there is none.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_grants_its_role_and_those_that_it_includes() {
        let granted = |word| Roles::named(word).map(|roles| roles.0);
        assert_eq!(granted("worker"), Some(1));
        assert_eq!(granted("Read"), Some(2));
        assert_eq!(granted("WRITE"), Some(6));
        assert_eq!(granted("admin"), Some(15));
        assert_eq!((granted("owner"), granted("")), (None, None));
    }
}
