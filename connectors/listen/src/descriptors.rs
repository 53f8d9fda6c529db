//! The limit of file descriptors of the process, and how many of them connections may use.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that are reserved for files and for the process's own connections, if these need no more.
const KEPT_MAX: u64 = 1_024;

/// The descriptors of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptors {
    /// The limit.
    pub most: u64,
    /// The number that files and its own connections need.
    pub needed: u64,
}

impl Descriptors {
    /// Raises the soft limit to the hard limit.
    pub fn raise(needed: u64) -> Self {
        let limit = getrlimit(Resource::Nofile);
        let hard = Rlimit { current: limit.maximum, maximum: limit.maximum };
        let now = match setrlimit(Resource::Nofile, hard) {
            Ok(()) => limit.maximum,
            Err(_refused) => limit.current,
        };
        // None means unlimited; no process has more connections than that.
        Self { most: now.unwrap_or(u64::from(u32::MAX)), needed }
    }

    /// True if there are fewer than twice the number that is needed.
    pub fn are_few(self) -> bool {
        self.most < self.needed.saturating_mul(2)
    }

    /// How many connections may use: half, or all but a thousand if that is more. What files need is reserved first, but an eighth
    /// always stays for connections.
    pub fn for_connections(self) -> usize {
        let kept = KEPT_MAX.min(self.most / 2).max(self.needed.min(self.most / 8 * 7));
        usize::try_from(self.most - kept).unwrap_or(usize::MAX)
    }

    /// How many connections one listener may have: what it wants, but at most so many eighths of what all may use.
    pub fn share(self, eighths: usize, wanted: usize) -> usize {
        (self.for_connections() * eighths / 8).clamp(1, wanted.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_keep_what_they_need_or_half_or_a_thousand() {
        let descriptors = |most, needed| Descriptors { most, needed };
        assert_eq!(descriptors(256, 100).for_connections(), 128);
        assert_eq!(descriptors(65_536, 100).for_connections(), 65_536 - 1_024);
        assert_eq!(descriptors(4_096, 3_000).for_connections(), 1_096);
        assert_eq!(descriptors(256, 1_000).for_connections(), 32);
        assert!(descriptors(256, 129).are_few() && !descriptors(256, 128).are_few());
    }

    #[test]
    fn a_listener_has_what_it_wants_if_its_share_has_that() {
        let descriptors = |most| Descriptors { most, needed: 0 };
        assert_eq!(descriptors(256).share(4, 10_000), 64);
        assert_eq!(descriptors(1 << 20).share(4, 10_000), 10_000);
        assert_eq!(descriptors(4).share(1, 10_000), 1);
    }
}
