//! The audit log: a line for each call that changes namespaces or the cluster, and for each denial.
//!
//! Its lines have the target `everlog::audit` and never hold a token. Denials are sampled: a client without rights can send
//! more of them than a log can take.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::principal::Principal;

/// Denials of one second that have a line of their own, of callers without an identity and of those with one. The others are
/// counted in the next line.
const DENIALS_PER_SECOND: u64 = 20;
/// Bytes of a text of a caller in a line. A namespace that exists has a shorter name.
const TEXT_BYTES_MAX: usize = 1_024;

/// Writes the lines of one node.
#[derive(Debug)]
pub struct Audit {
    began: Instant,
    /// Of callers without an identity, and of those with one: nobody hides denials of insiders by a flood of others.
    samples: [Sample; 2],
    /// Of callers that cannot be identified for the moment.
    unidentified: Sample,
}

/// Which denials have a line.
#[derive(Debug, Default)]
struct Sample {
    /// The second of the last denial, since the audit log began.
    second: AtomicU64,
    /// Denials of that second.
    denials: AtomicU64,
    unwritten: AtomicU64,
}

impl Default for Audit {
    fn default() -> Self {
        Self { began: Instant::now(), samples: Default::default(), unidentified: Sample::default() }
    }
}

impl Audit {
    /// A call of an admin has ended. `outcome`: `OK`, or the code of its status.
    pub fn admin_call(&self, principal: Option<&Principal>, call: &str, namespace: &str, outcome: &str) {
        let (kind, principal) = shown(principal);
        let (call, namespace) = (cut(call), cut(namespace));
        tracing::info!(
            target: "everlog::audit",
            principal, kind, call, namespace, outcome, "call of an administrator"
        );
    }

    /// A call was denied. `reason`: why, beyond missing roles.
    pub fn denied(&self, principal: Option<&Principal>, call: &str, namespace: &str, reason: &str) {
        let sample = &self.samples[usize::from(principal.is_some())];
        let Some(unwritten) = sample.next_line(self.began.elapsed().as_secs()) else { return };
        let (kind, principal) = shown(principal);
        let (call, namespace) = (cut(call), cut(namespace));
        tracing::warn!(
            target: "everlog::audit",
            principal, kind, call, namespace, reason, unwritten, "call denied"
        );
    }

    /// A caller could not be identified for the moment. `why`: what is missing. Whoever makes up a token can cause it while keys
    /// cannot be fetched.
    pub fn unidentified(&self, call: &str, why: &str) {
        let Some(unwritten) = self.unidentified.next_line(self.began.elapsed().as_secs()) else { return };
        tracing::warn!(target: "everlog::audit", call = cut(call), why, unwritten, "a caller cannot be identified");
    }
}

impl Sample {
    /// How many have had no line before this one; none where this one has none either.
    fn next_line(&self, second: u64) -> Option<u64> {
        if self.is_written(second) {
            return Some(self.unwritten.swap(0, Ordering::Relaxed));
        }
        self.unwritten.fetch_add(1, Ordering::Relaxed);
        None
    }

    /// True for the first denials of a second.
    fn is_written(&self, second: u64) -> bool {
        if self.second.swap(second, Ordering::Relaxed) != second {
            self.denials.store(0, Ordering::Relaxed);
        }
        self.denials.fetch_add(1, Ordering::Relaxed) < DENIALS_PER_SECOND
    }
}

/// The beginning of a text of a caller, which may have megabytes.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}

fn shown(principal: Option<&Principal>) -> (&'static str, &str) {
    principal.map_or(("none", ""), |principal| (principal.kind.name(), &principal.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_denials_of_a_second_have_a_line_each() {
        let sample = Sample::default();
        let written = (0..100).filter(|_| sample.is_written(7)).count() as u64;
        assert_eq!(written, DENIALS_PER_SECOND);
        assert!(sample.is_written(8));
    }

    #[test]
    fn the_next_line_counts_those_without_one() {
        let sample = Sample::default();
        let lines = (0..DENIALS_PER_SECOND + 5).filter_map(|_| sample.next_line(7)).collect::<Vec<_>>();
        assert_eq!(lines, vec![0; DENIALS_PER_SECOND as usize]);
        assert_eq!(sample.next_line(8), Some(5));
        assert_eq!(sample.next_line(8), Some(0));
    }

    #[test]
    fn texts_of_callers_are_cut_between_characters() {
        assert_eq!(cut("short"), "short");
        assert_eq!(cut(&"é".repeat(4_000)).len(), TEXT_BYTES_MAX);
        assert_eq!(cut(&format!("a{}", "é".repeat(4_000))).len(), TEXT_BYTES_MAX - 1);
    }
}
