//! The audit log: a line for each call that changes namespaces or the cluster, and for each denial.
//!
//! Its lines have the target `everlog::audit` and never hold a token. Denials are sampled: a client without rights can send
//! more of them than a log can take.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::principal::Principal;

/// Denials of one second that have a line of their own. The others are counted in the next one.
const DENIALS_PER_SECOND: u64 = 20;

/// Writes the lines of one node.
#[derive(Debug)]
pub struct Audit {
    began: Instant,
    /// The second of the last denial, since `began`.
    second: AtomicU64,
    /// Denials of that second.
    denials: AtomicU64,
    unwritten: AtomicU64,
}

impl Default for Audit {
    fn default() -> Self {
        let zero = AtomicU64::default;
        Self { began: Instant::now(), second: zero(), denials: zero(), unwritten: zero() }
    }
}

impl Audit {
    /// A call of an admin has ended. `outcome`: `OK`, or the code of its status.
    pub fn admin_call(&self, principal: Option<&Principal>, call: &str, namespace: &str, outcome: &str) {
        let (kind, principal) = shown(principal);
        tracing::info!(
            target: "everlog::audit",
            principal, kind, call, namespace, outcome, "call of an administrator"
        );
    }

    /// A call was denied. `reason`: why, beyond missing roles.
    pub fn denied(&self, principal: Option<&Principal>, call: &str, namespace: &str, reason: &str) {
        if !self.is_written(self.began.elapsed().as_secs()) {
            self.unwritten.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let unwritten = self.unwritten.swap(0, Ordering::Relaxed);
        let (kind, principal) = shown(principal);
        tracing::warn!(
            target: "everlog::audit",
            principal, kind, call, namespace, reason, unwritten, "call denied"
        );
    }

    /// True for the first denials of a second.
    fn is_written(&self, second: u64) -> bool {
        if self.second.swap(second, Ordering::Relaxed) != second {
            self.denials.store(0, Ordering::Relaxed);
        }
        self.denials.fetch_add(1, Ordering::Relaxed) < DENIALS_PER_SECOND
    }
}

fn shown(principal: Option<&Principal>) -> (&'static str, &str) {
    principal.map_or(("none", ""), |principal| (principal.kind.name(), &principal.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_denials_of_a_second_have_a_line_each() {
        let audit = Audit::default();
        let written = (0..100).filter(|_| audit.is_written(7)).count() as u64;
        assert_eq!(written, DENIALS_PER_SECOND);
        assert!(audit.is_written(8));
    }
}
