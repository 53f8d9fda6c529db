//! How many connections the descriptors of the process allow.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that connections leave to files and to what this process connects to itself.
const KEPT_MAX: u64 = 1_024;

/// The descriptors that this process may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptors {
    /// All of them.
    pub most: u64,
}

impl Descriptors {
    /// Raises the limit to what the process may raise it to.
    pub fn raise() -> Self {
        let limit = getrlimit(Resource::Nofile);
        let hard = Rlimit { current: limit.maximum, maximum: limit.maximum };
        let now = match setrlimit(Resource::Nofile, hard) {
            Ok(()) => limit.maximum,
            Err(_refused) => limit.current,
        };
        // None means without a limit; nobody has more connections than that.
        Self { most: now.unwrap_or(u64::from(u32::MAX)) }
    }

    /// How many of them connections may have: half, or all but a thousand where that is more.
    pub fn for_connections(self) -> usize {
        let kept = KEPT_MAX.min(self.most / 2);
        usize::try_from(self.most - kept).unwrap_or(usize::MAX)
    }

    /// Connections of one of the listeners, which have so many eighths of them: what was asked for, if there is so much.
    pub fn share(self, eighths: usize, wanted: usize) -> usize {
        (self.for_connections() / 8 * eighths).clamp(1, wanted.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_keep_half_or_a_thousand() {
        assert_eq!(Descriptors { most: 256 }.for_connections(), 128);
        assert_eq!(Descriptors { most: 65_536 }.for_connections(), 65_536 - 1_024);
        assert_eq!(Descriptors { most: 256 }.share(4, 10_000), 64);
        assert_eq!(Descriptors { most: 1 << 20 }.share(4, 10_000), 10_000);
        assert_eq!(Descriptors { most: 4 }.share(1, 10_000), 1);
    }
}
