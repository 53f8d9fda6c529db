//! The metrics of identities.

use everlog_auth::{AuthCounts, DenialClass};

use super::*;

pub(super) const IDENTITIES: &[Row<AuthCounts>] = rows! {
    Counts "everlog_auth_api_keys_accepted_total" "Requests whose caller was identified by an API key." |c| load(&c.identified_by_api_key);
    Counts "everlog_auth_tokens_accepted_total" "Requests whose caller was identified by a JWT." |c| load(&c.identified_by_jwt);
    Counts "everlog_auth_certificates_accepted_total" "Requests whose caller was identified by its certificate." |c| {
        load(&c.identified_by_certificate)
    };
    Counts "everlog_auth_unavailable_total" "Requests answered UNAVAILABLE or 503 because there were no keys to judge a JWT by." |c| {
        load(&c.unavailable)
    };
    Counts "everlog_auth_permissions_skipped_total" "Elements of a JWT's permissions that grant nothing." |c| {
        load(&c.permissions_skipped)
    };
    Counts "everlog_auth_jwks_fetches_total" "Fetches of the keys of issuers that succeeded." |c| load(&c.jwks_fetches_ok);
    Counts "everlog_auth_jwks_fetches_failed_total" "Fetches of the keys of issuers that failed; the former keys stay for a day." |c| {
        load(&c.jwks_fetches_failed)
    };
    Stands "everlog_auth_jwks_keys" "Keys of issuers in use." |c| load(&c.jwks_keys);
    Stands "everlog_auth_jwks_fetched_seconds" "When they were fetched, in seconds since 1970; 0 = not yet." |c| {
        load(&c.jwks_fetched_at_s)
    };
};

pub(super) const DENIED: &[Row<(Arc<AuthCounts>, DenialClass)>] = rows! {
    Counts "everlog_auth_denied_total" "Requests whose credentials were not accepted." |(counts, class)| counts.denied(*class) as f64;
};

/// Adds identities.
pub fn watch_identities(registry: &Registry, counts: Arc<AuthCounts>) {
    let classes = DenialClass::ALL.map(|class| (Arc::clone(&counts), class));
    add(registry, IDENTITIES, None, move |visit| visit("", &counts));
    add(registry, DENIED, Some("reason"), move |visit| {
        classes.iter().for_each(|denied| visit(denied.1.name(), denied));
    });
}
