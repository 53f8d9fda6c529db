//! Counters of identities, which the node shows as metrics.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{DenialClass, Unidentified};
use crate::principal::PrincipalKind;

/// Counters since the start.
#[derive(Debug, Default)]
pub struct AuthCounts {
    /// Calls with an accepted API key.
    pub identified_by_api_key: AtomicU64,
    /// Calls with an accepted JWT.
    pub identified_by_jwt: AtomicU64,
    /// Calls with a certificate and no header.
    pub identified_by_certificate: AtomicU64,
    denied: [AtomicU64; DenialClass::ALL.len()],
    /// Calls that could not be judged because there are no keys.
    pub unavailable: AtomicU64,
    /// Elements of the permissions of tokens that grant nothing.
    pub permissions_skipped: AtomicU64,
    /// Fetches of the keys of all token issuers that succeeded.
    pub jwks_fetches_ok: AtomicU64,
    /// Fetches of which at least one source failed.
    pub jwks_fetches_failed: AtomicU64,
    /// Keys of token issuers that are in use.
    pub jwks_keys: AtomicU64,
    /// When they were fetched, in seconds since 1970; 0 = not yet.
    pub jwks_fetched_at_s: AtomicU64,
    /// API keys in the file.
    pub api_keys: AtomicU64,
    /// Rules in the file.
    pub rules: AtomicU64,
}

impl AuthCounts {
    /// Calls that were denied for a kind of reason.
    pub fn denied(&self, class: DenialClass) -> u64 {
        self.denied[class as usize].load(Ordering::Relaxed)
    }

    pub(crate) fn count_identified(&self, kind: PrincipalKind) {
        let counter = match kind {
            PrincipalKind::ApiKey => &self.identified_by_api_key,
            PrincipalKind::Jwt => &self.identified_by_jwt,
            PrincipalKind::Certificate => &self.identified_by_certificate,
            // No caller is the server.
            PrincipalKind::Server => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_refused(&self, refusal: &Unidentified) {
        let counter = match refusal {
            Unidentified::Denied(class, _) => &self.denied[*class as usize],
            Unidentified::Unavailable(_) => &self.unavailable,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_of_denials_has_its_counter() {
        let counts = AuthCounts::default();
        for class in DenialClass::ALL {
            assert_eq!(counts.denied(class), 0, "{}", class.name());
            counts.count_refused(&Unidentified::denied(class, "reason"));
            assert_eq!(counts.denied(class), 1, "{}", class.name());
        }
        counts.count_refused(&Unidentified::Unavailable("reason".into()));
        assert_eq!(counts.unavailable.load(Ordering::Relaxed), 1);
    }
}
